"""`Ledger`: decisions and pieces in, a policy's statistics and choices out."""

from __future__ import annotations

import copy
import json
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, as_number, positive, whole
from accrual.core.features import Features
from accrual.core.groups import group_ends
from accrual.core.jit import BoundKernel, Recipe, python_function
from accrual.core.random import ROUND_MOST, SEED_MOST
from accrual.live.contexts import AboutArms, ContextEncoder, ContextRows
from accrual.live.kernels import (
    BATCH,
    CHOOSE,
    DECIDE,
    EXAMPLES,
    FOLD,
    LATE,
    LEARN,
    LOST,
    NEXT,
    NO_ROOM,
    OF_ARM,
    RECENT,
    SHUT,
    TRY,
    USED,
    KernelState,
    Rules,
    close,
    make_kernel,
    no_trial_pending,
    none_pending,
    with_arms,
    with_room,
)
from accrual.live.watch import NEVER, Comparison, Watcher, watchers_of
from accrual.policies.base import Policy, is_numbered, lost_index, no_amended
from accrual.policies.contexts import params_of
from accrual.policies.floor import Limits
from accrual.store.events import PACKED, Events, Kind, unpack

NO_ARM = "every arm has retired; add one before deciding"

Arm = TypeVar("Arm", int, str)


class Decision(NamedTuple, Generic[Arm]):
    """One choice of an arm: its number or, where arms have names, its name."""

    id: int
    arm: Arm
    at: float
    propensity: float | None = None  # the probability with which its arm was chosen; None without a floor


