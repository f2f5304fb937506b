"""What bends of numbers and pairs of features are worth to AgeLinTS, and what they cost on a line.

``python benchmarks/beyond_the_line.py`` plays worlds on which no constant was chosen: two features that count
only together, a hump over a number, slopes that depend on a level, a mixed world, linear worlds, and useless
features. ``develop`` plays those on which constants were chosen. The rows are AgeLinTS with a linear model
and as it is, one AgePrior for each cell of the contexts, and AgePrior without contexts. The exit code is 1 if
AgeLinTS as it is has more than 1.1 times the regret of the linear model where a line is enough, more than
half of it where it is not, or more at all in the mixed world.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

import accrual as ac
from accrual.core.arrays import Floats
from accrual.core.features import Features, encode_all
from accrual.core.jit import njit
from accrual.engine.general_feed import (
    ContextArrays,
    GeneralFeed,
    LearnerGroups,
    World,
    age_of,
    count_pieces,
    piece_of,
)
from accrual.engine.general_loop import GeneralChain
from accrual.problems.contexts import PIECES_MOST

HORIZON, WINDOW, RUNS = 20_000, 1000, 20
LINE = 1.1  # where the means are linear
Users = dict[str, Floats]  # by feature: the place of a level, 0 or 1, or a number from 0 to 1


class Setting(NamedTuple):
    """A world whose means are any function of the features."""

    features: Mapping[str, float | list[float]]  # a chance of yes, chances of levels, or 1.0 for a number
    means: Callable[[Users, np.random.Generator], Floats]  # decisions x arms; the dice are of the world
    cells: Callable[[Users], Floats]  # a number for each cell of the contexts
    most: float = 0.5  # regret of AgeLinTS over that of the linear model: what is claimed
    once: bool = True  # whether a decision pays once, or in pieces


def effects(dice: np.random.Generator, arms: int, size: float, *columns: Floats) -> Floats:
    """Return the sum of columns times effects of this size, drawn for each arm; columns are made standard."""
    x = np.stack(columns, axis=1)
    found: Floats = (x - x.mean(axis=0)) / x.std(axis=0) @ (size * dice.normal(size=(len(columns), arms)))
    return found


def levels(values: Floats, count: int) -> list[Floats]:
    return [(values == place).astype(float) for place in range(count)]


def xor(users: Users, dice: np.random.Generator, arms: int, size: float) -> Floats:
    """Return means for which two features count only together."""
    signs = dice.permutation(np.resize([1.0, -1.0], arms)) * dice.uniform(0.7, 1.0, arms)
    return 0.5 + np.outer(2.0 * (users["paid"] != users["phone"]) - 1.0, size * signs)


def hump(value: Floats, dice: np.random.Generator, arms: int, size: float, wide: float) -> Floats:
    """Return means with a hump over a number, for each arm elsewhere."""
    places = dice.permutation((np.arange(arms) + dice.uniform(0.2, 0.8, arms)) / arms)
    found: Floats = size * np.exp(-0.5 * ((value[:, None] - places) / wide) ** 2)
    return found


def by_visits(parts: int) -> Callable[[Users], Floats]:
    return lambda users: np.minimum(np.floor(parts * users["visits"]), parts - 1)


def both(users: Users) -> Floats:
    return 2.0 * users["paid"] + users["phone"]


def country(users: Users) -> Floats:
    return users["country"]


def _mixed(users: Users, dice: np.random.Generator, arms: int, size: float) -> Floats:
    """Return means that are linear but for two pairs of features and a bend."""
    paid, phone, visits, hours = (users[name] for name in ("paid", "phone", "visits", "hours"))
    home = (users["country"] == 0).astype(float)
    line = effects(dice, arms, size, paid, phone, visits, hours, *levels(users["country"], 4))
    more = effects(dice, arms, size, (paid - 0.5) * (phone - 0.5), home * (visits - 0.5), np.abs(hours - 0.5))
    return 0.45 + line + more


NUMBERS = dict.fromkeys(("visits", "hours", "age", "speed", "price", "size"), 1.0)
SHOP: Mapping[str, float | list[float]] = {
    "paid": 0.5, "phone": 0.3, "country": [0.4, 0.3, 0.2, 0.1], "visits": 1.0, "hours": 1.0,
}  # fmt: skip
DEVELOPED = {
    "xor": Setting(
        {"paid": 0.5, "phone": 0.5, "country": [0.5, 0.3, 0.2], "hours": 1.0},
        lambda u, dice: xor(u, dice, 3, 0.15), both,
    ),
    "hump": Setting(
        {"visits": 1.0, "new": 0.4, "hours": 1.0},
        lambda u, dice: 0.8 + hump(u["visits"], dice, 4, 0.5, 0.2), by_visits(6), once=False,
    ),
    "line of numbers": Setting(
        NUMBERS, lambda u, dice: 1.0 + effects(dice, 5, 0.12, *u.values()), by_visits(4),
        most=LINE, once=False,
    ),
    "line of levels": Setting(
        SHOP,
        lambda u, dice: 0.4 + effects(
            dice, 4, 0.035, u["paid"], u["phone"], u["visits"], u["hours"], *levels(u["country"], 4)
        ),
        country, most=LINE,
    ),
    "useless": Setting(
        SHOP, lambda u, dice: np.tile(0.5 + 0.06 * dice.normal(size=5), (len(u["paid"]), 1)), country,
        most=LINE,
    ),
    "mixed": Setting(SHOP, lambda u, dice: _mixed(u, dice, 4, 0.04), both, most=1.0),
}  # fmt: skip
JUDGED = {
    "xor, uneven, and a line": Setting(
        {"paid": 0.3, "phone": 0.6, "new": 0.5, "country": [0.4, 0.3, 0.2, 0.1]},
        lambda u, dice: xor(u, dice, 5, 0.12) + effects(dice, 5, 0.03, u["new"]), both,
    ),
    "narrow hump": Setting(
        {"visits": 1.0, "hours": 1.0, "age": 1.0},
        lambda u, dice: 0.3 + hump(u["visits"], dice, 3, 0.35, 0.12), by_visits(6),
    ),
    "slopes by level": Setting(
        {"country": [0.4, 0.35, 0.25], "visits": 1.0, "new": 0.5},
        lambda u, dice: 1.0 + effects(
            dice, 4, 0.2, *[(2.0 * u["visits"] - 1.0) * level for level in levels(u["country"], 3)]
        ),
        lambda u: 3.0 * u["country"] + by_visits(3)(u), once=False,
    ),
    "mixed, six arms": Setting(SHOP, lambda u, dice: _mixed(u, dice, 6, 0.05), both, most=1.0),
    "line, four numbers, eight arms": Setting(
        dict.fromkeys(("visits", "hours", "age", "price"), 1.0),
        lambda u, dice: 1.0 + effects(dice, 8, 0.15, *u.values()), by_visits(4), most=LINE, once=False,
    ),
    "line, one number, three arms": Setting(
        {"visits": 1.0}, lambda u, dice: 0.4 + effects(dice, 3, 0.08, u["visits"]), by_visits(6), most=LINE
    ),
    "line, levels, three arms": Setting(
        {"country": [0.3, 0.25, 0.2, 0.15, 0.1], "plan": [0.5, 0.3, 0.2], "new": 0.4},
        lambda u, dice: 0.4 + effects(
            dice, 3, 0.04, u["new"], *levels(u["country"], 5), *levels(u["plan"], 3)
        ),
        country, most=LINE,
    ),
    "line, seven numbers, two arms": Setting(
        {**NUMBERS, "rating": 1.0}, lambda u, dice: 1.0 + effects(dice, 2, 0.1, *u.values()), by_visits(4),
        most=LINE, once=False,
    ),
    "useless, ten arms": Setting(
        SHOP, lambda u, dice: np.tile(0.4 + 0.08 * dice.normal(size=10), (len(u["paid"]), 1)), country,
        most=LINE,
    ),
}  # fmt: skip


class Run(NamedTuple):
    """The users of one run, and what each arm pays them on average."""

    features: Features
    stored: Floats  # decisions x features
    means: Floats  # decisions x arms
    cell: Floats  # decisions


def draw(setting: Setting, seed: int, run: int) -> Run:
    """Draw a world from `seed`, and the users of a run."""
    dice = np.random.default_rng([seed, run, 1])
    users: Users = {}
    kinds: dict[str, object] = {}
    for name, chance in setting.features.items():
        if isinstance(chance, list):
            users[name] = dice.choice(len(chance), size=HORIZON, p=chance).astype(float)
            kinds[name] = [f"level {place}" for place in range(len(chance))]
        else:
            drawn = dice.random(HORIZON)
            users[name] = drawn if chance == 1.0 else (drawn < chance).astype(float)
            kinds[name] = (0, 1) if chance == 1.0 else bool
    means = np.clip(setting.means(users, np.random.default_rng(seed)), 0.0, 1.0 if setting.once else 6.4)
    return Run(Features(kinds), np.stack([*users.values()], axis=1), means, setting.cells(users))


@njit
def pay_by_means(
    arrays: ContextArrays, caps: Floats, arm: int, x: Floats, u: Floats,
    times: LearnerGroups, earned: Floats, scratch: Floats,
) -> None:  # fmt: skip
    """Pay as laws with contexts do, at an even speed; the means are written behind the uniforms."""
    ends, groups, draws = times.ends, len(times.ends), u[0]
    earned[:] = 0.0
    size = piece_of(arrays, caps, arm)
    for j in range(count_pieces(arrays, caps, arm, draws[2 + PIECES_MOST + arm], draws)):
        age = age_of(arrays.window, 1.0, draws[2 + j])
        g = 0
        while ends[g] <= age and g < groups - 1:
            g += 1
        earned[g + 1] += size
    for g in range(groups):
        earned[g + 1] = earned[g] + earned[g + 1]


def play(policy: ac.Policy, run: Run, once: bool, window: int, key: tuple[int, int]) -> float:
    """Play one run as `accrual.simulate` would; return the regret."""
    decisions, arms = run.means.shape
    x = np.zeros((window + decisions, run.features.width))
    encode_all(run.features.encoding, run.stored, x[window:])
    pays_once, none = np.full(arms, int(once)), np.zeros((arms, 1))
    arrays = ContextArrays(
        none, none, 0 * pays_once, pays_once, window, 0, np.zeros(0), np.zeros(0), pays_once[:0]
    )
    world = World(
        np.full(arms, 1.0 if once else 6.4), window, 1, 2 + PIECES_MOST + arms, 1, pay_by_means, arrays,
        run.features.layout,
    )  # fmt: skip
    uniforms = np.random.default_rng([*key, 2]).random((decisions, 2 + PIECES_MOST))
    chain = GeneralChain(policy, world, decisions, key)
    chain.play_arms(np.ones(arms, np.bool_))
    chosen = chain.advance(GeneralFeed(x, np.concatenate([uniforms, run.means], axis=1)), 1, decisions)
    return float((run.means.max(axis=1) - run.means[np.arange(decisions), chosen]).sum())


def play_cells(policy: ac.Policy, run: Run, once: bool, window: int, key: tuple[int, int]) -> float:
    """Play with one learner for each cell.

    A cell's learner counts its own decisions, so its window is shorter, by the share of users in the cell.
    """
    total = 0.0
    for place, cell in enumerate(np.unique(run.cell)):
        own = run.cell == cell
        part = Run(run.features, run.stored[own], run.means[own], run.cell[own])
        total += play(
            policy, part, once, max(8, round(window * own.mean())), (key[0] + 1000 * (place + 1), key[1])
        )
    return total


ROWS: dict[str, tuple[Callable[..., float], ac.Policy]] = {
    "AgeLinTS(columns=0)": (play, ac.AgeLinTS(columns=0)),
    "AgeLinTS": (play, ac.AgeLinTS()),
    "AgePrior per cell": (play_cells, ac.AgePrior()),
    "AgePrior": (play, ac.AgePrior()),
}


def measure(settings: dict[str, Setting], seed: int, runs: int) -> bool:
    """Print the regret of all rows in all worlds; whether the claims hold."""
    held = True
    for number, (name, setting) in enumerate(settings.items()):
        found: dict[str, list[float]] = {row: [] for row in ROWS}
        seconds = dict.fromkeys(ROWS, 0.0)
        for run in range(runs):
            drawn = draw(setting, seed + number, run)
            for row, (how, policy) in ROWS.items():
                begin = time.process_time()
                found[row].append(how(policy, drawn, setting.once, WINDOW, (seed + number, run)))
                if run:  # the first may compile
                    seconds[row] += time.process_time() - begin
        print(f"\n{name} ({drawn.means.shape[1]} arms, {drawn.features.width} numbers, {runs} runs)")
        for row, regrets in found.items():
            error = np.std(regrets, ddof=1) / np.sqrt(runs)
            each = 1e6 * seconds[row] / (runs - 1) / HORIZON
            print(
                f"  {row:20} {np.mean(regrets):6.0f} ± {error:3.0f}   {each:6.2f} µs a decision", flush=True
            )
        line, curved = (np.array(found[row]) for row in list(ROWS)[:2])
        ratio = curved.mean() / line.mean()
        error = (curved - ratio * line).std(ddof=1) / np.sqrt(runs) / line.mean()
        print(f"  bends and pairs over the line: {ratio:.2f} ± {error:.2f}", flush=True)
        held &= bool(ratio <= setting.most)
    return held


if __name__ == "__main__":
    developing = sys.argv[1:] == ["develop"]
    sys.exit(0 if measure(DEVELOPED if developing else JUDGED, 10 if developing else 500, RUNS) else 1)
