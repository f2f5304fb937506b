"""What choosing by context would be worth, judged by a log: an interval, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import special

from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.fit.completed import PaidDecisions, complete
from accrual.fit.context_columns import LogContexts, read_contexts
from accrual.fit.reward_model import LEAST, CrossFit, Observed, cross_fit, scores
from accrual.fit.schema import Interval, Personalising, Winner
from accrual.fit.tables import Log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ARMS_MOST = 200
EFFECTIVE_LEAST = 100.0  # decisions of equal weight below which a figure would only mislead
_NUMBERS_MOST = 30_000_000  # of contexts or expectations that are held in memory: of more decisions, a sample
_ASTRAY = 6.0  # standard errors by which propensities may miss
_DEPENDS = 1e-4  # of the test whether arms were chosen by context


def personalise(log: Log, window: float, groups: int, uniform: bool) -> Personalising:
    """Judge by an opened log whether its best arm depends on the context.

    Parameters
    ----------
    log : Log
        Opened with `context`.
    window, groups
        As fitted.
    uniform : bool
        Whether every arm had the same chance at each decision.
    """
    if uniform and log.has_propensity:
        raise InputError("the log has propensities; leave out --uniform, or the column")
    arms, contexts = log.arms, read_contexts(log)
    seen, assumed = _observed(log, contexts, window, groups, uniform)
    sampled = "" if len(seen.arm) == len(contexts.stored) else f" A sample of {len(seen.arm):,} decisions."
    found = Personalising(
        None, None, "", 0.0, "", (), tuple(contexts.words), assumed + sampled, len(seen.arm)
    )
    reason = ""
    if len(arms) > ARMS_MOST:
        reason = f"there are more than {ARMS_MOST} arms"
    elif np.count_nonzero(np.bincount(seen.arm) >= 2 * LEAST) < 2:
        reason = f"fewer than two arms have {2 * LEAST} decisions"
    elif not (log.has_propensity or uniform):
        reason = _chosen_by_context(seen, contexts.features)
    return replace(found, reason=reason) if reason else _judge(found, seen, arms, contexts.features)


def _observed(
    log: Log, contexts: LogContexts, window: float, groups: int, uniform: bool
) -> tuple[Observed, str]:
    """Read what each decision was for, chose and paid; and say with which propensities."""
    number, propensity, followed = _columns(
        log, "SELECT arm, propensity, followed FROM decisions ORDER BY decision"
    )
    decision, age, value = _columns(log, "SELECT decision, age, value FROM pieces")
    arm, count = log.arm_numbers[number.astype(np.int64)], len(log.arms)
    if log.has_propensity:
        assumed = "The log's propensities are taken to be right."
        chance = propensity.astype(np.float64)
    elif uniform:
        assumed = "As told, every arm had the same chance at each decision."
        chance = np.full(len(arm), 1.0 / count)
    else:
        assumed = (
            "The log has no propensities: it is assumed that it chose arms without regard to the context, as "
            "often as it shows."
        )
        chance = (np.bincount(arm, minlength=count) / len(arm))[arm]
    paid = PaidDecisions(
        arm, 1.0 / chance, np.minimum(followed.astype(np.float64), window),
        decision.astype(np.int64), age.astype(np.float64), value.astype(np.float64),
    )  # fmt: skip
    reward = complete(paid, count, window, groups)
    most = _NUMBERS_MOST // max(contexts.features.width, count)
    rows = np.arange(len(arm))
    if len(arm) > most:
        dice = np.random.Generator(np.random.Philox(1))
        rows = np.sort(dice.choice(len(arm), most, replace=False))
    x = contexts._replace(stored=contexts.stored[rows]).seen()
    return Observed(x, arm[rows], reward[rows], chance[rows], count), assumed


def _columns(log: Log, query: str) -> list[npt.NDArray[np.float64]]:
    batches = list(log.stream(query))
    return [np.concatenate([batch[i] for batch in batches]) for i in range(len(batches[0]))]


def _chosen_by_context(seen: Observed, features: Features) -> str:
    """Say which context the log chose arms by, by a chi-square test; nothing where there is no sign of it."""
    least, tests = 1.0, 0
    worst = ""
    for name, of_part in _parts(seen, features):
        table = np.stack(
            [np.bincount(seen.arm[mine], minlength=seen.arms) for mine in (of_part, ~of_part)]
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
        f"the log chose arms by the context ({worst}), with chances that it does not tell; it needs a "
        "propensity for each decision"
    )


def _parts(seen: Observed, features: Features) -> list[tuple[str, Bools]]:
    """Cut decisions by each feature: its levels, yes, or above the median."""
    parts = []
    for j, column in enumerate(features.columns[1:], start=1):
        number = isinstance(features.kinds.get(column), tuple)
        middle = float(np.median(seen.x[:, j])) if number else 0.5
        name = f"{column} above {_value(features, column, middle):.4g}" if number else column
        parts.append((name, seen.x[:, j] > middle))
    return parts


def _value(features: Features, column: str, share: float) -> float:
    low, high = features.kinds[column]
    return float(low + share * (high - low))


def _judge(begun: Personalising, seen: Observed, arms: tuple[str, ...], features: Features) -> Personalising:
    found = cross_fit(seen, forward=True)
    best = " or ".join(arms[arm] for arm in sorted(set(found.single[found.judged].tolist())))
    choice = found.choice
    weight = np.where(seen.arm == choice, 1.0 / seen.propensity, 0.0)[found.judged]
    effective = float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1e-300)
    reason = _cannot(seen, found, choice, effective) or _cannot(seen, found, found.single, effective)
    begun = replace(begun, single=best, effective=effective, reason=reason)
    if reason:
        return begun
    alone = scores(seen, found, found.single)
    more = scores(seen, found, choice) - alone
    return replace(
        begun, value=mean_interval(more), pays=mean_interval(alone), winners=_winners(seen, arms, features)
    )


def _cannot(seen: Observed, found: CrossFit, choice: Ints, effective: float) -> str:
    """Say why a choice cannot be judged by the log; nothing where it can."""
    if effective < EFFECTIVE_LEAST:
        return (
            f"the log's {len(choice):,} decisions count as {effective:.0f} of a model's own, where "
            f"{EFFECTIVE_LEAST:.0f} are needed"
        )
    weight = np.where(seen.arm == choice, 1.0 / seen.propensity, 0.0)[found.judged]
    error = max(float(weight.std()), 1e-12) / math.sqrt(len(weight))
    if abs(float(weight.mean()) - 1.0) > _ASTRAY * error:
        return (
            f"the propensities do not fit the log: of what a model would choose it should have chosen "
            f"{len(weight):,}, by weight, and it chose {weight.sum():,.0f}; arms that are never shown to "
            "some visitors look like this"
        )
    return ""


def mean_interval(each: Floats, level: float = 0.975) -> Interval:
    """Give the mean of scores with its interval: Student's, with the freedom that their variance has.

    Scores are mostly alike, and large where a rare choice was made: their variance is then known less well
    than their number suggests.
    """
    count, value = len(each), float(each.mean())
    away = each - value
    square = float((away**2).mean())
    if square == 0.0:
        return Interval(value, value, value)
    tails = float((away**4).mean()) / square**2
    freedom = max(2.0 * count / max(tails - 1.0, 1e-9), 1.0)
    error = math.sqrt(square / (count - 1)) * float(special.stdtrit(min(freedom, 1e9), level))
    return Interval(value, value - error, value + error)


def _winners(seen: Observed, arms: tuple[str, ...], features: Features) -> tuple[Winner, ...]:
    """Find parts of the decisions where another arm pays more than the best one for all.

    The intervals hold together with 95 % (Bonferroni's correction over all parts and pairs of arms).
    """
    found = cross_fit(seen)
    best = int(np.bincount(found.single, minlength=len(arms)).argmax())
    usable = [a for a in range(len(arms)) if a != best and np.isfinite(found.expected[:, a]).all()]
    if not usable or not np.isfinite(found.expected[:, best]).all():
        return ()
    parts = _parts(seen, features)
    parts += [(name.replace(" above ", " up to "), ~mine) for name, mine in parts if " above " in name]
    parts += [(f"not {name}", ~mine) for name, mine in parts if features.kinds.get(name) is bool]
    level = 1.0 - 0.025 / (len(parts) * len(usable) * (len(usable) + 1))
    base = scores(seen, found, np.full(len(seen.arm), best))
    winners: dict[str, Winner] = {}
    for a in usable:
        more = scores(seen, found, np.full(len(seen.arm), a)) - base
        for name, mine in parts:
            if mine.sum() >= EFFECTIVE_LEAST:
                one = Winner(name, int(mine.sum()), arms[a], arms[best], mean_interval(more[mine], level))
                if one.more.low > 0.0 and (name not in winners or one.more.value > winners[name].more.value):
                    winners[name] = one
    return tuple(winners.values())
