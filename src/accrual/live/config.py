"""What a bandit is made with: checked, written down, and compared when it is opened again."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from accrual.core.durations import exact_duration, parse_duration
from accrual.core.errors import InputError, divides, whole
from accrual.core.features import Features
from accrual.core.random import SEED_MOST
from accrual.live.contexts import AboutArms, about_of_each
from accrual.live.ledger import Ledger
from accrual.live.watch import GUARDRAILS_MOST, Guardrail, checked_guardrail
from accrual.policies.age_prior import AgePrior
from accrual.policies.base import Policy, as_policy
from accrual.policies.catalog import DEFAULT, DEFAULT_WITH_FEATURES, parse, policy_text
from accrual.policies.floor import Limits, limits_of
from accrual.store.base import AddArm

if TYPE_CHECKING:
    from accrual.live.prior import ClosedDecisions, Fit

STEPS = 1000  # into which a window of time is cut for the policy, unless `groups` says otherwise
NAME_MOST = 200  # characters
UNIT_MOST = 40  # characters
CAP_LEAST, CAP_MOST = 1e-50, 1e50


class Options(TypedDict, total=False):
    """What is seldom set.

    seed : int
        For policies that draw. Where none is given one is drawn, and kept with the bandit.
    allow_negative : bool
        Whether pieces may be negative: refunds, and corrections of earlier pieces.
    clock : callable
        Gives the time in seconds. Unless given, it is that of the store: of this machine, or of the
        PostgreSQL server; while it leaps by more than an hour, nothing is stored. Rounds need none.
    skew : float
        By how many seconds a stated time may be ahead of the clock; 5 unless given.
    unit : str
        What one unit of reward is, for people: "lectures", or "€". The service's page shows it.
    floor : float
        The share of decisions whose arm is drawn at random, all arms in play alike, such as 0.05: then
        propensities are known, and verdicts can be given. 0 unless given. A bandit that was made without a
        floor may be given one when it is opened again; then everyone who opens it must give the same.
    shares : mapping
        Of arms' names to the least and the greatest share of decisions that each gets, such as
        ``{"jazz": (0.1, 0.6)}``.
    features : mapping
        What may be known of whom a decision is for: see `accrual.core.features`. The policy is then
        AgeLinTS, unless one is given.
    arm_features : mapping
        What may be known about an arm, declared like `features`: a course's subject and length, for example.
        New arms then start from what similar arms taught. For AgePrior.
    about : mapping
        Of arms' names to what is known about each, such as ``{"intro": {"subject": "art", "hours": 3}}``.
        What is left out is not known.
    guardrails : mapping
        Of names to `Guardrail`: other streams of pieces, such as refunds, of which no arm may have much more
        than another. They need a floor, and stay as they were when the bandit was made.
    prior : fit or mapping
        What an old log knows of the arms: what `accrual.fit` returns, or for each arm its closed decisions,
        each a list of (age in seconds, value). They are stored as the bandit's first decisions, marked as
        imported. Its policy learns from them; a verdict does not. At most 20,000 are taken, evenly. From arms
        of a fit that the bandit does not have, AgePrior learns what new arms are like. Only for a new bandit
        whose window is a time; one that was made with a prior goes on where it was.
    """

    seed: int
    allow_negative: bool
    clock: Callable[[], float]
    skew: float
    unit: str
    floor: float
    shares: Mapping[str, tuple[float, float]]
    features: Mapping[str, Any]
    arm_features: Mapping[str, Any]
    about: Mapping[str, Mapping[str, Any]]
    guardrails: Mapping[str, Guardrail]
    prior: Fit | ClosedDecisions


class Config(NamedTuple):
    """All that the fold depends on, beside the events."""

    arms: tuple[AddArm, ...]  # the first; arms that come later are events
    rounds: bool
    window: float  # rounds, or seconds
    groups: int
    policy: Policy
    seed: int
    allow_negative: bool
    unit: str = ""  # of the reward, for people
    limits: Limits = Limits()
    features: Features | None = None  # what may be known of whom a decision is for
    guardrails: tuple[tuple[str, Guardrail], ...] = ()  # by name; a piece's stream is its number here
    imported: int = 0  # how many of the first decisions were made elsewhere, and come from a prior
    old_arms: bool = False  # whether the policy's history comes from a prior
    arm_features: Features | None = None  # what may be known about an arm

    def ledger(self, policy: Policy | None = None) -> Ledger:
        """Return a new ledger of the first arms, with this policy or another."""
        policy = policy or self.policy
        about = None
        if self.arm_features is not None and policy.takes_about:
            about = AboutArms(self.arm_features, tuple(arm.about for arm in self.arms))
        return Ledger(
            policy,
            [arm.cap for arm in self.arms],
            int(self.window) if self.rounds else self.groups,
            self.seed,
            [arm.window for arm in self.arms],
            self.window,
            self.limits,
            self.allow_negative,
            self.features if policy is self.policy else None,
            [guardrail for _, guardrail in self.guardrails],
            self.imported,
            about,
        )

    def own_window(self, window: float | str | timedelta | None) -> float:
        """Return an arm's own window, in rounds or seconds as the bandit's; without one, the bandit's."""
        if window is None:
            return self.window
        rounds, own = window_of(window)  # type: ignore[arg-type]
        if rounds != self.rounds:
            raise InputError(f"the bandit counts {'rounds' if self.rounds else 'time'}, unlike {window!r}")
        return own

    def written(self) -> dict[str, Any]:
        """Return the configuration as a store keeps it."""
        text = policy_text(self.policy)
        unit = (
            {"unit": self.unit} if self.unit else {}
        )  # left out where there is none, as it was before there were units
        features = {} if self.features is None else {"features": self.features.written()}
        if self.arm_features is not None:
            features["arm_features"] = self.arm_features.written()
        imported: dict[str, Any] = {"imported": self.imported} if self.imported else {}
        if self.old_arms:
            imported["old_arms"] = True
        limits: dict[str, Any] = {}
        if self.limits.any:
            limits = {"floor": self.limits.floor, "shares": [list(bound) for bound in self.limits.bounds]}
        guardrails: dict[str, Any] = {}
        if self.guardrails:
            guardrails = {"guardrails": [[name, *guardrail] for name, guardrail in self.guardrails]}
        return (
            unit
            | features
            | limits
            | guardrails
            | imported
            | {
                "arms": [_arm_written(arm) for arm in self.arms],
                "rounds": self.rounds,
                "window": self.window,
                "groups": self.groups,
                "policy": text or repr(self.policy),
                "own_policy": text is None,
                "seed": self.seed,
                "allow_negative": self.allow_negative,
            }
        )


