"""Group commit: calls that come while a transaction is under way share the next transaction.

There is no thread for it. A call joins the queue. The first in the queue leads: its thread stores the
requests of the queue in one transaction, and sets the answers of all calls. A program with an event loop puts
calls into the same queue and leads in a thread of its own.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError
from accrual.core.random import RUN_MOST
from accrual.live.contexts import numbers_of
from accrual.live.kernels import CLOSED, FIRST, OVER
from accrual.live.ledger import NO_ARM, Ledger
from accrual.live.log_follower import LogFollower
from accrual.live.watch import Watcher
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

log = logging.getLogger("accrual.live")


class Decide(NamedTuple):
    """Choose `n` arms; a key makes that idempotent."""

    n: int = 1
    key: str | None = None
    contexts: tuple[bytes, ...] | None = None  # one for each decision, as `Bandit.choice` makes them


BanditRequest = StoreRequest | Decide

_TOGETHER = 4_000  # decisions and pieces in one transaction, unless the first call alone has more


class Call:
    """A call that waits for its answers.

    Parameters
    ----------
    requests : sequence
        Requests that have been checked.
    wake : callable
        Called from any thread when the call is done, or when it is to lead: then someone must call
        `CommitQueue.lead`.
    """

    __slots__ = ("answers", "choices", "error", "requests", "size", "wake")

    def __init__(self, requests: Sequence[BanditRequest], wake: Callable[[], object]) -> None:
        self.requests = requests
        self.wake = wake
        decided = [request.n for request in requests if isinstance(request, Decide)]
        self.choices = sum(decided)
        self.size = len(requests) - len(decided) + self.choices  # decisions, pieces and the rest
        self.answers: list[Answer] | None = None
        self.error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether there are answers, or an error in their place."""
        return self.answers is not None or self.error is not None

    def result(self) -> list[Answer]:
        """Return the answers, or raise the error."""
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame: the cycle would keep all that the frame refers to
        assert self.answers is not None
        return self.answers


Observer = Callable[[float, list[Call], BaseException | None], None]  # seconds, calls, and why it failed


