"""What a fit found, and `problem.json`, the file that keeps it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accrual.core.context_value import Winner
from accrual.core.errors import InputError, whole
from accrual.core.files import replacing
from accrual.core.groups import group_of
from accrual.core.interval import Interval
from accrual.fit.json_fields import read_fields
from accrual.laws import EmpiricalLaw
from accrual.problem import WINDOW_MOST, Problem

if TYPE_CHECKING:
    from accrual.policy.age_prior import AgePrior

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FORMAT = "accrual problem"
VERSION = 1
_MOST = 1 << 30  # bytes of a file that is read


@dataclass(frozen=True)
class Shares:
    """A spread over the groups of the window, or another list of shares, with 95 % intervals."""

    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Cap:
    """The greatest total of one decision of an arm: it cannot be learned from a log.

    Attributes
    ----------
    used : float
        What a problem is made with: the user's own if there is one, otherwise `observed`.
    observed : float
        The largest total of a closed decision.
    quantile : float
        The total that 99.9 % of closed decisions do not exceed.
    given : float or None
        The user's own.
    """

    used: float
    observed: float
    quantile: float
    given: float | None


@dataclass(frozen=True)
class Sample:
    """Closed decisions of an arm, with the true ages and values of their pieces.

    Attributes
    ----------
    scale : float
        What to multiply values by, so that the sample's mean is the arm's.
    lengths : ndarray
        How many pieces each decision has; 0 for one that paid nothing.
    ages, values : ndarray
        Of all pieces, decision after decision.
    """

    scale: float
    lengths: Ints = field(repr=False)
    ages: Floats = field(repr=False)
    values: Floats = field(repr=False)

    def rows(self, window: float, groups: int) -> Floats:
        """Add up what each decision paid in each group of the window, scaled: decisions x groups."""
        rows = np.zeros((len(self.lengths), groups))
        decision = np.repeat(np.arange(len(self.lengths)), self.lengths)
        group = np.minimum(group_of(self.ages, window, groups), groups - 1)
        np.add.at(rows, (decision, group), self.values * self.scale)
        return rows


@dataclass(frozen=True)
class Arm:
    """What is known of one arm; `mean`, `spread` and `cap` are None where no decision has closed."""

    name: str
    decisions: int
    closed: int
    mean: Interval | None
    cap: Cap | None
    spread: Shares | None
    sample: Sample = field(repr=False)


@dataclass(frozen=True)
class Recommended:
    """A window and a number of groups.

    Attributes
    ----------
    window : Interval
        The age by which 99 % has come of the reward that comes within `watched`.
    watched : float
        The age up to which the log shows anything.
    beyond : Interval
        The share of all reward that may come after that, if reward goes on fading as it did.
    faded : bool
        Whether the log shows reward fading out; if not, a longer log is needed.
    groups : int
    """

    window: Interval
    watched: float
    beyond: Interval
    faded: bool
    groups: int


@dataclass(frozen=True)
class Finding:
    """A question, the test that answers it, and whether the answer is yes: p is below 0.05.

    `statistic` and `p` are None where the log cannot tell.
    """

    question: str
    test: str
    statistic: float | None
    p: float | None
    yes: bool


@dataclass(frozen=True)
class Personalising:
    """What choosing by context would be worth; docs/contexts.md says how it is found.

    Attributes
    ----------
    value : Interval or None
        By how much a decision would pay more if its arm were chosen by a linear model of the contexts than if
        all got the arm that pays best on average; None where the log cannot tell (`reason`).
    pays : Interval or None
        What a decision of that one arm pays.
    single : str
        That arm; several where folds of the log disagree on it.
    effective : float
        How many decisions of equal weight the figure rests on.
    reason : str
        Why the log cannot tell.
    winners : sequence of Winner
        For whom another arm pays more.
    features : sequence of str
        What kind of feature each column was taken for.
    assumed : str
        What is assumed of the log's chances of choosing.
    decisions : int
    """

    value: Interval | None
    pays: Interval | None
    single: str
    effective: float
    reason: str
    winners: Sequence[Winner]
    features: Sequence[str]
    assumed: str
    decisions: int


@dataclass(frozen=True, repr=False)
class Fitted:
    """What `fit_log` found.

    Attributes
    ----------
    window : float
        In the log's unit of time (`unit`): seconds, or its own numbers.
    groups : int
    rate : float
        Decisions per unit of time.
    log : mapping
        What was found in the log: counts, first and end, columns, notes.
    open : int
        Decisions whose window had not closed at the log's end.
    late : int
        Pieces that came after the window; left out.
    spread : Shares
        Of all arms together.
    arrived : mapping
        ``ages``, and the share of the reward that has come by them (``value``, ``low``, ``high``).
    arms : sequence of Arm
    recommended : Recommended
    findings : sequence of Finding
    warnings : sequence of str
    contexts : Personalising or None
        What choosing by context would be worth; None where no contexts were told.
    """

    unit: str
    window: float
    groups: int
    rate: float
    open: int
    late: int
    log: Mapping[str, Any]
    spread: Shares
    arrived: Mapping[str, Sequence[float]]
    recommended: Recommended
    findings: Sequence[Finding]
    warnings: Sequence[str]
    arms: Sequence[Arm]
    contexts: Personalising | None = None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Fitted:
        """Read and check a `problem.json`."""
        return load(path)

    def __repr__(self) -> str:
        unit = " s" if self.unit == "seconds" else ""
        log = f"{self.log['decisions']:,} decisions, {self.log['pieces']:,} pieces"
        return f"Fitted({len(self.arms)} arms, {log}, window {self.window:g}{unit} in {self.groups} groups)"

    @property
    def known(self) -> tuple[Arm, ...]:
        """The arms whose mean is known."""
        return tuple(arm for arm in self.arms if arm.mean is not None)

    def rounds(self, groups: int | None = None) -> int:
        """Give the window in rounds, one decision to a round: a multiple of the number of groups."""
        groups = groups or self.groups
        return max(groups, groups * round(self.window * self.rate / groups))

    def to_problem(self, window: int | None = None, groups: int | None = None) -> Problem:
        """Make a problem whose decisions pay what logged ones did.

        Where values are negative, what a decision paid back is taken off all it was paid, in
        proportion, and a total below 0 is 0; the arms' means are kept as far as that allows.

        Parameters
        ----------
        window : int, optional
            In rounds; `rounds` unless given.
        groups : int, optional
            As fitted unless given; must divide the window.
        """
        groups = self.groups if groups is None else whole("groups", groups, 1)
        window = self.rounds(groups) if window is None else window
        if window > WINDOW_MOST:
            raise InputError(
                f"the window of {self.window:g} is {window:,} rounds at {self.rate:g} decisions per unit of "
                f"time; give a window of at most {WINDOW_MOST:,} rounds"
            )
        caps, laws = [], []
        for arm in self.known:
            assert arm.cap is not None
            rows = _settled(arm.sample.rows(self.window, groups))
            cap = max(arm.cap.used, float(rows.sum(axis=1).max()))
            caps.append(cap)
            laws.append(EmpiricalLaw(rows / cap))
        return Problem(caps, window, groups, laws, arms=[arm.name for arm in self.known])

    def prior(
        self, cap: float | None = None, window: float | None = None, without: Collection[str] = ()
    ) -> AgePrior | None:
        """Make the policy for new arms: AgePrior, which begins with what the log's arms were like.

        A new arm is expected to pay the share of its cap that these paid of theirs.

        Parameters
        ----------
        cap : float, optional
            Of arms whose cap was not given to the fit. Without it they are left out: the largest total that
            was seen is no cap to compare with.
        window : float, optional
            The new arms', at most the fit's own, which it is unless given.
        without : collection of str
            Arms to leave out.

        Returns
        -------
        AgePrior or None
            None where fewer than two arms are left, or none has paid anything.
        """
        from accrual.fit.new_arms import policy_for_new_arms

        return policy_for_new_arms(self, cap, self.window if window is None else window, without)

    def summary(self) -> str:
        """Say in words what was found: what is odd, the conclusions, and what they rest on."""
        from accrual.fit.summary import summary

        return summary(self)

    def table(self) -> Any:
        """Give the arms as a pandas frame: decisions, closed, mean (low, high), totals, cap."""
        from accrual.fit.summary import frame

        return frame(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the spread and the course of arrival; write the picture to `path` if there is one."""
        from accrual.fit.plot import draw

        return draw(self, path)

    def _repr_html_(self) -> str:
        from accrual.fit.summary import as_html

        return as_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `problem.json`."""
        with replacing(path) as partial:
            partial.write_text(_written(self), encoding="utf-8")


def _settled(rows: Floats) -> Floats:
    """Remove negative pay from rows: what is paid back is taken off what was paid."""
    if (rows >= 0.0).all():
        return rows
    paid = np.maximum(rows, 0.0)
    before = paid.sum(axis=1, keepdims=True)
    after = np.maximum(rows.sum(axis=1, keepdims=True), 0.0)
    return np.asarray(np.divide(paid * after, before, out=np.zeros_like(paid), where=before > 0.0))


def _written(fitted: Fitted) -> str:
    """Write the file's text: an object's fields one to a line, a list of numbers on one line."""
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    data |= _plain(fitted)
    samples = [{"arm": arm["name"]} | arm.pop("sample") for arm in data["arms"]]
    return _lines(data | {"samples": samples}, "") + "\n"


def _plain(value: Any) -> Any:
    """Convert a value to what JSON has; floats to ten digits, which is more than a log can tell."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.10g}")
    return value


