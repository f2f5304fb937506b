"""Play runs until an alarm or a guardrail says something: for the tests, and for the benchmarks of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import accrual as ac
from accrual.core.jit import kernel
from accrual.core.random import floor_coin, pair
from accrual.engine.fast_loop import Chain, Checkpoints, PolicyPlan
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import pack_each
from accrual.live.watch.alarms import no_alarms, watch
from accrual.live.watch.guardrails import Guards, guard
from accrual.policies.floor import Shares, drawn
from accrual.problems.families import lumps, plain

Floats = npt.NDArray[np.float64]


@kernel
def watch_all(alarms: Any, arms: Any, totals: Any, seed: int) -> int:
    """Show decisions to the alarm in their order; return the number of the one that raised it, or -1."""
    for i in range(len(arms)):
        watch(alarms, arms[i], i, totals[i], 1.0, seed)
        if alarms.raised[arms[i]] > 0:
            return i
    return -1


def first_alarms(chances: Sequence[float], runs: int, rounds: int) -> Any:
    """Return the round of each run's first alarm; infinity for a run without an alarm.

    Nine arms have chances from 0.05 to 0.3. The tenth pays with the first of `chances` in the first half of
    the rounds, and with the second from then on. AgeIMED chooses.
    """
    halves = [plain(20, lumps(*np.linspace(0.05, 0.3, 9), chance)) for chance in chances]
    laws = pack_each(halves)
    plan = PolicyPlan(ac.AgeIMED(), halves[0], laws[0])
    none = Checkpoints(np.zeros(0, np.int64), np.zeros(0))
    found = np.full(runs, math.inf)
    for run in range(runs):
        feed = RunFeed(halves[0], laws[0], 3, run)
        chain = Chain(plan, feed.span, (3, run))
        arms, totals = np.zeros(rounds, np.int64), np.zeros(rounds)
        start = 0
        while start < rounds:
            if start == rounds // 2:
                feed.change(laws[1].arrays)
            length = min(feed.span, rounds - start, abs(rounds // 2 - start) or rounds)
            read = feed.read(length)
            now = slice(start, start + length)
            arms[now] = chain.advance(read, start + 1, length, none)
            totals[now] = read.paid[20 + np.arange(length), arms[now], -1]
            start += length
        at = watch_all(no_alarms(10, 10), arms, totals, run)
        found[run] = at if at >= 0 else math.inf
    return found


@kernel
def first_trip(
    guards: Guards, shares: Shares, means: Floats, key: tuple[int, int], stretch: int, rounds: int
) -> int:
    """Play one test whose pick changes every `stretch` rounds; return the round of the first trip, or 0."""
    playing = np.ones(len(means), np.bool_)
    total = np.zeros(1)
    for i in range(rounds):
        pick = i // stretch % len(means)
        arm, chance = drawn(shares, pick, floor_coin(key[0], key[1], i))
        u, _ = pair(key, i, 0, 0)
        total[0] = 1.0 if u < means[arm] else 0.0
        guard(guards, playing, arm, total, chance)
        if guards.worse.any():
            return i + 1
    return 0
