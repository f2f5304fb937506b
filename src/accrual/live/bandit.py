"""`Bandit`: decide now, learn from every piece, lose nothing."""

from __future__ import annotations

import logging
import secrets
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, Unpack, overload

from accrual.core.errors import InputError, only, unknown, whole
from accrual.core.features import Features
from accrual.core.random import RUN_MOST
from accrual.live.archive import refuse_archived
from accrual.live.clock import clock_of
from accrual.live.commit import ArmWatch, Ask, Commits, Decide, salt_of
from accrual.live.config import (
    Config,
    Options,
    check_times,
    checked,
    compare,
    name_of,
    read,
    window_text,
    with_about,
    with_guardrails,
    with_limits,
)
from accrual.live.context_worth import ContextWorth, context_worth
from accrual.live.contexts import about_bytes, stored_contexts
from accrual.live.explain import Explanation, decision_to_explain, explain
from accrual.live.ledger import ArmNames, Decision
from accrual.live.log_follower import LogFollower
from accrual.live.prior import imported
from accrual.live.request_checks import (
    DECISIONS_MOST,
    REFUSED_PIECES,
    UNKNOWN_DECISION,
    AskChecks,
    decision_number,
    is_finite,
    refuse_decisions_after_arms,
)
from accrual.live.state import BanditState, LedgerView, Observer, view_of
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

# Find a bandit in its store, or make it there.


@contextmanager
def opened_store(store: str | Store | None) -> Iterator[tuple[Store, bool]]:
    """Give the store, and whether it is the bandit's own to close; it is closed if the block fails."""
    place, owned = _opened(store)
    try:
        yield place, owned
    except BaseException:
        if owned:
            place.close()
        raise


def _opened(store: str | Store | None) -> tuple[Store, bool]:
    if store is None:
        return MemoryStore(), True
    if isinstance(store, str):
        return open_store(store), True
    if isinstance(store, type) or not hasattr(store, "find"):
        raise InputError(f"store must be an address, such as 'sqlite:///plays.db', or a store, not {store!r}")
    return store, False


def given_config(
    arms: Sequence[str] | Mapping[str, float],
    window: int | str | timedelta,
    groups: int | None,
    policy: Policy | str | None,
    name: str,
    options: Options,
) -> Config:
    """Return the configuration that a user gives, if a bandit can have it."""
    only("option of Bandit", options, (*Options.__annotations__, "groups", "policy", "store", "name"))
    check_times(options)
    seed = options.get("seed", secrets.randbelow(RUN_MOST))
    given = checked(
        arms, window, groups, policy, seed, options.get("allow_negative", False), options.get("unit", ""),
        options.get("features"),
    )  # fmt: skip
    given = with_guardrails(with_limits(given, options, name), options.get("guardrails"))
    name_of("a bandit", name)
    return with_about(given, options)


def found_or_created(store: Store, name: str, given: Config, options: Options) -> tuple[BanditRow, Config]:
    """Return the bandit of this name, made if there is none, and its configuration.

    A bandit that is there already must have been made with the same configuration as is given.
    """
    row = store.find(name)
    if row is None:
        now = _first_time(options.get("clock", store.clock))
        history: list[Requests] = []
        if "prior" in options:
            now, given, history = imported(options["prior"], given, now)
        row = _created(store, name, given, now, history)
    return row, stored_config(store, row, given, options)


def stored_config(store: Store, row: BanditRow, given: Config, options: Options) -> Config:
    """Return the configuration of a bandit in the store; complain if it was made with another than given."""
    name = row.name
    refuse_archived(row)
    if "prior" in options and not (row.config.get("imported") or row.config.get("old_arms")):
        raise InputError(f"the bandit {name!r} was made without a prior, which it cannot be given later")
    if row.config != given.written():
        if "seed" not in options:
            given = given._replace(seed=row.config["seed"])
        playing = [
            AddArm(arm.name, arm.cap, arm.window, arm.about)
            for arm in store.arms(row.number)
            if not arm.retired
        ]
        compare(name, given, row.config, playing)
        given = with_limits(read(row.config, given.policy, name), options, name)
    return given


def _first_time(clock: Callable[[], float]) -> float:
    """Read a clock that may be a user's own, and check what it gives."""
    now = clock()
    if not is_finite(now):
        raise InputError(f"clock must give the time in seconds, as time.time does, not {now!r}")
    return float(now)


