"""`accrual spread`: spreads, drawn and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accrual.cli.options import Plot, count
from accrual.cli.output import PICTURES, console, show_table, writable
from accrual.core.errors import need, whole
from accrual.core.files import replacing

if TYPE_CHECKING:
    from accrual.problems.spreads import Spread

_LINES = 50  # of the bar chart, at most
_WIDTH = 80  # of a line, at most
_LEAST = 6  # characters that a bar needs to say anything


def spread(
    spreads: Annotated[
        list[str],
        typer.Argument(metavar="SPREAD...", help="A name, a law such as 'zipf(2)', or shares: 0.5,0.3,0.2"),
    ],
    groups: Annotated[
        int, typer.Option(parser=count, metavar="COUNT", help="Equal parts of the window.")
    ] = 50,
    plot: Plot = None,
) -> None:
    """Show how a spread divides a cap over groups."""
    from accrual.problems.spreads import GROUPS_MOST, parse

    whole("groups", groups, 1, GROUPS_MOST)
    chosen = {one.label: one for one in map(parse, spreads)}
    pmfs = {label: one.pmf(groups) for label, one in chosen.items()}
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    _show_bars(pmfs, groups)
    show_table(
        ["spread", "E[Y]", "coincidence"],
        [
            [label, f"{one.mean(groups):.4f}", f"{one.coincidence(groups):.4f}"]
            for label, one in chosen.items()
        ],
    )
    if plot is not None:
        _draw(list(chosen.values()), groups, plot)


def _show_bars(pmfs: dict[str, Any], groups: int) -> None:
    """Print one line per group, or per few groups where there are many; all bars on one scale."""
    step = -(-groups // _LINES)
    starts = range(0, groups, step)
    shares = {label: [float(pmf[s : s + step].sum()) for s in starts] for label, pmf in pmfs.items()}
    most = max(map(max, shares.values()))
    out = console()
    width = (min(out.width, _WIDTH) - 12) // len(shares) - max(map(len, shares)) - 6
    block = "█" if out.encoding.lower().startswith("utf") else "#"
    rows = []
    for i, s in enumerate(starts):
        last = min(s + step, groups)
        row = [str(last) if step == 1 else f"{s + 1}-{last}"]
        for values in shares.values():
            row += [f"{values[i]:.4f}", block * round(max(width, 1) * values[i] / most)]
        rows.append(row)
    head = ["group", *(cell for label in shares for cell in (label, ""))]
    if width < _LEAST:  # too many spreads for bars: the figures alone
        head, rows = ["group", *shares], [[row[0], *row[1::2]] for row in rows]
    show_table(head, rows)


def _draw(chosen: list[Spread], groups: int, path: Any) -> None:
    from accrual.core.pictures import COLOURS

    ax = need("matplotlib.figure", "plot").Figure(figsize=(8, 4.5), layout="tight").subplots()
    ax.set_prop_cycle(color=COLOURS)
    for one in chosen:
        one.plot(groups, ax=ax)
    with replacing(path) as partial:
        ax.figure.savefig(partial, dpi=150)
