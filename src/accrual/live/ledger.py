"""`Ledger`: decisions and pieces in, a policy's statistics and choices out."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, whole
from accrual.core.events import Decision
from accrual.core.held import hold
from accrual.core.random import ROUND_MOST, SEED_MOST
from accrual.live.fold import CHOOSE, NOBODY, OF_ARM, PEEK, Rules, State, fold
from accrual.live.pending import COUNT, LATE, none_pending, with_room
from accrual.policy.base import Policy, no_amended


class Ledger:
    """Folds events into a policy's statistics, and chooses by them.

    Events come one by one: decisions, pieces in any order, closings, and time itself. They go
    through the policy's own functions, as in the simulator. Nothing is read twice: an event costs
    what it changes, and memory grows with the pending decisions.

    Parameters
    ----------
    policy : Policy
        Any that does not need to see the future.
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The longest window, in rounds or any other unit of time: pieces have ages from 0 to below
        this.
    seed : int
        For policies that draw.
    windows : sequence of float, optional
        Each arm's own window, at most `window`. A decision may have yet another.

    Examples
    --------
    >>> import accrual as ac
    >>> ledger = Ledger(ac.AgeIMED(), caps=[1.0, 1.0], window=80)
    >>> first, second = ledger.decide(now=1, n=2)
    >>> second
    Decision(id=1, arm=1, at=1)
    >>> ledger.observe(second.id, 0.7, age=3)
    True
    >>> ledger.observe(second.id, 0.1, age=80)  # past the window: counted, not learned
    False
    >>> ledger.late, ledger.pending
    (1, 2)
    """

    def __init__(
        self,
        policy: Policy,
        caps: Sequence[float],
        window: int,
        seed: int = 0,
        windows: Sequence[float] | None = None,
    ) -> None:
        if policy.immediate:
            raise InputError(
                f"{policy.label} sees totals before they are paid, which only a simulation can offer; "
                "use a policy that waits, for example AgeIMED"
            )
        if policy.feedback == "groups" and policy.functions.amended is no_amended:
            raise InputError(f"{policy.label} lacks the function `amended`, for pieces out of order")
        if not len(caps):
            raise InputError("a ledger needs at least one arm")
        self.policy = policy
        self.window = whole("window", window, 1)
        self._seed = whole("seed", seed, 0, SEED_MOST)
        if windows is None:
            windows = [self.window] * len(caps)
        if len(windows) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} windows, not {len(windows)}")
        self._caps = np.array([_positive("a cap", cap) for cap in caps])
        self._windows = np.array([self._own(own) for own in windows])
        self._playing = np.ones(len(caps), np.bool_)
        self._edges = policy.edges(self.window).astype(np.float64)
        self._pending = none_pending(len(self._edges))
        self._fold = fold(policy.functions, policy.feedback)
        self._now = -math.inf
        self._arms = np.zeros(1, np.int64)
        self._made = 0
        self.params = policy.params(self._caps, self.window)
        self.stats: Any = policy.stats(self.params)
        self._hold()

    @property
    def decisions(self) -> int:
        """How many decisions have been made; also the id of the next."""
        return self._made

    @property
    def pending(self) -> int:
        """How many decisions have not closed."""
        return int(self._pending.counts[COUNT])

    @property
    def late(self) -> int:
        """How many pieces came past their decision's window, or after it had closed."""
        return int(self._pending.counts[LATE])

    @property
    def arms(self) -> list[int]:
        """The arms in play."""
        return [int(arm) for arm in np.flatnonzero(self._playing)]

    def decide(self, now: float, n: int = 1, window: float | None = None) -> list[Decision]:
        """Choose `n` times, with what is known at `now`, before any of the `n` has paid.

        Parameters
        ----------
        now : float
            The time, not before that of any earlier event.
        n : int
        window : float, optional
            These decisions' own window; their arm's unless given.
        """
        return self._decide(now, n, window, CHOOSE)

    def peek(self, now: float) -> int:
        """The arm that `decide` would choose now. Time goes on to `now`; nothing is decided."""
        time = self._time(now)
        if not self._anyone:
            raise InputError("every arm has retired; add one before deciding")
        self._now = time
        while not self._fold.advance(self._held, time, NOBODY, 1, CHOOSE, PEEK):
            self._pending = with_room(self._pending, 1)
            self._hold()
        return int(self._arms[0])

    def record(self, arm: int, now: float, window: float | None = None) -> Decision:
        """Take note of a decision that was made elsewhere."""
        return self._decide(now, 1, window, self._known(arm))[0]

    def _decide(self, now: float, n: int, window: float | None, arm: int) -> list[Decision]:
        time = self._time(now)
        own = OF_ARM if window is None else self._own(window)
        n = whole("n", n, 1, ROUND_MOST)
        if arm == CHOOSE and not self._anyone:
            raise InputError("every arm has retired; add one before deciding")
        if n > len(self._arms):
            self._arms = np.zeros(n, np.int64)
            self._hold()
        self._now = time
        while not self._fold.advance(self._held, time, NOBODY, n, arm, own):
            self._pending = with_room(self._pending, n)
            self._hold()
        first = self._made
        self._made += n
        return [Decision(first + i, choice, now) for i, choice in enumerate(self._arms[:n].tolist())]

    def observe(self, id: int, value: float, age: float) -> bool:
        """A piece of decision `id`, paid when it was of this age. Whether it is learned from.

        It is not, but counted as late, if the age is past the decision's window or the decision
        has closed.
        """
        if not math.isfinite(value):
            raise InputError(f"a piece's value must be a finite number, not {value!r}")
        if not age >= 0:
            raise InputError(f"a piece's age must be 0 or more, not {age!r}")
        number = self._number(id)
        return bool(self._fold.observe(self._held, number, float(value), float(age)))

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
        self._fold.observe_many(self._held, number, value, age, learned)
        return learned

    def tick(self, now: float) -> None:
        """Let time pass: groups finish and windows close, in order of time, then of id."""
        self._now = self._time(now)
        self._fold.advance(self._held, self._now, NOBODY, 0, CHOOSE, OF_ARM)

    def close(self, id: int, now: float) -> bool:
        """Nothing more will come for decision `id`: its groups finish now. False if it had closed."""
        number, time = self._number(id), self._time(now)
        self.tick(time)
        before = self.pending
        self._fold.advance(self._held, time, number, 0, CHOOSE, OF_ARM)
        return self.pending < before

    def add_arm(self, cap: float, window: float | None = None) -> int:
        """A new arm, to be tried at the next decision. Its number."""
        own = self._own(self.window if window is None else window)
        caps = np.append(self._caps, _positive("a cap", cap))
        self.params = self.policy.params(caps, self.window)  # which may refuse the arm
        self._caps = caps
        self._windows = np.append(self._windows, own)
        self._playing = np.append(self._playing, True)
        self.stats = self.policy.grow(self.stats, self.params)
        self._hold()
        return len(self._caps) - 1

    def retire_arm(self, arm: int) -> None:
        """Never choose this arm again. Its pending decisions still teach."""
        self._playing[self._known(arm)] = False
        self._hold()

    def _hold(self) -> None:
        """Hand the arrays to the kernels, after any of them was replaced."""
        with np.errstate(divide="ignore"):  # a retired arm's cap is 0; nobody asks for its index
            choosing = self.policy.params(np.where(self._playing, self._caps, 0.0), self.window)
        self._anyone = bool(self._playing.any())
        rules = Rules(self._edges, self._windows, self._playing, self._seed)
        self._held = hold(State(self.params, choosing, self.stats, self._pending, rules, self._arms))

    def _time(self, now: float) -> float:
        time = float(now)
        if not self._now <= time < math.inf:
            raise InputError(f"time must not go back: {now!r} comes after {self._now:g}")
        return time

    def _own(self, window: float) -> float:
        own = _positive("a window", window)
        if own > self.window:
            raise InputError(f"a window must be at most the ledger's {self.window}, not {window!r}")
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


def _positive(what: str, value: float) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{what} must be a positive number, not {value!r}")
    return number