def _arm_written(arm: AddArm) -> list[Any]:
    """Return an arm as a configuration keeps it: what is known about it is the last entry, if it is there."""
    about = [] if arm.about is None else [arm.about.hex()]
    return [arm.name, arm.cap, arm.window, *about]


def arm_read(written: Sequence[Any]) -> AddArm:
    """Return an arm of a configuration as a store keeps it."""
    name, cap, window, *about = written
    return AddArm(name, cap, window, *map(bytes.fromhex, about))


def checked(
    arms: Sequence[str] | Mapping[str, float],
    window: int | str | timedelta,
    groups: int | None,
    policy: Policy | str | None,
    seed: int,
    allow_negative: bool,
    unit: str = "",
    features: Mapping[str, Any] | None = None,
) -> Config:
    """Return a checked configuration from what a user gives."""
    rounds, length = window_of(window)
    if groups is not None:
        groups = whole("groups", groups, 1)
        if rounds:
            divides("groups", groups, int(length))
    if isinstance(policy, str):
        policy = parse(policy)
    if policy is not None:
        as_policy(policy)
    if not isinstance(allow_negative, bool):
        raise InputError(f"allow_negative must be True or False, not {allow_negative!r}")
    if isinstance(arms, str | bytes) or not isinstance(arms, Collection) or not len(arms):
        raise InputError(
            f"arms must be names, such as ['jazz', 'rock'], or names with their caps, not {arms!r}"
        )
    if isinstance(arms, Set):
        raise InputError("arms must be a list or a mapping, whose order is kept; a set has none")
    for name in arms:
        name_of("an arm", name)
    caps = arms if isinstance(arms, Mapping) else dict.fromkeys(arms, 1.0)
    if len(caps) < len(arms):
        twice = next(name for name in caps if list(arms).count(name) > 1)
        raise InputError(f"arms must have different names; {twice!r} is there twice")
    config = Config(
        tuple(AddArm(name, cap_of(cap), length) for name, cap in caps.items()),
        rounds,
        length,
        groups or (int(length) if rounds else STEPS),
        policy or (DEFAULT if features is None else DEFAULT_WITH_FEATURES),
        whole("seed", seed, 0, SEED_MOST),
        bool(allow_negative),
        unit_of(unit),
        features=None if features is None else Features(features),
    )
    config.ledger()  # the policy may refuse these caps or this window
    return config


