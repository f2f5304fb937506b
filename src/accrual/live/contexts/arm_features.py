"""Features of arms: as a user gives them, as a store keeps them, and encoded for a policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, unknown
from accrual.core.features import Features
from accrual.live.contexts.encoder import bytes_of, numbers_of
from accrual.policies.base import Policy

_SHOWN = 40  # characters of an unknown level that an error shows


class AboutArms(NamedTuple):
    """What is known about the first arms of a bandit."""

    features: Features
    stored: tuple[bytes | None, ...] = ()  # of each arm, as a store keeps it

    def encoded(self, stored: Sequence[bytes | None]) -> Floats:
        """Return what a policy gets of arms: arms x columns, without the constant."""
        return np.array([self.features.seen(row)[1:] for row in numbers_of(stored, len(self.features))])


def about_bytes(
    features: Features | None, about: Mapping[str, Any] | None, arm: str = "an arm"
) -> bytes | None:
    """Check what is known about an arm, and return it as a store keeps it. Errors name the arm by `arm`.

    A feature that is left out is not known. An unknown level, or a number out of range, is refused: someone
    has just described this arm and can put it right. (In the context of a decision both are only counted.)

    Examples
    --------
    >>> features = Features({"genre": ["jazz", "rock"], "minutes": (0, 60)})
    >>> features.read_back_bytes(about_bytes(features, {"genre": "rock"}))
    {'genre': 'rock', 'minutes': None}
    """
    if features is None:
        if about is not None:
            raise InputError("no arm_features are declared, so an arm takes no about")
        return None
    if about is not None and not isinstance(about, Mapping):
        raise InputError(f"what is known about {arm} must be features with their values, not {about!r}")
    try:
        numbers = features.stored(about)
        for (name, kind), number in zip(features.kinds.items(), numbers, strict=True):
            if isinstance(kind, list) and number < 0:
                raise unknown(f"level of the feature {name!r}", str((about or {})[name])[:_SHOWN], kind)
            if isinstance(kind, tuple) and not math.isnan(number) and not kind[0] <= number <= kind[1]:
                raise InputError(
                    f"the feature {name!r} must be from {kind[0]:g} to {kind[1]:g}, not {number!r}"
                )
    except InputError as wrong:
        raise InputError(f"about {arm}: {wrong}") from None
    return bytes_of(numbers)


def checked_about(features: Features | None, about: bytes | None) -> bytes | None:
    """Return an arm's features as a store keeps them; raise an error if `about_bytes` cannot make them."""
    if features is None:
        return about_bytes(None, about)  # type: ignore[arg-type]
    if about is None:
        raise InputError("an arm of this bandit needs what is known about it; Bandit.arm makes it")
    if len(about) != 8 * len(features) or about_bytes(features, features.read_back_bytes(about)) != about:
        raise InputError(
            "what is known about an arm is not of the bandit's arm_features; Bandit.arm makes it"
        )
    return about


def about_text(about: Mapping[str, Any]) -> str:
    """Return what is known about an arm as text for people; leave out what is not known.

    Examples
    --------
    >>> about_text({"genre": "rock", "live": True, "minutes": 4.0, "year": None})
    'genre: rock, live: yes, minutes: 4'
    """
    said = {name: value for name, value in about.items() if value is not None}
    return ", ".join(f"{name}: {_value_text(value)}" for name, value in said.items())


def _value_text(value: str | bool | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.10g}"


def about_of_each(
    features: Mapping[str, Any] | None,
    about: Mapping[str, Mapping[str, Any]] | None,
    arms: Iterable[str],
    policy: Policy,
) -> tuple[Features | None, dict[str, bytes | None]]:
    """Check the features of arms that a user gives; return them, and what is known about each arm by name."""
    if features is None:
        if about is not None:
            raise InputError(
                "about says what is known about arms; declare it: arm_features={'genre': ['jazz', 'rock']}"
            )
        return None, {}
    if not policy.takes_about:
        raise InputError(f"{policy.label} learns nothing from features of arms; AgePrior does")
    try:
        declared = Features(features)
    except InputError as wrong:
        raise InputError(f"arm_features: {wrong}") from None
    if not len(declared):
        raise InputError("arm_features must declare at least one feature")
    names = list(arms)
    if about is not None and not isinstance(about, Mapping):
        raise InputError(f"about must be arms with what is known about each, not {about!r}")
    for name in about or {}:
        if name not in names:
            raise unknown("arm", str(name), names)
    return declared, {name: about_bytes(declared, (about or {}).get(name), f"arm {name!r}") for name in names}
