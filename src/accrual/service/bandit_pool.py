"""The bandits that a process serves. Each is opened once and follows its log as it grows."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from accrual.core.errors import InputError, unknown
from accrual.core.features import Features
from accrual.live.archive import archive, delete, erase_due, restore
from accrual.live.bandit import Bandit, staleness_of
from accrual.live.clock import SteadyClock
from accrual.live.commit import BanditRequest, Call, Decide
from accrual.live.config import OpenOptions, given_config, given_options, limits_written, stored_config
from accrual.live.context_worth import ContextWorth
from accrual.live.state import BanditState
from accrual.live.watch import GUARDRAIL_OUTCOMES, VERDICT_OUTCOMES, Verdict
from accrual.service.messages import BANDIT
from accrual.service.metrics import Metrics
from accrual.service.refusals import Refusal, try_later
from accrual.store.base import (
    ARCHIVED,
    ERASE_AT,
    Answer,
    BanditRow,
    CloseDecision,
    NewPiece,
    RetireArm,
    Store,
    StoreDamaged,
    StoredArm,
    StoreError,
)
from accrual.store.events import DecisionRow, Events, Kind

_T = TypeVar("_T")
Arms = Sequence[str] | Mapping[str, float]  # names, or names with their caps
_PROBE = 2.0  # seconds between two tests of whether the store can be written
_REFOLDS = 16  # requests that may wait for a part of the log to be folded again
_FRESH = 0.5  # a computed answer is used again for this many seconds,
_REST = 4.0  # or for this many times as long as it took to compute, if that is longer
# What contexts are worth is computed again when this many, or this share, more decisions have closed.
_WORTH_LEAST, _WORTH_MORE = 20, 0.05

log = logging.getLogger("accrual.service")


class QueueLimit:
    """The limit on what may wait in all commit queues of a process together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self, count: int) -> None:
        """Count decisions and pieces as waiting, or refuse them."""
        if self.taken + count > self._most and self.taken:
            raise try_later("busy", f"{self.taken:,} decisions and pieces wait to be stored; try again")
        self.taken += count


class CommitThreads(NamedTuple):
    """What the commit queues of all bandits of a process share."""

    threads: Executor  # in which transactions run
    limit: QueueLimit
    metrics: Metrics