def check_times(options: Options) -> None:
    """Refuse a clock that cannot be asked, and a skew that is no number of seconds."""
    if "clock" in options and not callable(options["clock"]):
        raise InputError(f"clock must be a function that gives the time in seconds, not {options['clock']!r}")
    skew: Any = options.get("skew", 0.0)
    if isinstance(skew, bool) or not isinstance(skew, int | float) or not 0 <= skew < math.inf:
        raise InputError(f"skew must be a number of seconds, not {skew!r}")


def read(written: Mapping[str, Any], policy: Policy | None, name: str) -> Config:
    """Return the configuration that a store keeps; `policy` is needed where it is not of the catalog."""
    if written["own_policy"]:
        if policy is None:
            raise InputError(
                f"the bandit {name!r} has a policy of its own; pass it: policy={written['policy']}"
            )
    else:
        policy = parse(written["policy"])
    return Config(
        tuple(arm_read(arm) for arm in written["arms"]),
        written["rounds"],
        written["window"],
        written["groups"],
        policy,
        written["seed"],
        written["allow_negative"],
        written.get("unit", ""),
        limits_written(written),
        Features.read(written["features"]) if "features" in written else None,
        tuple((name, Guardrail(*rest)) for name, *rest in written.get("guardrails", ())),
        written.get("imported", 0),
        written.get("old_arms", False),
        Features.read(written["arm_features"]) if "arm_features" in written else None,
    )


def limits_written(written: Mapping[str, Any]) -> Limits:
    """Return the limits of a configuration as the store keeps it."""
    return Limits(written.get("floor", 0.0), tuple((low, high) for low, high in written.get("shares", ())))


def with_limits(config: Config, options: Options, name: str) -> Config:
    """Return a configuration with the floor and the shares that are given, if it has none of its own."""
    if "floor" not in options and "shares" not in options:
        return config
    arms = [arm.name for arm in config.arms]
    limits = limits_of(options.get("floor", 0.0), options.get("shares"), arms)
    if config.limits.any and limits != config.limits:
        shares = " and shares of its own" if config.limits.bounds else ""
        raise InputError(
            f"the bandit {name!r} was made with a floor of {config.limits.floor:g}{shares}; that cannot be "
            "changed: leave out floor and shares, or give those it was made with"
        )
    return config._replace(limits=limits)


def with_about(config: Config, options: Options) -> Config:
    """Return a configuration with what is known about its arms, as a user gives it."""
    policy = config.policy
    if isinstance(policy, AgePrior) and policy.about:
        raise InputError(
            "a bandit takes what is known about arms as arm_features and about, not in its policy"
        )
    names = [arm.name for arm in config.arms]
    features, known = about_of_each(options.get("arm_features"), options.get("about"), names, policy)
    if features is None:
        return config
    arms = tuple(arm._replace(about=known[arm.name]) for arm in config.arms)
    return config._replace(arms=arms, arm_features=features)


def with_guardrails(config: Config, given: Mapping[str, Guardrail] | None) -> Config:
    """Return a configuration, whose floor is known, with guardrails as a user gives them."""
    if not given:
        return config
    if not isinstance(given, Mapping) or len(given) > GUARDRAILS_MOST:
        raise InputError(
            f"guardrails must be names with their settings, at most {GUARDRAILS_MOST}, such as "
            f"{{'refunds': Guardrail(margin=0.02)}}, not {given!r}"
        )
    if not config.limits.shares(np.ones(len(config.arms), np.bool_)).least.min() > 0.0:
        raise InputError(
            "guardrails need a floor, so that every arm can be judged: give floor=0.05, for example"
        )
    guardrails = []
    for name, guardrail in given.items():
        sound = checked_guardrail(name_of("a guardrail", name), guardrail)
        guardrails.append((name, sound._replace(cap=cap_of(sound.cap))))
    return config._replace(guardrails=tuple(guardrails))


