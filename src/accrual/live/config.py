"""What a bandit is made with: checked, written down, and compared when the bandit is opened again."""

from __future__ import annotations

import dataclasses
import inspect
import math
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar
from unicodedata import category

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.durations import exact_duration, parse_duration
from accrual.core.errors import InputError, as_number, divides, flag, only, whole
from accrual.core.features import Features
from accrual.core.random import RUN_MOST, SEED_MOST
from accrual.live.archive import refuse_archived
from accrual.live.contexts import AboutArms, about_of_each
from accrual.live.ledger import Ledger
from accrual.live.watch import REWARD, STREAM_KINDS, STREAMS_MOST, Guardrail, Stream, watchers_of
from accrual.policies.age_prior import AgePrior
from accrual.policies.base import Policy
from accrual.policies.catalog import DEFAULT, DEFAULT_WITH_FEATURES, as_policy, parse, policy_text
from accrual.policies.floor import Limits, limits_of
from accrual.store.base import AddArm, BanditRow, Store, amended

STEPS = 1000  # into which a window of time is divided for the policy, unless `groups` says otherwise
NAME_MOST = 200  # characters
UNIT_MOST = 40  # characters
CAP_LEAST, CAP_MOST = 1e-50, 1e50


_Function = TypeVar("_Function", bound=Callable[..., Any])
Given = Mapping[str, Any]  # the options that are set
ClosedDecisions = Mapping[str, Sequence[Sequence[tuple[float, float]]]]  # by arm: (age, value) of pieces


class SampledDecisions(Protocol):
    """Decisions of one arm: how many pieces each has, and the ages and values of all pieces in order."""

    @property
    def lengths(self) -> Ints: ...
    @property
    def ages(self) -> Floats: ...
    @property
    def values(self) -> Floats: ...


class FittedArm(Protocol):
    """An arm of a fit."""

    @property
    def name(self) -> str: ...
    @property
    def sample(self) -> SampledDecisions: ...


class Fit(Protocol):
    """The part of the result of `accrual.fit` that a prior needs."""

    @property
    def unit(self) -> str: ...
    @property
    def window(self) -> float: ...
    @property
    def arms(self) -> Sequence[FittedArm]: ...
    def prior(
        self, cap: float | None = None, window: float | None = None, without: Collection[str] = ()
    ) -> AgePrior | None: ...


class OpenOptions(TypedDict, total=False):
    """Options of a bandit that may also be given when it is opened again.

    clock : callable
        Returns the time in seconds. Unless given, it is the store's clock: that of this machine, or of the
        PostgreSQL server. While the store's clock is wrong by a leap of more than an hour, nothing is stored.
        A bandit that counts rounds needs no clock.
    skew : float
        By how many seconds a stated time may be ahead of the clock; 5 unless given.
    floor : float
        The share of decisions whose arm is drawn at random among all arms in play, such as 0.05. With a floor
        propensities are known, so there can be verdicts. 0 unless given. A bandit that was made without a
        floor may be given one when it is opened again; then everyone who opens it must give the same floor.
    shares : mapping
        From an arm's name to the least and the greatest share of decisions that it gets, such as
        ``{"jazz": (0.1, 0.6)}``.
    """

    clock: Callable[[], float] | None
    skew: float | None
    floor: float | None
    shares: Mapping[str, Sequence[float]] | None


