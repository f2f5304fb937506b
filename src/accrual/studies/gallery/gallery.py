"""Problems that stress a policy where the paper's settings do not (as `accrual.gallery`).

Every problem is ours, except Setting 1, which stands here as the familiar one. `ENTRIES` holds
them as data; `play` runs policies on one; ``accrual.gallery["sparse"]`` is the problem alone.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from accrual.core.errors import InputError, unknown
from accrual.engine.result import Result
from accrual.engine.simulate import simulate
from accrual.policies.age_imed import AgeIMED
from accrual.policies.age_kl import AgeKL
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.age_prior import AgePrior
from accrual.policies.age_ts import AgeTS
from accrual.policies.age_ucb import AgeUCB
from accrual.policies.base import Policy
from accrual.policies.catalog import parse
from accrual.policies.imed import IMED
from accrual.policies.lin import LinTS, LinUCB
from accrual.policies.thompson import ThompsonSampling
from accrual.policies.tpucbfrg import TPUCBFR, TPUCBFRG
from accrual.policies.ucb1 import DelayedUCB1
from accrual.problems import families
from accrual.problems.contexts import ContextualProblem
from accrual.problems.families import lumps, plain
from accrual.problems.laws import BernoulliLaw, Law, LeavingLaw, LumpLaw, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import NAMES
from accrual.runs.cells import AnyProblem, Cell, check_plays, cut, on_device
from accrual.studies.gallery.contextual_problems import BESIDE, CASES, FLOOR, NO_CONTEXT
from accrual.studies.gallery.habits import EarlyReward, PiecesAsPulls
from accrual.studies.gallery.habits_lin import EarlyLinTS, PiecesLinTS
from accrual.studies.gallery.listening import listening_by_decision
from accrual.studies.paper import setting1

VARIANT = ": "  # in a label: what stands before is the row, of which the best variant is shown
_ALPHAS = (0.02, 0.05, 0.1, 0.3)  # of LinTS, in caps


@dataclass(frozen=True)
class Entry:
    """One problem of the gallery, and how long to play it."""

    id: str  # its name, which does not change
    title: str
    stresses: str  # what is hard about it
    problem: AnyProblem
    horizon: int = 100_000
    runs: int = 20
    seed: int = 0

    @property
    def with_contexts(self) -> bool:
        return isinstance(self.problem, ContextualProblem)


def _crowd(levels: Sequence[Law], best: Law, arms: int, winners: int) -> Problem:
    """Make `arms` arms at these levels in turn, but for `winners` of them, spaced evenly."""
    laws = [levels[arm % len(levels)] for arm in range(arms)]
    for place in range(1, winners + 1):
        laws[place * arms // (winners + 1)] = best
    return plain(100, laws)


def _playlists() -> Problem:
    # Twenty songs of four rounds, a reward of 1 a round. Who stays longer skips more.
    stay = (0.86, 0.89, 0.92, 0.95, 0.98, 1.0)
    plays = (0.92, 0.77, 0.63, 0.50, 0.39, 0.33)
    laws = [LeavingLaw((1.0,) + (s,) * 19, p) for s, p in zip(stay, plays, strict=True)]
    return Problem([80.0] * 6, 80, 20, laws)


def _long(spread: str) -> Problem:
    return families.long_window([0.3 + arm / 30 for arm in range(10)], spread)


def _loose() -> Problem:
    true = setting1()
    return Problem([4 * cap for cap in true.caps], true.window, true.groups, ScaledLaw(UniformLaw(), 0.25))


def _late() -> Problem:
    early = [BernoulliLaw(p, "begin") for p in (0.45, 0.5, 0.5)]
    return plain(100, [*early, BernoulliLaw(0.6, "end")])


def _newer(id: str, title: str, stresses: str, problem: Problem, horizon: int = 30_000) -> Entry:
    return Entry(id, title, stresses, problem, horizon, seed=1)


_LIST = [
    Entry("setting1", "The paper's Setting 1", "the familiar case: ten arms, even spread", setting1()),
    Entry(
        "playlist",
        "Playlists that listeners leave",
        "groups depend on each other: a listener who leaves pays nothing more",
        _playlists(),
    ),
    Entry("late-best", "The best arm pays late", "arms differ in speed, and the early ones lure", _late()),
    Entry(
        "lump",
        "Lump payments",
        "a decision pays once, at any age, or never",
        plain(100, lumps(0.3, 0.35, 0.4, 0.45, 0.5, 0.6, spread="uniform")),
    ),
    Entry(
        "sparse",
        "Sparse rewards",
        "about one decision in a hundred pays",
        plain(100, lumps(*[0.006] * 9, 0.015)),
    ),
    Entry(
        "k100",
        "A hundred arms with small gaps",
        "many arms, one of them a little better",
        _crowd(lumps(*(0.43 + level / 100 for level in range(11))), LumpLaw(0.55, "begin_middle"), 100, 1),
    ),
    Entry(
        "w5000-early",
        "Window 5000, early spread",
        "a quarter of the horizon passes before a total is known",
        _long("begin"),
        horizon=20_000,
    ),
    Entry("w5000-even", "Window 5000, even spread", "the same, half of it later", _long("uniform"), 20_000),
    Entry("w5000-late", "Window 5000, late spread", "the same, nearly all of it late", _long("end"), 20_000),
    Entry("caps4", "Caps four times too large", "Setting 1, with caps that no reward comes near", _loose()),
    Entry(
        "equal",
        "All arms equal",
        "nothing to learn: regret is 0, and the arms should share the decisions",
        plain(100, lumps(*[0.3] * 10)),
    ),
    Entry("k2", "Two arms", "nothing to pool over, and a small gap", plain(100, lumps(0.5, 0.55))),
    Entry(
        "k1000",
        "A thousand arms",
        "twenty decisions an arm; ten arms are best",
        _crowd(lumps(*(0.05 * level for level in range(1, 11))), LumpLaw(0.6, "begin_middle"), 1000, 10),
        horizon=20_000,
        runs=5,
    ),
    _newer(
        "late-surprise",
        "A late surprise",
        "arms alike for nineteen twentieths of the window, and a last payment that decides",
        families.late_surprise([0.25, 0.35, 0.3, 0.55, 0.2], share=0.35, early=0.4),
    ),
    _newer(
        "at-cap",
        "The best arm always pays its cap",
        "a mean at the cap itself, beyond which nothing can be",
        plain(100, lumps(0.75, 0.85, 0.65, 1.0, 0.8)),
    ),
    _newer(
        "near-cap",
        "All arms near their caps",
        "totals vary little, and little can still be won",
        plain(100, lumps(0.88, 0.93, 0.91, 0.97, 0.94)),
    ),
    _newer(
        "jackpot",
        "A rare jackpot",
        "the best arm pays rarely but much, beside small steady pay",
        families.jackpot([0.03, 0.025, 0.03, 0.028], chance=0.05),
    ),
    _newer(
        "hidden-jackpot",
        "A jackpot in disguise",
        "the best arm pays small steady totals like the others, and once in fifty times the whole cap",
        families.hidden_jackpot([0.03, 0.034, 0.032], base=0.028, one_in=50),
    ),
    _newer(
        "lure",
        "An early lure",
        "what the first quarter of a long window promises, the rest does not keep",
        families.lure([0.75, 0.55, 0.65, 0.35, 0.45], [0.25, 0.35, 0.2, 0.55, 0.4]),
    ),
    _newer(
        "mixed-caps",
        "Caps of very different size",
        "means alike under caps from 1 to 150, most of them far too large",
        families.mixed_caps([1.0, 3.0, 20.0, 60.0, 150.0, 5.0], [0.6, 0.5, 0.55, 0.6, 0.75, 0.65]),
    ),
    _newer(
        "bimodal",
        "Early or late, nothing between",
        "arms pay at the begin or at the end of the window, each in shares of its own",
        families.bimodal([0.35, 0.4, 0.45, 0.5, 0.3], [0.8, 0.7, 0.3, 0.2, 0.95]),
    ),
    _newer(
        "two-speeds",
        "Two speeds",
        "some arms pay early and some late, at means that lie among each other",
        families.two_speeds([0.35, 0.55, 0.45, 0.5], [0.4, 0.6, 0.5, 0.45], window=100),
    ),
    _newer(
        "needle",
        "A needle among a hundred arms",
        "98 arms are alike, one is good and one a little better",
        families.needle(100, usual=0.25, second=0.5, best=0.55),
    ),
    _newer(
        "heavy-tails",
        "Heavy tails",
        "many small totals and a few as large as the cap",
        families.heavy_tails([0.03, 0.035, 0.025, 0.05, 0.04]),
    ),
    _newer(
        "delay-2",
        "A fixed delay, two arms",
        "the whole reward after exactly fifty rounds, and a short horizon",
        families.fixed_delay([0.45, 0.6]),
        horizon=3_000,
    ),
    _newer(
        "delay-10",
        "A fixed delay, ten arms",
        "the whole reward after exactly fifty rounds, and a short horizon",
        families.fixed_delay([0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.4, 0.3, 0.6]),
        horizon=5_000,
    ),
    _newer(
        "beyond-early",
        "A window longer than the horizon, early pay",
        "no total is ever known",
        families.long_window([0.35, 0.4, 0.5, 0.45, 0.6], "begin", window=15_000),
        horizon=10_000,
    ),
    _newer(
        "beyond-late",
        "A window longer than the horizon, late pay",
        "no total is ever known, and most of it lies beyond the horizon",
        families.long_window([0.35, 0.4, 0.5, 0.45, 0.6], "end", window=15_000),
        horizon=10_000,
    ),
    *(
        Entry(id, case.title, case.stresses, case.problem, 20_000, case.runs, seed=1)
        for id, case in CASES.items()
    ),
]  # fmt: skip
ENTRIES: dict[str, Entry] = {entry.id: entry for entry in _LIST}
_LISTENING = "listening"  # a problem to simulate, which `accrual gallery` does not play


def problem(name: str) -> AnyProblem:
    """Return the problem of an entry, by its id, or the listening service: ``accrual.gallery[name]``.

    Examples
    --------
    >>> problem("sparse") == ENTRIES["sparse"].problem
    True
    >>> problem("ctx-same").contexts.width
    10
    >>> len(problem("listening").caps)
    200
    """
    if name == _LISTENING:
        return listening_by_decision()
    if name not in ENTRIES:
        raise unknown("problem of the gallery", name, [*ENTRIES, _LISTENING])
    return ENTRIES[name].problem


class _Gallery(ModuleType):
    def __getitem__(self, name: str) -> AnyProblem:
        return problem(name)


sys.modules[__name__].__class__ = _Gallery


def select(only: Sequence[str] = ()) -> list[Entry]:
    """Return the entries of these ids or beginnings of ids (``w5000``); all of them for none.

    Examples
    --------
    >>> [entry.id for entry in select(["k2", "w5000"])]
    ['w5000-early', 'w5000-even', 'w5000-late', 'k2']
    """
    for word in only:
        if not _matches(word):
            raise unknown("problem of the gallery", word, ENTRIES)
    chosen = {id for word in only for id in _matches(word)}
    return [entry for id, entry in ENTRIES.items() if id in chosen or not only]


def _matches(word: str) -> list[str]:
    return [id for id in ENTRIES if id == word or id.startswith(f"{word}-")]


def usual_rows(problem: AnyProblem) -> dict[str, dict[str, Policy]]:
    """Return the policies to compare by row of the table; of a row's variants the best is shown.

    The paper's learners use the problem's own number of groups.

    Examples
    --------
    >>> list(usual_rows(ENTRIES["k2"].problem))[:3]
    ['no delay', 'AgePrior', 'AgeIMED']
    >>> list(usual_rows(ENTRIES["ctx-same"].problem))[:3]
    ['no delay', 'AgeLinTS', 'AgeLinTS(waiting)']
    """
    if isinstance(problem, ContextualProblem):
        return _rows_with_contexts()
    alpha = problem.groups
    independent = not any(isinstance(law, LeavingLaw | LumpLaw) for law in problem.arm_laws)
    return {
        FLOOR: {"IMED": IMED(immediate=True), "ThompsonSampling": ThompsonSampling(immediate=True)},
        "AgePrior": {"": AgePrior()},
        "AgeIMED": {"": AgeIMED()},
        "AgeTS": {"": AgeTS()},
        "AgeKL": {"": AgeKL()},
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


def policies(problem: AnyProblem, names: Sequence[str] = ()) -> dict[str, Policy]:
    """Return policies by label, ``row: variant`` where a row has several.

    The floor always comes first, and "no context" always last on a problem with contexts. What does not
    go with the problem is left out: where there are no contexts, policies that choose by them; where there
    are, policies that learn from single pieces and rows of the problems without.

    Parameters
    ----------
    problem : Problem or ContextualProblem
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
            with_contexts = isinstance(problem, ContextualProblem)
            if not (policy.feedback == "pieces" if with_contexts else policy.contextual):
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


def _rows_elsewhere(problem: AnyProblem) -> Collection[str]:
    """Return the rows of problems of the other kind: with contexts, or without."""
    other = "setting1" if isinstance(problem, ContextualProblem) else "ctx-same"
    return usual_rows(ENTRIES[other].problem)


def choose(entries: Sequence[Entry], names: Sequence[str]) -> dict[str, dict[str, Policy]]:
    """Return the policies to compare on each entry that at least one of those named can play.

    Examples
    --------
    >>> {id: list(found)[-2:] for id, found in choose(select(["k2", "ctx-same"]), ["AgeLinTS"]).items()}
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

    On a GPU one cell has all runs, which take no longer than a few.

    Examples
    --------
    >>> entry = ENTRIES["k2"]
    >>> [cell.runs for cell in cut_entry(entry, policies(entry.problem), runs=10)]
    [range(0, 4), range(4, 8), range(8, 10)]
    """
    count = entry.runs if runs is None else runs
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
    """Play one problem of the gallery; its own horizon and runs unless given.

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
