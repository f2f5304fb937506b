"""Fit a log: estimate its spread, means, window and caps, and test two questions about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Unpack

import numpy as np
from scipy import special

from accrual.core.arrays import Floats
from accrual.core.durations import parse_length, show_length
from accrual.core.errors import InputError, unknown
from accrual.core.interval import Interval
from accrual.logs.context_worth import personalise
from accrual.logs.estimate import (
    FEW_PAYING,
    ArrivalCurve,
    EvenGrid,
    FinalPass,
    FineGrid,
    GroupEstimate,
    arm_mean,
    count_closed,
    course_grid,
    cut_window,
    draw_samples,
    final_pass,
    first_guess,
    longest_followed,
    recommend,
    sample_size,
    trace_curve,
    watched,
)
from accrual.logs.fitted import Arm, Cap, Curve, Finding, Fitted, LargeTotals, Shares, to_ten_digits
from accrual.logs.log import Log
from accrual.logs.open_log import open_log
from accrual.logs.read import ReadingOptions, context_oddities

LEVEL = 0.05  # of the tests
_QUANTILE = 0.999
_NOTHING = 2.512  # the 97.5 % point of gamma(1/2): payments that may be behind none seen
_SHIFTED = 0.02
_VALUE_MOST = 1e60
_FEW = 60  # decisions, below which the mean of an arm that a bandit gave up is mostly bad luck
_NAMED = 5
_ROWS_MOST = 10  # of a table of the spread
FEW_HELD = "in 80 to 99 %"  # by benchmarks/fit_coverage.py --totals
HEAVY_HELD = "in 50 to 99 % of simulated logs"  # by benchmarks/fit_coverage.py --tails
FEW_CLUSTERS = 30  # by benchmarks/fit_coverage.py --clusters
_CAPPED_BY = 20  # decisions that the suggested cap would cap, about: none of them makes the mean alone


def fit(
    decisions: Any,
    pieces: Any = None,
    columns: Mapping[str, str] | None = None,
    window: float | str | None = None,
    groups: int | None = None,
    cap: float | Mapping[str, float] | None = None,
    uniform: bool = False,
    **options: Unpack[ReadingOptions],
) -> Fitted:
    """Estimate from a log how its reward arrives.

    Parameters
    ----------
    decisions : path, URL or data frame
        The decisions, or with no `pieces` everything in one table.
    pieces : path, URL or data frame, optional
    columns : mapping, optional
        Role to column name; other roles are guessed from the column names.
    window : number or text, optional
        Such as ``"60d"``; recommended unless given.
    groups : int, optional
        Equal parts of the window; recommended unless given.
    cap : number or mapping, optional
        The greatest total of one decision, for all arms or by name.
    uniform : bool
        Whether every arm had the same chance at each decision, for the worth of contexts (`context`).
    **options
        How the log is read: see `accrual.open_log`.

    Examples
    --------
    >>> import accrual as ac
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "id": range(60), "arm": ["a", "b"] * 30, "at": range(60), "value": [1.0, 2.0] * 30, "age": 3,
    ... })
    >>> fitted = ac.fit(rows, window=10, groups=2)
    >>> fitted
    Fitted(2 arms, 60 decisions, 60 pieces, window 10 in 2 groups)
    >>> fitted.spread.value
    (1.0, 0.0)
    """
    with open_log(decisions, pieces, columns, **options) as log:
        return fit_log(log, window, groups, cap, uniform)


def fit_log(
    log: Log,
    window: float | str | None = None,
    groups: int | None = None,
    cap: float | Mapping[str, float] | None = None,
    uniform: bool = False,
) -> Fitted:
    """Estimate how the reward of an opened log arrives.

    Decisions that are still open count as far as they were followed, and not as zero after that.

    Parameters
    ----------
    log : Log
        From `open_log`.
    window : number or text, optional
        In the log's unit, or with timestamps such as ``"30d"``. The age by which 99 % of the
        reward has come, rounded up, unless given; with windows in the log, the longest of them.
    groups : int, optional
        Equal parts of the window; a number is recommended unless given.
    cap : number or mapping, optional
        The greatest total of one decision, for all arms or by name. The largest seen unless given.
    uniform : bool
        Whether every arm had the same chance at each decision, for the worth of contexts and for what is
        said of arms that were chosen by what they had paid.

    Examples
    --------
    >>> import pandas as pd
    >>> from accrual.logs.open_log import open_log
    >>> decisions = pd.DataFrame({"id": range(60), "arm": ["a", "b"] * 30, "at": range(60)})
    >>> early = pd.DataFrame({"decision": range(60), "value": [1.0, 2.0] * 30, "age": 0})
    >>> late = pd.DataFrame({"decision": range(51), "value": 1.0, "age": 9})
    >>> with open_log(decisions, pd.concat([early, late])) as log:
    ...     fitted = fit_log(log, window=10, groups=2)
    >>> [round(arm.mean.value, 6) for arm in fitted.arms]
    [2.0, 3.0]
    >>> fitted.spread.value
    (0.6, 0.4)
    """
    given = None if window is None else parse_length(window, log.timestamps)
    length = given or log.longest_window or None
    fine = _curve(log, watched(log, length))
    bins, ends = course_grid(fine)
    length = length or first_guess(fine, log)
    cut = cut_window(fine, log, length, groups, _closed(log, length))
    length, parts = cut.window, cut.groups
    closed = _closed(log, length)
    size = sample_size(log)
    final = final_pass(log, EvenGrid(length, parts), bins, fine.largest, size)
    recommended, arrived = recommend(final.course.of(0), bins.edges, fine, ends, cut.recommended)
    pooled = final.pooled.of(0)
    if pooled.total <= 0.0:
        _refuse_empty(log, window, length)
    made, closed_by_arm = final.arms.completed.sum(axis=1), final.arms.closed
    clusters = final.arms.clusters
    known = {
        a: final.arms.of(a) for a in np.flatnonzero(closed_by_arm >= 2).tolist()
        if clusters is None or clusters[a] >= 2
    }  # fmt: skip
    if len(known) < 2:
        if clusters is not None and (closed_by_arm >= 2).sum() >= 2:
            raise InputError(
                f"fewer than two arms have decisions in two clusters of {log.cluster!r}; give a column "
                "with more values, such as the user's id"
            )
        raise InputError(
            "fewer than two arms have two decisions that were followed for the whole window of "
            f"{show_length(length, log.timestamps)}; give a shorter window or a longer log"
        )
    caps = _caps(log, final, cap)
    means: list[Interval | None] = [None] * len(log.arms)
    curves: dict[int, Curve] = {}
    for a, estimate in known.items():
        plain = log.least_propensity is None and closed_by_arm[a] == made[a] and clusters is None
        nothing = _never_paid(
            estimate, pooled, caps[a].given, clusters[a] if clusters is not None else np.inf
        )
        by_age = [
            nothing if value == 0.0 and not log.signed
            else arm_mean(
                float(value), final.arms.scores(a, g), caps[a].given or np.inf, log.signed, bool(plain)
            )
            for g, value in enumerate(np.cumsum(estimate.group_means))
        ]  # fmt: skip
        means[a] = replace(by_age[-1], value=float(final.arms.means[a]))
        curves[a] = Curve(
            tuple(one.value for one in by_age), tuple(one.low for one in by_age),
            tuple(one.high for one in by_age), tuple(estimate.seen.astype(int).tolist()),
        )  # fmt: skip
    samples = draw_samples(log, final.closed, length, [m.value if m else None for m in means], size)
    arms = [
        Arm(
            name=name,
            decisions=int(made[a]),
            closed=int(closed_by_arm[a]),
            clusters=None if clusters is None else int(clusters[a]),
            mean=mean,
            large_totals=_large_totals(final, a) if mean else None,
            cap=caps[a] if mean else None,
            spread=_shares(known[a], log.signed) if a in known and known[a].total > 0.0 else None,
            curve=curves.get(a),
            sample=samples[a],
        )
        for a, (name, mean) in enumerate(zip(log.arms, means, strict=True))
    ]
    contexts = None
    if log.contexts:
        contexts = personalise(log, length, uniform)
        log.odd += context_oddities(log)
    found = Fitted(
        unit="seconds" if log.timestamps else "the log's own",
        window=length,
        groups=parts,
        rate=log.rate,
        open=log.counts.decisions - closed,
        late=final.arms.late,
        log=log.describe(),
        spread=_shares(pooled, log.signed),
        arrived={"ages": tuple(bins.edges.tolist())}
        | {name: tuple(row.tolist()) for name, row in zip(("value", "low", "high"), arrived, strict=True)},
        recommended=recommended,
        findings=(arms_differ_in_speed(list(known.values())), groups_depend(list(known.values()))),
        cautions=tuple(_cautions(log, arms, final, uniform)),
        warnings=(*filter(None, [cut.note]), *_warnings(log, arms, pooled, known)),
        arms=tuple(arms),
        contexts=contexts,
    )
    rounded: Fitted = to_ten_digits(found)
    return replace(rounded, window=length)  # a window is chosen, not estimated


def _curve(log: Log, last: float) -> ArrivalCurve:
    """Trace how reward comes in up to an age; refuse values that cannot be computed with."""
    if log.largest_value > _VALUE_MOST:
        raise InputError(
            f"the log has values up to {log.largest_value:.3g}, too large to be squared; give them in a "
            f"larger unit, so that none is above {_VALUE_MOST:g}"
        )
    return trace_curve(log, FineGrid(last, log.resolution))


def _refuse_empty(log: Log, given: float | str | None, window: float) -> NoReturn:
    """Refuse a window within which nothing was paid."""
    first = log.query("SELECT min(age) FROM paid")[0][0]
    text = str(given).strip()
    hint = f" ({text} means {text} s here: write {text}d for days)" if log.timestamps and _bare(text) else ""
    raise InputError(
        f"no reward comes within the window of {show_length(window, log.timestamps)}{hint}; the first piece "
        f"comes at age {show_length(first, log.timestamps)}"
    )


def _bare(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _closed(log: Log, window: float) -> int:
    """Count the decisions that were followed for the whole window; refuse a log that has none."""
    count = count_closed(log, window)
    if not count:
        length, longest = (show_length(x, log.timestamps) for x in (window, longest_followed(log)))
        raise InputError(
            f"no closed decision: none was followed for the whole window of {length}, the longest for "
            f"{longest}; give a shorter window or a longer log"
        )
    return count


def _never_paid(
    estimate: GroupEstimate, pooled: GroupEstimate, cap: float | None, clusters: float
) -> Interval:
    """Allow for as much as a few payments of the usual size that may have been missed.

    The usual size is the mean square of all totals over their mean: 1 where decisions pay 1 or nothing.
    """
    variance = pooled.variance(np.ones((1, len(pooled.seen))))[0] * pooled.seen[0]
    size = variance / pooled.total + pooled.total
    count = min(float(estimate.seen[-1]), clusters)
    return Interval(0.0, 0.0, min(float(_NOTHING * size / count), cap or np.inf))


def _shares(estimate: GroupEstimate, signed: bool) -> Shares:
    groups = len(estimate.seen)
    each = -(-groups // _ROWS_MOST)
    last = np.minimum(np.arange(each, groups + each, each), groups)
    together = estimate.shares((np.arange(groups) // each == np.arange(len(last))[:, None]) * 1.0, signed)
    rows = tuple(map(tuple, np.stack([last, *together], axis=1).tolist()))
    value, low, high = (tuple(row.tolist()) for row in estimate.shares(signed=signed))
    return Shares(value, low, high, rows)


def _caps(log: Log, found: FinalPass, cap: float | Mapping[str, float] | None) -> list[Cap]:
    cap = log.cap_totals if cap is None else cap
    own = dict(cap) if isinstance(cap, Mapping) else {} if cap is None else dict.fromkeys(log.arms, cap)
    for name in own:
        if name not in log.arms:
            raise unknown("arm", name, log.arms)
    usual = float(max(found.arms.largest.max(), 1e-300))
    caps = []
    for a, name in enumerate(log.arms):
        _, totals, _ = found.closed.of(a)
        seen = max(float(found.arms.largest[a]), 0.0)
        quantile = float(np.quantile(totals, _QUANTILE)) if len(totals) else 0.0
        given = float(own[name]) if name in own else None
        if given is not None and not seen * (1.0 - 1e-9) <= given < np.inf:
            raise InputError(
                f"cap {given:g} of arm {name!r}: one of its decisions has paid {seen:g}; a cap is the most "
                f"that one can pay, so give {seen:g} or more, or none (cap_totals={given:g} would count no "
                "more of any decision)"
            )
        if given is not None and given <= 0.0:
            raise InputError(f"cap {given:g} of arm {name!r}: a cap must be above 0")
        largest = max(float(found.closed.largest[a]), 0.0)  # of the decisions that the quantile is of
        caps.append(Cap(given or seen or usual, largest, max(quantile, 0.0), given))
    return caps


def _cautions(log: Log, arms: list[Arm], found: FinalPass, uniform: bool) -> Iterator[str]:
    """Say which means and intervals may be wrong, and why."""
    yield from filter(None, [log.capped])
    yield from _heavy_totals(arms, found)
    few = [arm.name for arm in arms if arm.mean and arm.clusters is not None and arm.clusters < FEW_CLUSTERS]
    if few:
        yield (
            f"fewer than {FEW_CLUSTERS} clusters ({log.cluster}) have decisions of {_names(few)}: the 95 % "
            "intervals of these means hold less often"
        )
    if log.least_propensity is None and log.shares_changed and not uniform:
        few = [arm.name for arm in arms if arm.mean is not None and arm.decisions < _FEW]
        whose = f", above all of {_names(few)} with fewer than {_FEW} decisions" if few else ""
        yield (
            "the arms' shares of the decisions changed over time, and the log has no propensities: if arms "
            "were chosen by what they had paid, as a bandit does, those given up early were often just "
            f"unlucky; then their means below are too low, and intervals hold less often than in 95 %{whose}"
        )
    paying = found.arms.paying
    few = [arm.name for arm, count in zip(arms, paying, strict=True) if arm.mean and 0 < count < FEW_PAYING]
    if few:
        yield (
            f"fewer than {FEW_PAYING} decisions of {_names(few)} paid anything: if a few totals are much "
            f"larger than the rest, the 95 % intervals of these means hold less often ({FEW_HELD} on "
            "simulated logs)"
        )


def _large_totals(found: FinalPass, arm: int) -> LargeTotals:
    """Diagnose an arm's large totals; those of all arms together say what it may pay yet."""
    own = found.arms.large_totals(arm)
    return replace(own, heavy=own.heavy or found.pooled.large_totals(0).heavy)