class CommitQueue:
    """The queue of a bandit's writes: the way into the store's log, and from there into the ledger.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    clock : callable
        Returns the time; its argument is the time of the last event.
    step : float
        The time from one decision of a batch to the next: 1 in rounds, 0 by the clock.
    skew : float
        How far in the future a stated time may be.
    salt : int
        Makes this worker's draws differ from those of others; stored with every decision.
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
        monitor: ArmMonitor,
    ) -> None:
        self._store = store
        self._bandit = bandit
        self._follower = follower
        self._clock = clock
        self._step = step
        self._skew = skew
        self._salt = salt
        self._monitor = monitor
        self._queue: list[Call] = []
        self._leader: Call | None = None  # the call that is committing, or about to
        self._gate = threading.Lock()  # held while the queue or the leader changes
        self._up_to_date = True  # False if the ledger may be behind the log, after a failure
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.observer: Observer | None = None  # called after every transaction
        self.duplicates = 0  # requests that had been stored before

    @property
    def forked(self) -> bool:
        """Whether this process was forked from the process that opened the bandit."""
        return os.getpid() != self._process

    @property
    def lock(self) -> threading.RLock:
        """The lock that is held while the log is written or the ledger is read."""
        self.refuse_if_forked()
        return self._lock

    def refuse_if_forked(self) -> None:
        """Refuse a forked process before it waits for a thread that it does not have.

        The store belongs to the parent process, and the ledgers of the two processes would differ without
        anyone noticing.
        """
        if self.forked:
            raise InputError(
                "this bandit was opened before this process was forked, and belongs to the parent process; "
                "open one here, after the fork"
            )

    def submit(self, requests: Sequence[BanditRequest]) -> list[Answer]:
        """Store requests, and return an answer for each; all are durable when this returns."""
        ready = threading.Lock()
        ready.acquire()
        call = Call(requests, ready.release)
        try:
            if not self.join(call):
                ready.acquire()
            if not call.done:
                self.lead()
        except BaseException:
            self._abandon(call)
            raise
        return call.result()

    def join(self, call: Call) -> bool:
        """Put a call into the queue; return whether it leads: then someone must call `lead`."""
        self.refuse_if_forked()
        with self._gate:
            self._queue.append(call)
            if self._leader is None:
                self._leader = call
            return self._leader is call

    def lead(self) -> None:
        """Commit for the calls of the queue; then let the first that has come since lead."""
        calls: list[Call] = []
        with self.lock:
            try:
                with self._gate:
                    calls = self._take_calls()
                self._commit(calls)
            finally:
                with self._gate:
                    self._choose_leader()
                for call in calls:
                    call.wake()

    def _take_calls(self) -> list[Call]:
        """Take the calls of the next transaction out of the queue, up to a limit that keeps it short."""
        count = place = 0
        while place < len(self._queue) and count < _TOGETHER:
            count += self._queue[place].size
            place += 1
        calls, self._queue = self._queue[:place], self._queue[place:]
        return calls

    def _choose_leader(self) -> None:
        self._leader = self._queue[0] if self._queue else None
        if self._leader is not None:
            self._leader.wake()

    def _abandon(self, call: Call) -> None:
        """Take a call that was interrupted out of the queue, so that no other call waits for it."""
        with self._gate:
            if call in self._queue:
                self._queue.remove(call)
                if self._leader is call:
                    self._choose_leader()

    def decide(self, n: int, contexts: tuple[bytes, ...] | None = None) -> Answer:
        """Make decisions in a store that cannot fail: the ledger itself chooses, not a copy of it."""
        with self.lock:
            follower = self._follower
            self.recover()
            if self._store.head(self._bandit) != follower.position:  # another bandit object has written
                follower.catch_up()
            ledger = follower.ledger
            if not ledger.arms.in_play:
                raise InputError(NO_ARM)
            now = self.now()
            rows = self._context_rows([contexts] if contexts else [], n)
            follower.intact = False  # until the store has what the ledger makes now
            if n == 1:  # the common case, without lists
                time = ledger.decisions + 1.0 if self._step else max(now, ledger.now)
                arm = ledger.make_one(time, self._salt, rows)
                arms: tuple[int, ...] = (arm,)
                windows: tuple[float, ...] = (ledger.arms.own_windows[arm],)
                chances = ledger.propensities(1)
            else:
                arms, chances = self._make_batch(now, n, rows)
                windows = tuple([ledger.arms.own_windows[arm] for arm in arms])
            choice = NewDecisions(
                arms, windows, follower.position, salt=self._salt, propensities=chances, contexts=contexts
            )
            (answer,) = self._store.append(self._bandit, (choice,), now)
            if answer.seq == follower.position + 1:
                follower.skip(n)
            else:  # another thread's bandit object has written meanwhile
                follower.catch_up()
            self._retire_worse()
            return answer

    def _make_batch(
        self, now: float, n: int, contexts: Floats | None
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Make `n` decisions; return their arms and propensities."""
        ledger = self._follower.ledger
        if not self._step:
            arms = ledger.make(max(now, ledger.now), n, salt=self._salt, contexts=contexts)
            return tuple(arms), ledger.propensities(n)
        arms = []
        chances: tuple[float, ...] = ()
        for i in range(n):
            context = None if contexts is None else contexts[i : i + 1]
            arms.append(ledger.make_one(ledger.decisions + 1.0, self._salt, context))
            chances += ledger.propensities(1)
        return tuple(arms), chances

    def _made_before(self, requests: Sequence[Decide]) -> list[bool]:
        """Return which of these requests repeat an earlier key, and so make no decisions now.

        No arm is chosen for them: the coin that is thrown for an arm depends on the number of the decision,
        so a decision that is not made would leave its coin to the next one. The last request needs no
        look-up: no decision comes after it.
        """
        keys = [request.key for request in requests]
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key is not None}
        sought = [key for key in dict.fromkeys(keys[:-1]) if key is not None]
        used = self._store.used_keys(self._bandit, sought) if sought else set()
        return [key is not None and (key in used or first[key] < place) for place, key in enumerate(keys)]

    def _context_rows(self, contexts: Sequence[Sequence[bytes | None]], n: int) -> Floats | None:
        """Return the contexts of `n` decisions in numbers; None without features."""
        features = self._follower.ledger.features
        if features is None:
            return None
        stored = [context for batch in contexts for context in batch] or [None] * n
        return numbers_of(stored, len(features))

    def now(self) -> float:
        """Return the time by the bandit's clock."""
        return float(self._clock(self._follower.ledger.now))  # SQLite does not take a number of numpy

    def recover(self) -> None:
        """Bring the ledger to the end of the log, if a commit or a fold has failed halfway."""
        if not self._up_to_date or not self._follower.intact:
            self._follower.catch_up()
            self._up_to_date = True

    def catch_up(self) -> int:
        """Fold what other workers have written; return how many events that was."""
        with self.lock:
            return self._follower.catch_up()

    def _commit(self, calls: list[Call]) -> None:
        begin = time.perf_counter()
        failure: BaseException | None = None
        try:
            self._serve(calls)
        except BaseException as error:
            failure = error
            self._up_to_date = False
            for call in calls:
                if call.answers is None:
                    alone = isinstance(error, Exception) and len(calls) == 1
                    call.error = error if alone else _copy_of(error)  # type: ignore[assignment]
            if not isinstance(error, Exception):  # this thread alone was interrupted, by Ctrl-C for example
                raise
        if self.observer is not None:
            self.observer(time.perf_counter() - begin, calls, failure)
        del failure  # its traceback has this frame: the cycle would keep the bandit in memory
        self._save_snapshot()

    def _serve(self, calls: list[Call]) -> None:
        follower = self._follower
        self.recover()
        now = self.now()
        ledger = follower.ledger
        deciding = [request for call in calls for request in call.requests if isinstance(request, Decide)]
        before = iter(made_before := self._made_before(deciding))
        new = [request for request, was in zip(deciding, made_before, strict=True) if not was]
        wanted = sum([request.n for request in new])
        choices: list[int] = []
        chances: tuple[float, ...] = ()
        if deciding and not ledger.arms.in_play:
            for call in calls:
                if call.choices:
                    call.error = InputError(NO_ARM)
            calls = [call for call in calls if not call.choices]
        elif wanted:
            time = ledger.decisions + 1.0 if self._step else max(now, ledger.now)
            contexts = self._context_rows(
                [request.contexts or (None,) * request.n for request in new], wanted
            )
            choices = ledger.choose(time, wanted, self._step, self._salt, contexts)
            chances = ledger.propensities(wanted)
        items: list[StoreRequest] = []
        first = 0
        for call in calls:
            if not call.choices:
                items += call.requests  # type: ignore[arg-type]
                continue
            for request in call.requests:
                if not isinstance(request, Decide):
                    items.append(request)
                    continue
                n = request.n
                arms, own = tuple(choices[first : first + n]), chances[first : first + n]
                if next(before):  # the store answers with the arms of the first time
                    arms, own = (ledger.arms.in_play[0],) * n, chances[:0]
                else:
                    first += n
                windows = tuple([ledger.arms.own_windows[arm] for arm in arms])
                items.append(
                    NewDecisions(
                        arms, windows, follower.position, request.key, self._salt, own, request.contexts
                    )
                )
        answers = self._store.append(self._bandit, items, now, self._skew)
        done = 0
        for call in calls:
            call.answers = answers[done : done + len(call.requests)]
            done += len(call.requests)
        self.duplicates += sum([answer.status is Status.AGAIN for answer in answers])
        follower.fold_answers(items, answers)
        if np.count_nonzero(follower.ledger.arms.above):  # four times as fast as any()
            for call in calls:
                add_cap_warnings(follower.ledger, call.requests, call.answers or [])
        self._retire_worse()

    def _retire_worse(self) -> None:
        """Retire the arms that watchers want retired; if that fails, the next commit tries again."""
        retiring = self._monitor.retirements(self._follower.ledger)
        if retiring:
            try:
                answers = self._store.append(self._bandit, retiring, self.now(), self._skew)
            except StoreError as error:
                self._up_to_date = False
                log.warning("arms that were found worse could not be retired", extra={"error": str(error)})
            else:
                self._follower.fold_answers(retiring, answers)

    def _save_snapshot(self) -> None:
        """Save a snapshot if one is due. If that fails, only the next start takes longer."""
        try:
            self._follower.save_snapshot()
        except StoreError:
            self._up_to_date = False


