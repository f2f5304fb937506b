"""A log in order of time, as a replay goes through it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.core.groups import followed_for, is_closed, is_within
from accrual.core.interval import Interval
from accrual.core.reward_model import Observed, cross_fit
from accrual.evaluate.intervals import within
from accrual.logs.estimate import FollowedDecisions, cluster_numbers, complete
from accrual.logs.fitted import Fitted
from accrual.logs.log import Log
from accrual.logs.read import LogContexts, read_contexts

Bools = npt.NDArray[np.bool_]

_STEPS = 1000  # or more, into which a policy sees a window of time cut


@dataclass(frozen=True)
class ReplayLog:
    """A log in order of time."""

    arms: tuple[str, ...]
    caps: Floats  # the greatest total of one decision, for each arm
    window: float  # the longest, in the log's unit of time
    steps: int  # into how many the policy sees it cut
    end: float  # until when the log reports pieces
    # Of each decision:
    arm: Ints = field(repr=False)
    at: Floats = field(repr=False)
    propensity: Floats = field(repr=False)  # with which the log chose the arm
    # How long the log would follow the decision: less than `window` for one that was cut short, and 0 for one
    # that was never followed.
    own: Floats = field(repr=False)
    # Where each decision's pieces begin in `age` and `value`, and one more for the end.
    first: Ints = field(repr=False)
    # age, value: of each piece, while its decision was followed.
    age: Floats = field(repr=False)
    value: Floats = field(repr=False)
    signed: bool = False  # whether some value is negative
    features: Features | None = None  # of the contexts
    contexts: Floats | None = field(default=None, repr=False)  # decisions x features, as a bandit stores them
    fitted: Fitted | None = field(default=None, repr=False)  # of the log, with what is said about its reading
    cluster: Ints | None = field(default=None, repr=False)  # the number of each decision's cluster

    def __post_init__(self) -> None:
        if (np.diff(self.at) < 0).any():
            raise InputError("a log to replay must be in order of time")
        if not ((self.propensity > 0) & (self.propensity <= 1)).all():
            raise InputError("propensities must be above 0 and at most 1")

    @cached_property
    def totals(self) -> Floats:
        """What each decision paid."""
        running = np.concatenate([[0.0], np.cumsum(self.value)])
        return np.asarray(np.diff(running[self.first]))

    @cached_property
    def followed(self) -> Floats:
        """How long the log has seen each decision."""
        return followed_for(self.at, self.end, self.own)

    @cached_property
    def whole(self) -> Bools:
        """Which decisions the log would follow for the whole window: those that were not cut short."""
        return np.asarray(is_closed(self.own, self.window))

    @cached_property
    def closed(self) -> Bools:
        """Which decisions were followed for the whole window, so that their total is known."""
        return np.asarray(is_closed(self.followed, self.window))

    @cached_property
    def chance(self) -> Floats:
        """The chance that each decision's arm was chosen and the decision was not cut short."""
        arms = len(self.arms)
        share = np.bincount(self.arm, self.whole, arms) / np.maximum(np.bincount(self.arm, minlength=arms), 1)
        return np.asarray(self.propensity * share[self.arm])

    @cached_property
    def rewards(self) -> Floats:
        """What each decision pays; one that was not followed to the end is completed by its arm's mean."""
        some = FollowedDecisions(
            self.arm, 1.0 / self.propensity, self.followed, self.own, self.first, self.age, self.value
        )
        return complete(some, len(self.arms), self.window)

    @property
    def possible(self) -> tuple[float, float]:
        """Between what the mean reward of a decision must lie."""
        return (-math.inf, math.inf) if self.signed else (0.0, float(self.caps.max()))

    @cached_property
    def mean_reward(self) -> Interval:
        """What a decision of the log paid on average."""
        reward = self.by_cluster(self.rewards)
        count = len(reward)
        error = float(reward.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        return within(float(reward.mean()), error, *self.possible, int(self.closed.sum()))

    def by_cluster(self, each: Floats) -> Floats:
        """Return numbers with the mean of `each`, one for each cluster: by how much it moves that mean.

        Without clusters they are `each` itself. Where decisions of a cluster are alike, these are independent
        and `each` is not.
        """
        if self.cluster is None:
            return each
        mean = each.mean()
        moved = np.bincount(self.cluster, each - mean)
        return np.asarray(mean + moved * (len(moved) / len(each)))

    @cached_property
    def expected(self) -> Floats:
        """What a model expects each arm to pay at each decision: decisions x arms.

        With contexts it is linear in them, and fitted without the decision's fold of the log
        (`accrual.core.reward_model`). Without, it is the arm's mean.
        """
        number = np.bincount(self.arm, minlength=len(self.arms))
        means = np.bincount(self.arm, self.rewards, len(self.arms)) / np.maximum(number, 1)
        if self.features is None or self.contexts is None:
            return np.broadcast_to(means, (len(self.arm), len(self.arms)))
        x = LogContexts(self.features, self.contexts, []).encoded()
        found = cross_fit(Observed(x, self.arm, self.rewards, self.propensity, len(self.arms))).expected
        return np.where(np.isfinite(found), found, means)


def from_log(log: Log, fitted: Fitted, uniform: bool) -> ReplayLog:
    """Read an opened log for a replay, with the window and the caps of its fit.

    Parameters
    ----------
    uniform : bool
        Whether every arm had the same chance; otherwise the log must say which chance it had.
    """
    if not uniform and not log.has_propensity:
        raise InputError(
            "a replay needs the chances with which the log chose: a propensity column (--column "
            "propensity=NAME), or --uniform if every arm had the same"
        )
    if uniform and log.has_propensity:
        raise InputError("the log has propensities; leave out --uniform, or the column")
    caps = {arm.name: arm.cap.used for arm in fitted.arms if arm.cap is not None}
    unknown_caps = [name for name in log.arms if not caps.get(name, 0.0) > 0]
    if unknown_caps:
        raise InputError(f"no decision of arm {unknown_caps[0]!r} has closed: its cap is not known")
    arm, at, propensity, own = log.whole_columns(
        'SELECT arm, "at", propensity, own_window FROM decisions ORDER BY decision'
    )
    decision, age, value = log.whole_columns("SELECT decision, age, value FROM pieces ORDER BY decision, age")
    own = np.minimum(np.nan_to_num(own.astype(np.float64), nan=np.inf, posinf=np.inf), fitted.window)
    inside = is_within(age, own[decision.astype(np.int64)])
    lengths = np.bincount(decision[inside].astype(np.int64), minlength=len(arm))
    contexts = read_contexts(log) if log.contexts else None
    whole_rounds = not log.timestamps and float(fitted.window).is_integer()
    return ReplayLog(
        arms=log.arms,
        caps=np.array([caps[name] for name in log.arms]),
        window=fitted.window,
        steps=int(fitted.window) if whole_rounds else fitted.groups * -(-_STEPS // fitted.groups),
        end=log.query("SELECT tick FROM ended")[0][0] / log.unit,
        arm=arm.astype(np.int64),
        at=at.astype(np.float64),
        propensity=np.full(len(arm), 1 / len(log.arms)) if uniform else propensity.astype(np.float64),
        own=own,
        first=np.concatenate([[0], np.cumsum(lengths)]),
        age=age[inside],
        value=value[inside],
        signed=log.signed,
        features=None if contexts is None else contexts.features,
        contexts=None if contexts is None else contexts.values,
        fitted=fitted,
        cluster=np.unique(cluster_numbers(log), return_inverse=True)[1] if log.cluster else None,
    )


def resampled(log: ReplayLog, payer: Ints) -> ReplayLog:
    """Make a log of the same times, at each of which decision `payer` of this log pays, with its pieces."""
    counts = np.diff(log.first)[payer]
    first = np.concatenate([[0], np.cumsum(counts)])
    piece = np.arange(first[-1]) + np.repeat(log.first[payer] - first[:-1], counts)
    return replace(
        log,
        arm=log.arm[payer],
        propensity=log.propensity[payer],
        own=log.own[payer],
        first=first,
        age=log.age[piece],
        value=log.value[piece],
        contexts=None if log.contexts is None else log.contexts[payer],
        cluster=None,  # the resample itself has drawn them together
    )
