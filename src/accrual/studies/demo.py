"""Simulated traffic of a course platform, for a first look at the dashboard (`accrual serve --demo`).

There are six courses of eight weeks, with a lecture a week. Each user is recommended one course. Some enrol,
and every week some leave for good. The reward of a recommendation is the number of lectures watched. The
courses differ in how many users enrol and in how many stay, so the course that looks best in the first weeks
is not the best. Some users complain: a guardrail watches that. A second bandit writes a newsletter, where the
better subject depends on whether the reader is new.

Decisions and pieces go through the same handlers as those of any client. Only the bandit's clock is
different: it runs faster. Beside the bandit, in memory, the same policy decides for the same users and learns
at once all that they will ever watch. What that policy loses is the no-delay floor.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from accrual.core.arrays import Floats
from accrual.core.errors import InputError
from accrual.core.jit import python_function
from accrual.live.ledger import Ledger
from accrual.live.watch import Guardrail
from accrual.policies.base import Policy
from accrual.policies.catalog import DEFAULT
from accrual.policies.floor import Limits
from accrual.problems.laws import LeavingLaw
from accrual.problems.problem import Problem
from accrual.service.bandit_pool import BanditPool
from accrual.service.messages import BATCH_MOST, ContextIn, DecideIn, DecisionsOut, PieceIn
from accrual.service.operations import Call, Operation
from accrual.service.refusals import Refusal
from accrual.service.traffic_routes import TrafficRoutes

SPEED_LEAST, SPEED_MOST = 0.01, 20.0
_DAY, _WEEK = 86_400.0, 7 * 86_400.0
_WEEKS = 8
_USERS = 40.0  # a day
_TICK = 0.25  # seconds between two batches of traffic
_TWICE, _BELATED = 0.005, 0.01  # chances that a piece is sent twice, and that a lecture is watched too late
_FLOOR = 0.1  # of the bandit with the courses
_COMPLAINTS, _COMPLAIN, _COMPLAIN_MORE = "complaints", 0.02, 0.25  # a stream, and chances to complain
_ANNOYING = "Bread at home"  # the course of which more users complain
_NEWSLETTER, _READERS, _NEWS_DAYS = "newsletter", 60.0, 3  # a bandit's name, readers a day, and its window
_CLICKS = {"Short subject": (0.10, 0.30), "Long subject": (0.28, 0.14)}  # chances, of old and of new readers
_POINTS = 400  # of a curve; when there are more, every second one is dropped

_COURSES = {  # the chances to enrol, to stay for another week, and to watch its lecture
    "Bread at home": (0.40, 0.50, 0.80),
    "Drawing for beginners": (0.62, 0.62, 0.90),
    "Public speaking": (0.35, 0.80, 0.80),
    "Python from zero": (0.55, 0.89, 0.85),
    "Spanish every day": (0.40, 0.90, 0.80),
    "Statistics you can use": (0.65, 0.95, 0.90),
}
PROBLEM = Problem(
    caps=[_WEEKS] * len(_COURSES),
    window=_WEEKS,
    groups=_WEEKS,
    laws=[LeavingLaw([enrol] + [stay] * (_WEEKS - 1), watch) for enrol, stay, watch in _COURSES.values()],
    arms=list(_COURSES),
)

_encode = msgspec.json.encode
_read = msgspec.json.Decoder(DecisionsOut).decode

log = logging.getLogger("accrual.service")


class TruthOut(Struct):
    """What is known because the traffic is simulated."""

    bandit: str
    days_per_second: float
    unit: Annotated[str, Meta(description="What one unit of reward is.")]
    means: Annotated[dict[str, float], Meta(description="The true mean total of one decision, by arm.")]
    at: list[float]
    decisions: list[int]
    regret: Annotated[list[float], Meta(description="Reward lost so far, against the best arm.")]
    no_delay: Annotated[
        list[float], Meta(description="The regret of the same policy if it sees every total at once.")
    ]
    evenly: Annotated[float, Meta(description="The regret of choosing arms evenly, up to now.")]


class Demo:
    """The platform: users come, watch lectures, and leave.

    Parameters
    ----------
    speed : float
        Simulated days in a second.

    Examples
    --------
    >>> Demo(0.0)
    Traceback (most recent call last):
    accrual.core.errors.InputError: speed must be between 0.01 and 20 days a second, not 0
    """

    def __init__(self, speed: float = 1.0, seed: int = 0) -> None:
        if not SPEED_LEAST <= speed <= SPEED_MOST:
            raise InputError(
                f"speed must be between {SPEED_LEAST:g} and {SPEED_MOST:g} days a second, not {speed:g}"
            )
        self.speed = speed
        self.bandit = self._newsletter = ""  # their names, once there are bandits
        self._random = np.random.default_rng(seed)
        self._now = time.time()
        self._due: list[tuple[float, int, str, PieceIn]] = []  # when, in which order, for which bandit, what
        self._again: list[tuple[str, PieceIn]] = []
        self._planned = 0
        self.regret = Regret(DEFAULT, _FLOOR)

    def clock(self) -> float:
        """Return the time on the platform, in seconds since 1970. It passes with the traffic."""
        return self._now

    async def run(self, bandits: BanditPool, traffic: TrafficRoutes) -> None:
        """Create two bandits and send them simulated traffic, until cancelled."""
        await self._make(bandits)
        before = time.monotonic()
        while True:
            await asyncio.sleep(_TICK)
            after = time.monotonic()
            # On a slow machine the platform's time passes more slowly. Otherwise more lectures would come too
            # late than usual, and the alarm would say, rightly, that a course no longer pays as it did.
            days = self.speed * min(after - before, 2 * _TICK)
            before = after
            self._now += days * _DAY
            try:
                await self._recommend(traffic, self._random.poisson(_USERS * days))
                await self._write_to(traffic, min(self._random.poisson(_READERS * days), BATCH_MOST))
                await self._pay(traffic, self._now)
            except Refusal as refusal:  # busy, or the store cannot be reached; more users will come
                log.warning("simulated traffic was refused", extra={"error": str(refusal)})

    async def _make(self, bandits: BanditPool) -> None:
        taken = {row.name for row in await bandits.rows()}
        numbers = ("", *(f"-{number}" for number in range(2, len(taken) + 3)))
        number = next(number for number in numbers if not {f"courses{number}", _NEWSLETTER + number} & taken)
        caps = dict(zip(PROBLEM.arms, PROBLEM.caps, strict=True))
        streams = {_COMPLAINTS: Guardrail(cap=1.0, margin=0.05)}
        courses = {"clock": self.clock, "unit": "lectures", "floor": _FLOOR, "streams": streams}
        news = {"clock": self.clock, "unit": "clicks", "floor": 0.2, "features": {"new": bool}}
        self.bandit, self._newsletter = f"courses{number}", _NEWSLETTER + number
        await bandits.create(self.bandit, caps, f"{_WEEKS}w", courses)
        await bandits.create(self._newsletter, dict.fromkeys(_CLICKS, 1.0), f"{_NEWS_DAYS}d", news)

    async def _recommend(self, traffic: TrafficRoutes, count: int) -> None:
        """Recommend a course to each of `count` users, and draw what they will watch of it."""
        while count:
            some = min(count, BATCH_MOST)
            count -= some
            made = _read(await traffic.decisions(self.bandit, _encode(DecideIn(some)))).decisions
            pay = self._draw(some)
            arms = [PROBLEM.arms.index(decision.arm) for decision in made]
            for i, (decision, arm) in enumerate(zip(made, arms, strict=True)):
                weeks = np.flatnonzero(pay[arm, i]).tolist()
                if pay[arm, i, -1] and self._random.random() < _BELATED:
                    weeks.append(_WEEKS)  # too late
                for week in weeks:
                    when = decision.at + _WEEK * (week + self._random.random())
                    self._plan(self.bandit, PieceIn(decision.id, 1.0, at=when, key=f"lecture-{week + 1}"))
                if self._random.random() < (_COMPLAIN_MORE if decision.arm == _ANNOYING else _COMPLAIN):
                    when = decision.at + _WEEK * self._random.random()
                    self._plan(self.bandit, PieceIn(decision.id, 1.0, at=when, key="c", stream=_COMPLAINTS))
            self.regret.add(made[-1].at, arms, pay.sum(axis=2))

    def _draw(self, count: int) -> Floats:
        """Draw what `count` users would watch of each course: arms x users x weeks, in lectures."""
        pay = np.zeros((len(PROBLEM.caps), count, _WEEKS))
        chances = self._random.random((count, _WEEKS))
        for law, cap, drawn in zip(PROBLEM.arm_laws, PROBLEM.caps, pay, strict=True):
            python_function(law.draw)(law.params(_WEEKS, cap), chances, drawn)
        return pay

    async def _write_to(self, traffic: TrafficRoutes, count: int) -> None:
        """Send the newsletter to `count` readers, and draw who will click, and when."""
        if not count:
            return
        new = self._random.random(count) < 0.4
        contexts: list[ContextIn] = [{"new": bool(one)} for one in new]
        given = _encode(DecideIn(count, context=contexts))
        made = _read(await traffic.decisions(self._newsletter, given)).decisions
        for decision, one in zip(made, new, strict=True):
            if self._random.random() < _CLICKS[decision.arm][int(one)]:
                when = decision.at + _DAY * min(self._random.exponential(0.5), 0.99 * _NEWS_DAYS)
                self._plan(self._newsletter, PieceIn(decision.id, 1.0, at=when, key="click"))

    def _plan(self, bandit: str, piece: PieceIn) -> None:
        self._planned += 1  # so that pieces of one moment need not be compared
        assert isinstance(piece.at, float)
        heapq.heappush(self._due, (piece.at, self._planned, bandit, piece))

    async def _pay(self, traffic: TrafficRoutes, now: float) -> None:
        """Send the pieces that are due by now, and some of them twice, as a flaky client does."""
        pieces, self._again = self._again, []
        while self._due and self._due[0][0] <= now:
            _, _, bandit, piece = heapq.heappop(self._due)
            pieces.append((bandit, piece))
            if self._random.random() < _TWICE:
                self._again.append((bandit, piece))
        for bandit in (self.bandit, self._newsletter):
            mine = [piece for name, piece in pieces if name == bandit]
            for first in range(0, len(mine), BATCH_MOST):
                await traffic.pieces(bandit, _encode(mine[first : first + BATCH_MOST]))

    def operations(self) -> list[Operation]:
        """Return the route that says what is known only for simulated traffic."""
        return [Operation("getDemo", "GET", "/v1/demo", "read", self.truth, TruthOut)]

    async def truth(self, call: Call) -> TruthOut:
        """Show the true means, and the regret against always the best arm, with and without delay."""
        at, decisions, served, oracle, evenly = self.regret.curves()
        return TruthOut(
            bandit=self.bandit,
            days_per_second=self.speed,
            unit="lectures",
            means=dict(zip(PROBLEM.arms, PROBLEM.means.tolist(), strict=True)),
            at=at,
            decisions=[int(count) for count in decisions],
            regret=served,
            no_delay=oracle,
            evenly=evenly[-1] if evenly else 0.0,
        )


class Regret:
    """The regret of the bandit, of its policy without any delay, and of choosing arms evenly.

    Parameters
    ----------
    floor : float
        The share of decisions whose arm is drawn at random.
    """

    def __init__(self, policy: Policy, floor: float = 0.0) -> None:
        # With a window of one round, every decision has paid everything before the next is made.
        self._oracle = Ledger(policy, PROBLEM.caps, window=1, limits=Limits(floor))
        self._oracle.answer_at_once()
        self._lost = [0.0, 0.0, 0.0]  # by the bandit, by the oracle, and by choosing arms evenly
        self._made = 0
        self._every = 1
        self._skipped = 0
        self._points: list[tuple[float, int, float, float, float]] = []

    def add(self, at: float, arms: list[int], totals: Floats) -> None:
        """Count users who were recommended `arms` at time `at`; `totals` is what each arm would have paid."""
        gaps = PROBLEM.gaps
        for i, arm in enumerate(arms):
            self._made += 1
            (decision,) = self._oracle.decide(now=self._made)
            self._oracle.observe(decision.id, float(totals[decision.arm, i]), age=0)
            self._lost[0] += float(gaps[arm])
            self._lost[1] += float(gaps[decision.arm])
            self._lost[2] += float(gaps.mean())
        self._skipped += 1
        if self._skipped >= self._every:
            self._skipped = 0
            self._points.append((at, self._made, self._lost[0], self._lost[1], self._lost[2]))
            if len(self._points) > _POINTS:
                del self._points[1::2]
                self._every *= 2

    def curves(self) -> list[list[float]]:
        """Return the columns of the curves: times, decisions, and the three losses."""
        last = (self._points[-1][0] if self._points else math.nan, self._made, *self._lost)
        points = [*self._points[:-1], last] if self._points else []
        return [list(map(float, column)) for column in zip(*points, strict=True)] or [[]] * 5
