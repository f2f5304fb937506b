"""What choosing by context would be worth, judged by a log: an interval, or the reason why there is none."""

from __future__ import annotations

import numpy as np
from scipy import special

from accrual.core.context_value import ContextValue, context_value, parts
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.core.reward_model import Observed
from accrual.logs.estimate import FollowedDecisions, complete
from accrual.logs.fitted import Personalising
from accrual.logs.log import Log
from accrual.logs.read import LogContexts, read_contexts

ARMS_MOST = 200
_NUMBERS_MOST = 30_000_000  # of contexts or expectations in memory; of more decisions, a sample is taken
_DEPENDS = 1e-4  # level of the test whether arms were chosen by context


def personalise(log: Log, window: float, uniform: bool) -> Personalising:
    """Judge by an opened log whether its best arm depends on the context.

    Parameters
    ----------
    log : Log
        Opened with `context`.
    window : float
        As fitted.
    uniform : bool
        Whether every arm had the same chance at each decision.
    """
    if uniform and log.has_propensity:
        raise InputError("the log has propensities; leave out --uniform, or the column")
    arms, contexts = log.arms, read_contexts(log)
    observed, assumed = _observed(log, contexts, window, uniform)
    sampled = (
        "" if len(observed.arm) == len(contexts.values) else f" A sample of {len(observed.arm):,} decisions."
    )
    reason = ""
    if len(arms) > ARMS_MOST:
        reason = f"there are more than {ARMS_MOST} arms"
    elif not (log.has_propensity or uniform):
        reason = _chosen_by_context(observed, contexts.features)
    found = ContextValue(reason=reason) if reason else context_value(observed, arms, contexts.features)
    return Personalising(
        value=found.more,
        pays=found.pays,
        single=found.single,
        effective=found.effective,
        reason=found.reason,
        winners=found.winners,
        features=tuple(contexts.words),
        assumed=assumed + sampled,
        decisions=len(observed.arm),
    )


def _observed(log: Log, contexts: LogContexts, window: float, uniform: bool) -> tuple[Observed, str]:
    """Read what each decision was for, chose and paid; and say with which propensities."""
    number, propensity, followed = log.whole_columns(
        "SELECT arm, propensity, followed FROM decisions ORDER BY decision"
    )
    decision, age, value = log.whole_columns("SELECT decision, age, value FROM pieces ORDER BY decision")
    arm, count = number.astype(np.int64), len(log.arms)
    if log.has_propensity:
        assumed = "The log's propensities are taken to be right."
        chance = propensity.astype(np.float64)
    elif uniform:
        assumed = "As given, every arm had the same chance at each decision."
        chance = np.full(len(arm), 1.0 / count)
    else:
        assumed = (
            "The log has no propensities: it is assumed that it chose arms without regard to the context, as "
            "often as it shows."
        )
        chance = (np.bincount(arm, minlength=count) / len(arm))[arm]
    some = FollowedDecisions(
        arm, 1.0 / chance, followed.astype(np.float64), followed.astype(np.float64),
        np.searchsorted(decision, np.arange(len(arm) + 1)), age.astype(np.float64), value.astype(np.float64),
    )  # fmt: skip
    reward = complete(some, count, window)
    most = _NUMBERS_MOST // max(contexts.features.width, count)
    rows = np.arange(len(arm))
    if len(arm) > most:
        dice = np.random.Generator(np.random.Philox(1))
        rows = np.sort(dice.choice(len(arm), most, replace=False))
    x = contexts._replace(values=contexts.values[rows]).encoded()
    return Observed(x, arm[rows], reward[rows], chance[rows], count), assumed


def _chosen_by_context(observed: Observed, features: Features) -> str:
    """Test by chi-square whether the log chose arms by a context, and say by which, or return nothing."""
    least, tests = 1.0, 0
    worst = ""
    for name, of_part in parts(observed, features):
        table = np.stack(
            [np.bincount(observed.arm[mine], minlength=observed.arms) for mine in (of_part, ~of_part)]
        ).astype(np.float64)
        table = table[:, table.sum(axis=0) >= 10]
        if table.shape[1] < 2 or table.sum(axis=1).min() < 20:
            continue
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        chance = float(special.chdtrc(table.shape[1] - 1, float(((table - expected) ** 2 / expected).sum())))
        tests += 1
        if chance < least:
            least, worst = chance, name
    if least * tests >= _DEPENDS:
        return ""
    return (
        f"the log chose arms by the context ({worst}), with chances that it does not state; it needs a "
        "propensity for each decision"
    )
