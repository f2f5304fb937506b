"""The paper's experiments as data: problems, learners, and what the paper prints for them.

A *learner* is a policy as data. A *block* is a set of learners that play one problem together. A *setting* is
a table or a figure. Several settings may show the same block, which is then simulated once: Setting 1 at
alpha 20 is shown beside all three families of alternative spreads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accrual.core.errors import InputError, unknown
from accrual.problems.paper import CONFIGS

HORIZON = 100_000
RUNS = 100
SEED = 0

BEGINS = ("extreme_begin", "very_begin", "begin", "begin_middle")
SPREADS = (*BEGINS, "middle", "middle_end", "end", "very_end")
ALPHAS = (5, 10, 20, 25, 50)
ALTERNATIVES = {
    "zipf": ("zipf", (1, 2, 3, 4)),
    "boltzmann": ("boltzmann", (1.0, 0.5, 0.25, 0.125)),
    "hypergeometric": ("hypergeom", (50, 100, 200, 300, 400, 500)),
}


class PaperLearner(NamedTuple):
    """A policy as data."""

    policy: str
    alpha: int | None = None
    spread: str | None = None

    @property
    def label(self) -> str:
        """The label of the policy."""
        inside = ", ".join(str(part) for part in (self.alpha, self.spread) if part is not None)
        return f"{self.policy}({inside})" if inside else self.policy

    @property
    def kind(self) -> str:
        """What decides its colour in every figure: the spread of TPUCBFRG, otherwise the policy."""
        return self.spread if self.policy == "TPUCBFRG" and self.spread else self.policy


@dataclass(frozen=True)
class PaperBlock:
    """Learners that play one problem together, on the same draws."""

    id: str
    problem: str  # its name for `make_problem`
    learners: tuple[PaperLearner, ...]
    runs_per_cell: int = 10


@dataclass(frozen=True)
class PaperSetting:
    """One table or figure of the paper."""

    id: str
    title: str
    blocks: tuple[str, ...]
    learners: tuple[PaperLearner, ...]  # in the order of the table
    printed: dict[PaperLearner, float] = field(default_factory=dict)  # final regret
    bounds: bool = False  # draw the upper bounds of TPUCBFR and TPUCBFRG


def family(alpha: int) -> tuple[PaperLearner, ...]:
    """Return the paper's learners at one alpha: the even spread, the eight named spreads, and TPUCBEW."""
    named = tuple(PaperLearner("TPUCBFRG", alpha, name) for name in SPREADS)
    return (PaperLearner("TPUCBFR", alpha), *named, PaperLearner("TPUCBEW", alpha))


YARDSTICKS = (PaperLearner("UCB1"), PaperLearner("DelayedUCB1"))

SCENARIO_TITLES = {"uniform": "uniform", "late": "2.1 (late)", "early": "2.2 (early)"}
AUDITS = {
    "last": "Theorem 1 audited: all reward in the last group",
    "very_end": "Theorem 1 audited: spread very_end",
}

# Final regret at 100,000 rounds: TPUCBFR, then TPUCBFRG (begin; begin_middle at alpha 5).
PRINTED_1 = {
    5: (1.34e6, 1.28e6),
    10: (1.04e6, 9.27e5),
    20: (8.56e5, 6.71e5),
    25: (8.18e5, 6.07e5),
    50: (7.21e5, 4.64e5),
}
PRINTED_2 = {
    "late": {1: (1.04e6, 9.27e5), 2: (7.19e5, 4.66e5), 3: (2.94e6, 1.98e6), 4: (2.45e6, 1.27e6)},
    "early": {1: (1.04e6, 9.25e5), 2: (7.17e5, 4.64e5), 3: (2.93e6, 1.97e6), 4: (2.43e6, 1.26e6)},
    "uniform": {1: (1.04e6, 9.28e5), 2: (7.18e5, 4.65e5), 3: (2.94e6, 1.98e6), 4: (2.44e6, 1.27e6)},
}
PRINTED_SPOTIFY = {
    PaperLearner("TPUCBFR", 20): 2.55e4,
    PaperLearner("TPUCBFRG", 20, "extreme_begin"): 4.40e4,
    PaperLearner("TPUCBFRG", 20, "very_begin"): 2.40e4,
    PaperLearner("TPUCBFRG", 20, "begin"): 1.88e4,
    PaperLearner("TPUCBFRG", 20, "begin_middle"): 2.11e4,
}


def _pair(alpha: int, spread: str, printed: tuple[float, float]) -> dict[PaperLearner, float]:
    return {PaperLearner("TPUCBFR", alpha): printed[0], PaperLearner("TPUCBFRG", alpha, spread): printed[1]}


def _alternatives(name: str) -> tuple[PaperLearner, ...]:
    word, values = ALTERNATIVES[name]
    return tuple(PaperLearner("TPUCBFRG", 20, f"{word}({value:g})") for value in values)