def _copy_of(error: BaseException) -> Exception:
    """Return an error for one call: raising writes a traceback into it, so calls cannot share one."""
    if isinstance(error, InputError | StoreError):
        return type(error)(*error.args)
    return StoreError(f"the commit that this was part of failed: {error!r}")


def salt_of(name: str, shared: bool) -> int:
    """Return a number that makes the draws of this bandit, in this worker, differ from others with its seed.

    Workers that share a log have the same statistics and the same number of decisions. Without a salt
    of its own, each worker would draw what the others draw.
    """
    worker = secrets.randbelow(RUN_MOST) if shared else 0
    return (zlib.crc32(name.encode()) ^ worker) & RUN_MOST


class ArmMonitor:
    """Logs what a ledger's watchers find about arms, and retires the arms that a watcher wants retired.

    All workers that share a bandit fold the same log and find the same; the first worker that retires an arm
    does so for all.

    Parameters
    ----------
    bandit : str
        Its name.
    ledger : Ledger
        The bandit's. Earlier findings are not logged again.
    name_of : callable
        Returns an arm's name.
    """

    def __init__(self, bandit: str, ledger: Ledger, name_of: Callable[[int], str]) -> None:
        self._bandit = bandit
        self._name_of = name_of
        self._found = [
            watcher.found(arrays) != 0
            for watcher, arrays in zip(ledger.watchers, ledger.watched, strict=True)
        ]

    def retirements(self, ledger: Ledger) -> list[RetireArm]:
        """Log what is new, and return the retirements that are due. At least one arm stays in play."""
        in_play, due = ledger.arms.in_play, set[int]()
        for number, (watcher, arrays) in enumerate(zip(ledger.watchers, ledger.watched, strict=True)):
            if np.count_nonzero(watcher.found(arrays)):  # seldom
                self._log_new(number, watcher, arrays)
                due.update(np.flatnonzero(watcher.retiring(arrays)).tolist())
        return [RetireArm(arm) for arm in in_play if arm in due][: len(in_play) - 1] if due else []

    def _log_new(self, number: int, watcher: Watcher, arrays: Any) -> None:
        """Log what a watcher has found that it had not found before."""
        found, known = watcher.found(arrays) != 0, self._found[number]
        self._found[number] = found
        new = found.copy()
        new[..., : known.shape[-1]] &= ~known
        for place in np.argwhere(new).tolist():
            message, fields = watcher.log_line(arrays, place)
            arm = self._name_of(place[-1])
            log.warning(message, extra={"bandit": self._bandit, "arm": arm, **fields})


