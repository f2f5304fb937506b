"""Which policies are compared on the gallery's problems, and how they are played."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from accrual.core.errors import InputError
from accrual.engine.result import Result
from accrual.engine.simulate import check_plays, simulate
from accrual.policies.age import AgeIMED, AgeTS
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.age_prior import AgePrior
from accrual.policies.age_ucb import AgeUCB
from accrual.policies.base import Policy
from accrual.policies.catalog import parse
from accrual.policies.imed import IMED
from accrual.policies.lin import LinTS, LinUCB
from accrual.policies.thompson import ThompsonSampling
from accrual.policies.tpucbfrg import TPUCBFR, TPUCBFRG
from accrual.policies.ucb1 import DelayedUCB1
from accrual.problems.gallery import ENTRIES, Entry
from accrual.problems.laws import LeavingLaw, LumpLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import NAMES
from accrual.runs.cells import Cell, cut, on_device
from accrual.studies.gallery.habits import EarlyLinTS, EarlyReward, PiecesAsPulls, PiecesLinTS

VARIANT = ": "  # in a label: the row's name is before it, and the table shows the row's best variant
_ALPHAS = (0.02, 0.05, 0.1, 0.3)  # of LinTS, in caps

# What is always played beside the policies on a problem with contexts: the same policy when every total is
# known at once, and the policy of a bandit that has no contexts.
FLOOR, NO_CONTEXT = "no delay", "no context"
BESIDE: dict[str, Policy] = {FLOOR: AgeLinTS(immediate=True), NO_CONTEXT: AgePrior()}


def usual_rows(problem: Problem) -> dict[str, dict[str, Policy]]:
    """Return the policies to compare, by row of the table and variant; the table shows a row's best variant.

    The paper's policies use the problem's own number of groups.

    Examples
    --------
    >>> list(usual_rows(ENTRIES["k2"].problem))[:3]
    ['no delay', 'AgePrior', 'AgeIMED']
    >>> list(usual_rows(ENTRIES["ctx-same"].problem))[:3]
    ['no delay', 'AgeLinTS', 'AgeLinTS(waiting)']
    """
    if problem.contexts is not None:
        return _rows_with_contexts()
    alpha = problem.groups
    independent = not any(isinstance(law, LeavingLaw | LumpLaw) for law in problem.arm_laws)
    return {
        FLOOR: {"IMED": IMED(immediate=True), "ThompsonSampling": ThompsonSampling(immediate=True)},
        "AgePrior": {"": AgePrior()},
        "AgeIMED": {"": AgeIMED()},
        "AgeTS": {"": AgeTS()},
        "AgeUCB": {"": AgeUCB(alpha, proved=False, independent=independent)},
        "TPUCBFR": {"": TPUCBFR(alpha)},
        "TPUCBFRG": {name: TPUCBFRG(alpha, name) for name in NAMES},
        "DelayedUCB1": {"": DelayedUCB1()},
        "IMED(waiting)": {"": IMED()},
        "ThompsonSampling(waiting)": {"": ThompsonSampling()},
        "pieces as pulls": {"": PiecesAsPulls(alpha)},
        "first tenth": {"": EarlyReward(0.1)},
    }


def _rows_with_contexts() -> dict[str, dict[str, Policy]]:
    at_once = {f"LinTS({alpha:g})": LinTS(alpha=alpha, immediate=True) for alpha in _ALPHAS}
    return {
        FLOOR: {"AgeLinTS": BESIDE[FLOOR], **at_once},
        "AgeLinTS": {"": AgeLinTS()},
        "AgeLinTS(waiting)": {"": AgeLinTS(buckets=1)},
        "LinTS(waiting)": {f"{alpha:g}": LinTS(alpha=alpha) for alpha in _ALPHAS},
        "LinUCB(waiting)": {"": LinUCB()},
        "pieces as rewards": {"": PiecesLinTS()},
        "LinTS, first tenth": {"": EarlyLinTS()},
        NO_CONTEXT: {"": BESIDE[NO_CONTEXT]},
    }


def policies(problem: Problem, names: Sequence[str] = ()) -> dict[str, Policy]:
    """Return policies by label, ``row: variant`` where a row has several.

    "no delay" always comes first and, on a problem with contexts, "no context" always comes last. Policies
    that cannot play the problem are left out. On a problem without contexts these are the policies that
    choose by context. On a problem with contexts they are the policies that learn from single pieces, and the
    rows of problems without contexts.

    Parameters
    ----------
    names : sequence of str
        Rows of `usual_rows`, or any policy as text; all the usual rows for none.

    Examples
    --------
    >>> list(policies(ENTRIES["k2"].problem, ["AgeIMED", "TPUCBFR(10)"]))
    ['no delay: IMED', 'no delay: ThompsonSampling', 'AgeIMED', 'TPUCBFR(10)']
    """
    usual = usual_rows(problem)
    rows = usual if not names else {FLOOR: usual[FLOOR]}
    for name in names:
        if name in {FLOOR, NO_CONTEXT}:
            raise InputError(f"{name} is always there")
        if names.count(name) > 1:
            raise InputError(f"{name} is given twice")
        if name in usual:
            rows[name] = usual[name]
        elif name not in _rows_elsewhere(problem):
            policy = parse(name)
            if not (policy.feedback == "pieces" if problem.contexts else policy.contextual):
                rows[name] = {"": policy}
    if NO_CONTEXT in usual:
        rows[NO_CONTEXT] = usual[NO_CONTEXT]
    labelled = {
        f"{row}{VARIANT}{variant}" if variant else row: policy
        for row, variants in rows.items()
        for variant, policy in variants.items()
    }
    for policy in labelled.values():
        check_plays(policy, problem)
    return labelled


def _rows_elsewhere(problem: Problem) -> Collection[str]:
    """Return the rows that problems of the other kind have: those with contexts, or those without."""
    other = "setting1" if problem.contexts else "ctx-same"
    return usual_rows(ENTRIES[other].problem)


def choose(entries: Sequence[Entry], names: Sequence[str]) -> dict[str, dict[str, Policy]]:
    """Return the policies to compare on each entry that at least one of the named policies can play.

    Examples
    --------
    >>> entries = [ENTRIES["k2"], ENTRIES["ctx-same"]]
    >>> {id: list(found)[-2:] for id, found in choose(entries, ["AgeLinTS"]).items()}
    {'ctx-same': ['AgeLinTS', 'no context']}
    """
    found = {entry.id: policies(entry.problem, names) for entry in entries}
    played = {id: {label.partition(VARIANT)[0] for label in labels} for id, labels in found.items()}
    for name in names:
        if not any(name in rows for rows in played.values()):
            raise InputError(f"{name} can play none of these problems: {', '.join(found)}")
    return {id: found[id] for id, rows in played.items() if not names or rows & {*names}}


def cut_entry(
    entry: Entry,
    compared: Mapping[str, Policy],
    horizon: int | None = None,
    runs: int | None = None,
    device: str = "cpu",
) -> list[Cell]:
    """Cut one problem into cells, with a fifth of its own runs in each.

    On a GPU one cell has all runs, which take no longer than a few. Problems with contexts are always
    played on the CPU.

    Examples
    --------
    >>> entry = ENTRIES["k2"]
    >>> [cell.runs for cell in cut_entry(entry, policies(entry.problem), runs=10)]
    [range(0, 4), range(4, 8), range(8, 10)]
    """
    count = entry.runs if runs is None else runs
    if entry.problem.contexts and device == "cuda":
        device = "cpu"
    cells = cut(
        entry.id,
        entry.problem,
        compared,
        entry.horizon if horizon is None else horizon,
        count,
        size=max(1, entry.runs // 5) if device == "cpu" else max(1, count),
        seed=entry.seed,
    )
    return on_device(cells, device)


def play(
    entry: Entry,
    compared: Mapping[str, Policy] | None = None,
    horizon: int | None = None,
    runs: int | None = None,
    threads: int | None = None,
) -> Result:
    """Play one problem of the gallery, with its own horizon and runs unless others are given.

    Examples
    --------
    >>> result = play(ENTRIES["k2"], policies(ENTRIES["k2"].problem, ["AgeIMED"]), horizon=500, runs=2)
    >>> result.labels
    ('no delay: IMED', 'no delay: ThompsonSampling', 'AgeIMED')
    """
    return simulate(
        entry.problem,
        policies(entry.problem) if compared is None else compared,
        horizon=entry.horizon if horizon is None else horizon,
        runs=entry.runs if runs is None else runs,
        seed=entry.seed,
        checkpoints=100,
        threads=threads,
    )