def _heavy_totals(arms: list[Arm], found: FinalPass) -> Iterator[str]:
    """Say where means rest on a few large decisions, and what can be said instead."""
    heavy = [arm for a, arm in enumerate(arms) if arm.mean and found.arms.large_totals(a).heavy]
    together = found.pooled.large_totals(0)
    if not heavy and not together.heavy:
        return
    shares = [
        f"{arm.name} ({100 * arm.large_totals.largest:.0f} % in one decision, "
        f"{100 * arm.large_totals.ten:.0f} % in ten)"
        for arm in heavy if arm.large_totals
    ]  # fmt: skip
    rest = f"much of what was paid came from a few large decisions: of {_names(shares)}"
    if together.heavy:
        others = [arm.name for arm in arms if arm.mean and arm not in heavy]
        if not heavy:
            rest = f"{100 * together.ten:.0f} % of what all arms paid came from ten large decisions"
        elif others:
            rest += f"; and {_names(others)} may pay as much in decisions that the log does not have"
        rest += "; the spread and the window rest on them too"
    top = np.sort(np.concatenate([found.closed.of(a)[1] for a in range(len(arms))]))[-_CAPPED_BY:]
    cap = f"{top[0]:.2g}" if len(top) == _CAPPED_BY and top[0] > 0.0 else "NUMBER"
    yield (
        f"{rest}. If larger ones are still to come, means and intervals below are too low: intervals like "
        f"these held the true mean {HEAVY_HELD}. Means of totals capped at {cap}, say, are better known: "
        f"--cap-totals {cap}"
    )


