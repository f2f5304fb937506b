"""Judge what a fixed policy would have earned, which chooses arms with the same shares at every decision.

With w the policy's share of the arm that the log chose over the log's propensity of it, and r what the
decision paid (`ReplayLog.rewards`):

- IPS (inverse propensity scoring): the mean of w r. Unbiased, and uneven where weights are.
- self-normalised: the sum of w r over the sum of w. Always between the smallest and largest reward.
- doubly robust: what a model expects each arm to pay (`ReplayLog.expected`: its mean in the log, or by
  context), weighted by the policy's shares, and the mean of w (r - what it expected of the log's arm) to
  correct the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, as_number, unknown
from accrual.core.interval import Interval, confined, mean_interval
from accrual.evaluate.intervals import correlation, difference, t_factor, within
from accrual.evaluate.replay.log import ReplayLog

_ALWAYS = "always "
LEAST = 20  # effective decisions below which a figure would only mislead


class Fixed(NamedTuple):
    """A policy that chooses each arm with a share that never changes."""

    label: str
    shares: Floats  # of each arm of the log


def fixed(given: str | Mapping[str, float], arms: tuple[str, ...]) -> Fixed | None:
    """Read a fixed policy as it is written: ``"always jazz"``, or a table of shares; None for any other text.

    Shares are ``{"jazz": 0.7, "rock": 0.3}``, or the same as text: ``"jazz=0.7, rock=0.3"``. Arms that
    are not named are never chosen.

    Examples
    --------
    >>> fixed("always rock", ("jazz", "rock")).shares
    array([0., 1.])
    >>> fixed("jazz=0.7, rock=0.3", ("jazz", "rock")).shares
    array([0.7, 0.3])
    >>> fixed("AgeTS", ("jazz", "rock")) is None
    True
    """
    if isinstance(given, Mapping):
        table = dict(given)
    elif given.startswith(_ALWAYS):
        table = {given.removeprefix(_ALWAYS): 1.0}
    elif "=" in given and "(" not in given:
        table = _read(given)
    else:
        return None
    shares = np.zeros(len(arms))
    for name, share in table.items():
        if name not in arms:
            raise unknown("arm", str(name), arms)
        if not 0.0 <= as_number(share) <= 1.0:
            raise InputError(f"the share of arm {name!r} must be a number from 0 to 1, not {share!r}")
        shares[arms.index(name)] = share
    if abs(float(shares.sum()) - 1.0) > 1e-6:
        raise InputError(f"the shares of a fixed policy must add up to 1, not {shares.sum():g}")
    label = (
        given if isinstance(given, str) else ", ".join(f"{name}={share:g}" for name, share in table.items())
    )
    return Fixed(label, shares / shares.sum())


def _read(text: str) -> dict[str, float]:
    table: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition("=")
        try:
            share = float(number)
        except ValueError:
            raise InputError(f"shares must be written like jazz=0.7,rock=0.3, not {text!r}") from None
        if name in table:
            raise InputError(f"the shares {text!r} give {name!r} twice")
        table[name] = share
    return table


class Judged(NamedTuple):
    """One estimate of what a fixed policy earns."""

    method: str
    reward: Interval  # per decision
    more: Interval  # than the log
    used: int  # decisions of arms that the policy chooses
    effective: float  # how many decisions of equal weight they count as


def judge(log: ReplayLog, policy: Fixed) -> Iterator[Judged]:
    """Judge a fixed policy by three methods."""
    reward, weight = log.rewards, policy.shares[log.arm] / log.propensity
    count, mass = len(reward), float(weight.sum())
    effective = mass**2 / float((weight**2).sum()) if mass else 0.0
    if effective < LEAST:
        raise InputError(
            f"too little to judge {policy.label} by: the log's {count:,} decisions count as {effective:.0f} "
            f"of its own, where {LEAST} are needed (the log seldom chose its arms, or with very uneven "
            "propensities)"
        )
    expected = log.expected
    ratio = float(weight @ reward) / mass
    # Of each method, what every decision contributes: their mean is the estimate.
    parts = {
        "IPS": weight * reward,
        "self-normalised": ratio + count * weight * (reward - ratio) / mass,
        "doubly robust": expected @ policy.shares + weight * (reward - expected[np.arange(count), log.arm]),
    }
    most = math.inf if log.signed else float(log.caps[policy.shares > 0.0].max())
    least = -math.inf if log.signed else 0.0
    independent = effective if log.cluster is None else min(effective, float(log.cluster.max() + 1))
    wider = t_factor(max(int(independent) - 1, 1))
    apart = _difference(log, weight)
    for method, contributed in parts.items():
        each = log.by_cluster(contributed)
        # Inverse propensity scores vary with the weights, and so more than what decisions pay can: their
        # error cannot be read as a number of payments.
        found = (
            confined(mean_interval(each, count=independent), least, most, independent)
            if method == "IPS"
            else within(float(each.mean()), wider * _error(each), least, most, independent)
        )
        yield Judged(
            method,
            found,
            difference(found, log.mean_reward, correlation(each, log.by_cluster(reward)))
            if method == "IPS"
            else _around(found.value - log.mean_reward.value, apart),
            int(np.count_nonzero(weight)),
            effective,
        )


def _error(each: Floats) -> float:
    """Return the standard error of the mean of independent numbers."""
    return float(each.std(ddof=1)) / math.sqrt(len(each))


def _difference(log: ReplayLog, weight: Floats) -> Interval:
    """Make the interval of the difference between a policy and the log.

    The policy has more of some decisions than the log and less of others. What these pay, and what those pay,
    are two means of different decisions, and so independent, unless by clusters. The difference is theirs,
    times the share of decisions that the two do not have in common.
    """
    parts, moved = [], []
    for extra in (np.maximum(weight - 1.0, 0.0), np.maximum(1.0 - weight, 0.0)):
        mass, count = float(extra.sum()), int(np.count_nonzero(extra))
        if count < 2:
            parts.append(Interval(0.0, 0.0, 0.0))
            moved.append(np.zeros(1))
            continue
        mean = float(extra @ log.rewards) / mass
        effective = mass**2 / float(extra @ extra)
        each = np.asarray(extra * (log.rewards - mean) / mass)
        if log.cluster is not None:
            each = np.bincount(log.cluster, each).astype(np.float64)
            effective = min(effective, float(np.count_nonzero(np.bincount(log.cluster, extra))))
        error = math.sqrt(float(each @ each) * effective / max(effective - 1.0, 1.0))
        wider = t_factor(max(int(effective) - 1, 1))
        parts.append(within(mean, wider * error, *log.possible, effective))
        moved.append(each)
    share = float(np.abs(weight - 1.0).mean()) / 2.0
    # Only a cluster has decisions on both sides.
    together = 0.0 if log.cluster is None or len(moved[0]) != len(moved[1]) else correlation(*moved)
    found = difference(parts[0], parts[1], together)
    return Interval(share * found.value, share * found.low, share * found.high)


def _around(value: float, other: Interval) -> Interval:
    """Move an interval to another estimate of the same thing."""
    return Interval(value, value + other.low - other.value, value + other.high - other.value)