class Options(OpenOptions, total=False):
    """Options of a bandit that are seldom set, beside those that `OpenOptions` describes.

    seed : int
        For policies that draw. If none is given, one is drawn and stored with the bandit.
    allow_negative : bool
        Whether pieces may be negative: refunds, and corrections of earlier pieces.
    unit : str
        What one unit of reward is, for people: "lectures", or "€". The service's page shows it.
    features : mapping
        The features of contexts, such as ``{"country": ["de", "us"], "new": bool, "visits": (0, 50)}``: see
        `accrual.core.features`. The policy is then AgeLinTS, unless one is given.
    arm_features : mapping
        The features of arms, declared like `features`: a course's subject and length, for example. New arms
        then start from what similar arms taught. Only for AgePrior.
    about : mapping
        From an arm's name to the values of its features, such as
        ``{"intro": {"subject": "art", "hours": 3}}``. A feature that is left out is not known.
    streams : mapping
        Streams of pieces beside the reward, which the policy does not learn from: from a name to the settings
        of a stream, such as ``{"refunds": Guardrail(margin=0.02)}`` or ``{"refunds": {"margin": 0.02}}``. A
        guardrail is a stream of which no arm may have much more than another. Streams cannot be changed
        later.
    prior : fit or mapping
        What an old log says about arms: the result of `accrual.fit`, or for each arm its closed decisions,
        each a list of (age in seconds, value). They are stored as the bandit's first decisions, marked as
        imported. The policy learns from them; a verdict does not. At most 20,000 are taken, evenly. From arms
        of a fit that the bandit does not have, AgePrior learns what new arms are like. A prior is for a new
        bandit whose window is a time; a bandit that was made with a prior goes on where it was.
    """

    seed: int | None
    allow_negative: bool | None
    unit: str | None
    features: Mapping[str, Any] | None
    arm_features: Mapping[str, Any] | None
    about: Mapping[str, Mapping[str, Any]] | None
    streams: Mapping[str, Stream | Mapping[str, Any]] | None
    prior: Fit | ClosedDecisions | None


def shows(kind: type[Any], *bases: type[Any]) -> Callable[[_Function], _Function]:
    """Let `help` and `inspect` show the options that a function takes as ``**options: Unpack[kind]``.

    Type checkers read them from `kind`, a typed dictionary that extends `bases`. So there is one list of
    options, with one text.
    """

    def show(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint.__forward_arg__
            )
            for name, hint in kind.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        texts = [inspect.getdoc(one) for one in (function, kind, *bases)]
        function.__doc__ = "\n\n".join(filter(None, texts))
        return function

    return show


def given_options(options: Mapping[str, Any], kind: type[Any] = Options) -> Given:
    """Return the options that are set: one that is None counts as not given, as null does over HTTP."""
    where = "Bandit" if kind is Options else "Bandit.open"
    own = ("groups", "policy", "store", "name") if kind is Options else ()
    only(f"option of {where}", options, (*kind.__annotations__, *own))
    return {name: value for name, value in options.items() if value is not None}


class Config(NamedTuple):
    """All that the fold depends on, beside the events."""

    arms: tuple[AddArm, ...]  # the first arms; arms that are added later are events
    rounds: bool
    window: float  # rounds, or seconds
    groups: int
    policy: Policy
    seed: int
    allow_negative: bool
    unit: str = ""  # of the reward, for people
    limits: Limits = Limits()
    features: Features | None = None  # of contexts
    streams: tuple[tuple[str, Stream], ...] = ()  # by name; in the log a stream is its place here
    imported: int = 0  # how many of the first decisions come from a prior
    old_arms: bool = False  # whether the policy's history comes from a prior
    arm_features: Features | None = None  # of arms

    def ledger(self, policy: Policy | None = None) -> Ledger:
        """Return a new ledger of the first arms, with this policy or another."""
        policy = policy or self.policy
        about = None
        if self.arm_features is not None and policy.takes_about:
            about = AboutArms(self.arm_features, tuple(arm.about for arm in self.arms))
        ledger = Ledger(
            policy,
            caps=[arm.cap for arm in self.arms],
            window=int(self.window) if self.rounds else self.groups,
            seed=self.seed,
            windows=[arm.window for arm in self.arms],
            span=self.window,
            limits=self.limits,
            allow_negative=self.allow_negative,
            features=self.features if policy is self.policy else None,
            streams=len(self.streams),
            watchers=watchers_of(policy.contextual, self.imported, self.streams),
            about=about,
        )
        ledger.answer_at_once([stream.kind for _, stream in self.streams])
        return ledger

    def own_window(self, window: float | str | timedelta | None) -> float:
        """Return an arm's own window, in rounds or seconds like the bandit's; for None, the bandit's."""
        if window is None:
            return self.window
        rounds, own = window_of(window)  # type: ignore[arg-type]
        if rounds != self.rounds:
            raise InputError(f"the bandit counts {'rounds' if self.rounds else 'time'}, unlike {window!r}")
        return own

    def written(self) -> dict[str, Any]:
        """Return the configuration as a store keeps it."""
        text = policy_text(self.policy)
        written: dict[str, Any] = {
            "arms": [_arm_written(arm) for arm in self.arms],
            "rounds": self.rounds,
            "window": self.window,
            "groups": self.groups,
            "policy": text or repr(self.policy),
            "own_policy": text is None,
            "seed": self.seed,
            "allow_negative": self.allow_negative,
        }
        if self.limits.any:
            written |= {"floor": self.limits.floor, "shares": [list(bound) for bound in self.limits.bounds]}
        others = {
            "unit": self.unit or None,
            "features": None if self.features is None else self.features.written(),
            "arm_features": None if self.arm_features is None else self.arm_features.written(),
            "streams": [stream.written(name) for name, stream in self.streams] or None,
            "imported": self.imported or None,
            "old_arms": self.old_arms or None,
        }
        return amended(written, others)