def _names(arms: list[str]) -> str:
    more = f" and {len(arms) - _NAMED} more arms" if len(arms) > _NAMED else ""
    return ", ".join(arms[:_NAMED]) + more


def _warnings(log: Log, arms: list[Arm], pooled: GroupEstimate, known: dict[int, GroupEstimate]) -> list[str]:
    warnings = []
    if any(arm.cap and arm.cap.given is None for arm in arms):
        warnings.append(
            "a cap cannot be learned from a log: the next decision may pay more than any before, and what "
            "happens less often than 3 times in as many decisions as an arm has may be missing from the log "
            "and from its interval; give your own cap if you know one"
        )
    if log.least_propensity is not None:
        warnings.append(
            "propensities differ within arms: the arms' means are weighted by 1 over their square roots, so "
            "that an arm chosen less often after bad luck is not put too low; the spread of all arms "
            "together is not weighted"
        )
    if log.cluster:
        warnings.append(
            f"errors allow for decisions that share their {log.cluster} and pay alike: what such a cluster "
            "moves a mean by is added up first"
        )
    unknown_arms = [arm.name for arm in arms if arm.mean is None]
    if unknown_arms:
        warnings.append(
            f"fewer than two decisions{' or clusters' if log.cluster else ''} have closed of "
            f"{', '.join(unknown_arms[:10])}"
            f"{' and others' if len(unknown_arms) > 10 else ''}: nothing is known about their means"
        )
    if log.counts.identical:
        warnings.append(
            f"{log.counts.identical:,} pieces without a key are equal to another; they were kept, as two "
            "payments may be alike (a key would tell)"
        )
    weights = np.array([arms[a].decisions for a in known], dtype=np.float64)
    mixed = weights @ np.array([one.group_means for one in known.values()])
    shift = np.abs(mixed / mixed.sum() - pooled.group_means / pooled.total).max() if mixed.sum() > 0 else 0.0
    if shift > _SHIFTED:
        warnings.append(
            "the arms' shares of the decisions changed over time, so the pooled spread mixes them "
            "differently at different ages: use the arms' own spreads"
        )
    return warnings


