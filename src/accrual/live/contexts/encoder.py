"""Contexts of decisions: as a user gives them, as a store keeps them, and encoded for a policy."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.basis import layout_of
from accrual.core.errors import InputError
from accrual.core.features import ODDITIES, Encoding, Features, count_oddities, encode
from accrual.core.jit import BoundKernel, kernel
from accrual.policies.base import Policy
from accrual.store.base import StoreDamaged

ContextRows = Sequence[Sequence[float]] | Floats  # decisions x features


class ContextEncoder:
    """Encodes the contexts of the next decisions for a policy, and counts unusual values."""

    def __init__(self, features: Features | None, policy: Policy) -> None:
        self._features = features
        self.used = features is not None or policy.contextual
        """Whether there are features, or a policy that chooses by contexts."""
        self.first_id = np.zeros(1, np.int64)
        """One number: the id of the decision to which the first row of `encoded` belongs."""
        self.oddities = np.zeros((len(features or ()), len(ODDITIES)), np.int64)
        """Features x 3: how many values were unknown, missing and out of range."""
        self.layout = (layout_of([]) if features is None else features.layout) if policy.contextual else None
        """Of what the policy gets of a context; None for a policy that does not choose by contexts."""
        self.encoded = np.ones((1, self.width))
        """Decisions x width: the contexts that were encoded last."""
        self.kernel = BoundKernel(encode_rows, np.zeros((1, 1)), True)
        """What encodes contexts, if there are features."""
        self._bind()

    @property
    def width(self) -> int:
        """How many numbers the policy gets of a context; 0 if it does not choose by contexts."""
        return 0 if self.layout is None else self.layout.width

    def _bind(self) -> None:
        """Hand the arrays to the kernel, after one of them was replaced."""
        if self._features is not None:
            self.kernel.bind(EncoderArrays(self._features.encoding, self.encoded, self.oddities))

    def restore(self, oddities: Ints) -> None:
        """Go on counting from these numbers."""
        self.oddities = oddities.copy()
        self._bind()

    def encode(self, n: int, first_id: int, contexts: ContextRows | None, made: bool) -> bool:
        """Encode the contexts of the next `n` decisions; return whether `encoded` is a new array.

        Count unusual values if the decisions are `made`, and not if they are only tried.
        """
        if self._features is None and contexts is not None:
            raise InputError("no features are declared, so a decision takes no context")
        if not self.used:
            return False
        self.first_id[0] = first_id
        grown = n > len(self.encoded)
        if grown:
            self.encoded = np.ones((max(n, 2 * len(self.encoded)), self.width))
            self._bind()
        if self._features is not None:
            self.kernel.run(self.kernel.arrays, _checked_rows(n, contexts, len(self._features)), made)
        return grown


def _checked_rows(n: int, contexts: ContextRows | None, count: int) -> Floats:
    """Return the contexts of `n` decisions, if they have `count` numbers each; all missing for None."""
    if contexts is None:
        return np.full((n, count), np.nan)
    given = np.ascontiguousarray(contexts, np.float64)
    if given.shape != (n, count):
        raise InputError(f"{n} decisions need contexts of {count} numbers each, not {given.shape}")
    return given


class EncoderArrays(NamedTuple):
    """What `encode_rows` reads and writes."""

    encoding: Encoding
    encoded: Floats  # decisions x width; of width 0 for a policy that does not choose by contexts
    oddities: Ints


@kernel
def encode_rows(arrays: EncoderArrays, contexts: Floats, made: bool) -> None:
    """Encode contexts, a row for each; count unusual values if the decisions are `made`."""
    for i in range(len(contexts)):
        if arrays.encoded.shape[1] > 0:
            encode(arrays.encoding, contexts[i], arrays.encoded[i])
        if made:
            count_oddities(arrays.encoding, contexts[i], arrays.oddities)


def bytes_of(context: Sequence[float]) -> bytes:
    """Return a context, in numbers, as a store keeps it.

    Examples
    --------
    >>> bytes_of((1.0, 0.0)).hex()
    '000000000000f03f0000000000000000'
    """
    return struct.pack(f"<{len(context)}d", *context)


def stored_contexts(
    features: Features | None, context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, n: int | None
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
    """Return contexts as a store keeps them; raise an error if they do not fit `n` decisions."""
    size = 8 * len(features or ())
    if contexts is not None and (len(contexts) != n or any(len(body) != size for body in contexts)):
        raise InputError(f"{n} decisions need {n} contexts of {size} bytes; Bandit.choice makes them")
    return contexts


def numbers_of(stored: Sequence[bytes | None], features: int) -> Floats:
    """Return contexts from a store as numbers, contexts x features; without a context, all are missing."""
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