class ServedBandit:
    """An open bandit, what waits to be stored for it, and the names of its arms."""

    def __init__(self, row: BanditRow, bandit: Bandit, store: Store, commits: CommitThreads) -> None:
        self.name = row.name
        self.row = row
        self.config: Mapping[str, Any] = row.config
        self.bandit = bandit
        self._commits = commits
        self._waiting: dict[asyncio.Future[None], Call] = {}
        bandit.queue.observer = self._committed
        self.step = 1.0 if row.rounds else 0.0
        self.imported: int = row.config.get("imported", 0)  # decisions with lower ids come from an old log
        self._number = row.number
        self._store = store
        self.learn_arms()
        self._state_lock = threading.Lock()  # held while a state is computed, for all who wait for it
        self._state: tuple[float, BanditState] | None = None  # until when it is used, and the state
        self.answers: dict[str, asyncio.Task[bytes]] = {}  # by name; the same for all who ask
        self._winner: str | None = None
        # At how many closed decisions it is computed again, which arms were retired, and the result.
        self._worth: tuple[float, list[bool], ContextWorth] | None = None

    async def submit(self, requests: Sequence[BanditRequest]) -> list[Answer]:
        """Store requests that the bandit has checked; return an answer for each when all are durable.

        Transactions run in a thread, so that the event loop goes on. Requests that arrive in the same turn
        of the loop, or during a transaction, share the next transaction.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        call = Call(requests, functools.partial(loop.call_soon_threadsafe, self._wake, done))
        self._commits.limit.take(call.size)
        self._waiting[done] = call
        if self.bandit.queue.join(call):
            loop.call_soon(self._wake, done)  # when the other requests of this turn have joined
        await done
        try:
            return call.result()
        except InputError:
            raise
        except StoreError:
            text = "it is not known whether this was stored; send it again with the same key"
            raise try_later("store", text) from None
        except Exception:
            raise Refusal("internal", "the service has a fault; its log says more") from None

    def _wake(self, done: asyncio.Future[None]) -> None:
        """Go on with a call that waits: return its answers, or start the transaction that it leads."""
        call = self._waiting[done]
        if not call.done:
            self._commits.threads.submit(self.bandit.queue.lead)
            return
        del self._waiting[done]
        self._commits.limit.taken -= call.size
        if not done.done():  # the client may have gone
            done.set_result(None)

    def _committed(self, seconds: float, calls: Sequence[Call], failure: BaseException | None) -> None:
        """Count a transaction, and log one that failed."""
        metrics = self._commits.metrics
        if failure is None:
            metrics.committed(seconds, calls)
        elif not isinstance(failure, InputError):
            metrics.failed.inc()
            known = isinstance(failure, StoreError)  # the message says what is wrong
            extra = {"error": str(failure), "requests": sum(len(call.requests) for call in calls)}
            log.error("a commit failed", exc_info=None if known else failure, extra=extra)

    async def drain(self) -> None:
        """Wait until everything that waits is stored."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    def knows(self, arms: Sequence[int]) -> bool:
        """Return whether the names of these arms have been read."""
        return max(arms, default=0) < len(self._arms)

    def learn_arms(self) -> None:
        """Read the names and the features of the arms from the store."""
        arms = self._store.arms(self._number)
        self._arms, self._about = [arm.name for arm in arms], [arm.about for arm in arms]

    @property
    def arms(self) -> list[str]:
        """The names of the arms, as last read."""
        return self._arms

    def arm_name(self, arm: int) -> str:
        """Return an arm's name. If another process has added the arm, call `learn_arms` first."""
        return self._arms[arm]

    def about(self, arm: int) -> dict[str, Any] | None:
        """Return an arm's features, as last read; None for a bandit without `arm_features`."""
        stored = self._about[arm]
        return None if stored is None else Features(self.config["arm_features"]).read_back_bytes(stored)

    def arm_number(self, name: str) -> int:
        """Return the number of the arm of this name, or refuse."""
        self.learn_arms()
        if name not in self._arms:
            raise Refusal("unknown-arm", str(unknown("arm", name, self._arms[:100])))
        return self._arms.index(name)

    def state(self) -> BanditState:
        """Return what is known about every arm, as old as `_FRESH` and `_REST` allow."""
        with self._state_lock:
            last = self._state
            begun = time.monotonic()
            if last is None or (last[0] < begun and last[1].position != self.bandit.position):
                state = self.bandit.state()
                last = self._state = (fresh_until(begun), state)
                self._log_verdict(state.verdict)
            return last[1]

    def _log_verdict(self, verdict: Verdict) -> None:
        """Log a verdict whose winner is not the last one."""
        if verdict.winner != self._winner:
            self._winner = verdict.winner
            log.warning("a verdict has changed", extra={"bandit": self.name, "verdict": verdict.sentence})

    def context_worth(self) -> ContextWorth:
        """Return what contexts are worth, computed when at most a twentieth fewer decisions had closed.

        One thread may call this at a time; `BanditPool.refold` has only one.
        """
        state = self.state()
        closed = state.decisions - state.pending
        retired = [arm.retired for arm in state.arms]
        last = self._worth
        if last is None or last[0] <= closed or last[1] != retired:
            worth = self.bandit.context_worth()
            more = max(_WORTH_LEAST, _WORTH_MORE * max(worth.decisions, 1))
            last = self._worth = (closed + more, retired, worth)
        return last[2]

    def decisions(self) -> int:
        """Return how many decisions there are."""
        return self.state().decisions

    def decision(self, id: int) -> DecisionRow | None:
        """Return one decision from the store."""
        return self._store.decision(self._number, id)

    def events(self, after: int, limit: int) -> Events:
        """Read up to `limit` events of the log after a position."""
        return self._store.read(self._number, after, limit)

    def contexts(self, events: Events) -> dict[int, dict[str, Any]]:
        """Read the contexts of the decisions among `events`, by id; empty for a bandit without features."""
        features = self.bandit.features
        ids = events.decision[events.kind == Kind.DECISION].tolist()
        if features is None or not ids:
            return {}
        stored = self._store.contexts(self._number, ids[0], len(ids))
        nothing = dict.fromkeys(features.kinds)
        return {
            id: nothing if body is None else features.read_back_bytes(body)
            for id, body in zip(ids, stored, strict=True)
        }

    def release(self, keep: bool = True) -> None:
        """Close the bandit, with a snapshot unless `keep` is False."""
        self.bandit.queue.observer = None  # it refers to this object, which would be freed much later
        try:
            self.bandit.close(keep)
        except StoreError as error:  # the log has everything; only the next start takes longer
            log.error("no snapshot was kept", extra={"error": str(error)})