def arms_differ_in_speed(estimates: Sequence[GroupEstimate]) -> Finding:
    """Make Welch's test of equal means, on the mean age at which each arm's reward comes.

    That age is a ratio; its variance is by the delta method, with Satterthwaite's degrees of
    freedom. Arms that never paid say nothing about speed and are left out.
    """
    ages, variances, freedoms = [], [], []
    for one in estimates:
        if one.total > 0.0:
            middles = np.arange(len(one.seen)) + 0.5
            age = float(middles @ one.group_means) / one.total
            weights = np.asarray((middles - age)[None, :] / one.total, dtype=np.float64)
            ages.append(age)
            variances.append(float(one.variance(weights)[0]))
            freedoms.append(float(one.freedom(weights)[0]))
    statistic, p = _welch(np.array(ages), np.array(variances), np.array(freedoms))
    return Finding(
        "Do arms differ in speed?", "Welch's test of equal mean ages of reward",
        statistic, p, p is not None and p < LEVEL,
    )  # fmt: skip


def _welch(means: Floats, variances: Floats, freedoms: Floats) -> tuple[float | None, float | None]:
    k = len(means)
    if k < 2:
        return None, None
    if not variances.all():  # reward of some arm always comes at the same age
        alike = bool((means == means[0]).all())
        return (0.0, 1.0) if alike else (None, None)
    weights = 1.0 / variances
    centre = weights @ means / weights.sum()
    spare = float((((1.0 - weights / weights.sum()) ** 2) / freedoms).sum())
    between = float(weights @ (means - centre) ** 2) / (k - 1)
    statistic = between / (1.0 + 2.0 * (k - 2) * spare / (k * k - 1))
    second = min((k * k - 1) / (3.0 * spare), 1e9)
    return statistic, float(special.fdtrc(k - 1, second, statistic))