def given_config(
    arms: Sequence[str] | Mapping[str, float],
    window: int | str | timedelta,
    groups: int | None,
    policy: Policy | str | None,
    name: str,
    options: Given,
) -> Config:
    """Check what a user gives for a new bandit, and return it as a configuration."""
    _check_times(options)
    rounds, length = window_of(window)
    if groups is not None:
        groups = whole("groups", groups, 1)
        if rounds:
            divides("groups", groups, int(length))
    if policy is not None:
        policy = as_policy(policy)
    features = options.get("features")
    config = Config(
        arms=tuple(
            AddArm(arm, cap_of(cap, f"the cap of arm {arm!r}"), length) for arm, cap in _caps(arms).items()
        ),
        rounds=rounds,
        window=length,
        groups=groups or (int(length) if rounds else STEPS),
        policy=policy or (DEFAULT if features is None else DEFAULT_WITH_FEATURES),
        seed=whole("seed", options.get("seed", secrets.randbelow(RUN_MOST)), 0, SEED_MOST),
        allow_negative=flag("allow_negative", options.get("allow_negative", False)),
        unit=unit_of(options.get("unit", "")),
        features=None if features is None else Features(features),
    )
    config.ledger()  # the policy may refuse these caps or this window
    config = _with_streams(with_limits(config, options, name), options.get("streams"))
    name_of("a bandit", name)
    return _with_about(config, options)


def _check_times(options: Given) -> None:
    """Refuse a clock that cannot be called, and a skew that is not a number of seconds."""
    if "clock" in options and not callable(options["clock"]):
        raise InputError(
            f"clock must be a function that returns the time in seconds, not {options['clock']!r}"
        )
    skew = options.get("skew", 0.0)
    if not 0 <= as_number(skew) < math.inf:
        raise InputError(f"skew must be a number of seconds, not {skew!r}")