_ABOVE = (
    "this decision has paid more in all than its arm's cap of {cap:g}: the arm's estimate stays true, "
    "but the policy chooses badly; copy it with the true cap (accrual bandits copy); {enough:g} would be "
    "enough for this decision"
)


def caps_exceeded(ledger: Ledger, ids: Sequence[int]) -> list[tuple[float, float] | None]:
    """Return for each decision its cap and its total if the total is above the cap.

    Return None for a decision that has not paid more than its cap, or that is not pending.
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

    So few different texts come up, and Python shows the same warning only once.

    Examples
    --------
    >>> [enough(total) for total in (1.2, 2.0, 7.0, 130.0)]
    [2.0, 2.0, 10.0, 200.0]
    """
    unit = 10.0 ** math.floor(math.log10(total))
    return next(size * unit for size in (1.0, 2.0, 5.0, 10.0, 20.0) if size * unit >= total)


def add_cap_warnings(ledger: Ledger, requests: Sequence[object], answers: list[Answer]) -> None:
    """Put a warning into the answer of each learned piece whose decision has paid more than the cap."""
    pieces = [
        (i, request.decision)
        for i, (request, answer) in enumerate(zip(requests, answers, strict=True))
        if isinstance(request, NewPiece)
        and request.stream is None
        and answer.status in (Status.STORED, Status.AGAIN)
        and not answer.late
    ]
    exceeded = caps_exceeded(ledger, [decision for _, decision in pieces])
    for (i, _), pair in zip(pieces, exceeded, strict=True):
        if pair is not None:
            answers[i] = answers[i]._replace(warning=_ABOVE.format(cap=pair[0], enough=enough(pair[1])))
