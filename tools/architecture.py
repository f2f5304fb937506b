"""`make map`: draw docs/img/architecture.svg, and fill in what each room imports in CONTRIBUTING.md.

The layers are those of import-linter in pyproject.toml, and the imports are read from the source. A test
compares both with what is committed.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "img" / "architecture.svg"
GUIDE = ROOT / "CONTRIBUTING.md"

# For each room: what its box says, and the job that the room serves.
ROOMS = {
    "__main__": ("python -m accrual", "shared"),
    "testing": ("published test suites", "shared"),
    "cli": ("the command accrual", "shared"),
    "studies": ("the paper, the gallery, sweeps, the demo", "study"),
    "service": ("HTTP, keys, the page", "live"),
    "client": ("speaks to the service", "live"),
    "evaluate": ("compare, replay, plan", "logs"),
    "runs": ("simulations kept on disk", "study"),
    "live": ("Bandit: decide, observe", "live"),
    "engine": ("simulate: CPU and GPU", "study"),
    "bounds": ("regret bounds", "study"),
    "logs": ("logs to problems", "logs"),
    "store": ("durable events", "live"),
    "policies": ("a file or a folder for each policy", "shared"),
    "problems": ("spreads, laws, arms, contexts", "shared"),
    "core": ("compiler, random numbers, errors", "shared"),
}
COLOURS = {"study": "#dbe7ff", "logs": "#dcf3e0", "live": "#ffe6cf", "shared": "#eeeeee"}
JOBS = {"study": "study", "logs": "fit logs", "live": "decide live", "shared": "shared"}
# The walk of one piece: numbers on the live side, letters in the simulator.
WALK = {"service": "1 6", "store": "2", "live": "3 5", "policies": "4 c", "problems": "a", "engine": "b"}

WIDTH, LEFT, ROW, BOX, GAP = 960, 60, 62, 46, 14


def layers() -> list[list[str]]:
    """Read the rooms from the top down, those of one layer together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in row.split("|")] for row in rows]


def imports() -> dict[str, list[str]]:
    """Read from the source which rooms each room imports itself."""
    graph = grimp.build_graph("accrual", cache_dir=None)
    rooms = [room for row in layers() for room in row]
    return {
        room: [
            other
            for other in rooms
            if other != room
            and graph.direct_import_exists(
                importer=f"accrual.{room}", imported=f"accrual.{other}", as_packages=True
            )
        ]
        for room in rooms
    }


def picture() -> str:
    """Draw the layers, with a box for each room."""
    rows = layers()
    height = 70 + ROW * len(rows) + 104
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 34, "The rooms of accrual. A room imports only rooms below it.", 17, weight="bold"),
        f'<path d="M28 70 V{56 + ROW * len(rows)}" stroke="#777" stroke-width="2"/>',
        f'<path d="M22 {48 + ROW * len(rows)} L28 {60 + ROW * len(rows)} L34 {48 + ROW * len(rows)}" '
        'fill="none" stroke="#777" stroke-width="2"/>',
        f'<g transform="translate(18 {100 + ROW * len(rows) // 2}) rotate(-90)">'
        f"{_text(0, 0, 'imports', 13, '#555')}</g>",
    ]
    for number, row in enumerate(rows):
        wide = (WIDTH - LEFT - 20 - GAP * (len(row) - 1)) / len(row)
        for place, room in enumerate(row):
            parts += _box(LEFT + place * (wide + GAP), 56 + number * ROW, wide, room)
    parts += _legend(56 + ROW * len(rows) + 22)
    return "\n".join([*parts, "</svg>", ""])


def _box(x: float, y: float, wide: float, room: str) -> list[str]:
    says, job = ROOMS[room]
    parts = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{BOX}" rx="7" fill="{COLOURS[job]}" '
        'stroke="#888"/>',
        _text(x + 12, y + 20, room, 15, weight="bold"),
        _text(x + 12, y + 37, says, 12, "#333"),
    ]
    for place, step in enumerate(reversed(WALK.get(room, "").split())):
        centre = x + wide - 16 - place * 24
        fill = "#c2410c" if step.isdigit() else "#1d4ed8"
        parts += [
            f'<circle cx="{centre:.0f}" cy="{y + 14:.0f}" r="10" fill="{fill}"/>',
            _text(centre, y + 18.5, step, 12, "#ffffff", "bold", "middle"),
        ]
    return parts


def _legend(y: float) -> list[str]:
    parts = []
    for place, (job, says) in enumerate(JOBS.items()):
        x = LEFT + place * 120
        parts += [
            f'<rect x="{x}" y="{y}" width="16" height="16" rx="3" fill="{COLOURS[job]}" stroke="#888"/>',
            _text(x + 24, y + 13, says, 13),
        ]
    live = (
        "A live piece: (1) arrives over HTTP, (2) is stored, (3) is folded (4) by the policy's own function;"
    )
    shown = "(5) the next decision reads it, and (6) the page shows it."
    simulated = "A simulated piece: (a) is drawn, (b) arrives, (c) is learned by the same function."
    lines = [(live, "#c2410c"), (shown, "#c2410c"), (simulated, "#1d4ed8")]
    return parts + [
        _text(LEFT, y + 40 + 19 * place, words, 13, colour) for place, (words, colour) in enumerate(lines)
    ]


def _text(
    x: float,
    y: float,
    words: str,
    size: int,
    fill: str = "#111",
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.1f}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def guide(text: str) -> str:
    """Return the guide with the last column of its table of rooms filled in: what each room imports."""
    known = imports()

    def row(match: re.Match[str]) -> str:
        start, room = match[1], match[2]
        return f"{start} {', '.join(known[room]) or 'nothing'} |"

    return re.sub(r"^(\| `(\w+)(?:/|\.py)` \|[^|]*\|)[^|]*\|$", row, text, flags=re.M)


def main() -> None:
    """Write the picture and the guide."""
    PICTURE.write_text(picture(), encoding="utf-8")
    GUIDE.write_text(guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
