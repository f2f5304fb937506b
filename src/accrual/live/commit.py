"""Group commit: calls that come while a transaction is under way share the next one.

There is no thread for it. A caller joins the queue and takes its turn; the one whose turn it is
stores all that is queued, in one transaction, and answers for everyone.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from accrual.core.errors import InputError
from accrual.core.random import RUN_MOST
from accrual.live.contexts import Floats, numbers_of
from accrual.live.kernels import CLOSED, FIRST, OVER
from accrual.live.ledger import NO_ARM, Ledger
from accrual.live.log_follower import LogFollower
from accrual.live.watch import Guardrail
from accrual.store.base import (
    Answer,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    Store,
    StoreError,
    StoreRequest,
)

# Warn of pieces whose decisions have paid more in all than their arm's cap.

_ABOVE = (
    "this decision has paid more in all than its arm's cap of {cap:g}: what is said of the arm's mean "
    "stays true, but the policy chooses badly until the bandit is made anew with the true cap; {enough:g} "
    "would be enough for this decision"
)


def caps_exceeded(ledger: Ledger, ids: Sequence[int]) -> list[tuple[float, float] | None]:
    """Return for each decision the cap that it has paid more than, and its total.

    None if it has not paid more, or is not pending.
    """
    pending = ledger.pending_decisions
    number, where = np.array(ids, np.int64), pending.where
    places = np.where(number < pending.counts[FIRST], CLOSED, where[number & (len(where) - 1)])
    rows = pending.queues.rows[places]
    caps = ledger.arms.caps[rows["arm"]]
    above = (places != CLOSED) & (rows["total"] > caps * OVER)
    pairs = zip(caps.tolist(), rows["total"].tolist(), strict=True)
    return [pair if is_above else None for pair, is_above in zip(pairs, above.tolist(), strict=True)]


def enough(total: float) -> float:
    """Return a cap that a total fits into: 1, 2 or 5 times a power of ten.

    So few texts differ, and Python shows the same warning once.

    Examples
    --------
    >>> [enough(total) for total in (1.2, 2.0, 7.0, 130.0)]
    [2.0, 2.0, 10.0, 200.0]
    """
    unit = 10.0 ** math.floor(math.log10(total))
    return next(size * unit for size in (1.0, 2.0, 5.0, 10.0, 20.0) if size * unit >= total)


def add_cap_warnings(ledger: Ledger, asks: Sequence[object], answers: list[Answer]) -> None:
    """Put a warning into the answer of each learned piece whose decision has paid more than the cap."""
    pieces = [
        (i, ask.decision)
        for i, (ask, answer) in enumerate(zip(asks, answers, strict=True))
        if isinstance(ask, NewPiece)
        and ask.stream is None
        and answer.status in (Status.STORED, Status.AGAIN)
        and not answer.late
    ]
    exceeded = caps_exceeded(ledger, [decision for _, decision in pieces])
    for (i, _), pair in zip(pieces, exceeded, strict=True):
        if pair is not None:
            answers[i] = answers[i]._replace(warning=_ABOVE.format(cap=pair[0], enough=enough(pair[1])))


# What follows when an arm is found worse on a guardrail, or to pay otherwise than before.
#
# That is a line in the log and, if a guardrail asks for it, the arm's retirement.

log = logging.getLogger("accrual.live")


class ArmWatch:
    """Looks for arms that guardrails have found worse, and for arms that no longer pay as they did.

    Every worker that shares a bandit folds the same log and finds the same; the first to retire an arm
    does so for all.

    Parameters
    ----------
    bandit : str
        Its name.
    guardrails : sequence of (str, Guardrail)
    ledger : Ledger
        The bandit's: what it has found by now is not logged again.
    name_of : callable
        Gives an arm's name.
    """

    def __init__(
        self,
        bandit: str,
        guardrails: Sequence[tuple[str, Guardrail]],
        ledger: Ledger,
        name_of: Callable[[int], str],
    ) -> None:
        self._bandit = bandit
        self._guardrails = guardrails
        self._name_of = name_of
        self._known = ledger.guards.worse != 0
        self._changed = ledger.alarms.raised != 0

    def _say_changed(self, ledger: Ledger) -> None:
        """Log the arms that have been found to pay otherwise than before."""
        alarms, known = ledger.alarms, self._changed
        self._changed = alarms.raised != 0
        new = self._changed.copy()
        new[: len(known)] &= ~known
        for arm in np.flatnonzero(new).tolist():
            lately, before = alarms.found[arm].tolist()
            log.warning(
                "an arm no longer pays as it did",
                extra={
                    "bandit": self._bandit, "arm": self._name_of(arm), "before": before, "lately": lately,
                    "decision": int(alarms.raised[arm]) - 1,
                },
            )  # fmt: skip

    def retiring(self, ledger: Ledger) -> list[RetireArm]:
        """Log what is new, and return the retirements that are due: at least one arm stays in play."""
        if np.count_nonzero(ledger.alarms.raised):
            self._say_changed(ledger)
        worse = ledger.guards.worse
        if not np.count_nonzero(worse):  # the common case
            return []
        found, known = worse != 0, self._known
        self._known = found
        new = found.copy()
        new[:, : known.shape[1]] &= ~known
        for number, arm in np.argwhere(new).tolist():
            name, rail = self._guardrails[number]
            log.warning(
                "a guardrail has found an arm worse",
                extra={
                    "bandit": self._bandit, "guardrail": name, "arm": self._name_of(arm),
                    "margin": rail.margin, "action": rail.action,
                    "closed_decisions": int(worse[number, arm]),
                },
            )  # fmt: skip
        strict = [rail.action == "retire" for _, rail in self._guardrails]
        due = [arm for arm in ledger.arms.in_play if found[strict, arm].any()]
        return [RetireArm(arm) for arm in due[: len(ledger.arms.in_play) - 1]]


class Decide(NamedTuple):
    """Choose `n` arms; a key makes that idempotent."""

    n: int = 1
    key: str | None = None
    contexts: tuple[bytes, ...] | None = (
        None  # whom each is for: see `accrual.live.contexts.contexts.bytes_of`
    )


Ask = StoreRequest | Decide


class _Caller:
    """A call that waits for its answers."""

    __slots__ = ("answers", "asks", "choices", "error", "ready")

    def __init__(self, asks: Sequence[Ask], choices: int) -> None:
        self.asks = asks
        self.choices = choices
        self.ready = threading.Lock()  # let go of when there are answers, or when it is its turn
        self.ready.acquire()
        self.answers: list[Answer] | None = None
        self.error: Exception | None = None


class Commits:
    """The way into a store's log, and from there into the ledger.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    follower : LogFollower
    clock : callable
        Gives the time; it is told that of the last event.
    step : float
        The time from one decision of a batch to the next: 1 in rounds, 0 by the clock.
    skew : float
        How far in the future a stated time may be.
    salt : int
        Sets this worker's draws apart from those of others; kept with every decision.
    watch : ArmWatch, optional
        Logs what arms are found to do, and says which are to be retired because of a guardrail.
    """

    def __init__(
        self,
        store: Store,
        bandit: int,
        follower: LogFollower,
        clock: Callable[[float], float],
        step: float,
        skew: float,
        salt: int,
        watch: ArmWatch | None = None,
    ) -> None:
        self._store = store
        self._bandit = bandit
        self._follower = follower
        self._clock = clock
        self._step = step
        self._skew = skew
        self._salt = salt
        self._watch = watch
        self._queue: list[_Caller] = []
        self._leader: _Caller | None = None  # the caller that is committing, or about to
        self._gate = threading.Lock()  # held while the queue or the leader changes
        self._sure = True  # whether the ledger is known to be where the log is
        self._turn = threading.RLock()
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this process was forked from the one that opened the bandit, which goes on with it."""
        return os.getpid() != self._process

    @property
    def turn(self) -> threading.RLock:
        """The lock that is held while the log is written or the ledger is looked at.

        A forked process is refused, before it waits for a thread that it does not have. The store belongs to
        the parent process, and two ledgers in memory would differ without anyone noticing.
        """
        if self.forked:
            raise InputError(
                "this bandit was opened before this process was forked from another, which goes on with it; "
                "open one here, after the fork"
            )
        return self._turn

    def submit(self, asks: Sequence[Ask]) -> list[Answer]:
        """Store what is asked, and return an answer for each ask; all is durable when this returns."""
        turn = self.turn
        caller = _Caller(asks, sum([ask.n for ask in asks if isinstance(ask, Decide)]))
        with self._gate:
            self._queue.append(caller)
            if self._leader is None:
                self._leader = caller
        try:
            if self._leader is not caller:
                caller.ready.acquire()
            if self._leader is caller:
                self._lead(caller, turn)
        except BaseException:
            self._abandon(caller)
            raise
        error, caller.error = caller.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame: a cycle would keep all that the frame refers to
        assert caller.answers is not None
        return caller.answers

    def _lead(self, leader: _Caller, turn: threading.RLock) -> None:
        """Commit for all callers that wait; then let the first that came meanwhile commit for the next."""
        callers: list[_Caller] = []
        with turn:
            try:
                with self._gate:
                    callers, self._queue = self._queue, []
                self._commit(callers)
            finally:
                with self._gate:
                    self._pass_on()
                for caller in callers:
                    if caller is not leader:
                        caller.ready.release()

    def _pass_on(self) -> None:
        self._leader = self._queue[0] if self._queue else None
        if self._leader is not None:
            self._leader.ready.release()

    def _abandon(self, caller: _Caller) -> None:
        """Take a caller that was interrupted out of the queue, so that no other waits for it."""
        with self._gate:
            if caller in self._queue:
                self._queue.remove(caller)
                if self._leader is caller:
                    self._pass_on()

    def decide(self, n: int, contexts: tuple[bytes, ...] | None = None) -> Answer:
        """Make decisions in a store that cannot fail: the ledger itself chooses, not a copy of it."""
        with self.turn:
            follower, ledger = self._follower, self._follower.ledger
            if not ledger.arms.in_play:
                raise InputError(NO_ARM)
            now = self.now()
            told = self._numbers([contexts] if contexts else [], n)
            if n == 1:  # the common case, without lists
                time = ledger.decisions + 1.0 if self._step else max(now, ledger.now)
                arm = ledger.make_one(time, self._salt, told)
                arms: tuple[int, ...] = (arm,)
                windows: tuple[float, ...] = (ledger.arms.own_windows[arm],)
                chances = ledger.propensities(1)
            else:
                arms, chances = self._make_batch(now, n, told)
                windows = tuple([ledger.arms.own_windows[arm] for arm in arms])
            choice = NewDecisions(
                arms, windows, follower.position, salt=self._salt, propensities=chances, contexts=contexts
            )
            (answer,) = self._store.append(self._bandit, (choice,), now)
            follower.skip(n)
            self._retire_worse()
            return answer

    def _make_batch(
        self, now: float, n: int, told: Floats | None
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Make `n` decisions, for the contexts `told`; return their arms and propensities."""
        ledger = self._follower.ledger
        if not self._step:
            arms = ledger.make(max(now, ledger.now), n, salt=self._salt, contexts=told)
            return tuple(arms), ledger.propensities(n)
        arms = []
        chances: tuple[float, ...] = ()
        for i in range(n):
            context = None if told is None else told[i : i + 1]
            arms.append(ledger.make_one(ledger.decisions + 1.0, self._salt, context))
            chances += ledger.propensities(1)
        return tuple(arms), chances

    def _made_before(self, asked: Sequence[Decide]) -> list[bool]:
        """Return which of these decisions will be answered again, not made, because of their keys.

        No arm is chosen for them: the coins that are thrown for an arm go by the number of the decision, so
        one that is not made would leave its coin to be thrown once more for the next. The last needs no look.
        """
        keys = [ask.key for ask in asked]
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key is not None}
        sought = [key for key in dict.fromkeys(keys[:-1]) if key is not None]
        used = self._store.used_keys(self._bandit, sought) if sought else set()
        return [key is not None and (key in used or first[key] < place) for place, key in enumerate(keys)]

    def _numbers(self, contexts: Sequence[Sequence[bytes | None]], n: int) -> Floats | None:
        features = self._follower.ledger.visitors.features
        if features is None:
            return None
        stored = [context for batch in contexts for context in batch] or [None] * n
        return numbers_of(stored, len(features))

    def now(self) -> float:
        """Return the time by the bandit's clock."""
        return float(self._clock(self._follower.ledger.now))  # a number of numpy's would not do for SQLite

    def settle(self) -> None:
        """Bring the ledger to where the log ends, if a commit or a fold has failed halfway."""
        if not self._sure or not self._follower.whole:
            self._follower.catch_up()
            self._sure = True

    def catch_up(self) -> int:
        """Fold what other workers have written; return how many events that was."""
        with self.turn:
            return self._follower.catch_up()

    def _commit(self, callers: list[_Caller]) -> None:
        try:
            self._serve(callers)
        except BaseException as error:
            self._sure = False
            for caller in callers:
                if (
                    caller.answers is None
                ):  # each caller gets an error of its own, since raising writes its traceback into it
                    caller.error = (
                        error if isinstance(error, Exception) and len(callers) == 1 else _alike(error)
                    )
            if not isinstance(error, Exception):  # this thread alone was interrupted, by Ctrl-C for example
                raise
        self._keep()

    def _serve(self, callers: list[_Caller]) -> None:
        follower = self._follower
        self.settle()
        now = self.now()
        ledger = follower.ledger
        asked = [ask for caller in callers for ask in caller.asks if isinstance(ask, Decide)]
        before = iter(made_before := self._made_before(asked))
        new = [ask for ask, was in zip(asked, made_before, strict=True) if not was]
        wanted = sum([ask.n for ask in new])
        choices: list[int] = []
        chances: tuple[float, ...] = ()
        if asked and not ledger.arms.in_play:
            for caller in callers:
                if caller.choices:
                    caller.error = InputError(NO_ARM)
            callers = [caller for caller in callers if not caller.choices]
        elif wanted:
            time = ledger.decisions + 1.0 if self._step else max(now, ledger.now)
            contexts = self._numbers([ask.contexts or (None,) * ask.n for ask in new], wanted)
            choices = ledger.choose(time, wanted, self._step, self._salt, contexts)
            chances = ledger.propensities(wanted)
        items: list[StoreRequest] = []
        first = 0
        for caller in callers:
            if not caller.choices:
                items += caller.asks  # type: ignore[arg-type]
                continue
            for ask in caller.asks:
                if isinstance(ask, Decide):
                    arms, own = tuple(choices[first : first + ask.n]), chances[first : first + ask.n]
                    if next(before):  # the store answers with the arms that they got
                        arms, own = (ledger.arms.in_play[0],) * ask.n, chances[:0]
                    else:
                        first += ask.n
                    windows = tuple([ledger.arms.own_windows[arm] for arm in arms])
                    items.append(
                        NewDecisions(arms, windows, follower.position, ask.key, self._salt, own, ask.contexts)
                    )
                else:
                    items.append(ask)
        answers = self._store.append(self._bandit, items, now, self._skew)
        done = 0
        for caller in callers:
            caller.answers = answers[done : done + len(caller.asks)]
            done += len(caller.asks)
        follower.take(items, answers)
        if np.count_nonzero(follower.ledger.arms.above):  # four times as fast as any()
            for caller in callers:
                add_cap_warnings(follower.ledger, caller.asks, caller.answers or [])
        self._retire_worse()

    def _retire_worse(self) -> None:
        """Retire the arms that guardrails have found worse; if that fails, the next commit does."""
        if self._watch is None:
            return
        retiring = self._watch.retiring(self._follower.ledger)
        if retiring:
            try:
                answers = self._store.append(self._bandit, retiring, self.now(), self._skew)
            except StoreError as error:
                self._sure = False
                log.warning(
                    "arms that a guardrail found worse could not be retired", extra={"error": str(error)}
                )
            else:
                self._follower.take(retiring, answers)

    def _keep(self) -> None:
        """Save a snapshot if one is due. If that fails, only the next start takes longer."""
        try:
            self._follower.keep()
        except StoreError:
            self._sure = False


def _alike(error: BaseException) -> Exception:
    if isinstance(error, InputError | StoreError):
        return type(error)(*error.args)
    return StoreError(f"the commit that this was part of failed: {error!r}")


def salt_of(name: str, shared: bool) -> int:
    """Return what sets the draws of this bandit, in this worker, apart from others with the same seed.

    Workers that share a log have the same statistics and the same number of decisions. Without a salt
    of its own, each would draw what the others draw.
    """
    worker = secrets.randbelow(RUN_MOST) if shared else 0
    return (zlib.crc32(name.encode()) ^ worker) & RUN_MOST