def _lines(value: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = (f"{inner}{json.dumps(key)}: {_lines(one, inner)}" for key, one in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return "[\n" + ",\n".join(inner + _lines(one, inner) for one in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def load(path: str | os.PathLike[str]) -> Fitted:
    """Read and check a `problem.json`."""
    try:
        if Path(path).stat().st_size > _MOST:
            raise InputError(f"{path}: larger than {_MOST >> 20} MiB; is it a problem.json?")
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    return _checked(data, str(path))


def _checked(data: Any, path: str) -> Fitted:
    """Check the JSON value of a file and make a `Fitted` of it."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path}: not a problem.json: its format must be {FORMAT!r}")
    if data.get("version") != VERSION:
        raise InputError(
            f"{path}: version {data.get('version')!r} of the format; this reads version {VERSION}"
        )
    given = {key: value for key, value in data.items() if key not in ("format", "version", "samples")}
    samples = read_fields(list[dict[str, Any]], data.get("samples"), path, "samples")
    arms = read_fields(list[dict[str, Any]], data.get("arms"), path, "arms")
    owners = [sample.pop("arm", None) for sample in samples]
    if owners != [arm.get("name") for arm in arms]:
        raise InputError(f"{path}: samples: one for each arm is needed, in their order and with its name")
    given["arms"] = [{**arm, "sample": sample} for arm, sample in zip(arms, samples, strict=True)]
    fitted: Fitted = read_fields(Fitted, {"contexts": None} | given, path)
    for problem in _disagreements(fitted):
        raise InputError(f"{path}: {problem}")
    return fitted


def _disagreements(fitted: Fitted) -> Iterator[str]:
    if fitted.window <= 0 or fitted.rate <= 0 or fitted.groups < 1:
        yield "window, rate and groups must be above 0"
    names = [arm.name for arm in fitted.arms]
    if len(set(names)) != len(names) or len(fitted.known) < 2:
        yield "arms: at least two of different names, with a mean, are needed"
    for name, shares in [
        ("spread", fitted.spread),
        *((f"arm {arm.name!r}", arm.spread) for arm in fitted.arms),
    ]:
        if shares and {len(shares.value), len(shares.low), len(shares.high)} != {fitted.groups}:
            yield f"{name}: a spread must have {fitted.groups} shares, as there are groups"
    lengths = {key: len(values) for key, values in fitted.arrived.items()}
    if set(lengths) != {"ages", "value", "low", "high"} or len(set(lengths.values())) != 1:
        yield "arrived: ages, value, low and high are needed, all of one length"
    for arm in fitted.known:
        yield from _sample_disagreements(f"samples of {arm.name!r}", arm.sample, fitted.window)
        if arm.cap is None or arm.cap.used <= 0:
            yield f"arm {arm.name!r}: a cap above 0 is needed"


def _sample_disagreements(name: str, sample: Sample, window: float) -> Iterator[str]:
    if len(sample.lengths) == 0:
        yield f"{name}: at least one decision is needed"
    if not sample.lengths.sum() == len(sample.ages) == len(sample.values):
        yield f"{name}: ages and values must be as many as lengths add up to"
    if ((sample.ages < 0) | (sample.ages >= window)).any():
        yield f"{name}: ages must lie within the window"
    if sample.scale < 0:
        yield f"{name}: scale must not be negative"
