"""The picture of the page that the documentation shows: `make screenshot`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.browsing import started, watched
from tests.serving import serving

from accrual.studies.demo import Demo

OUT = Path(__file__).parent.parent / "docs" / "img" / "dashboard.png"


def main() -> None:
    """Watch the demo until it has a verdict, then take the picture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), demo=Demo(4.0)) as service,
        started() as browser,
        watched(browser) as seen,
    ):
        seen.page.goto(f"{service.url}/#courses")
        reached = "() => document.querySelector('#verdict-box')?.dataset.kind === 'stop'"
        seen.page.wait_for_function(reached, timeout=300_000)
        seen.page.wait_for_timeout(10_000)
        seen.page.mouse.move(0, 0)
        panel = seen.page.locator("#arms-panel").bounding_box()
        assert panel is not None
        end = panel["y"] + panel["height"] + 16
        picture = seen.page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": 1280, "height": end})
    OUT.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").save(OUT, optimize=True)
    print(f"{OUT}: {OUT.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
