"""`Bandit`: decide now, learn from every piece, lose nothing."""

from __future__ import annotations

import logging
import math
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple, Unpack, overload

from accrual.core.errors import InputError, as_number, unknown, whole
from accrual.core.features import Features
from accrual.live.archive import found, refuse_archived
from accrual.live.clock import clock_of
from accrual.live.commit import ArmMonitor, BanditRequest, CommitQueue, Decide, salt_of
from accrual.live.config import (
    Config,
    Given,
    OpenOptions,
    Options,
    given_config,
    given_options,
    read_config,
    shows,
    stored_config,
    window_text,
    with_limits,
)
from accrual.live.context_worth import ContextWorth, context_worth
from accrual.live.contexts import about_bytes, stored_contexts
from accrual.live.explain import Explanation, decision_to_explain, explain
from accrual.live.ledger import Decision
from accrual.live.log_follower import LogFollower
from accrual.live.prior import imported
from accrual.live.request_checks import (
    DECISIONS_MOST,
    REFUSED_PIECES,
    UNKNOWN_DECISION,
    Age,
    RequestChecks,
    Time,
    check_key,
    decision_number,
)
from accrual.live.state import BanditState, LedgerView, StateReader, ledger_view
from accrual.policies.base import Policy
from accrual.store.backends import open_store
from accrual.store.base import (
    AddArm,
    Answer,
    BanditRow,
    CloseDecision,
    NewPiece,
    Requests,
    RetireArm,
    Status,
    Store,
    StoreClosed,
    StoreError,
)
from accrual.store.memory import MemoryStore

WindowLength = float | str | timedelta  # rounds, or a time
FeatureValues = Mapping[str, Any]  # a value for each feature: of a context, or of an arm

_SKEW = 5.0  # seconds
_WAIT = 0.5  # seconds that the thread that follows logs waits for events at a time

log = logging.getLogger("accrual.live")


# Opening: find a bandit in its store, or make it there.


@contextmanager
def opened_store(store: str | Store | None) -> Iterator[tuple[Store, bool]]:
    """Open a store; yield it, and whether the bandit must close it. Close it if the block fails."""
    owned = store is None or isinstance(store, str)
    if store is None:
        place: Store = MemoryStore()
    elif isinstance(store, str):
        place = open_store(store)
    elif isinstance(store, type) or not hasattr(store, "find"):
        raise InputError(f"store must be an address, such as 'sqlite:///plays.db', or a store, not {store!r}")
    else:
        place = store
    try:
        yield place, owned
    except BaseException:
        if owned:
            place.close()
        raise


def found_or_created(store: Store, name: str, given: Config, options: Given) -> tuple[BanditRow, Config]:
    """Return the bandit of this name, and its configuration; make the bandit if there is none.

    If there is one, it must have been made with the given configuration.
    """
    row = store.find(name)
    if row is None:
        now = _first_time(options.get("clock", store.clock))
        history: list[Requests] = []
        if "prior" in options:
            now, given, history = imported(options["prior"], given, now)
        row = _created(store, name, given, now, history)
    return row, stored_config(store, row, given, options)


def _first_time(clock: Callable[[], float]) -> float:
    """Read a clock, which may be the user's own, and check the time that it returns."""
    now = clock()
    if not math.isfinite(as_number(now)):
        raise InputError(f"clock must return the time in seconds, as time.time does, not {now!r}")
    return float(now)


def _created(store: Store, name: str, given: Config, now: float, history: Sequence[Requests]) -> BanditRow:
    """Make a bandit in the store; or return the one that another worker has just made."""
    try:
        return store.create(name, given.written(), given.arms, given.rounds, now, history)
    except InputError:
        row = store.find(name)
        if row is None:
            raise
        return row


class ArmNames:
    """The names of a bandit's arms, by their numbers. They are read again when there is a new arm.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    """

    def __init__(self, store: Store, bandit: int) -> None:
        self._store = store
        self._bandit = bandit
        self._names: list[str] = []
        self.read()

    def read(self) -> list[str]:
        """Read the names from the store, and return them."""
        self._names = [arm.name for arm in self._store.arms(self._bandit)]
        return self._names

    def __call__(self, number: int) -> str:
        names = self._names if number < len(self._names) else self.read()
        return names[number]