def groups_depend(estimates: Sequence[GroupEstimate]) -> Finding:
    """Make a z test of the average correlation between two groups of a decision, within arms.

    If the groups of a decision are independent, what a decision moves the mean of one group by says nothing
    about what it moves another by. Then the correlation of the two, over n decisions that were followed in
    both, has mean 0 and a variance of about 1 / n, and different correlations are uncorrelated.
    """
    score, pairs = 0.0, 0
    for one in estimates:
        varied, error = np.diag(one.covariance), one.group_means**2 / np.maximum(one.seen, 1.0)
        with np.errstate(all="ignore"):
            # More decisions were followed in the first group: only those in both say anything.
            correlation = one.covariance / np.sqrt(np.outer(varied, varied)) * np.sqrt(one.seen)[:, None]
        steady = (varied > 1e-9 * error) & (one.seen >= 4)
        usable = np.triu(np.outer(steady, steady) & np.isfinite(correlation), 1)
        score, pairs = score + float(correlation[usable].sum()), pairs + int(usable.sum())
    statistic = score / math.sqrt(pairs) if pairs else None
    p = math.erfc(abs(statistic) / math.sqrt(2.0)) if statistic is not None else None
    return Finding(
        "Do groups depend on each other?", "z test of the average correlation between groups",
        statistic, p, p is not None and p < LEVEL,
    )  # fmt: skip
