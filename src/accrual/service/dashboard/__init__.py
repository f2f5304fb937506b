"""The page: one file of HTML and what it needs, read once and served as they are."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, Response

from accrual.service.refusals import Refusal

FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def router(keys_required: Callable[[], bool], demo: bool) -> APIRouter:
    """The routes of the page.

    Parameters
    ----------
    keys_required : callable
        Whether a request needs a key now.
    demo : bool
        Whether there is simulated traffic, whose regret can be shown.
    """
    # No path is ever made of what a browser asks for: what is not in here is not there.
    files = {
        path.relative_to(FOLDER).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }
    routes = APIRouter(include_in_schema=False)

    def answer(name: str) -> Response:
        if name not in files:
            raise Refusal("not-found", "the page has no such file")
        body, kind = files[name]
        return Response(body, headers={"content-type": kind})

    @routes.get("/")
    async def page() -> Response:
        return answer("index.html")

    @routes.get("/dashboard/about.json")
    async def about() -> dict[str, object]:
        # What the page must know before it asks for anything that may be refused.
        return {"version": version("accrual"), "keys": keys_required(), "demo": demo}

    @routes.get("/dashboard/{name:path}")
    async def file(name: str) -> Response:
        return answer(name)

    return routes
