"""`accrual bounds`: what theory says about a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accrual.cli.options import Horizon, Plot, Setting
from accrual.cli.output import PICTURES, say, show_table, writable
from accrual.core.errors import need, whole
from accrual.core.files import replacing
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.problems.problem import Problem
    from accrual.problems.spreads import Spread

_ONE = "lower, groups with one chance"
_FREE = "lower, groups with free chances"
_PRINTED = "lower, Theorem 1 as printed"


def bounds(
    setting: Setting,
    alpha: Annotated[
        int | None, typer.Option(metavar="COUNT", help="The learner's groups; the problem's unless given.")
    ] = None,
    spread: Annotated[str, typer.Option(metavar="SPREAD", help="The assumed spread.")] = "begin",
    horizon: Horizon = 100_000,
    plot: Plot = None,
) -> None:
    """Print upper and lower bounds on the regret."""
    from accrual.bounds import theorem1_factor
    from accrual.core.errors import InputError
    from accrual.core.random import ROUND_MOST
    from accrual.problems.spreads import parse
    from accrual.studies.problem_files import load

    problem = load(setting).problem
    if problem.contexts is not None:
        raise InputError(f"{setting} has contexts, and no bound is known for such problems")
    groups = problem.groups if alpha is None else alpha
    assumed = parse(spread)
    whole("horizon", horizon, 1, ROUND_MOST)
    curves = _curves(problem, groups, assumed)
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    refused = ""
    try:
        curves[_FREE](horizon)
    except InputError as error:  # the other bounds use only the arms' means, and still hold
        refused = str(error)
        del curves[_FREE]
    values = {name: float(curve(horizon)) for name, curve in curves.items()}
    show_table(
        ["bound", "regret"],
        [[name, figure(value)] for name, value in values.items()],
        f"{setting}: bounds after {horizon:,} rounds, alpha {groups}, spread {assumed}",
    )
    say("TPUCBFRG's bound and AgeUCB's hold where the groups of the problem are capped by that spread.")
    say(
        "A lower bound holds in the long run, for policies uniformly efficient on a class of problems: "
        "all groups of an arm pay with one chance, or every group with a chance of its own (free chances)."
    )
    if refused:
        say(f"No bound for free chances: {refused}.")
    say(f"Theorem 1's factor is {theorem1_factor(groups, assumed):.4f}. {_verdict(values)}")
    if plot is not None:
        _draw(curves, horizon, plot)


def _curves(problem: Problem, alpha: int, spread: Spread) -> dict[str, Any]:
    from accrual import bounds as of

    return {
        f"upper, TPUCBFRG({alpha}, {spread})": lambda t: of.upper_tpucbfrg(problem, t, alpha, spread),
        f"upper, TPUCBFR({alpha})": lambda t: of.upper_tpucbfr(problem, t, alpha),
        f"upper, AgeUCB({alpha}, {spread})": lambda t: of.upper_ageucb(problem, t, alpha, spread),
        "upper, UCB1": lambda t: of.upper_ucb1(problem, t),
        "upper, DelayedUCB1": lambda t: of.upper_delayed_ucb1(problem, t),
        _ONE: lambda t: of.lower(problem, t, alpha, spread),
        _FREE: lambda t: of.lower_free_chances(problem, t, alpha, spread),
        "lower, alpha-smooth": lambda t: of.lower_smooth(problem, t, alpha),
        _PRINTED: lambda t: of.lower_printed(problem, t, alpha, spread),
    }


def _verdict(values: dict[str, float]) -> str:
    """Say for which of the classes Theorem 1's printed bound is a lower bound."""
    classes = {_ONE: "one chance", _FREE: "free chances"}
    classes_said = [
        f"{'no' if values[_PRINTED] > values[name] * (1 + 1e-9) else 'a'} lower bound for {word}"
        for name, word in classes.items()
        if name in values
    ]
    return f"As printed it is {' and '.join(classes_said)}."


def _draw(curves: dict[str, Any], horizon: int, path: Any) -> None:
    import numpy as np

    from accrual.core.pictures import COLOURS

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
