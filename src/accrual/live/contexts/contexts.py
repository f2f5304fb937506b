"""Whom the next decisions of a ledger are for: told in stored numbers, seen by the policy encoded."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError
from accrual.core.features import (
    ODDITIES,
    Encoding,
    Features,
    count_oddities,
    encode,
)
from accrual.core.jit import kernel, machine_code_for, native_tuple
from accrual.policies.base import Policy
from accrual.store.base import (
    AddArm,
    Answer,
    NewDecisions,
    Status,
    Store,
    StoreDamaged,
    StoreRequest,
)
from accrual.store.events import Events, Kind

if TYPE_CHECKING:
    from accrual.live.ledger import ArmTable

Stored = Sequence[Sequence[float]] | npt.NDArray[np.float64]  # decisions x features
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Told(NamedTuple):
    """What a stretch of a log says beyond the columns of its events."""

    contexts: Floats | None = None  # decisions x features: whom its decisions were for
    about: Sequence[bytes | None] = ()  # what is known about the arms that it adds


class Register(NamedTuple):
    """What `look` reads and writes."""

    first: Ints  # as in `Encoding`, and so are the next three
    levels: Ints
    low: Floats
    scale: Floats
    seen: Floats  # decisions x width; of no width for a policy that chooses by no context
    oddities: Ints


@kernel
def look(register: Register, contexts: Floats, made: bool) -> None:
    """Encode stored contexts into `seen`, a row for each; count what is odd if the decisions are `made`."""
    encoding = Encoding(register.first, register.levels, register.low, register.scale)
    for i in range(len(contexts)):
        if register.seen.shape[1] > 0:
            encode(encoding, contexts[i], register.seen[i])
        if made:
            count_oddities(encoding, contexts[i], register.oddities)


class Visitors:
    """What is known of whom decisions are for.

    Parameters
    ----------
    features : Features or None
    policy : Policy

    Attributes
    ----------
    features : Features or None
    width : int
        How many numbers the policy sees of a context; 0 for a policy that chooses by none.
    seen : ndarray
        Decisions x width: what it sees of those that it was told of last.
    first : ndarray
        One number: the id of the decision that the first of these is for.
    any : bool
        Whether there are features, or a policy that chooses by contexts.
    oddities : ndarray
        Features x 3: how many values were unknown, missing and out of range.
    """

    def __init__(self, features: Features | None, policy: Policy) -> None:
        self.features = features
        self.any = features is not None or policy.contextual
        self.first = np.zeros(1, np.int64)
        self.oddities = np.zeros((len(features or ()), len(ODDITIES)), np.int64)
        self.width = (1 if features is None else features.width) if policy.contextual else 0
        self.seen = np.ones((1, self.width))
        self._bind()

    def _bind(self) -> None:
        """Hand the arrays to the kernel, after any of them was replaced."""
        self._look: Any = look  # later calls need not look up what has been compiled
        if self.features is not None:
            self._held = native_tuple(Register(*self.features.encoding, self.seen, self.oddities))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what has become of the events, by name."""
        return {"oddities": self.oddities}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from where others, of the same features, were when they gave these `arrays`."""
        self.oddities = arrays["oddities"].copy()
        self._bind()

    def tell(self, n: int, first: int, contexts: Stored | None, made: bool) -> bool:
        """Take note of whom the next `n` decisions are for. Whether `seen` is another array now.

        What is odd is counted where the decisions are `made`, not where they are only tried.
        """
        if self.features is None and contexts is not None:
            raise InputError("no features are declared, so a decision takes no context")
        if not self.any:
            return False
        self.first[0] = first
        fresh = n > len(self.seen)
        if fresh:
            self.seen = np.ones((max(n, 2 * len(self.seen)), self.width))
            self._bind()
        if self.features is not None:
            self._look(self._held, self._checked(n, contexts, len(self.features)), made)
            if self._look is look:
                self._look = machine_code_for(look, self._held)
        return fresh

    def _checked(self, n: int, contexts: Stored | None, count: int) -> Floats:
        """Return the contexts of `n` decisions, if they have `count` numbers each; all missing for None."""
        if contexts is None:
            return np.full((n, count), np.nan)
        given = np.ascontiguousarray(contexts, np.float64)
        if given.shape != (n, count):
            raise InputError(f"{n} decisions need contexts of {count} numbers each, not {given.shape}")
        return given


class HasVisitors(Protocol):
    """A ledger."""

    visitors: Visitors
    arms: ArmTable


def bytes_of(context: Sequence[float]) -> bytes:
    """Return a stored context as a store keeps it.

    Examples
    --------
    >>> bytes_of((1.0, 0.0)).hex()
    '000000000000f03f0000000000000000'
    """
    return struct.pack(f"<{len(context)}d", *context)


def stored_contexts(
    features: Features | None,
    context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    n: int | None,
) -> tuple[bytes, ...] | None:
    """Return the contexts of `n` decisions as a store keeps them; without `n`, of one decision.

    Examples
    --------
    >>> len(stored_contexts(Features({"new": bool}), [{"new": True}, {}], 2))
    2
    """
    if features is None:
        if context is not None:
            raise InputError("the bandit has no features, so a decision takes no context")
        return None
    if context is None:
        return (bytes_of(features.stored(None)),) * (n or 1)
    if n is None:
        return (bytes_of(features.stored(context)),)  # type: ignore[arg-type]
    if not isinstance(context, list | tuple) or len(context) != n:
        raise InputError(f"{n} decisions need a list of {n} contexts, one for each")
    return tuple([bytes_of(features.stored(own)) for own in context])


def checked_contexts(
    features: Features | None, contexts: tuple[bytes, ...] | None, n: int
) -> tuple[bytes, ...] | None:
    """Return contexts as a store keeps them; an error if they are not those of `n` decisions."""
    size = 8 * len(features or ())
    if contexts is not None and (len(contexts) != n or any(len(body) != size for body in contexts)):
        raise InputError(
            f"{n} decisions need {n} contexts of {size} bytes; Bandit.stored_contexts makes them"
        )
    return contexts


def numbers_of(stored: Sequence[bytes | None], features: int) -> Floats:
    """Return contexts from a store as numbers, contexts x features; all missing where there is none."""
    whole = b"".join([body or b"" for body in stored])
    if len(whole) == 8 * features * len(stored):  # the common case
        return np.frombuffer(bytearray(whole), "<f8").reshape(len(stored), features)  # may be written to
    numbers = np.full((len(stored), features), np.nan)
    for place, body in enumerate(stored):
        if body is not None:
            if len(body) != 8 * features:
                raise StoreDamaged("damaged: features are not as many as declared; see accrual db verify")
            numbers[place] = np.frombuffer(body, "<f8")
    return numbers


def told_by_store(store: Store, bandit: int, ledger: HasVisitors, events: Events) -> Told:
    """Return what a stretch of a log says beyond its columns; nothing for a bandit without features."""
    features = ledger.visitors.features
    about: list[bytes | None] = []
    if ledger.arms.features is not None and (added_arms := events.arm[events.kind == Kind.ADD_ARM].tolist()):
        arms = store.arms(bandit)
        about = [arms[number].about for number in added_arms]
    if features is None:
        return Told(about=about)
    ids = events.decision[events.kind == Kind.DECISION]
    stored = store.contexts(bandit, int(ids[0]), len(ids)) if len(ids) else []
    return Told(numbers_of(stored, len(features)), about)


def told_by_requests(
    ledger: HasVisitors, requests: Sequence[StoreRequest], answers: Sequence[Answer]
) -> Told:
    """Return what has just been appended says beyond its columns; nothing for a bandit without features."""
    features = ledger.visitors.features
    if features is None and ledger.arms.features is None:
        return Told()
    stored: list[bytes | None] = []
    about = []
    for request, answer in zip(requests, answers, strict=True):
        if answer.status is not Status.STORED:
            continue
        if isinstance(request, AddArm):
            about.append(request.about)
        elif isinstance(request, NewDecisions):
            stored += request.contexts or (None,) * len(request.arms)
    if features is None:
        return Told(about=about)
    return Told(numbers_of(stored, len(features)), about)