# Following: one thread for each store folds what other workers write.


class Staleness(NamedTuple):
    """How far a worker's state may be behind the log."""

    events: int  # events of the log that are not folded here
    seconds: float  # since the whole log was folded here; 0 if it is folded now


class Followed:
    """A bandit whose log is followed. This object does not keep the bandit in memory.

    Parameters
    ----------
    number : int
        The bandit's number in the store.
    """

    def __init__(self, number: int, bandit: Bandit) -> None:
        self.number = number
        self.bandit = weakref.ref(bandit)
        self.caught_up_at = time.monotonic()  # when the whole log was last known to be folded

    def position(self) -> int:
        """Return how far the log has been folded."""
        bandit = self.bandit()
        return 0 if bandit is None else bandit.position

    def catch_up(self) -> None:
        """Fold the rest of the log."""
        bandit = self.bandit()
        if bandit is not None:
            begun = time.monotonic()
            bandit.catch_up()
            self.caught_up_at = begun


class CatchUpThread:
    """Folds the logs of all followed bandits of a store as they grow: one thread, and one query for all.

    The thread begins with the first bandit and ends with the last. `follow` makes it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followed: set[Followed] = set()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def _run(self) -> None:
        while True:
            with _CHANGING:
                self._followed = {one for one in self._followed if one.bandit() is not None}
                if not self._followed:
                    _THREADS.pop(self._store, None)
                    return
                followed = list(self._followed)
            try:
                self._fold_new_events(followed)
            except StoreClosed:
                with _CHANGING:
                    _THREADS.pop(self._store, None)
                return
            except StoreError:  # the store cannot be reached for now; the staleness says so
                time.sleep(_WAIT)
            except Exception:
                log.exception("following logs failed; trying again")
                time.sleep(_WAIT)

    def _fold_new_events(self, followed: Sequence[Followed]) -> None:
        """Wait for events of these bandits, and fold them."""
        begun, failed = time.monotonic(), False
        behind = self._store.wait(_positions(followed), _WAIT)
        for one in followed:
            if one not in self._followed:  # the bandit has been closed meanwhile
                continue
            if one.number not in behind:
                one.caught_up_at = begun
                continue
            try:
                one.catch_up()
            except StoreClosed:
                raise
            except StoreError:  # as in `_run`
                failed = True
            except Exception:  # whatever it is, follow the other bandits too
                log.exception("following a log failed; trying again", extra={"bandit": one.number})
                failed = True
        if failed:
            time.sleep(_WAIT)

    def leave(self, one: Followed) -> None:
        """Stop following a bandit. A fold that is under way goes on to its end."""
        with _CHANGING:
            self._followed.discard(one)


_CHANGING = threading.Lock()  # held while the threads change, or the bandits that they follow
_THREADS: dict[Store, CatchUpThread] = {}


def follow(store: Store, number: int, bandit: Bandit) -> tuple[CatchUpThread, Followed]:
    """Begin to follow a bandit's log; return the store's thread, and the bandit as the thread knows it."""
    one = Followed(number, bandit)
    with _CHANGING:
        thread = _THREADS.get(store)
        if thread is None:
            thread = _THREADS[store] = CatchUpThread(store)
        thread._followed.add(one)
        if not thread._thread.is_alive():
            thread._thread.start()
    return thread, one


def staleness(store: Store, followed: Sequence[Followed]) -> list[Staleness]:
    """Return how far each bandit is behind its log; one query asks the store where the logs end."""
    positions = [one.position() for one in followed]
    behind = store.wait(_positions(followed), 0.0) if followed else {}
    now = time.monotonic()
    events = [
        max(behind.get(one.number, 0) - position, 0)
        for one, position in zip(followed, positions, strict=True)
    ]
    return [
        Staleness(count, now - one.caught_up_at if count else 0.0)
        for one, count in zip(followed, events, strict=True)
    ]


def _positions(followed: Sequence[Followed]) -> dict[int, int]:
    """Return how far each log has been folded by all bandit objects that follow it."""
    positions: dict[int, int] = {}
    for one in followed:
        position = one.position()
        positions[one.number] = min(position, positions.get(one.number, position))
    return positions


class Bandit:
    """Chooses among arms, and learns from rewards that arrive in pieces.

    With a store, every answer is durable. Any number of threads may use a bandit.

    Parameters
    ----------
    arms : sequence of str or mapping
        The names of the arms. A mapping also gives their caps: the most that one decision can pay in all.
        **A cap is 1 unless given.** Give a cap, in the unit of the pieces, if a decision can pay more. A
        total above its cap is counted and answered with a warning; it makes the policy choose badly.
    window : int, str or timedelta
        The age at which a decision's pieces end: a number of rounds, which count decisions, or a
        time such as ``"60d"`` or ``"12h"``.
    groups : int, optional
        The number of equal parts of the window. In rounds it must divide the window. A window of time is
        divided into this many steps for the policy, 1,000 unless given.
    policy : Policy or str, optional
        A policy of the catalog, or your own; AgePrior unless given.
    store : str or Store, optional
        Where events are stored: ``"sqlite:///plays.db"``, ``"postgresql://..."``, or an open store. In
        memory unless given, for as long as the process lives.
    name : str
        The bandit's name in the store. If there is a bandit of this name, it goes on where it was. It must
        have been made with the same arms, window, groups, policy and options.
    **options
        `accrual.live.config.Options` describes them: `seed`, `floor`, `features`, `streams`, `prior` and
        others. ``help(Bandit)`` lists them.

    Examples
    --------
    >>> import accrual as ac
    >>> bandit = ac.Bandit(arms=["jazz", "rock"], window=80, groups=20)
    >>> d = bandit.decide()
    >>> d
    Decision(id=0, arm='jazz', at=1.0, propensity=None)
    >>> answer = bandit.observe(d.id, 0.7, age=0, key="play-991")
    >>> bandit.observe(d.id, 0.7, age=0, key="play-991").status  # the same again: counted once
    <Status.AGAIN: 'again'>
    >>> [d.arm for d in bandit.decide(n=2)]
    ['rock', 'jazz']
    """

    @shows(Options, OpenOptions)
    def __init__(
        self,
        arms: Sequence[str] | Mapping[str, float],
        window: int | str | timedelta,
        groups: int | None = None,
        policy: Policy | str | None = None,
        store: str | Store | None = None,
        name: str = "bandit",
        **options: Unpack[Options],
    ) -> None:
        chosen = given_options(options)
        given = given_config(arms, window, groups, policy, name, chosen)
        with opened_store(store) as (place, owned):
            row, given = found_or_created(place, name, given, chosen)
            self._start(place, owned, row, given, chosen)

    @classmethod
    @shows(OpenOptions)
    def open(
        cls,
        store: str | Store,
        name: str = "bandit",
        policy: Policy | None = None,
        **options: Unpack[OpenOptions],
    ) -> Bandit:
        """Open a bandit that is in a store already, with the settings that it was made with.

        Parameters
        ----------
        store : str or Store
        name : str
        policy : Policy, optional
            Only if it is not in the catalog.
        **options
            `clock` and `skew`; also `floor` and `shares`, if the bandit has none. Others are refused: they
            cannot be changed.
        """
        chosen = given_options(options, OpenOptions)
        with opened_store(store) as (place, owned):
            row = found(place, name)
            refuse_archived(row)
            bandit = cls.__new__(cls)
            given = with_limits(read_config(row.config, policy, name), chosen, name)
            bandit._start(place, owned, row, given, chosen)
            return bandit

    def _start(self, store: Store, owned: bool, row: BanditRow, given: Config, options: Given) -> None:
        self.name = row.name
        self._store = store
        self._owned = owned
        self._volatile = isinstance(store, MemoryStore)
        self._row = row
        self._config = given
        self._step = 1.0 if given.rounds else 0.0
        clock = clock_of(store, given.rounds, options.get("clock"))
        skew = 0.0 if given.rounds else float(options.get("skew", _SKEW))
        self._follower = LogFollower(store, row.number, given.ledger)
        salt = salt_of(row.name, store.shared)
        self._name = ArmNames(store, row.number)
        monitor = ArmMonitor(row.name, self._follower.ledger, self._name)
        self.queue = CommitQueue(store, row.number, self._follower, clock, self._step, skew, salt, monitor)
        self._checks = RequestChecks(given, self._follower, self.queue.lock, self._name.read)
        self._state_reader = StateReader(store, row.number, given, self._follower)
        self._following: tuple[CatchUpThread, Followed] | None = None
        if owned and store.shared:
            self.follow()

    def __repr__(self) -> str:
        about = f"{len(self.arms)} arms, window {window_text(self._config.rounds, self._config.window)}"
        return f"Bandit({self.name!r}: {about}, {self.policy}, {self._follower.ledger.decisions:,} decisions)"

    def _repr_html_(self) -> str:
        return self.state()._repr_html_()

    @property
    def policy(self) -> Policy:
        """The policy that chooses."""
        return self._config.policy

    @property
    def arms(self) -> list[str]:
        """The names of the arms in play."""
        with self.queue.lock:
            numbers = self._follower.ledger.arms.in_play
        return [self._name(number) for number in numbers]

    @overload
    def decide(
        self, n: None = None, key: str | None = None, context: FeatureValues | None = None
    ) -> Decision[str]: ...

    @overload
    def decide(
        self, n: int, key: str | None = None, context: Sequence[FeatureValues] | None = None
    ) -> list[Decision[str]]: ...

    def decide(
        self,
        n: int | None = None,
        key: str | None = None,
        context: FeatureValues | Sequence[FeatureValues] | None = None,
    ) -> Decision[str] | list[Decision[str]]:
        """Choose an arm; with `n`, return a list of `n` decisions, all made before any of them pays.

        Parameters
        ----------
        n : int, optional
        key : str, optional
            A call with the same key returns the same decisions again; with another context it is an error.
        context : mapping, optional
            A value for each feature, as in ``{"country": "de", "new": True}``. With `n`, a list of `n`
            contexts. A value that is left out is missing; missing values are counted.
        """
        request = self.choice(n, key, context)
        count = request.n
        if key is None and self._volatile:
            answer = self.queue.decide(count, request.contexts)
        else:
            (answer,) = self.queue.submit((request,))
            if answer.status is Status.CONFLICT:
                other = f"another number of decisions than {count}, or for other contexts"
                raise InputError(f"the key {key!r} was used for {other}")
        if n is None:
            return Decision(answer.number, self._name(answer.arms[0]), answer.at, *answer.propensities)
        return [
            Decision(answer.number + i, self._name(arm), answer.at + self._step * i, chance)
            for i, (arm, chance) in enumerate(
                zip(answer.arms, answer.propensities or (None,) * count, strict=True)
            )
        ]

    def choice(
        self,
        n: int | None = None,
        key: str | None = None,
        context: FeatureValues | Sequence[FeatureValues] | None = None,
    ) -> Decide:
        """Check a request for decisions, given as to `decide`, and return it; nothing is decided."""
        count = 1 if n is None else whole("n", n, 1, DECISIONS_MOST)
        if key is not None:
            check_key(key)
        return Decide(count, key, stored_contexts(self.features, context, n))

    @property
    def features(self) -> Features | None:
        """The features of contexts; None if the bandit has none."""
        return self._follower.ledger.features

    def observe(
        self,
        id: int,
        value: float,
        age: Age | None = None,
        at: Time | None = None,
        key: str | None = None,
        stream: str | None = None,
    ) -> Answer:
        """Store a piece of decision `id`, and learn from it.

        Parameters
        ----------
        id : int
        value : float
        age : float, str or timedelta, optional
            The age of the decision when the piece came: in rounds, in seconds, or a time such as ``"1d"``.
        at : float, datetime or str, optional
            When the piece came, instead of the age: a round, a time of the clock in seconds, or a time with
            its zone, such as ``"2026-11-18T12:30:00Z"``. Without `age` and `at`, the piece comes now.
        key : str, optional
            The key of this piece among those of its decision. The same key with the same piece is answered
            like the first time; with another piece it is an error. Without a key, the same value at the
            same stated age is taken for the same piece; if no age is stated, every call is a new piece.
        stream : str, optional
            The stream to which the piece belongs, by its name. It is the reward, which the policy learns
            from, unless given.

        Returns
        -------
        Answer
            `status` is STORED or AGAIN. `late` says that the piece came too late to be learned from.
            `warning` is a text if the decision has paid more in all than its arm's cap, and else empty; the
            text is also issued as a Python warning.
        """
        piece = self.piece(id, value, age, at, key, stream)
        (answer,) = self.queue.submit((piece,))
        if answer.warning:
            warnings.warn(answer.warning, stacklevel=2)
        refused = REFUSED_PIECES.get(answer.status)
        if refused is not None:
            raise InputError(refused.format(id=id, key=key))
        return answer

    def observe_many(
        self,
        ids: Sequence[int],
        values: Sequence[float],
        ages: Sequence[Age | None] | None = None,
        ats: Sequence[Time | None] | None = None,
        keys: Sequence[str | None] | None = None,
        streams: Sequence[str | None] | None = None,
    ) -> list[Answer]:
        """Store several pieces in one transaction; return an answer for each.

        A piece that cannot be, such as one whose value is not a number, is an error: then no piece is
        stored. If the store refuses a piece (an unknown decision, a key used for another piece, a time in
        the future), its answer says so, and the others are stored.
        """
        columns = [
            ids,
            values,
            *(column if column is not None else [None] * len(ids) for column in (ages, ats, keys, streams)),
        ]
        if len({len(column) for column in columns}) > 1:
            raise InputError("ids, values, ages, ats, keys and streams must be of one length")
        pieces = [self.piece(*row) for row in zip(*columns, strict=True)]
        answers = self.queue.submit(pieces) if pieces else []
        for text in {answer.warning for answer in answers if answer.warning}:
            warnings.warn(text, stacklevel=2)
        return answers

    def piece(
        self,
        id: int,
        value: float,
        age: Age | None = None,
        at: Time | None = None,
        key: str | None = None,
        stream: str | None = None,
    ) -> NewPiece:
        """Check a piece, given as to `observe`, and return it; nothing is stored."""
        return self._checks.piece(id, value, age, at, key, self._checks.stream(stream))

    def submit(self, requests: Sequence[BanditRequest]) -> list[Answer]:
        """Make decisions, and store pieces, closings and arms, in one transaction and in this order.

        Return an answer for each request. This is for a program that collects the requests of many clients.

        Parameters
        ----------
        requests : sequence
            `Decide` (of `accrual.live.commit`), `NewPiece`, `CloseDecision`, `AddArm` and `RetireArm` (of
            `accrual.store.base`). Every `Decide` comes before any `AddArm` and `RetireArm`, because arms are
            chosen before anything of the transaction is stored.
        """
        checked = self._checks.requests(requests)
        return self.queue.submit(checked) if checked else []

    def close_decision(self, id: int) -> bool:
        """Refuse further pieces of decision `id`; return False if it had been closed before.

        What the decision has paid counts at the ages of its groups and at the end of its window, as if it
        were not closed. If it counted now, decisions that end early would be counted before those that go
        on, and every arm would look worse than it is.
        """
        number = decision_number(id)
        (answer,) = self.queue.submit((CloseDecision(number),))
        if answer.status is Status.UNKNOWN:
            raise InputError(UNKNOWN_DECISION.format(id=id))
        return answer.status is Status.STORED

    def add_arm(
        self,
        name: str,
        cap: float = 1.0,
        window: WindowLength | None = None,
        about: FeatureValues | None = None,
    ) -> None:
        """Add an arm.

        With K arms in play, the new arm gets one of any K decisions in a row until its first decision has
        finished a group of the policy (its window, if the policy has no groups). From then on the policy
        chooses. With added arms a bandit has at most 1,000 arms, including those that have retired.

        Parameters
        ----------
        name : str
            A name that no arm of the bandit has had.
        cap : float
            The most that one decision of the arm can pay.
        window : optional
            The arm's own window, if it is shorter than the bandit's: in rounds or as a time, like the
            bandit's.
        about : mapping, optional
            The values of the arm's features, if the bandit has `arm_features`.
        """
        (answer,) = self.submit((self.arm(name, cap, window, about),))
        if answer.status is Status.CONFLICT:
            raise InputError(f"an arm {name!r} already exists, with another cap, window or features")

    def arm(
        self,
        name: str,
        cap: float = 1.0,
        window: WindowLength | None = None,
        about: FeatureValues | None = None,
    ) -> AddArm:
        """Return an arm, given as to `add_arm`, for `submit`, which checks it; nothing is stored."""
        own = about_bytes(self._config.arm_features, about, f"arm {name!r}")
        return AddArm(name, cap, self._config.own_window(window), own)

    def retire_arm(self, name: str) -> None:
        """Never choose this arm again. The policy still learns from its pending decisions."""
        names = [arm.name for arm in self._store.arms(self._row.number)]
        if name not in names:
            raise unknown("arm", name, names)
        self.queue.submit((RetireArm(names.index(name)),))

    def state(self) -> BanditState:
        """Return what is known about every arm."""
        state = self._state_reader.state(self.name, self._name, self._view)
        return replace(state, duplicates=self.queue.duplicates, behind=self.behind)

    def _view(self) -> LedgerView:
        with self.queue.lock:
            self.queue.recover()
            return ledger_view(self._follower)

    def context_worth(self) -> ContextWorth:
        """Return what contexts are worth: reward per decision with and without, by closed decisions."""
        with self.queue.lock:
            made, features = self._follower.ledger.decisions, self.features
        # This takes a while, so it holds no lock.
        return context_worth(self._store, self._row.number, self._config, features, made)

    def explain(self, id: int) -> Explanation:
        """Return why decision `id` got its arm: every arm's index at that moment, and the index's terms."""
        row = decision_to_explain(self._store, self._row.number, id, self._config.imported)
        # This folds part of the log again and can take a second, so it holds no lock.
        return explain(self._store, self._row.number, row, self._follower, self._step, self._name)

    def check(self) -> None:
        """Raise `StoreError` if nothing can be stored now because the clock has leapt."""
        self.queue.now()

    def catch_up(self) -> int:
        """Fold what other workers have written since; return how many events that was."""
        return self.queue.catch_up()

    def follow(self) -> None:
        """Begin to fold what other workers write, as they write it, in one thread for all bandits of a store.

        A bandit that was given the address of a PostgreSQL database follows from the start.
        """
        if self._following is None:
            self._following = follow(self._store, self._row.number, self)

    @property
    def position(self) -> int:
        """How far the log has been folded here."""
        return self._follower.position

    @property
    def behind(self) -> int:
        """How many events of the log have not been folded here yet."""
        return max(self._store.head(self._row.number) - self._follower.position, 0)

    @property
    def staleness(self) -> Staleness:
        """How far this worker is behind the log: in events, and for how long. Call `follow` first."""
        return staleness_of([self])[0]

    def close(self, keep: bool = True) -> None:
        """Save a snapshot, unless `keep` is False, and close the store if the bandit opened it.

        In a forked process, do nothing.
        """
        if self.queue.forked:
            return
        if self._following is not None:
            thread, own = self._following
            thread.leave(own)
        try:
            if keep:
                with suppress(StoreError):  # all events are stored; only the next start takes longer
                    with self.queue.lock:
                        self._follower.save_snapshot(now=True)
                    self._state_reader.save_snapshot()
        finally:
            with self.queue.lock:
                if self._owned:
                    self._store.close()

    def __enter__(self) -> Bandit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def staleness_of(bandits: Sequence[Bandit]) -> list[Staleness]:
    """Return how far each of these bandits, all of one store, is behind its log: one query for all."""
    following = [bandit._following for bandit in bandits]
    if not all(following):
        raise InputError("staleness is not measured until follow() has been called")
    return staleness(bandits[0]._store, [one for _, one in filter(None, following)]) if bandits else []