def _blocks() -> dict[str, PaperBlock]:
    blocks = [PaperBlock("setting1/yardsticks", "setting1", YARDSTICKS)]
    blocks += [PaperBlock(f"setting1/alpha{alpha}", "setting1", family(alpha)) for alpha in ALPHAS]
    blocks += [PaperBlock(f"setting1/{name}", "setting1", _alternatives(name)) for name in ALTERNATIVES]
    for config, (_, alpha) in CONFIGS.items():
        for scenario in SCENARIO_TITLES:
            name = f"setting2/c{config}/{scenario}"
            # Many groups take longer to draw; smaller cells keep each to a few seconds.
            size = 5 if alpha >= 50 else 10
            learners = (*family(alpha), *YARDSTICKS)
            blocks.append(PaperBlock(name, name, learners, size))
    blocks.append(PaperBlock("spotify", "spotify", (*family(20), *YARDSTICKS)))
    for name in AUDITS:
        blocks.append(PaperBlock(f"audit/{name}", f"audit/{name}", (PaperLearner("GroupKLUCB", 20, name),)))
    return {block.id: block for block in blocks}


def _settings() -> dict[str, PaperSetting]:
    settings = [
        PaperSetting(
            f"setting1/alpha{alpha}",
            f"Setting 1, α_est = {alpha}",
            ("setting1/yardsticks", f"setting1/alpha{alpha}"),
            (*family(alpha), *YARDSTICKS),
            _pair(alpha, "begin_middle" if alpha == 5 else "begin", PRINTED_1[alpha]),
            bounds=True,
        )
        for alpha in ALPHAS
    ]
    settings += [
        PaperSetting(
            f"setting2/c{config}/{scenario}",
            f"Setting {'2, ' if scenario == 'uniform' else ''}{word}, τ_max = {window}, α = {alpha}",
            (f"setting2/c{config}/{scenario}",),
            (*family(alpha), *YARDSTICKS),
            _pair(alpha, "begin", PRINTED_2[scenario][config]),
            bounds=True,
        )
        for config, (window, alpha) in CONFIGS.items()
        for scenario, word in SCENARIO_TITLES.items()
    ]
    settings.append(
        PaperSetting("spotify", "Spotify", ("spotify",), (*family(20), *YARDSTICKS), PRINTED_SPOTIFY)
    )
    begins = tuple(PaperLearner("TPUCBFRG", 20, name) for name in BEGINS)
    settings += [
        PaperSetting(
            name,
            f"{name.capitalize()} spreads, Setting 1, α_est = 20",
            ("setting1/alpha20", f"setting1/{name}"),
            (PaperLearner("TPUCBFR", 20), *begins, *_alternatives(name)),
        )
        for name in ALTERNATIVES
    ]
    settings += [
        PaperSetting(f"audit/{name}", title, (f"audit/{name}",), (PaperLearner("GroupKLUCB", 20, name),))
        for name, title in AUDITS.items()
    ]
    return {setting.id: setting for setting in settings}


BLOCKS = _blocks()
PAPER_SETTINGS = _settings()


# The figures and tables that show regret, by the paper's own numbers.
PAPER_NUMBERS = {
    "figure2": ("setting1/alpha50",),
    "figure3": tuple(f"setting2/c2/{scenario}" for scenario in SCENARIO_TITLES),
    "figure4": ("setting2/c2/early",),
    "figure5": ("spotify",),
    **{f"figure{7 + place}": (f"setting1/alpha{alpha}",) for place, alpha in enumerate((5, 10, 20, 25))},
    "figure11": ("setting2/c3/late",),
    "figure12": ("setting2/c3/early",),
    "figure13": ("setting2/c4/late",),
    "figure14": ("setting2/c4/early",),
    "figure16": ("zipf",),
    "figure18": ("boltzmann",),
    "figure20": ("hypergeometric",),
    "table2": ("spotify",),
    "table3": tuple(f"setting1/alpha{alpha}" for alpha in ALPHAS),
    **{
        f"table{8 + place}": tuple(f"setting2/c{config}/{scenario}" for config in CONFIGS)
        for place, scenario in enumerate(("late", "early", "uniform"))
    },
}


def select(only: Sequence[str]) -> list[PaperSetting]:
    """Return the settings with these ids, beginnings of ids, or numbers of the paper; without any, all.

    Examples
    --------
    >>> [setting.id for setting in select(["setting1/alpha5", "audit"])]
    ['setting1/alpha5', 'audit/last', 'audit/very_end']
    >>> [setting.id for setting in select(["Figure 3"])]
    ['setting2/c2/uniform', 'setting2/c2/late', 'setting2/c2/early']
    """
    if not only:
        return list(PAPER_SETTINGS.values())
    chosen: set[str] = set()
    for word in only:
        stem = word.strip().rstrip("/")
        matching = {id for id in PAPER_SETTINGS if id == stem or id.startswith(f"{stem}/")}
        matching |= set(PAPER_NUMBERS.get(stem.lower().replace(" ", ""), ()))
        if not matching:
            tops = dict.fromkeys(id.split("/")[0] for id in PAPER_SETTINGS)
            options = [*tops, *(id for id in PAPER_SETTINGS if id not in tops), *PAPER_NUMBERS]
            raise unknown("setting", word, options) if stem else InputError("a setting's id is empty")
        chosen |= matching
    return [setting for id, setting in PAPER_SETTINGS.items() if id in chosen]
