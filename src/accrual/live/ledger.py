"""`Ledger`: decisions and pieces in, a policy's statistics and choices out."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, whole
from accrual.core.events import Decision
from accrual.core.features import Features
from accrual.core.groups import group_ends
from accrual.core.jit import machine_code_for, python_function
from accrual.core.native_tuple import native_tuple
from accrual.core.random import ROUND_MOST, SEED_MOST
from accrual.live.contexts import Stored, Visitors
from accrual.live.draft import room_for
from accrual.live.evidence import ERROR, Evidence, no_evidence
from accrual.live.fold import fold
from accrual.live.kernel_state import CHOOSE, OF_ARM, OVER, RECENT, KernelState, Rules
from accrual.live.memory import together
from accrual.live.pending import (
    CLOSED,
    FIRST,
    LATE,
    NEXT,
    RINGS,
    SHUT,
    Pending,
    close,
    none_pending,
    with_room,
)
from accrual.live.queues import USED, Queues
from accrual.policy.base import Policy, no_amended, positive
from accrual.policy.contextual import ContextualPolicy
from accrual.policy.floor import Limits
from accrual.store.event_schema import Events, Kind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Caps that one piece may be worth. Sums have sixteen digits: with a piece of this size, later taken back,
# what else was paid is still right to a ten-millionth of the cap.
_CAPS_MOST = 1e9


class Ledger:
    """Folds events into a policy's statistics, and chooses by them.

    Events come one by one: decisions, pieces in any order, closings, and time itself. They go
    through the policy's own functions, as in the simulator. Nothing is read twice: an event costs
    what it changes, and memory grows with the pending decisions.

    Parameters
    ----------
    policy : Policy
        One that sees totals at once in a simulation learns a total here when its decision closes.
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The longest window, in rounds or any other unit of time: pieces have ages from 0 to below
        this.
    seed : int
        For policies that draw.
    windows : sequence of float, optional
        Each arm's own window, at most `window`. A decision may have yet another.
    span : float, optional
        How long the longest window lasts in the unit in which times and ages are given, where that
        is not the policy's own: then `window` is the number of steps that the policy sees.
    limits : Limits, optional
        A floor, and the least and greatest shares of arms.
    allow_negative : bool
        Whether a total may be below 0, down to the cap's negative.
    features : Features, optional
        What is known of whom a decision is for. Without, a policy that chooses by contexts sees a constant.

    Examples
    --------
    >>> import accrual as ac
    >>> ledger = Ledger(ac.AgeIMED(), caps=[1.0, 1.0], window=80)
    >>> first, second = ledger.decide(now=1, n=2)
    >>> second
    Decision(id=1, arm=1, at=1, propensity=None)
    >>> ledger.observe(second.id, 0.7, age=3)
    True
    >>> ledger.observe(second.id, 0.1, age=80)  # past the window: counted, not learned
    False
    >>> ledger.late, ledger.pending
    (1, 2)
    """

    def __init__(  # noqa: PLR0913, PLR0917  (what a configuration has; all but three may be left out)
        self,
        policy: Policy,
        caps: Sequence[float],
        window: int,
        seed: int = 0,
        windows: Sequence[float] | None = None,
        span: float | None = None,
        limits: Limits = Limits(),  # noqa: B008  (it cannot change)
        allow_negative: bool = False,
        features: Features | None = None,
    ) -> None:
        if policy.feedback == "groups" and policy.functions.amended is no_amended:
            raise InputError(f"{policy.label} lacks the function `amended`, for pieces out of order")
        if not len(caps):
            raise InputError("a ledger needs at least one arm")
        self.policy = policy
        self.visitors = Visitors(features, policy)
        self.window = whole("window", window, 1)
        self._seed = whole("seed", seed, 0, SEED_MOST)
        self.span = float(self.window) if span is None else positive("a span", span)
        if windows is None:
            windows = [self.span] * len(caps)
        if len(windows) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} windows, not {len(windows)}")
        self._caps = np.array([positive("a cap", cap) for cap in caps])
        self._windows = np.array([self._own(own) for own in windows])
        self._playing = np.ones(len(caps), np.bool_)
        edges = policy.edges(self.window).astype(np.float64)
        self.edges: Floats = np.where(edges == self.window, self.span, edges * (self.span / self.window))
        """The ages at which the policy's groups end."""
        self._edges = group_ends(edges, self.window, self.span)
        self._ends = self._edges if len(edges) else np.array([self.span])
        self._pending = none_pending(len(edges), len(self._ends), self.visitors.width)
        self.kernels = fold(policy.functions, policy.feedback, policy.contextual, bool(policy.kept))
        self._kind: Any = None  # what compiled code takes the arrays for
        self._now = -math.inf
        self._arms = np.zeros(1, np.int64)
        self._propensities = np.zeros(1)
        self.limits, self._allow_negative = limits, allow_negative
        self._floored = limits.any
        self._draft = room_for(len(self._ends), 256)
        self._recent = np.zeros(RECENT, np.int64)
        self._founding = len(caps)
        self._first_news = np.full(len(caps), np.inf)
        self.observed = np.zeros(len(caps))
        self.above = np.zeros(len(caps), np.int64)
        self._made = 0
        self.params = self._params(self._caps)
        self._keep(policy.stats(self.params))
        self._compare_anew()
        self._hold()

    @property
    def decisions(self) -> int:
        """How many decisions have been made; also the id of the next."""
        return self._made

    @property
    def pending(self) -> int:
        """How many decisions may still be paid for: their window is not over, and they are not closed."""
        return int(self._pending.queues.counts[USED] - self._pending.counts[SHUT])

    @property
    def late(self) -> int:
        """How many pieces came past their decision's window, or after it had been closed."""
        return int(self._pending.counts[LATE])

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self._now

    @property
    def anyone(self) -> bool:
        """Whether there is an arm to choose."""
        return self._anyone

    @property
    def caps(self) -> Floats:
        """The arms' caps."""
        return self._caps

    @property
    def seed(self) -> int:
        """What the policy's own draws follow from."""
        return self._seed

    def window_of(self, arm: int) -> float:
        """An arm's own window."""
        return self._own_windows[arm]

    @property
    def pending_by_arm(self) -> Ints:
        """How many decisions of each arm may still be paid for."""
        return np.bincount(self.pending_rows["arm"], minlength=len(self._caps))

    @property
    def pending_rows(self) -> npt.NDArray[np.void]:
        """The pending decisions, in no order: see `accrual.live.queues.ROW`. A copy."""
        rows: npt.NDArray[np.void] = self._pending.queues.rows
        rows = rows[self._pending.where[self._pending.where != CLOSED]]
        return np.compress(rows["closed"] == 0, rows)

    def caps_exceeded(self, ids: Sequence[int]) -> list[float | None]:
        """Of each decision the cap that it has paid more than: None if it has not, or its window is over."""
        number, where = np.array(ids, np.int64), self._pending.where
        found = np.where(number < self._pending.counts[FIRST], CLOSED, where[number & (len(where) - 1)])
        rows = self._pending.queues.rows[found]
        caps = self._caps[rows["arm"]]
        above = (found != CLOSED) & (rows["total"] > caps * OVER)
        return [
            cap if is_above else None for cap, is_above in zip(caps.tolist(), above.tolist(), strict=True)
        ]

    @property
    def recent(self) -> Ints:
        """The arms of the last decisions, at most 1,000 of them, in no order."""
        return self._recent[: self._made]

    @property
    def arms(self) -> list[int]:
        """The arms in play."""
        return [int(arm) for arm in np.flatnonzero(self._playing)]

    def decide(
        self, now: float, n: int = 1, window: float | None = None, contexts: Stored | None = None
    ) -> list[Decision[int]]:
        """Choose `n` times, with what is known at `now`, before any of the `n` has paid.

        Parameters
        ----------
        now : float
            The time, not before that of any earlier event.
        n : int
        window : float, optional
            These decisions' own window; their arm's unless given.
        contexts : array, n x features, optional
            What `Features.stored` makes of whom they are for; all missing unless given.
        """
        return self._decide(now, n, window, CHOOSE, contexts)

    def choose(
        self,
        now: float,
        n: int = 1,
        step: float = 0.0,
        salt: int = 0,
        contexts: Stored | None = None,
    ) -> list[int]:
        """Return the arms that `n` decisions from `now` on would get, a `step` of time apart.

        Nothing changes. Afterwards `trial_stats` has the statistics, and `values` the indices, by which the
        last one would be chosen: not a number where the policy was not asked, because the arm has
        retired, is new and waits for its turn, or because it is the turn of an arm that is.
        `salt` sets the policy's draws apart from those of other workers with the same statistics.
        """
        time = self._time(now)
        if not self._anyone:
            raise InputError("every arm has retired; add one before deciding")
        if n > len(self._arms):
            self._arms, self._propensities = np.zeros(n, np.int64), np.zeros(n)
            self._hold()
        self._visit(n, contexts, made=False)
        while not self._code.choose(self._held, time, float(step), n, salt):
            self._draft = room_for(len(self._ends), 2 * len(self._draft.places) + n)
            self._hold()
        return self._arms[:n].tolist()  # type: ignore[no-any-return]

    def extend(self, events: Events, contexts: Stored | None = None) -> None:
        """Fold a stretch of a log; `contexts` are those of its decisions, as for `decide`."""
        done, count = 0, len(events.kind)
        if self.visitors.any:
            self._visit(int(np.count_nonzero(events.kind == Kind.DECISION)), contexts)
        while True:
            done = self._code.extend(self._held, done, events)
            if done == count:
                break
            kind = events.kind[done]
            if kind == Kind.DECISION:
                self._pending = with_room(self._pending, 1)
                self._hold()
                continue
            self.tick(float(events.at[done]))
            if kind == Kind.ADD_ARM:
                self.add_arm(float(events.value[done]), float(events.age[done]))
            else:
                self.retire_arm(int(events.arm[done]))
            done += 1
        if count:
            self._now = float(events.at[-1])
            self._made = int(self._pending.counts[NEXT])

    def record(
        self, arm: int, now: float, window: float | None = None, context: Sequence[float] | None = None
    ) -> Decision[int]:
        """Take note of a decision that was made elsewhere."""
        contexts = None if context is None else [context]
        return self._decide(now, 1, window, self._known(arm), contexts)[0]

    def _decide(
        self, now: float, n: int, window: float | None, arm: int, contexts: Stored | None
    ) -> list[Decision[int]]:
        time = self._time(now)
        own = OF_ARM if window is None else self._own(window)
        n = whole("n", n, 1, ROUND_MOST)
        if arm == CHOOSE and not self._anyone:
            raise InputError("every arm has retired; add one before deciding")
        first = self._made
        arms = self.make(time, n, own, arm, contexts=contexts)
        chances = self.propensities(n) if arm == CHOOSE else ()
        return [
            Decision(first + i, choice, now, chance)
            for i, (choice, chance) in enumerate(zip(arms, chances or [None] * n, strict=True))
        ]

    def make_one(self, time: float, salt: int = 0, context: Sequence[float] | None = None) -> int:
        """Make one decision, for a caller that has checked the time; return its arm."""
        if self.visitors.any:
            self._visit(1, None if context is None else [context])
        self._now = time
        while not self._code.advance(self._held, time, 1, CHOOSE, OF_ARM, salt):
            self._pending = with_room(self._pending, 1)
            self._hold()
        self._made += 1
        return self._arms.item(0)

    def make(
        self,
        time: float,
        n: int,
        own: float = OF_ARM,
        arm: int = CHOOSE,
        salt: int = 0,
        contexts: Stored | None = None,
    ) -> list[int]:
        """Make `n` decisions, for a caller that has checked what `decide` checks; return their arms."""
        self._visit(n, contexts)
        if n > len(self._arms):
            self._arms, self._propensities = np.zeros(n, np.int64), np.zeros(n)
            self._hold()
        self._now = time
        while not self._code.advance(self._held, time, n, arm, own, salt):
            self._pending = with_room(self._pending, n)
            self._hold()
        self._made += n
        return self._arms[:n].tolist()  # type: ignore[no-any-return]

    def observe(self, id: int, value: float, age: float) -> bool:
        """A piece of decision `id`, paid when it was of this age. Whether it is learned from.

        It is not, but counted as late, if the age is past the decision's window or the decision
        has been closed.
        """
        if not math.isfinite(value):
            raise InputError(f"a piece's value must be a finite number, not {value!r}")
        if not age >= 0:
            raise InputError(f"a piece's age must be 0 or more, not {age!r}")
        number = self._number(id)
        return bool(self._code.observe(self._held, number, float(value), float(age)))

    def observe_many(
        self, ids: npt.ArrayLike, values: npt.ArrayLike, ages: npt.ArrayLike
    ) -> npt.NDArray[np.bool_]:
        """Several pieces, in this order: all of them, or none if one is wrong.

        Returns
        -------
        ndarray of bool
            Whether each is learned from.
        """
        number = np.ascontiguousarray(ids, np.int64)
        value = np.ascontiguousarray(values, np.float64)
        age = np.ascontiguousarray(ages, np.float64)
        if number.ndim != 1 or not number.shape == value.shape == age.shape:
            raise InputError("ids, values and ages must be flat and of one length")
        if not np.isfinite(value).all():
            raise InputError("the values of pieces must be finite numbers")
        if not (age >= 0).all():
            raise InputError("the ages of pieces must be 0 or more")
        if len(number):
            self._number(int(number.min()))
            self._number(int(number.max()))
        learned = np.zeros(len(number), np.bool_)
        self._code.observe_many(self._held, number, value, age, learned)
        return learned

    def tick(self, now: float) -> None:
        """Let time pass: groups finish and windows close, in order of time, then of id."""
        self._now = self._time(now)
        self._code.advance(self._held, self._now, 0, CHOOSE, OF_ARM, 0)

    def close_decision(self, id: int, now: float) -> bool:
        """Refuse further pieces of decision `id`. False if its window was over, or it had been closed.

        Nothing else changes: its groups finish, and its total counts, when they would have.
        """
        number = self._number(id)
        self.tick(now)
        return python_function(close)(self._pending, number)

    def add_arm(self, cap: float, window: float | None = None) -> int:
        """Add an arm; return its number.

        It takes its turn: one of any K decisions in a row, K the arms in play, until its first decision
        has finished a group of the policy's (its window, where the policy has none). From then on the
        policy chooses.
        """
        own = self.span if window is None else window
        self.params = self.check_arm(cap, own)
        self._caps = np.append(self._caps, float(cap))
        self._windows = np.append(self._windows, float(own))
        self._playing = np.append(self._playing, True)
        self.observed = np.append(self.observed, 0.0)
        self._first_news = np.append(self._first_news, np.inf)
        self.above = np.append(self.above, 0)
        self._keep(self.policy.grow(self.stats, self.params))
        self._compare_anew()
        self._hold()
        return len(self._caps) - 1

    def check_arm(self, cap: float, window: float) -> Any:
        """The params that there would be with one more arm; an error if it cannot be."""
        self._own(window)
        return self._params(np.append(self._caps, positive("a cap", cap)))

    def retire_arm(self, arm: int) -> None:
        """Never choose this arm again. Its pending decisions still teach."""
        self._playing[self._known(arm)] = False
        self._hold()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that has become of the events, by name. Not copied."""
        return {
            "caps": self._caps,
            "windows": self._windows,
            "playing": self._playing,
            "observed": self.observed,
            "above": self.above,
            "recent": self._recent,
            "first_news": self._first_news,
            "now": np.array([self._now]),
            "counts": self._pending.counts,
            "where": self._pending.where,
            "paid": self._pending.paid,
            "contexts": self._pending.contexts,
            "oddities": self.visitors.oddities,
            **{name: getattr(self._pending, name) for name in RINGS},
            **{f"evidence.{name}": array for name, array in self.evidence._asdict().items()},
            **{f"queues.{name}": array for name, array in self._pending.queues._asdict().items()},
            **{f"stats.{name}": array for name, array in self.stats._asdict().items()},
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from where another ledger of the same policy and window was."""
        self._caps = arrays["caps"].copy()
        self._windows = arrays["windows"].copy()
        self._playing = arrays["playing"].copy()
        self.observed = arrays["observed"].copy()
        self.above = arrays["above"].copy()
        self._recent = arrays["recent"].copy()
        self._first_news = arrays["first_news"].copy()
        self._now = float(arrays["now"][0])
        queues = Queues._make(arrays[f"queues.{name}"].copy() for name in Queues._fields)
        counts, where, paid = (arrays[name].copy() for name in ("counts", "where", "paid"))
        rings = [arrays[name].copy() for name in (*RINGS, "contexts")]
        self._pending = Pending(counts, where, queues, paid, *rings)
        self.evidence = Evidence._make(arrays[f"evidence.{name}"].copy() for name in Evidence._fields)
        self.visitors.oddities[:] = arrays["oddities"]
        self._made = int(self._pending.counts[NEXT])
        self.params = self._params(self._caps)
        self._keep(type(self.stats)(*(arrays[f"stats.{name}"] for name in self.stats._fields)))
        self._hold()

    def _params(self, caps: Floats) -> Any:
        """The policy's params for arms with these caps."""
        if isinstance(self.policy, ContextualPolicy):
            return self.policy.params(caps, self.window, self.visitors.width)
        return self.policy.params(caps, self.window)

    def _visit(self, n: int, contexts: Stored | None, made: bool = True) -> None:
        """Take note of whom the next `n` decisions are for, which are made or only tried."""
        if self.visitors.tell(n, self._made, contexts, made):
            self._hold()

    def _hold(self) -> None:
        """Hand the arrays to the kernels, after any of them was replaced."""
        with np.errstate(divide="ignore"):  # a retired arm's cap is 0; its index is never asked for
            choosing = self._params(np.where(self._playing, self._caps, 0.0))
        self._anyone = bool(self._playing.any())
        self._own_windows: list[float] = self._windows.tolist()
        self.value_most = _CAPS_MOST * float(self._caps.max())
        rules = Rules(
            self._edges, self._ends, self._windows, self._playing, self._seed, self._founding, self._caps,
            self._floored, self.limits.shares(self._playing),
        )  # fmt: skip
        self._held = native_tuple(
            KernelState(
                params=self.params,
                choosing=choosing,
                stats=self.stats,
                pending=self._pending,
                rules=rules,
                arms=self._arms,
                propensities=self._propensities,
                values=self.values,
                visits=self.visitors.seen,
                visits_from=self.visitors.first,
                memory=self._memory,
                choosing_bytes=self._choosing_bytes,
                first_news=self._first_news,
                observed=self.observed,
                above=self.above,
                evidence=self.evidence,
                recent=self._recent,
                trial_stats=self.trial_stats,
                trial_memory=self._trial_memory,
                trial_first_news=np.full(len(self._caps), np.inf),
                draft=self._draft,
            )
        )
        kind = getattr(self._held, "_numba_type_", None)
        if kind is None or kind != self._kind:
            self._kind = kind
            # Not those that are handed arrays: a compiled kernel takes any for one of its own kind.
            quick = {name: partial(self._first, name) for name in ("advance", "observe", "choose")}
            self._code = self.kernels._replace(**quick)

    def _first(self, name: str, held: Any, *more: Any) -> Any:
        """A kernel's first call by this ledger; later ones need not look up what has been compiled."""
        dispatcher = getattr(self.kernels, name)
        found = dispatcher(held, *more)
        self._code = self._code._replace(**{name: machine_code_for(dispatcher, held)})
        return found

    def propensities(self, n: int) -> tuple[float, ...]:
        """Return the propensities of the `n` decisions last made or tried; none without a floor."""
        if not self._floored:
            return ()
        return (self._propensities.item(0),) if n == 1 else tuple(self._propensities[:n].tolist())

    def _compare_anew(self) -> None:
        """Begin the comparison of the arms in play: all are compared over the same decisions."""
        least = np.where(self._playing, self.limits.shares(self._playing).least, np.nan)
        low = -self._caps if self._allow_negative else np.zeros(len(self._caps))
        first = int(self._pending.counts[NEXT])
        self.evidence = no_evidence(np.stack([low, self._caps], axis=1), least, ERROR, first)

    def _keep(self, stats: Any) -> None:
        """Have the statistics in one piece of memory, so that a copy of all is one copy."""
        self.stats, self._memory = together(stats)
        self.trial_stats, self._trial_memory = together(stats)
        self._choosing_bytes = len(self._memory)
        if self.policy.kept:
            kept = getattr(self.stats, self.policy.kept[0])
            self._choosing_bytes = int(kept.ctypes.data - self._memory.ctypes.data)
        self.values = np.full(len(self._caps), np.nan)

    def _time(self, now: float) -> float:
        time = float(now)
        if not self._now <= time < math.inf:
            raise InputError(f"time must not go back: {now!r} comes after {self._now:g}")
        return time

    def _own(self, window: float) -> float:
        own = positive("a window", window)
        if own > self.span:
            raise InputError(f"a window must be at most the ledger's {self.span:g}, not {window!r}")
        return own

    def _known(self, arm: int) -> int:
        return whole("arm", arm, 0, len(self._caps) - 1)

    def _number(self, id: int) -> int:
        try:
            number = operator.index(id)
        except TypeError:
            number = -1
        if not 0 <= number < self._made:
            raise InputError(f"no decision has the id {id!r}; there are {self._made}, from 0 on")
        return number