def _created(store: Store, name: str, given: Config, now: float, history: Sequence[Requests]) -> BanditRow:
    """Make a bandit in the store; or return the one that another worker has made in this moment."""
    try:
        return store.create(name, given.written(), given.arms, given.rounds, now, history)
    except InputError:
        row = store.find(name)
        if row is None:
            raise
        return row


# Keeping up with other workers: one thread for each store folds what they write, as they write it.

_WAIT = 0.5  # seconds that it waits for events at a time

log = logging.getLogger("accrual.live")


class Staleness(NamedTuple):
    """How far a worker's state may be behind the log."""

    events: int  # in the log, and not folded here
    seconds: float  # since all that was in the log had been folded; 0 if all is


class Folding(Protocol):
    """A bandit, as far as following its log goes."""

    @property
    def position(self) -> int:
        """How far its log has been folded."""

    def catch_up(self) -> int:
        """Fold the rest."""


class Followed:
    """A bandit whose log is followed. It does not keep the bandit in memory.

    Parameters
    ----------
    number : int
        The bandit's number in the store.
    bandit : Folding
    """

    def __init__(self, number: int, bandit: Folding) -> None:
        self.number = number
        self.bandit = weakref.ref(bandit)
        self.abreast = time.monotonic()  # when all that was in the log had last been folded

    def position(self) -> int:
        bandit = self.bandit()
        return 0 if bandit is None else bandit.position

    def catch_up(self) -> None:
        bandit = self.bandit()
        if bandit is not None:
            looked = time.monotonic()
            bandit.catch_up()  # which ends when there is no more
            self.abreast = looked