class Ledger:
    """Folds events into a policy's statistics, and chooses by them.

    Events come one by one: decisions, pieces in any order, closings, and time itself. The ledger folds them
    with the policy's own functions, as the simulator does. No event is read twice: the cost of an event is
    that of what it changes. Memory grows with the pending decisions.

    Parameters
    ----------
    policy : Policy
        A policy that gets totals at once in a simulation learns a total here when its decision closes.
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The longest window, in rounds or any other unit of time: pieces have ages from 0 to below
        this.
    seed : int
        For policies that draw.
    windows : sequence of float, optional
        Each arm's own window, at most `window`. A decision may have a shorter one.
    span : float, optional
        How long the longest window lasts in the unit of times and ages, if that is not the policy's own
        unit. Then `window` is the number of steps into which the policy divides it.
    limits : Limits, optional
        A floor, and the least and greatest shares of arms.
    allow_negative : bool
        Whether a total may be below 0, down to the cap's negative.
    features : Features, optional
        The features of contexts. Without features, a policy that chooses by contexts gets a constant.
    streams : int
        How many streams of pieces there are beside the reward; the policy does not get them.
    watchers : sequence of Watcher, optional
        What watches finished decisions; the alarm and the verdict unless given.
    about : AboutArms, optional
        What is known about the arms, for a policy that uses it.

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
        streams: int = 0,
        watchers: Sequence[Watcher] | None = None,
        about: AboutArms | None = None,
    ) -> None:
        if policy.feedback == "groups" and policy.functions.amended is no_amended:
            raise InputError(f"{policy.label} lacks the function `amended`, for pieces out of order")
        self.policy, self.limits, self._allow_negative = policy, limits, allow_negative
        self.features = features
        self.context_encoder = ContextEncoder(features, policy)
        self.window = whole("window", window, 1)
        self.seed = whole("seed", seed, 0, SEED_MOST)
        self.span = float(self.window) if span is None else positive("a span", span)
        self.arms = ArmTable(caps, windows, self.span, about)
        edges = policy.edges(self.window).astype(np.float64)
        self.edges: Floats = np.where(edges == self.window, self.span, edges * (self.span / self.window))
        """The ages at which the policy's groups end."""
        self._edges = group_ends(edges, self.window, self.span)
        self._ends = self._edges if len(edges) else np.array([self.span])
        self.streams = streams
        self.pending_decisions = none_pending(
            len(self.arms), len(edges), len(self._ends), self.context_encoder.width, streams
        )
        self.decisions = 0
        """How many decisions have been made; also the id of the next one."""
        self.now = -math.inf
        """The time of the last event."""
        self._chosen = np.zeros(1, np.int64)
        self._propensities = np.zeros(1)
        self._floored = limits.any
        self._trial_pending = no_trial_pending(len(self._ends), 256)
        self.params = self._params(self.arms.caps, self.arms.about)
        self.statistics = statistics_of(policy, policy.stats(self.params), len(self.arms))
        self.watchers = tuple(watchers_of(policy.contextual) if watchers is None else watchers)
        self._judging = True
        self.watched: tuple[Any, ...] = ()  # for each watcher, its arrays
        self._start_watchers()
        self._batch = unpack(bytes(BATCH * PACKED.itemsize))
        self.kernel = BoundKernel(
            make_kernel(
                policy.functions,
                policy.feedback,
                policy.contextual,
                is_numbered(self.statistics.stats),
                tuple((watcher.see, watcher.in_order) for watcher in self.watchers),
            ),
            *EXAMPLES,
        )
        self._bind()

    def answer_at_once(self, kinds: Sequence[str] = ()) -> None:
        """Do everything in plain Python, with the same results, until the kernels have been compiled.

        Without this, the first call waits for them. `kinds` are those of the bandit's streams.
        """
        recipe = partial(_recipe, self.policy, self.window, kinds)  # without the ledger: there is no cycle
        self.kernel.answer_at_once(recipe)
        self.context_encoder.kernel.answer_at_once(recipe)

    @property
    def pending(self) -> int:
        """How many decisions may still be paid for: their window is not over, and they are not closed."""
        return int(self.pending_decisions.queues.counts[USED] - self.pending_decisions.counts[SHUT])

    @property
    def late(self) -> int:
        """How many pieces came past their decision's window, or after it had been closed."""
        return int(self.pending_decisions.counts[LATE])

    def decide(
        self,
        now: float,
        n: int = 1,
        window: float | None = None,
        contexts: ContextRows | None = None,
        arm: int | None = None,
    ) -> list[Decision[int]]:
        """Choose `n` times, with what is known at `now`, before any of the `n` has paid.

        Parameters
        ----------
        now : float
            The time, not before that of any earlier event.
        window : float, optional
            The decisions' own window; the arm's window unless given, or if the arm's is shorter. Its end acts
            like `close_decision`: the groups finish, and the totals count, with the arm's other decisions.
        contexts : array, n x features, optional
            The contexts, as `Features.stored` makes them; all values are missing unless given.
        arm : int, optional
            The arm, if another system has chosen it; the policy chooses unless given.
        """
        time = later(self.now, now)
        own = OF_ARM if window is None else self.arms.checked_window(window)
        n = whole("n", n, 1, ROUND_MOST)
        if arm is None and not self.arms.in_play:
            raise InputError(NO_ARM)
        given = CHOOSE if arm is None else self.arms.checked_number(arm)
        first = self.decisions
        arms = self.make(time, n, own, given, contexts=contexts)
        chances = self.propensities(n) if arm is None else ()
        return [
            Decision(first + i, choice, now, chance)
            for i, (choice, chance) in enumerate(zip(arms, chances or [None] * n, strict=True))
        ]

    def choose(
        self, now: float, n: int = 1, step: float = 0.0, salt: int = 0, contexts: ContextRows | None = None
    ) -> list[int]:
        """Return the arms that `n` decisions from `now` on would get, a `step` of time apart.

        Nothing changes but `statistics`: its `trial_stats` and `values` are then those by which the last
        arm was chosen. An arm's value is NaN if the policy computed no index for it: because the arm has
        retired, or is new and waits for its turn, or because it was the turn of another new arm.
        `salt` makes the policy's draws differ from those of other workers with the same statistics.
        """
        time = later(self.now, now)
        if not self.arms.in_play:
            raise InputError(NO_ARM)
        self._prepare(n, contexts, made=False)
        kernel = self.kernel
        while kernel.run(kernel.arrays, TRY, CHOOSE, n, time, float(step), 0.0, salt) == NO_ROOM:
            self._trial_pending = no_trial_pending(len(self._ends), 2 * len(self._trial_pending.places) + n)
            self._bind()
        arms: list[int] = self._chosen[:n].tolist()
        if min(arms) <= LOST:
            raise self._lost_index(arms)
        return arms

    def extend(
        self, events: Events, contexts: ContextRows | None = None, about: Sequence[bytes | None] = ()
    ) -> None:
        """Fold a part of a log.

        Parameters
        ----------
        contexts : array, decisions x features, optional
            The contexts of its decisions, as for `decide`.
        about : sequence of bytes, optional
            What is known about the arms that it adds, as a store keeps it.
        """
        new = iter(about)
        if self.context_encoder.used or contexts is not None:
            made = int(np.count_nonzero(events.kind == Kind.DECISION))
            if self.context_encoder.encode(made, self.decisions, contexts, made=True):
                self._bind()
        for begin in range(0, len(events.kind), BATCH):
            part = Events._make(column[begin : begin + BATCH] for column in events)
            for column, values in zip(self._batch, part, strict=True):
                column[: len(values)] = values
            self._fold_batch(part, new)
        if len(events.kind):
            self.now = float(events.at[-1])
            self.decisions = int(self.pending_decisions.counts[NEXT])

    def _fold_batch(self, events: Events, about: Iterator[bytes | None]) -> None:
        """Fold the events of `self._batch`, which are also given."""
        done, n, kernel = 0, len(events.kind), self.kernel
        while (done := kernel.run(kernel.arrays, FOLD, done, n, 0.0, 0.0, 0.0, 0)) < n:
            kind = events.kind[done]
            if kind == Kind.DECISION:
                self.pending_decisions = with_room(self.pending_decisions, 1)
                self._bind()
                continue
            self.tick(float(events.at[done]))
            if kind == Kind.ADD_ARM:
                cap, window = float(events.cap[done]), float(events.window[done])
                self.add_arm(cap, window, next(about, None), int(events.seq[done]))
            elif kind == Kind.RETIRE_ARM:
                self.retire_arm(int(events.arm[done]))
            done += 1

    def make_one(self, time: float, salt: int = 0, contexts: ContextRows | None = None) -> int:
        """Make one decision, for a caller that has checked the time; return its arm."""
        encoder = self.context_encoder
        if (encoder.used or contexts is not None) and encoder.encode(1, self.decisions, contexts, made=True):
            self._bind()
        self.now = time
        kernel = self.kernel
        while kernel.run(kernel.arrays, DECIDE, CHOOSE, 1, time, OF_ARM, 0.0, salt) == NO_ROOM:
            self.pending_decisions = with_room(self.pending_decisions, 1)
            self._bind()
        arm: int = self._chosen.item(0)
        if arm <= LOST:
            raise self._lost_index([arm])
        self.decisions += 1
        return arm

    def make(
        self,
        time: float,
        n: int,
        own: float = OF_ARM,
        arm: int = CHOOSE,
        salt: int = 0,
        contexts: ContextRows | None = None,
    ) -> list[int]:
        """Make `n` decisions, for a caller that has checked what `decide` checks; return their arms."""
        self._prepare(n, contexts, made=True)
        self.now = time
        kernel = self.kernel
        while kernel.run(kernel.arrays, DECIDE, arm, n, time, own, 0.0, salt) == NO_ROOM:
            self.pending_decisions = with_room(self.pending_decisions, n)
            self._bind()
        arms: list[int] = self._chosen[:n].tolist()
        if min(arms) <= LOST:
            error = self._lost_index(arms)
            self.decisions = int(self.pending_decisions.counts[NEXT])  # the decisions before it are made
            raise error
        self.decisions += n
        return arms

    def _prepare(self, n: int, contexts: ContextRows | None, made: bool) -> None:
        """Encode the contexts of the next `n` decisions, and make room for their arms."""
        replaced = self.context_encoder.encode(n, self.decisions, contexts, made)
        if n > len(self._chosen):
            self._chosen, self._propensities = np.zeros(n, np.int64), np.zeros(n)
            replaced = True
        if replaced:
            self._bind()

    def _lost_index(self, arms: list[int]) -> InputError:
        """Make the error for an index that is not a number, from the numbers that stand for the arms."""
        place = next(i for i, arm in enumerate(arms) if arm <= LOST)
        return lost_index(self.policy.label, LOST - arms[place], self.decisions + place + 1)

    def propensities(self, n: int) -> tuple[float, ...]:
        """Return the propensities of the `n` decisions last made or tried; nothing without a floor."""
        if not self._floored:
            return ()
        return (self._propensities.item(0),) if n == 1 else tuple(self._propensities[:n].tolist())

    def observe(self, id: int, value: float, age: float) -> bool:
        """Add a piece that decision `id` paid at this age; return whether the policy learns from it.

        If the age is past the decision's window, or the decision has been closed, the piece is only counted
        as late.
        """
        if not math.isfinite(as_number(value)):
            raise InputError(f"a piece's value must be a finite number, not {value!r}")
        if not as_number(age) >= 0:
            raise InputError(f"a piece's age must be 0 or more, not {age!r}")
        number = existing_decision(self.decisions, id)
        kernel = self.kernel
        return bool(kernel.run(kernel.arrays, LEARN, number, 0, 0.0, float(value), float(age), 0))

    def tick(self, now: float) -> None:
        """Let time pass: groups finish and windows close, in order of time, then of id."""
        self.now = later(self.now, now)
        self.kernel.run(self.kernel.arrays, DECIDE, CHOOSE, 0, self.now, OF_ARM, 0.0, 0)

    def close_decision(self, id: int, now: float) -> bool:
        """Refuse further pieces of decision `id`; return False if its window was over or it had been closed.

        Nothing else changes: its groups finish, and its total counts, at the same times as without this.
        """
        number = existing_decision(self.decisions, id)
        self.tick(now)
        return bool(python_function(close)(self.pending_decisions, self._ends, number))

    def add_arm(
        self, cap: float, window: float | None = None, about: bytes | None = None, position: int = 0
    ) -> int:
        """Add an arm; return its number.

        With K arms in play, the new arm gets one of any K decisions in a row until its first decision has
        finished a group of the policy (its window, if the policy has no groups). From then on the policy
        chooses. `about` is what is known about the arm, as a store keeps it; `position` is the position of
        the arm in the log.
        """
        own = self.span if window is None else window
        self.params = self.check_arm(cap, own, about)
        self.arms.add(cap, own, about, position)
        self.statistics = statistics_of(
            self.policy, self.policy.grow(self.stats, self.params), len(self.arms)
        )
        self.pending_decisions = with_arms(self.pending_decisions, len(self.arms))
        comparison = self._comparison()
        self.watched = tuple(
            watcher.with_arm(arrays, comparison)
            for watcher, arrays in zip(self.watchers, self.watched, strict=True)
        )
        self._bind()
        return len(self.arms) - 1

    def _comparison(self) -> Comparison:
        """Return the arms that there are now, to be compared over the same decisions from the next one on."""
        arms = self.arms
        return Comparison(
            caps=arms.caps,
            least=np.where(arms.playing, self.limits.shares(arms.playing).least, np.nan),
            founding=arms.founding,
            lowest=-1.0 if self._allow_negative else 0.0,
            first=int(self.pending_decisions.counts[NEXT]) if self._judging else NEVER,
        )

    def _start_watchers(self) -> None:
        comparison = self._comparison()
        self.watched = tuple(watcher.start(comparison) for watcher in self.watchers)

    def only_choose(self) -> None:
        """Show no more decisions to the watchers, which takes time. Choices do not depend on it."""
        self._judging = False
        self._start_watchers()
        self._bind()

    def check_arm(self, cap: float, window: float, about: bytes | None = None) -> Any:
        """Return the params that the policy would have with one more arm; raise an error if it cannot be."""
        self.arms.checked_window(window)
        caps = np.append(self.arms.caps, positive("a cap", cap))
        return self._params(caps, self.arms.about_with(about))

    def _params(self, caps: Floats, about: Floats) -> Any:
        """Return the policy's params for arms with these caps and features."""
        return params_of(self.policy, caps, self.window, self.context_encoder.layout, about)

    def retire_arm(self, arm: int) -> None:
        """Never choose this arm again. Its pending decisions still teach."""
        self.arms.retire(arm)
        self._bind()

    def arrays(self, watched: bool = True) -> dict[str, npt.NDArray[Any]]:
        """Return the fold of the events as arrays, by name. Nothing is copied.

        Without `watched` the arrays of the watchers are left out; only a ledger that has been told to
        `only_choose` can go on from these.
        """
        names = [watcher.name for watcher in self.watchers] if watched else []
        return {
            **self.arms.arrays(),
            "now": np.array([self.now]),
            "oddities": self.context_encoder.oddities,
            **named_arrays("pending", self.pending_decisions),
            **named_arrays("stats", self.stats),
            **{
                name: array
                for own, arrays in zip(names, self.watched, strict=False)
                for name, array in named_arrays(own, arrays).items()
            },
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from the `arrays` of another ledger with the same policy and window."""
        self.arms.restore(arrays)
        self.now = float(arrays["now"][0])
        self.pending_decisions = _restored("pending", self.pending_decisions, arrays)
        if self._judging:
            self.watched = tuple(
                _restored(watcher.name, old, arrays)
                for watcher, old in zip(self.watchers, self.watched, strict=True)
            )
        else:
            self._start_watchers()
        self.context_encoder.restore(arrays["oddities"])
        self.decisions = int(self.pending_decisions.counts[NEXT])
        self.params = self._params(self.arms.caps, self.arms.about)
        stats = _restored("stats", self.stats, arrays)
        self.statistics = statistics_of(self.policy, stats, len(self.arms))
        self._bind()

    def _bind(self) -> None:
        """Hand the arrays to the kernels, after one of them was replaced."""
        arms = self.arms
        self.stats: Any = self.statistics.stats
        with np.errstate(divide="ignore"):  # a retired arm's cap is 0; its index is never computed
            choosing = self._params(np.where(arms.playing, arms.caps, 0.0), arms.about)
        rules = Rules(
            edges=self._edges,
            ends=self._ends,
            windows=arms.windows,
            playing=arms.playing,
            seed=self.seed,
            founding=arms.founding,
            caps=arms.caps,
            known=int(arms.known[0]),
            floored=self._floored,
            shares=self.limits.shares(arms.playing),
        )
        self.kernel.bind(
            KernelState(
                params=self.params,
                choosing=choosing,
                pending=self.pending_decisions,
                rules=rules,
                arms=self._chosen,
                propensities=self._propensities,
                contexts=self.context_encoder.encoded,
                contexts_from=self.context_encoder.first_id,
                first_news=arms.first_news,
                observed=arms.observed,
                above=arms.above,
                watched=self.watched,
                recent=arms.recent,
                batch=self._batch,
                trial_first_news=np.full(len(arms), np.inf),
                trial_pending=self._trial_pending,
                **self.statistics._asdict(),
            )
        )


def named_arrays(name: str, arrays: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a named tuple, and of the named tuples in it, by names that begin with `name`."""
    if not isinstance(arrays, tuple):
        return {name: arrays}
    fields = zip(arrays._fields, arrays, strict=True)  # type: ignore[attr-defined]
    return {key: array for own, part in fields for key, array in named_arrays(f"{name}.{own}", part).items()}


def _restored(name: str, like: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return a named tuple as `like` is, of copies of the arrays that `named_arrays` named."""
    if not isinstance(like, tuple):
        return arrays[name].copy()
    fields = zip(like._fields, like, strict=True)  # type: ignore[attr-defined]
    return type(like)(*[_restored(f"{name}.{own}", part, arrays) for own, part in fields])


def _recipe(policy: Policy, window: int, kinds: Sequence[str]) -> Recipe:
    """Say how another process compiles the kernels of bandits with this policy and streams of these kinds."""
    from accrual.policies.catalog import policy_text  # here, as snapshots do not depend on other policies

    text = policy_text(policy)
    given = None if text is None else json.dumps([text, window, sorted(set(kinds))])
    return Recipe(policy.label, "accrual.live.warm", given)


def later(last: float, now: float) -> float:
    """Return the time `now`; raise an error if it is before the time of the last event."""
    time = float(now)
    if not last <= time < math.inf:
        raise InputError(f"time must not go back: {now!r} comes after {last:g}")
    return time


def existing_decision(made: int, id: int) -> int:
    """Return the id of a decision as a plain number; raise an error if no such decision was made."""
    try:
        number = operator.index(id)
    except TypeError:
        number = -1
    if not 0 <= number < made:
        raise InputError(f"no decision has the id {id!r}; there are {made}, from 0 on")
    return number


# The largest value of a piece, in caps. Sums have sixteen digits: if a piece of this size is taken back
# later, the sum of the other pieces is still right to a ten-millionth of the cap.
VALUE_MOST = 1e9
_ARRAYS = ("caps", "windows", "about", "playing", "observed", "above", "recent", "first_news", "known")


class ArmTable:
    """What a ledger knows about its arms, apart from the policy's statistics. Arms are numbered from 0 on.

    Parameters
    ----------
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    windows : sequence of float, optional
        Each arm's own window; `span` unless given.
    span : float
        The longest window that an arm may have.
    about : AboutArms, optional
        What is known about each arm.
    """

    def __init__(
        self,
        caps: Sequence[float],
        windows: Sequence[float] | None,
        span: float,
        about: AboutArms | None = None,
    ) -> None:
        if not len(caps):
            raise InputError("a ledger needs at least one arm")
        if windows is None:
            windows = [span] * len(caps)
        if len(windows) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} windows, not {len(windows)}")
        self.span = span
        self.founding = len(caps)
        """How many arms there were at the start; arms with higher numbers were added later."""
        self.caps = np.array([positive("a cap", cap) for cap in caps])
        self.windows = np.array([self.checked_window(window) for window in windows])
        self.features = None if about is None else about.features
        """What may be known about an arm."""
        self._about = about
        self.about = np.zeros((len(caps), 0)) if about is None else about.encoded(about.stored)
        """What is known about each arm, encoded for the policy; no columns if the arms have no features."""
        self.playing = np.ones(len(caps), np.bool_)
        """Whether each arm is in play; an arm that has retired is not."""
        self.observed = np.zeros(len(caps))
        """What each arm's decisions have paid, without late pieces."""
        self.above = np.zeros(len(caps), np.int64)
        """How many of each arm's decisions have paid more than its cap."""
        self.first_news = np.full(len(caps), np.inf)
        """When each arm's first decision finishes its first group; infinite before that decision."""
        self.recent = np.zeros(RECENT, np.int64)
        """The arms of the last 1,000 decisions: the arm of decision `id` is at ``id % 1000``."""
        self.known = np.zeros(1, np.int64)
        """One number: the position in the log that a worker must have read to know all arms."""
        self._derive()

    def _derive(self) -> None:
        """Compute what follows from the arrays, after one of them was replaced or an arm has retired."""
        self.in_play = [int(arm) for arm in np.flatnonzero(self.playing)]
        """The numbers of the arms in play."""
        self.own_windows: list[float] = self.windows.tolist()
        """`windows` as a list, from which one window is read faster."""
        self.value_most = VALUE_MOST * float(self.caps.max())
        """The largest value that a piece may have."""

    def __len__(self) -> int:
        return len(self.caps)

    def checked_window(self, window: float) -> float:
        """Return the window of an arm or of a decision as a float; raise an error if it is too long."""
        own = positive("a window", window)
        if own > self.span:
            raise InputError(f"a window must be at most the ledger's {self.span:g}, not {window!r}")
        return own

    def checked_number(self, arm: int) -> int:
        """Return the number of an arm as a plain number; raise an error if there is no such arm."""
        return whole("arm", arm, 0, len(self.caps) - 1)

    def about_with(self, stored: bytes | None) -> Floats:
        """Return `about` with one more arm, whose features a store keeps as `stored`."""
        row = np.zeros((1, 0)) if self._about is None else self._about.encoded((stored,))
        return np.concatenate([self.about, row])

    def add(self, cap: float, window: float, about: bytes | None, position: int) -> None:
        """Add an arm, at a position of the log; its cap and window have been checked."""
        self.caps = np.append(self.caps, float(cap))
        self.windows = np.append(self.windows, float(window))
        self.about = self.about_with(about)
        self.playing = np.append(self.playing, True)
        self.observed = np.append(self.observed, 0.0)
        self.above = np.append(self.above, 0)
        self.first_news = np.append(self.first_news, np.inf)
        self.known = np.array([position])
        self._derive()

    def retire(self, arm: int) -> None:
        """Take an arm out of play permanently."""
        self.playing[self.checked_number(arm)] = False
        self._derive()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name. They are not copied."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def copied(self) -> ArmTable:
        """Return a copy, which stays as it is while this one changes."""
        other = copy.copy(self)
        other.restore(self.arrays())
        return other

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the arrays by copies of those that another table's `arrays` returned."""
        for name in _ARRAYS:
            setattr(self, name, arrays[name].copy())
        self._derive()


class Statistics(NamedTuple):
    """A policy's statistics, and a copy for decisions that are only tried.

    The arrays of each lie in one piece of memory, so that one copy copies all of them.
    """

    stats: Any
    memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `stats`
    trial_stats: Any
    trial_memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `trial_stats`
    choosing_bytes: int  # how many bytes, from the start, a choice between two refreshes depends on
    values: Floats  # arms: their indices when an arm was last chosen


def statistics_of(policy: Policy, stats: Any, arms: int) -> Statistics:
    """Return statistics that start from a copy of `stats`."""
    own, memory = together(stats)
    choosing_bytes = len(memory)
    if policy.functions.hooks.learning_fields:
        first = policy.functions.hooks.learning_fields[0]
        choosing_bytes = int(getattr(own, first).ctypes.data - memory.ctypes.data)
    trial_stats, trial_memory = together(stats)
    return Statistics(
        stats=own,
        memory=memory,
        trial_stats=trial_stats,
        trial_memory=trial_memory,
        choosing_bytes=choosing_bytes,
        values=np.full(arms, np.nan),
    )


_ALIGNMENT = 64  # bytes: an array begins at a multiple of this


def together(arrays: Any) -> tuple[Any, npt.NDArray[np.uint8]]:
    """Copy a named tuple of arrays into one piece of memory; return the tuple and the memory.

    Examples
    --------
    >>> from accrual.policies.tpucbfrg import no_stats
    >>> stats, memory = together(no_stats(arms=3))
    >>> memory[:] = 0
    >>> stats.observed
    array([0., 0., 0.])
    """
    starts = [0]
    for array in arrays:
        starts.append(starts[-1] + -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT)
    memory = np.zeros(starts[-1], np.uint8)
    copies = []
    for start, array in zip(starts, arrays, strict=False):
        copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        copies.append(copy)
    return type(arrays)(*copies), memory
