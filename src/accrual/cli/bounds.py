"""`accrual bounds`: what theory says about a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accrual.cli.options import Horizon, Plot, Setting
from accrual.cli.output import PICTURES, number, show_table, writable
from accrual.core.errors import need, whole
from accrual.core.files import replacing

if TYPE_CHECKING:
    from accrual.problem import Problem
    from accrual.spread import Spread


def bounds(
    setting: Setting,
    alpha: Annotated[
        int | None, typer.Option(metavar="COUNT", help="The learner's groups; the problem's unless given.")
    ] = None,
    spread: Annotated[str, typer.Option(metavar="SPREAD", help="The assumed spread.")] = "begin",
    horizon: Horizon = 100_000,
    plot: Plot = None,
) -> None:
    """Print upper and lower bounds on the regret at the horizon."""
    from accrual.bounds import theorem1_factor
    from accrual.core.random import ROUND_MOST
    from accrual.experiments.files import load
    from accrual.spread import parse

    problem = load(setting).problem
    groups = problem.groups if alpha is None else alpha
    assumed = parse(spread)
    whole("horizon", horizon, 1, ROUND_MOST)
    curves = _curves(problem, groups, assumed)
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    show_table(
        ["bound", "regret"],
        [[name, number(float(curve(horizon)))] for name, curve in curves.items()],
        f"{setting}: bounds after {horizon:,} rounds, alpha {groups}, spread {assumed}",
    )
    telling = int((assumed.pmf(groups) > 0).sum())
    typer.echo(
        f"Theorem 1's factor is {theorem1_factor(groups, assumed):.4f}; "
        f"as printed it is a lower bound only up to {groups / telling:g}."
    )
    typer.echo("TPUCBFRG's bound holds where the groups of the problem are capped by that spread.")
    if plot is not None:
        _draw(curves, horizon, plot)


def _curves(problem: Problem, alpha: int, spread: Spread) -> dict[str, Any]:
    from accrual import bounds as of

    return {
        f"upper, TPUCBFRG({alpha}, {spread})": lambda t: of.upper_tpucbfrg(problem, t, alpha, spread),
        f"upper, TPUCBFR({alpha})": lambda t: of.upper_tpucbfr(problem, t, alpha),
        "upper, UCB1": lambda t: of.upper_ucb1(problem, t),
        "upper, DelayedUCB1": lambda t: of.upper_delayed_ucb1(problem, t),
        "lower, any policy": lambda t: of.lower(problem, t, alpha, spread),
        "lower, alpha-smooth": lambda t: of.lower_smooth(problem, t, alpha),
        "lower, Theorem 1 as printed": lambda t: of.lower_printed(problem, t, alpha, spread),
    }


def _draw(curves: dict[str, Any], horizon: int, path: Any) -> None:
    import numpy as np

    from accrual.core.colours import COLOURS

    ax = need("matplotlib.figure", "plot").Figure(figsize=(9, 5), layout="tight").subplots()
    rounds = np.unique(np.rint(np.geomspace(min(10, horizon), horizon, 300)))
    for rank, (name, curve) in enumerate(curves.items()):
        # Lower bounds often coincide: each is thinner than the one below it, and all stay visible.
        lower = name.startswith("lower")
        width = 1.8 if not lower else 5.5 - rank / 1.5
        style = "--" if lower else "-"
        ax.plot(rounds, curve(rounds), style, color=COLOURS[rank % len(COLOURS)], lw=width, label=name)
    ax.set(xlabel="horizon", ylabel="regret", xscale="log", yscale="log")
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    with replacing(path) as partial:
        ax.figure.savefig(partial, dpi=150, bbox_inches="tight")