class CatchUpThread:
    """Folds the logs of all followed bandits of a store as they grow: one thread, one query for all.

    It begins with the first bandit and ends with the last. Get it by `follow`.
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
                self._look(followed)
            except StoreClosed:
                with _CHANGING:
                    _THREADS.pop(self._store, None)
                return
            except StoreError:  # as below
                time.sleep(_WAIT)
            except Exception:
                log.exception("following logs failed; it is tried again")
                time.sleep(_WAIT)

    def _look(self, followed: Sequence[Followed]) -> None:
        """Wait for events of these bandits, and fold them."""
        begun, failed = time.monotonic(), False
        behind = self._store.wait(_positions(followed), _WAIT)
        for one in followed:
            if one not in self._followed:  # it has been closed meanwhile
                continue
            if one.number not in behind:
                one.abreast = begun
                continue
            try:
                one.catch_up()
            except StoreClosed:
                raise
            except StoreError:  # out of reach for now; the staleness says so
                failed = True
            except Exception:  # whatever it is, the other bandits are to be followed too
                log.exception("following a log failed; it is tried again", extra={"bandit": one.number})
                failed = True
        if failed:
            time.sleep(_WAIT)

    def leave(self, one: Followed) -> None:
        """Follow a bandit no longer. A fold that is under way goes on to its end."""
        with _CHANGING:
            self._followed.discard(one)


_CHANGING = threading.Lock()  # held while the threads, or what they follow, change
_THREADS: dict[Store, CatchUpThread] = {}


def follow(store: Store, number: int, bandit: Folding) -> tuple[CatchUpThread, Followed]:
    """Begin to follow a bandit's log; return the store's thread, and what it follows."""
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
    """Ask the store where the logs end, once for all, and return how far behind them each bandit is now."""
    positions = [one.position() for one in followed]
    behind = store.wait(_positions(followed), 0.0) if followed else {}
    now = time.monotonic()
    events = [
        max(behind.get(one.number, 0) - position, 0)
        for one, position in zip(followed, positions, strict=True)
    ]
    return [
        Staleness(count, now - one.abreast if count else 0.0)
        for one, count in zip(followed, events, strict=True)
    ]


def _positions(followed: Sequence[Followed]) -> dict[int, int]:
    """Return how far each log has been folded by every bandit object that follows it."""
    positions: dict[int, int] = {}
    for one in followed:
        position = one.position()
        positions[one.number] = min(position, positions.get(one.number, position))
    return positions


Length = float | str | timedelta  # a window: rounds, or a time
Known = Mapping[str, Any]  # of a visitor, or about an arm: features with their values

_SKEW = 5.0  # seconds


class Bandit:
    """Chooses among arms, and learns from rewards that arrive in pieces.

    What it has answered is durable, if it has a store. Any number of threads may use it.

    Parameters
    ----------
    arms : sequence of str or mapping
        Their names; with a mapping also their caps, the most that one decision can pay in all. **A cap
        is 1 unless given**: give it where a decision can pay more, in the unit of the pieces. A total
        above its cap is counted and answered with a warning; it makes the policy choose badly.
    window : int, str or timedelta
        The age at which a decision's pieces end: a number of rounds, which count decisions, or a
        time such as ``"60d"`` or ``"12h"``.
    groups : int, optional
        Into how many equal parts the window is cut. In rounds it must divide the window. A window of
        time is seen by the policy in steps of this many to the window, 1,000 unless given.
    policy : Policy or str, optional
        Any of the catalog, or your own; AgePrior unless given.
    store : str or Store, optional
        Where events are kept: ``"sqlite:///plays.db"``, ``"postgresql://..."``, or an open store. In
        memory unless given, for as long as the process lives.
    name : str
        The bandit's name in the store. If there is one, it goes on where it was, and must have been
        made with the same arms, window, groups, policy and options.
    **options
        See `Options`: `seed`, `floor`, `features`, `guardrails`, `prior` and others.

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
        given = given_config(arms, window, groups, policy, name, options)
        with opened_store(store) as (place, owned):
            row, given = found_or_created(place, name, given, options)
            self._start(place, owned, row, given, options)

    @classmethod
    def open(
        cls,
        store: str | Store,
        name: str = "bandit",
        policy: Policy | None = None,
        **options: Unpack[Options],
    ) -> Bandit:
        """Open a bandit that is in a store already, as it was made.

        Parameters
        ----------
        store : str or Store
        name : str
        policy : Policy, optional
            Only where it is not of the catalog.
        **options
            `clock` and `skew`; `floor` and `shares` where the bandit has none; the others are as they were,
            and are refused.
        """
        only("option of Bandit.open", options, ("clock", "skew", "floor", "shares"))
        with opened_store(store) as (place, owned):
            row = place.find(name)
            if row is None:
                raise unknown("bandit", name, place.names())
            refuse_archived(row)
            bandit = cls.__new__(cls)
            given = with_limits(read(row.config, policy, name), options, name)
            bandit._start(place, owned, row, given, options)
            return bandit

    def _start(self, store: Store, owned: bool, row: BanditRow, given: Config, options: Options) -> None:
        self.name = row.name
        self._store = store
        self._owned = owned
        self._volatile = isinstance(store, MemoryStore)
        self._row = row
        self._config = given
        self._step = 1.0 if given.rounds else 0.0
        clock = clock_of(store, given.rounds, options.get("clock"))
        skew = 0.0 if given.rounds else float(options.get("skew", _SKEW))
        self._follower = LogFollower(store, row.number, given.ledger, self._step)
        salt = salt_of(row.name, store.shared)
        self._name = ArmNames(store, row.number)
        watch = ArmWatch(row.name, given.guardrails, self._follower.ledger, self._name)
        self._commits = Commits(store, row.number, self._follower, clock, self._step, skew, salt, watch)
        self._checks = AskChecks(given, self._follower, self._commits.turn, self._name)
        self._observer = Observer(store, row.number, given, self._follower)
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
        """What it chooses by."""
        return self._config.policy

    @property
    def arms(self) -> list[str]:
        """The names of the arms in play."""
        with self._commits.turn:
            numbers = self._follower.ledger.arms.in_play
        return [self._name(number) for number in numbers]

    @overload
    def decide(
        self, n: None = None, key: str | None = None, context: Known | None = None
    ) -> Decision[str]: ...

    @overload
    def decide(
        self, n: int, key: str | None = None, context: Sequence[Known] | None = None
    ) -> list[Decision[str]]: ...

    def decide(
        self, n: int | None = None, key: str | None = None, context: Known | Sequence[Known] | None = None
    ) -> Decision[str] | list[Decision[str]]:
        """Choose an arm; or, with `n`, a list of as many, none of which knows what another will pay.

        Parameters
        ----------
        n : int, optional
        key : str, optional
            The same key again gives the same decisions again; with another context it is an error.
        context : mapping, optional
            Whom the decision is for: a value for each feature, as in ``{"country": "de", "new": True}``. With
            `n`, a list of as many contexts. What is left out is missing, and counted.
        """
        count = 1 if n is None else whole("n", n, 1, DECISIONS_MOST)
        if key is not None:
            name_of("a decision", key)
        contexts = self.stored_contexts(context, n)
        if key is None and self._volatile:
            answer = self._commits.decide(count, contexts)
        else:
            (answer,) = self._commits.submit((Decide(count, key, contexts),))
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

    def stored_contexts(
        self, context: Known | Sequence[Known] | None, n: int | None = None
    ) -> tuple[bytes, ...] | None:
        """Check contexts as `decide` takes them; return them as a store keeps them, for `submit`."""
        return stored_contexts(self.features, context, n)

    @property
    def features(self) -> Features | None:
        """What may be known of whom a decision is for; None without features."""
        return self._follower.ledger.visitors.features

    def observe(
        self,
        id: int,
        value: float,
        age: float | None = None,
        at: float | None = None,
        key: str | None = None,
        stream: str | None = None,
    ) -> Answer:
        """Store a piece of decision `id`, and learn from it.

        Parameters
        ----------
        id : int
        value : float
        age : float, optional
            How old the decision was then: rounds, or seconds.
        at : float, optional
            When it was, instead: a round, or a time of the clock. Now, with neither.
        key : str, optional
            Of this piece among those of its decision. The same key with the same piece is answered
            like the first time; with another piece it is an error. Without one, the same value at the
            same stated age is taken for the same piece; where no age is stated, every call is a piece.
        stream : str, optional
            The guardrail that it is of; without one it is reward, which the policy learns from.

        Returns
        -------
        Answer
            Its `status` is STORED or AGAIN; `late` says that it came too late to be learned from. Its
            `warning` is text if the decision has paid more in all than its arm's cap, which is also
            given as a Python warning; otherwise it is empty.
        """
        piece = self.piece(id, value, age, at, key, stream)
        (answer,) = self._commits.submit((piece,))
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
        ages: Sequence[float | None] | None = None,
        ats: Sequence[float | None] | None = None,
        keys: Sequence[str | None] | None = None,
        streams: Sequence[str | None] | None = None,
    ) -> list[Answer]:
        """Store several pieces in one transaction; return an answer for each.

        A value that is not a number, and the like, is an error, and then none is stored. What the
        store refuses (an unknown decision, a key used for something else, a time in the future) has
        an answer that says so, and the others are stored.
        """
        columns = [
            ids,
            values,
            *(column if column is not None else [None] * len(ids) for column in (ages, ats, keys, streams)),
        ]
        if len({len(column) for column in columns}) > 1:
            raise InputError("ids, values, ages, ats, keys and streams must be of one length")
        pieces = [self.piece(*row) for row in zip(*columns, strict=True)]
        answers = self._commits.submit(pieces) if pieces else []
        for text in {answer.warning for answer in answers if answer.warning}:
            warnings.warn(text, stacklevel=2)
        return answers

    def submit(self, asks: Sequence[Ask], pieces_checked: bool = False) -> list[Answer]:
        """Make decisions, and store pieces, closings and arms, in one transaction and in this order.

        Return an answer for each. This is for a program that collects the requests of many clients. `Decide`
        (of `accrual.live.commit`) asks for decisions; `NewPiece`, `CloseDecision`, `AddArm` and `RetireArm`
        (of `accrual.store.base`) are to be stored.

        Parameters
        ----------
        asks : sequence
            Every `Decide` comes before any `AddArm` and `RetireArm`, for arms are chosen before anything of
            the transaction is stored.
        pieces_checked : bool
            Whether every piece comes from `piece`, so that it need not be checked again.
        """
        sound = [
            ask if pieces_checked and isinstance(ask, NewPiece) else self._checks.ask(ask) for ask in asks
        ]
        if AddArm in set(map(type, sound)):
            self._checks.new_arms(sound)
        if len(sound) > 1:
            refuse_decisions_after_arms(sound)
        return self._commits.submit(sound) if sound else []

    def close_decision(self, id: int) -> bool:
        """Refuse further pieces of decision `id`; return False if it had been closed before.

        What it has paid counts when it would have, at the ages of its groups and at the end of its window,
        as for a decision that may still be paid for: were it counted now, decisions
        that end early would be counted before those that go on, and every arm look worse than it is.
        """
        number = decision_number(id)
        (answer,) = self._commits.submit((CloseDecision(number),))
        if answer.status is Status.UNKNOWN:
            raise InputError(UNKNOWN_DECISION.format(id=id))
        return answer.status is Status.STORED

    def add_arm(
        self, name: str, cap: float = 1.0, window: Length | None = None, about: Known | None = None
    ) -> None:
        """Add an arm, which takes its turn: one of any K decisions in a row, K the arms in play.

        That holds until its first decision has finished a group of the policy's (its window, where the
        policy has none); from then on the policy chooses. By adding, a bandit comes to at most 1,000 arms,
        with those that have retired.

        Parameters
        ----------
        name : str
            One that no arm has had.
        cap : float
            The most that one decision of it can pay.
        window : optional
            Its own, if shorter than the bandit's: in rounds, or a time as in the bandit's own.
        about : mapping, optional
            What is known about it, where the bandit has `arm_features`.
        """
        arm = AddArm(name, cap, self._config.own_window(window), self.about(about))
        (answer,) = self.submit((arm,))
        if answer.status is Status.CONFLICT:
            raise InputError(f"there has been an arm {name!r} already, with another cap, window or features")

    def about(self, about: Known | None) -> bytes | None:
        """Check what is known about an arm; return it as a store keeps it, for `submit`."""
        return about_bytes(self._config.arm_features, about)

    def retire_arm(self, name: str) -> None:
        """Never choose this arm again. Its pending decisions still teach."""
        names = [arm.name for arm in self._store.arms(self._row.number)]
        if name not in names:
            raise unknown("arm", name, names)
        self._commits.submit((RetireArm(names.index(name)),))

    def state(self) -> BanditState:
        """Return what is known of every arm."""
        return self._observer.state(self.name, self._name, self._look)

    def _look(self) -> LedgerView:
        with self._commits.turn:
            self._commits.settle()
            return view_of(self._follower)

    def context_worth(self) -> ContextWorth:
        """Return what contexts are worth: reward per decision with and without, by closed decisions."""
        with self._commits.turn:
            made, features = self._follower.ledger.decisions, self.features
        # It takes a while: no lock.
        return context_worth(self._store, self._row.number, self._config, features, made)

    def explain(self, id: int) -> Explanation:
        """Return why decision `id` got its arm: every arm's index at that moment, and what it is made of."""
        row = decision_to_explain(self._store, self._row.number, id, self._config.imported)
        # Without the lock: folding part of the log again can take a second, and no other caller is to wait.
        return explain(self._store, self._row.number, row, self._follower, self._step, self._name)

    def check(self) -> None:
        """Raise `StoreError` if nothing can be stored now because the clock has leapt."""
        self._commits.now()

    def catch_up(self) -> int:
        """Fold what other workers have written since; return how many events that was."""
        return self._commits.catch_up()

    def follow(self) -> None:
        """Begin to fold what other workers write, as they write it, in a thread for all bandits of a store.

        A bandit that was given the address of a PostgreSQL database does so from the start.
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
        """How far this worker is behind the log: in events, and for how long. It must `follow`."""
        return staleness_of([self])[0]

    def close(self, keep: bool = True) -> None:
        """Keep a snapshot for the next start, unless `keep` is False, and let go of the store.

        In a forked process, do nothing.
        """
        if self._commits.forked:
            return
        if self._following is not None:
            thread, own = self._following
            thread.leave(own)
        try:
            if keep:
                with suppress(StoreError):  # all is stored already; the next start takes longer
                    with self._commits.turn:
                        self._follower.keep(now=True)
                    self._observer.keep()
        finally:
            with self._commits.turn:
                if self._owned:
                    self._store.close()

    def __enter__(self) -> Bandit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def piece(
        self,
        id: int,
        value: float,
        age: float | None = None,
        at: float | None = None,
        key: str | None = None,
        stream: str | None = None,
    ) -> NewPiece:
        """Check a piece, given as to `observe`, and return it for `submit`; nothing is stored."""
        number = None if stream is None else self._checks.stream(stream)
        self._checks.check_piece(value, age, at, key, number)
        decision = id if type(id) is int else decision_number(id)
        age, at = (None if age is None else float(age)), (None if at is None else float(at))
        return NewPiece(decision, float(value), age, at, key, number)


def staleness_of(bandits: Sequence[Bandit]) -> list[Staleness]:
    """Return how far each of these bandits, all of one store, is behind its log: one query for all."""
    following = [bandit._following for bandit in bandits]
    if not all(following):
        raise InputError("staleness is not measured until follow() has been called")
    return staleness(bandits[0]._store, [one for _, one in filter(None, following)]) if bandits else []