def _caps(arms: Sequence[str] | Mapping[str, float]) -> Mapping[str, float]:
    """Check the names of arms; return their caps by name, in order."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Collection) or not len(arms):
        raise InputError(
            "arms must be names, such as ['jazz', 'rock'], or names with their caps, such as "
            f"{{'jazz': 40, 'rock': 40}}, not {arms!r}"
        )
    if isinstance(arms, Set):
        raise InputError("arms must be a list or a mapping, whose order is kept; a set has none")
    for name in arms:
        name_of("an arm", name)
    caps = arms if isinstance(arms, Mapping) else dict.fromkeys(arms, 1.0)
    if len(caps) < len(arms):
        twice = next(name for name in caps if list(arms).count(name) > 1)
        raise InputError(f"arms must have different names; {twice!r} is there twice")
    return caps


def with_limits(config: Config, options: Given, name: str) -> Config:
    """Return a configuration with the given floor and shares, unless it has others of its own."""
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


def _with_streams(config: Config, given: Mapping[str, Stream | Mapping[str, Any]] | None) -> Config:
    """Return a configuration, whose floor is set, with the streams that a user gives."""
    if not given:
        return config
    example = "'refunds': {'margin': 0.02}"
    if not isinstance(given, Mapping) or len(given) > STREAMS_MOST:
        raise InputError(
            f"streams must be names with their settings, at most {STREAMS_MOST}, such as {{{example}}}, "
            f"not {given!r}"
        )
    floored = config.limits.shares(np.ones(len(config.arms), np.bool_)).least.min() > 0.0
    streams = []
    for name, settings in given.items():
        if name_of("a stream", name) == REWARD:
            raise InputError(f"every bandit has a stream {REWARD!r}; give this one another name")
        stream = _stream_of(settings) if isinstance(settings, Mapping) else settings
        if not isinstance(stream, Stream):
            raise InputError(
                f"streams must be names with their settings, such as {example}, not {name!r}: {stream!r}"
            )
        if stream.needs_floor and not floored:
            raise InputError(
                f"a {stream.kind} needs a floor, so that every arm can be judged: give floor=0.05, "
                "for example"
            )
        sound = dataclasses.replace(stream, cap=cap_of(stream.cap, f"the cap of stream {name!r}"))
        streams.append((name, sound.checked(name)))
    return config._replace(streams=tuple(streams))


def _with_about(config: Config, options: Given) -> Config:
    """Return a configuration with the features of arms that a user gives."""
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


def read_config(written: Mapping[str, Any], policy: Policy | None, name: str) -> Config:
    """Return a stored configuration; `policy` must be given if it is not in the catalog."""
    if written["own_policy"]:
        if policy is None:
            raise InputError(
                f"the bandit {name!r} has a policy of its own; pass it: policy={written['policy']}"
            )
        policy = as_policy(policy)
    else:
        policy = parse(written["policy"])
    return Config(
        arms=tuple(arm_read(arm) for arm in written["arms"]),
        rounds=written["rounds"],
        window=written["window"],
        groups=written["groups"],
        policy=policy,
        seed=written["seed"],
        allow_negative=written["allow_negative"],
        unit=written.get("unit", ""),
        limits=limits_written(written),
        features=Features(written["features"]) if "features" in written else None,
        streams=tuple(_stream_read(**stream) for stream in written.get("streams", ())),
        imported=written.get("imported", 0),
        old_arms=written.get("old_arms", False),
        arm_features=Features(written["arm_features"]) if "arm_features" in written else None,
    )


def _stream_of(written: Mapping[str, Any]) -> Stream:
    """Return a stream whose settings are given as a mapping: by a user, or by a stored configuration."""
    settings = dict(written)
    kind = settings.pop("kind", Guardrail.kind)
    only("kind of stream", (kind,), STREAM_KINDS)
    fields = [field.name for field in dataclasses.fields(STREAM_KINDS[kind])]
    only(f"setting of a {kind}", settings, ("kind", *fields))
    return STREAM_KINDS[kind](**settings)


def _stream_read(name: str, **written: Any) -> tuple[str, Stream]:
    """Return a stream of a stored configuration."""
    return name, _stream_of(written)


def limits_written(written: Mapping[str, Any]) -> Limits:
    """Return the floor and the shares of a stored configuration."""
    return Limits(written.get("floor", 0.0), tuple((low, high) for low, high in written.get("shares", ())))


def _arm_written(arm: AddArm) -> list[Any]:
    """Return an arm as a stored configuration keeps it; its features, if it has any, come last."""
    about = [] if arm.about is None else [arm.about.hex()]
    return [arm.name, arm.cap, arm.window, *about]


def arm_read(written: Sequence[Any]) -> AddArm:
    """Return an arm of a stored configuration."""
    name, cap, window, *about = written
    return AddArm(name, cap, window, *map(bytes.fromhex, about))


def stored_config(store: Store, row: BanditRow, given: Config, options: Given) -> Config:
    """Return the configuration of a bandit in the store; raise an error if it differs from the given one."""
    name = row.name
    refuse_archived(row)
    if "prior" in options and not (row.config.get("imported") or row.config.get("old_arms")):
        raise InputError(f"the bandit {name!r} was made without a prior, and cannot get one later")
    if row.config != given.written():
        if "seed" not in options:
            given = given._replace(seed=row.config["seed"])
        playing = [
            AddArm(arm.name, arm.cap, arm.window, arm.about)
            for arm in store.arms(row.number)
            if not arm.retired
        ]
        _compare(name, given, row.config, playing)
        given = with_limits(read_config(row.config, given.policy, name), options, name)
    return given


_MUST_AGREE = (
    "arms", "window", "groups", "policy", "seed", "allow_negative", "unit", "features", "arm_features",
    "streams",
)  # fmt: skip


def _compare(name: str, given: Config, written: Mapping[str, Any], playing: Sequence[AddArm]) -> None:
    """Raise an error that names what differs from the stored bandit, whose arms in play are given."""
    wanted = given.written()
    if list(given.arms) == list(playing):  # arms may have been added or retired since
        wanted["arms"] = written["arms"]
    if not written["own_policy"] and _same_policy(given.policy, written):
        wanted["policy"] = written["policy"]
    differing = [
        f"{key} is {_short(key, written)}, not {_short(key, wanted)}"
        for key in _MUST_AGREE
        if _short(key, wanted) != _short(key, written)
    ]
    if differing:
        raise InputError(
            f"there is a bandit {name!r} in this store already, and it differs: {'; '.join(differing)}; "
            f"take another name, or open it as it is: Bandit.open(store, {name!r})"
        )


def _same_policy(given: Policy, written: Mapping[str, Any]) -> bool:
    """Return whether a policy is the stored one, apart from what the stored one has learned from a prior."""
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
    if key in ("features", "arm_features", "streams"):
        return str(written.get(key, "none"))
    return str(written[key])


def _arm_text(arm: Sequence[Any], written: Mapping[str, Any]) -> str:
    """Return an arm of a stored configuration as text for people."""
    name, cap, _, *about = arm
    known = [f"{Features(written['arm_features']).read_back_bytes(bytes.fromhex(one))}" for one in about]
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
            "window must be a number of rounds, such as 80, or a time, such as '60d' (or s, min, h, w, y), "
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
    """Return a name; refuse one that a person cannot read in a log, or that no database takes."""
    odd = {"Cc", "Cs"}  # control characters, and halves of characters (lone surrogates)
    if isinstance(name, str) and 0 < len(name) <= NAME_MOST and odd.isdisjoint(map(category, name)):
        return name
    shown = repr(name) if not isinstance(name, str) or len(name) < 40 else f"{len(name)} characters"
    raise InputError(
        f"the name of {what} must be text of 1 to {NAME_MOST} characters, none of them a control character, "
        f"not {shown}"
    )


def unit_of(unit: Any) -> str:
    """Return the unit of a bandit's reward; raise an error if it is too long or not printable.

    Examples
    --------
    >>> unit_of("lectures")
    'lectures'
    """
    if isinstance(unit, str) and len(unit) <= UNIT_MOST and (unit.isprintable() or not unit):
        return unit
    raise InputError(f"unit must be printable text of up to {UNIT_MOST} characters, not {unit!r}")


def cap_of(cap: Any, what: str = "a cap") -> float:
    """Return a cap as a float; raise an error if it is not a number, or is too small or too large."""
    if not CAP_LEAST <= as_number(cap) <= CAP_MOST:  # beyond, squares of parts of it are 0 or infinite
        raise InputError(f"{what} must be a number from {CAP_LEAST:g} to {CAP_MOST:g}, not {cap!r}")
    return float(cap)