def compare(name: str, given: Config, written: Mapping[str, Any], now: Sequence[AddArm]) -> None:
    """Complain of what differs from the bandit there is, whose arms in play are `now` these."""
    wanted = given.written()
    if list(given.arms) == list(now):  # arms that were added since, or left out because they retired
        wanted["arms"] = written["arms"]
    if not written["own_policy"] and _same_policy(given.policy, written):
        wanted["policy"] = written["policy"]  # which may lack settings that the policy has got since
    differing = [
        f"{key} is {_short(key, written)}, not {_short(key, wanted)}"
        for key in (
            "arms",
            "window",
            "groups",
            "policy",
            "seed",
            "allow_negative",
            "unit",
            "features",
            "arm_features",
            "guardrails",
        )
        if _short(key, wanted) != _short(key, written)
    ]
    if differing:
        raise InputError(
            f"there is a bandit {name!r} in this store already, and it differs: {'; '.join(differing)}; "
            f"take another name, or open it as it is: Bandit.open(store, {name!r})"
        )


def _same_policy(given: Policy, written: Mapping[str, Any]) -> bool:
    """Tell whether a policy is the stored one, but for what that has learned from a prior."""
    stored = parse(written["policy"])
    if written.get("old_arms") and isinstance(given, AgePrior) and isinstance(stored, AgePrior):
        given = dataclasses.replace(given, history=stored.history, spread=stored.spread)
    return given == stored


def _short(key: str, written: Mapping[str, Any]) -> str:
    """Return one setting of a stored configuration, as text for people."""
    if key == "arms":
        return "[" + ", ".join(_arm_text(arm, written) for arm in written["arms"]) + "]"
    if key == "window":
        return window_text(written["rounds"], written["window"])
    if key == "unit":
        return repr(written.get(key, ""))
    if key in ("features", "arm_features", "guardrails"):
        return str(written.get(key, "none"))
    return str(written[key])


def _arm_text(arm: Sequence[Any], written: Mapping[str, Any]) -> str:
    """Return an arm of a stored configuration as text for people."""
    name, cap, _, *about = arm
    known = [f"{Features.read(written['arm_features']).read_back_bytes(bytes.fromhex(one))}" for one in about]
    return f"{name} ({', '.join([f'cap {cap:.15g}', *known])})"


def window_of(window: int | str | timedelta) -> tuple[bool, float]:
    """Return whether a window counts rounds, and how long it is: in rounds or in seconds.

    Examples
    --------
    >>> window_of(80), window_of("12h")
    ((True, 80.0), (False, 43200.0))
    """
    if not isinstance(window, str | timedelta):
        return True, float(whole("window", window, 1, 2**31))
    try:
        seconds = parse_duration(window)
    except InputError:
        seconds = math.inf
    if seconds >= 1e10:
        raise InputError(
            "window must be a number of rounds, such as 80, or a time, such as '60d' (or s, m, h, w, y), "
            f"not {window!r}"
        )
    return False, seconds


def window_text(rounds: bool, length: float) -> str:
    """Return a window as text for people: the reverse of `window_of`.

    Examples
    --------
    >>> window_text(True, 80.0), window_text(False, 43200.0), window_text(False, 80.0)
    ('80 rounds', '12h', '80s')
    """
    if rounds:
        return f"{length:g} round{'s' if length != 1 else ''}"
    return exact_duration(length)


def name_of(what: str, name: Any) -> str:
    """Return a name or a key, if it is one that every database takes."""
    if isinstance(name, str) and 0 < len(name) <= NAME_MOST and "\0" not in name:
        if name.isascii():  # other text may hold half a character (a lone surrogate), which no database takes
            return name
        try:
            name.encode()
            return name
        except UnicodeEncodeError:
            pass
    shown = repr(name) if not isinstance(name, str) or len(name) < 40 else f"{len(name)} characters"
    raise InputError(f"the name or key of {what} must be text of 1 to {NAME_MOST} characters, not {shown}")


def unit_of(unit: Any) -> str:
    """Check the unit of a bandit's reward.

    Examples
    --------
    >>> unit_of("lectures")
    'lectures'
    """
    if isinstance(unit, str) and len(unit) <= UNIT_MOST and (unit.isprintable() or not unit):
        return unit
    raise InputError(f"unit must be printable text of up to {UNIT_MOST} characters, not {unit!r}")


def cap_of(cap: Any) -> float:
    """Return an arm's cap as a float, if it is a number that can be computed with."""
    try:
        number = float(cap)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not CAP_LEAST <= number <= CAP_MOST:  # beyond, the square of a small share of a cap is 0 or infinite
        raise InputError(f"a cap must be a number from {CAP_LEAST:g} to {CAP_MOST:g}, not {cap!r}")
    return number
