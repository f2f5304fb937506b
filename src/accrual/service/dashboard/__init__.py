"""The page: `routes` serves its files of HTML, style and script, which are read once."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from accrual.service.refusals import Refusal

FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def routes(keys_required: Callable[[], bool], demo: bool) -> list[Route]:
    """Return the routes of the page.

    Parameters
    ----------
    keys_required : callable
        Whether a request needs a key now.
    demo : bool
        Whether the traffic is simulated, so that its regret can be shown.
    """
    # Only these files are served. No path on the disk is ever made from a request.
    files = {
        path.relative_to(FOLDER).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }

    def answer(name: str) -> Response:
        if name not in files:
            raise Refusal("not-found", "the page has no such file")
        body, kind = files[name]
        return Response(body, headers={"content-type": kind})

    async def page(request: Request) -> Response:
        return answer("index.html")

    async def docs(request: Request) -> Response:
        return answer("docs.html")

    async def about(request: Request) -> Response:
        # What the page must know before its first request that may need a key.
        return JSONResponse({"version": version("accrual"), "keys": keys_required(), "demo": demo})

    async def file(request: Request) -> Response:
        return answer(request.path_params["name"])

    return [
        Route("/", page),
        Route("/docs", docs),
        Route("/dashboard/about.json", about),
        Route("/dashboard/{name:path}", file),
    ]