def fresh_until(begun: float) -> float:
    """Return until when an answer is used whose computing began at `begun` and has just ended."""
    now = time.monotonic()
    return now + max(_FRESH, _REST * (now - begun))


class BanditPool:
    """All bandits of a store. Its coroutines run in one event loop.

    Parameters
    ----------
    queue : int
        How many decisions and pieces may wait to be stored.
    """

    def __init__(self, store: Store, metrics: Metrics, queue: int) -> None:
        self._store = store
        self._metrics = metrics
        self._open: dict[str, ServedBandit] = {}
        self._opening = asyncio.Lock()
        # A file has one writer, and every thread would keep the memory that a snapshot took.
        self._commits = ThreadPoolExecutor(8 if store.shared else 1, "commit")
        self.queue_limit = QueueLimit(queue)
        self._reads = ThreadPoolExecutor(4, "read")
        self._computing = ThreadPoolExecutor(2, "compute")  # of its own, so that reading keys does not wait
        self._refolds = ThreadPoolExecutor(1, "refold")  # of its own, so that other requests do not wait
        self._refolding = 0
        self._clock = SteadyClock(store.clock)
        self._options: dict[str, OpenOptions] = {}  # of bandits with a clock of their own
        self._stored = -math.inf  # when the store was last seen to take a write, by the monotonic clock
        self.failures: dict[str, str] = {}  # bandits that could not be opened, and why

    async def find(self, name: str) -> ServedBandit:
        """Return the bandit of this name, opened if necessary, or refuse."""
        served = self._open.get(name)
        if served is not None:
            return served
        why = self.failures.get(name)
        if why is not None:  # `open_all` tries again; a request must not fold a whole log for nothing
            raise Refusal("not-served", why)
        async with self._opening:  # each is opened once
            if name not in self._open:
                await self._open_one(name)
        return self._open[name]

    async def _open_one(self, name: str) -> None:
        row = await self.row(name)
        if ARCHIVED in row.config:
            raise Refusal("archived", f"the bandit {name!r} is archived; restore it to use it again")
        try:
            options = self._options.get(name, OpenOptions())
            self._add(row, await self.read(lambda: Bandit.open(self._store, name, **options)))
        except StoreError as error:
            if not isinstance(error, StoreDamaged):
                raise  # the database cannot be reached at the moment
            raise self._failed(name, error) from None
        except Exception as error:
            raise self._failed(name, error) from error

    async def row(self, name: str) -> BanditRow:
        """Return a bandit's row of the store, whether the bandit is served or archived, or refuse."""
        row = await self.read(lambda: self._store.find(name)) if re.fullmatch(BANDIT, name) else None
        if row is None:
            raise Refusal("unknown-bandit", f"no bandit is called {name[:100]!r}")
        return row

    async def arms(self, row: BanditRow) -> Sequence[StoredArm]:
        """Return the arms that a bandit has now, those that have retired included."""
        return await self.read(lambda: self._store.arms(row.number))

    async def archive(self, name: str, grace: str | None = None) -> BanditRow:
        """Archive a bandit; with `grace`, delete it: it is permanently erased after that time."""
        await self.row(name)
        try:
            if grace is None:
                row = await self.read(lambda: archive(self._store, name))
            else:
                row = await self.read(lambda: delete(self._store, name, grace, self._clock))
        except InputError as error:
            raise Refusal("invalid", str(error)) from None
        await self._release(name)
        about = {"bandit": name, "erase_at": row.config.get(ERASE_AT)}
        log.warning("a bandit was archived" if grace is None else "a bandit was deleted", extra=about)
        return row

    async def restore(self, name: str) -> BanditRow:
        """Restore an archived or deleted bandit."""
        await self.row(name)
        row = await self.read(lambda: restore(self._store, name))
        log.warning("a bandit was restored", extra={"bandit": name})
        return row

    async def _release(self, name: str, keep: bool = True) -> None:
        """Store what waits and stop serving a bandit. `keep` says whether a snapshot is kept."""
        served = self._open.pop(name, None)
        if served is not None:
            await served.drain()
            await self.read(functools.partial(served.release, keep))

    def _failed(self, name: str, error: Exception) -> Refusal:
        """Remember and log a bandit that cannot be opened; return the refusal."""
        if isinstance(error, InputError | StoreError):
            why = str(error)
        else:
            why = f"it cannot be opened: {type(error).__name__}: {error}"
        self.failures[name] = why
        self._metrics.not_served.set(len(self.failures))
        log.error("a bandit is not served", exc_info=error, extra={"bandit": name, "error": why})
        return Refusal("not-served", why)

    def _add(self, row: BanditRow, bandit: Bandit) -> None:
        if self._store.shared:
            bandit.follow()
        commits = CommitThreads(self._commits, self.queue_limit, self._metrics)
        self._open[row.name] = ServedBandit(row, bandit, self._store, commits)

    async def create(self, name: str, arms: Arms, window: int | str,
                     settings: Mapping[str, Any]) -> tuple[ServedBandit, bool]:  # fmt: skip
        """Create a bandit; return it, and whether it is new. An older bandit of this name must be equal."""
        settings = given_options(settings)
        async with self._opening:
            exists = await self.read(lambda: self._store.find(name)) is not None
            try:
                if not exists:  # what cannot be served is not stored
                    plain = {key: value for key, value in settings.items() if key != "prior"}
                    await self.read(lambda: _try_out(Bandit(arms, window, name=name, **plain)))
                    await self.read(lambda: _created(self._store, name, arms, window, settings))
                    if "clock" in settings:
                        self._options[name] = OpenOptions(clock=settings["clock"])
                else:
                    await self.read(lambda: _check_same(self._store, name, arms, window, settings))
            except InputError as error:
                exists = exists or await self.read(lambda: self._store.find(name)) is not None
                raise Refusal("conflict" if exists else "invalid", str(error)) from None
        return await self.find(name), not exists

    async def rows(self) -> list[BanditRow]:
        """Return all bandits whose configuration can be read, in the order in which they were made."""

        def find() -> list[BanditRow]:
            rows = []
            for name in self._store.names():
                try:
                    rows.append(self._store.find(name))
                except StoreDamaged as error:
                    self._failed(name, error)
            return [row for row in rows if row is not None]

        return await self.read(find)

    async def read(self, job: Callable[[], _T]) -> _T:
        """Run a job that reads the store, in a thread, so that the event loop goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, job)

    async def compute(self, job: Callable[[], _T]) -> _T:
        """Run a job that computes an answer, in one of the threads for that."""
        return await asyncio.get_running_loop().run_in_executor(self._computing, job)

    async def computed(self, served: ServedBandit, name: str, job: Callable[[], bytes]) -> bytes:
        """Return what a job computes, now or a moment ago: once for all requests with the same name."""
        task = served.answers.get(name)
        if task is None:
            task = served.answers[name] = asyncio.create_task(self._compute_once(served, name, job))
        return await asyncio.shield(task)

    async def _compute_once(self, served: ServedBandit, name: str, job: Callable[[], bytes]) -> bytes:
        begun, rest = time.monotonic(), 0.0
        try:
            body = await self.compute(job)
            rest = fresh_until(begun) - time.monotonic()
            return body
        finally:
            asyncio.get_running_loop().call_later(rest, served.answers.pop, name, None)

    async def refold(self, job: Callable[[], _T]) -> _T:
        """Run a job that may fold a part of the log again, one at a time; refuse it if too many wait."""
        if self._refolding >= _REFOLDS:
            raise try_later("busy", f"{_REFOLDS} requests wait for the log to be read again; try later")
        self._refolding += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._refolds, job)
        finally:
            self._refolding -= 1

    async def open_all(self) -> None:
        """Open every bandit that is not open. A bandit that cannot be opened does not hold up the others.

        Bandits that another process has archived are released. Deleted bandits whose grace period is over
        are erased.
        """
        self.failures.clear()
        await self._erase_due()
        served = dict(self._open)  # before the names are read, so that each of these had a name then
        names, rows = set(await self.read(self._store.names)), await self.rows()
        numbers = {row.name: row.number for row in rows}
        for name, one in served.items():
            if name not in names or numbers.get(name, one.row.number) != one.row.number:
                log.warning("a bandit that was erased is no longer served", extra={"bandit": name})
                await self._release(name, keep=False)
        for row in rows:
            if ARCHIVED in row.config:
                await self._release(row.name)
                continue
            try:
                await self.find(row.name)
            except Refusal:
                pass  # `_failed` has logged it
            except StoreError as error:
                self._failed(row.name, error)
        self._metrics.not_served.set(len(self.failures))

    async def _erase_due(self) -> None:
        try:
            for name in await self.read(lambda: erase_due(self._store, self._clock)):
                log.warning("a deleted bandit was erased", extra={"bandit": name})
        except StoreError as error:  # the clock has leapt, for example; the next round tries again
            log.error("nothing can be erased", extra={"error": str(error)})

    async def check(self) -> None:
        """Raise an error if nothing can be stored now: the disk is full, or the database cannot be reached.

        The store is tested at most every two seconds, because a test costs a sync of the disk.
        """
        for served in self._open.values():
            served.bandit.check()
        if time.monotonic() - self._stored > _PROBE:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._commits, self._store.probe)
            self._stored = time.monotonic()

    def measure(self) -> None:
        """Bring the gauges up to date."""
        self.measure_worker()
        metrics, served = self._metrics, list(self._open.values())
        metrics.bandits.set(len(served))
        states = []
        for one in served:
            try:
                states.append(one.state())
            except Exception:  # the other bandits are still measured
                log.exception("a state cannot be computed", extra={"bandit": one.name})
        metrics.states_failed.set(len(served) - len(states))
        metrics.pending.set(sum(state.pending for state in states))
        metrics.late.set(sum(state.late for state in states))
        metrics.above_cap.set(sum(arm.above_cap for state in states for arm in state.arms))
        metrics.changed.set(sum(len(state.alarm.arms) for state in states))
        outcomes = Counter(state.verdict.outcome for state in states)
        for outcome in VERDICT_OUTCOMES:
            metrics.verdict.labels(outcome).set(outcomes[outcome])
        found = Counter(rail.outcome for state in states for rail in state.guardrails)
        for finding in GUARDRAIL_OUTCOMES:
            metrics.guardrails.labels(finding).set(found[finding])

    def measure_worker(self) -> None:
        """Bring those gauges up to date that differ between workers. They are quick to measure."""
        metrics = self._metrics
        metrics.waiting.set(self.queue_limit.taken)
        if self._store.shared:  # a single writer has folded everything
            stale = staleness_of([one.bandit for one in list(self._open.values())])
            metrics.lag_events.set(max((one.events for one in stale), default=0))
            metrics.lag_seconds.set(max((one.seconds for one in stale), default=0.0))

    async def close(self) -> None:
        """Store what waits, save snapshots, and close the store."""
        for served in self._open.values():
            await served.drain()
        for served in self._open.values():
            await self.read(served.release)
        await self.read(self._store.close)
        self._commits.shutdown()
        self._computing.shutdown()
        self._reads.shutdown()
        self._refolds.shutdown()


def _check_same(store: Store, name: str, arms: Arms, window: int | str, settings: Mapping[str, Any]) -> None:
    """Raise an `InputError` if the bandit in the store has other settings. Nothing is folded."""
    row = store.find(name)
    if row is None:
        raise InputError(f"the bandit {name!r} has just been erased")
    options = {key: value for key, value in settings.items() if key not in ("groups", "policy")}
    try:
        given = given_config(arms, window, settings.get("groups"), settings.get("policy"), name, options)
    except InputError as error:  # there is no such bandit, so it does not conflict with the stored one
        raise Refusal("invalid", str(error)) from None
    stored_config(store, row, given, options)
    if given.limits != limits_written(row.config):
        raise InputError(f"the bandit {name!r} was made with another floor, or with other shares")


def _created(store: Store, name: str, arms: Arms, window: int | str, settings: Mapping[str, Any]) -> None:
    """Make a bandit in the store. If another worker has just made it, compare the two."""
    Bandit(arms, window, store=store, name=name, **settings).close()
    _check_same(store, name, arms, window, settings)


def _try_out(like: Bandit) -> None:
    """Do what a bandit's requests will do, with an equal bandit in memory.

    What fails here would fail for the bandit's own requests. What is not compiled yet begins to be.
    """
    like.submit([Decide(2)])
    like.submit([NewPiece(0, 0.5, 0.0), NewPiece(1, 0.5, 0.0)])
    with suppress(InputError):  # some policies take no further arms
        like.add_arm("a new arm")
    like.submit([Decide(1), RetireArm(0), CloseDecision(0)])
    like.state()
    like.explain(1)
