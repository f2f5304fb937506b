"""`accrual.compare_by_context`: simulate policies on the contexts of a log, where a model says what arms pay.

Nobody knows what an arm that the log did not choose would have paid. A linear model of the context predicts
it (`accrual.core.reward_model`). Its predictions are compared with the log first: where the two disagree,
nothing is simulated. A run draws two thirds of the log's closed decisions and fits the model to them. Then
decisions are made at the log's pace, each with the context of one that was drawn. A decision of an arm pays
what a random closed decision of that arm paid, at the same ages, multiplied so that its mean is what the
model predicts for the context.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, need, whole
from accrual.core.interval import Interval
from accrual.core.number_text import figure
from accrual.core.progress import Progress
from accrual.core.random import ROUND_MOST, SEED_MOST
from accrual.evaluate.intervals import t_factor, within
from accrual.evaluate.replay import ReplayLog, check_propensities, from_log, resampled
from accrual.live.ledger import Ledger
from accrual.logs.context_worth import ARMS_MOST
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Fitted, Personalising, with_reading
from accrual.logs.open_log import opened
from accrual.policies.age import AgeTS
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.base import Policy
from accrual.policies.catalog import as_policy

BASELINE = "AgeLinTS"
HORIZON_MOST = 20_000
_ASTRAY = 4.0  # standard errors by which the model may miss what the log says about its choices


class ContextLine(NamedTuple):
    """What a policy gets, decision by decision."""

    policy: str
    reward: Interval
    lost: Interval  # per 1,000 decisions, against the arm that the model says is best for each context
    more: Interval  # lost than the baseline


@dataclass(frozen=True)
class ContextComparison:
    """What `accrual.compare_by_context` finds."""

    lines: list[ContextLine]
    """The first is AgeLinTS."""
    horizon: int
    runs: int
    worth: Personalising
    """What choosing by context is worth, as a fit finds it."""
    fitted: Fitted | None = None
    """What was fitted to the log."""

    def summary(self) -> str:
        """Say in words what was found, on which model it rests, and how the log was read."""
        first = self.lines[0]
        sentences = [
            f"{first.policy} would lose {first.lost} per 1,000 decisions to the best choice for each context."
        ]
        for line in self.lines[1:]:
            differs = line.more.low > 0.0 or line.more.high < 0.0
            way = "more" if line.more.value > 0 else "less"
            versus = (
                f"{figure(abs(line.more.value))} {way} than {first.policy} (95 % {line.more.between()})"
                if differs
                else f"which cannot be told from {first.policy}"
            )
            sentences.append(f"{line.policy} would lose {figure(line.lost.value)}, {versus}.")
        sentences.append(
            f"This is {self.runs} simulated runs of {self.horizon:,} decisions. Where the log chose another "
            "arm, a linear model of the context says what an arm pays, so all of this is as true as that "
            f"model. {self.worth.assumed}"
        )
        return "\n".join(sentences if self.fitted is None else with_reading(self.fitted, sentences))

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each policy: reward, lost, and difference to the first, with 95 % intervals."""
        return [
            {"policy": line.policy}
            | {
                f"{name}{end}": getattr(getattr(line, name), attribute)
                for name in ("reward", "lost", "more")
                for end, attribute in (("", "value"), ("_low", "low"), ("_high", "high"))
            }
            for line in self.lines
        ]

    def table(self) -> Any:
        """Return what policies lose as a pandas DataFrame."""
        return need("pandas", "frames").DataFrame(self.rows()).set_index("policy")


def compare_by_context(
    log: Any,
    context: Sequence[str] = (),
    policies: Sequence[str | Policy] = (),
    runs: int = 20,
    horizon: int | None = None,
    seed: int = 0,
    uniform: bool = False,
    fitted: Fitted | None = None,
) -> ContextComparison:
    """Simulate policies that choose by context, on the contexts of a log.

    A linear model of the context says what an arm would have paid where the log chose another one. A log that
    contradicts the model is refused. docs/log_contexts.md says more.

    Parameters
    ----------
    log : path, data frame, pair of them, or Log
    context : sequence of str
        Columns with the context of a decision, as for `accrual.open_log`; none for an open log.
    policies : sequence of str or Policy
        Beside AgeLinTS; AgeLinTS waiting and AgeTS, which sees no context, unless given.
    runs : int
    horizon : int, optional
        Decisions in a run; as many as the log has, and at most 20,000, unless given.
    seed : int
    uniform : bool
        Whether every arm had the same chance; otherwise the log must have propensities.
    fitted : Fitted, optional
        What `accrual.fit_log` found of this log; it is fitted unless given.
    """
    with opened(log, context=context) as open_one:
        if not open_one.contexts:
            raise InputError("name the columns with the context of a decision, such as context=['country']")
        found = fit_log(open_one, uniform=uniform) if fitted is None else fitted
        logged = from_log(open_one, found, uniform)
    assert found.contexts is not None
    by_label = {one.label: one for one in map(as_policy, policies)}
    return compare_contexts(logged, found.contexts, by_label, horizon, runs, seed)


def compare_contexts(
    log: ReplayLog,
    worth: Personalising,
    policies: Mapping[str, Policy],
    horizon: int | None,
    runs: int,
    seed: int,
) -> ContextComparison:
    """Simulate policies on the contexts of a log; refuse a log that contradicts the model.

    Parameters
    ----------
    log : ReplayLog
        With contexts.
    worth : Personalising
        What a fit found of the same log.
    policies : dict of label to Policy
        Beside AgeLinTS; AgeLinTS waiting, and AgeTS without contexts, if there are none.
    horizon : int or None
        Decisions of a run; as many as the log has, and 20,000 at most, unless given.
    """
    runs, seed = whole("runs", runs, 2, 10_000), whole("seed", seed, 0, SEED_MOST)
    horizon = min(len(log.at), HORIZON_MOST) if horizon is None else whole("horizon", horizon, 1, ROUND_MOST)
    if worth.reason:
        raise InputError(f"policies cannot be compared by context, because {worth.reason}")
    if log.signed:
        raise InputError("policies cannot be compared by context where values are negative")
    check_propensities(log)
    check_model(log)
    own: dict[str, Policy] = {BASELINE: AgeLinTS()}
    own |= policies or {"AgeLinTS(waiting)": AgeLinTS(buckets=1), "AgeTS, no context": AgeTS()}
    paid, closed = np.empty((len(own), runs, 2)), np.flatnonzero(log.closed)
    step = (float(log.at[-1]) - float(log.at[0])) / max(len(log.at) - 1, 1)
    with Progress(len(own) * runs * horizon, "decisions") as bar:
        for run in range(runs):
            dice = np.random.Generator(np.random.Philox(key=[seed, run]))
            chosen = dice.choice(closed, size=max(len(closed) * 2 // 3, 1), replace=False)
            drawn = resampled(replace(log, at=log.at[: len(chosen)]), chosen)
            decisions = DrawnDecisions(
                step, dice.integers(len(chosen), size=horizon), dice.random((horizon, len(log.arms)))
            )
            for number, policy in enumerate(own.values()):
                paid[number, run] = _play(drawn, policy, decisions, run)
                bar.advance(horizon)
    return ContextComparison(
        [_line(label, paid, i) for i, label in enumerate(own)], horizon, runs, worth, log.fitted
    )


def check_model(log: ReplayLog) -> None:
    """Refuse a model whose predictions for its own choices differ from what the log says they pay."""
    if len(log.arms) > ARMS_MOST:
        raise InputError(f"policies cannot be compared by context with more than {ARMS_MOST} arms")
    rows, choice = np.arange(len(log.at)), log.expected.argmax(axis=1)
    said = log.expected[rows, choice]
    wrong = np.where(log.arm == choice, (log.rewards - said) / log.propensity, 0.0)
    error = float(wrong.std(ddof=1)) / math.sqrt(len(wrong))
    if abs(float(wrong.mean())) > _ASTRAY * max(error, 1e-12):
        raise InputError(
            f"a linear model of the context does not fit this log: it says that its choices would "
            f"pay {said.mean():.4g} a decision, and the log says {said.mean() + wrong.mean():.4g}; try fewer "
            "contexts, or their products as columns"
        )


class DrawnDecisions(NamedTuple):
    """The decisions of a run, the same for every policy."""

    step: float  # of time, from one to the next
    like: Ints  # the number of the logged decision whose context each has
    payer: Floats  # decisions x arms: which of an arm's logged decisions pays, as a share of all of them


def _play(log: ReplayLog, policy: Policy, decisions: DrawnDecisions, run: int) -> tuple[float, float]:
    """Play a run; return what a decision paid on average, and what 1,000 lost."""
    means = np.maximum(log.expected, 0.0)
    closed = [np.flatnonzero(log.closed & (log.arm == arm)) for arm in range(len(log.arms))]
    usual = np.array([log.totals[own].mean() if len(own) else 0.0 for own in closed])
    scale = np.divide(means, usual, out=np.zeros_like(means), where=usual > 0.0)
    features, contexts = (log.features, log.contexts) if policy.contextual else (None, None)
    ledger = Ledger(policy, log.caps.tolist(), log.steps, seed=run, span=log.window, features=features)
    first, age, value = log.first.tolist(), log.age.tolist(), log.value.tolist()
    coming: list[tuple[float, int, float, float]] = []  # when, the ledger's id, value, age
    paid = lost = 0.0
    for i, like in enumerate(decisions.like.tolist()):
        now = i * decisions.step
        while coming and coming[0][0] < now:
            _, id_, worth, old = heapq.heappop(coming)
            ledger.observe(id_, worth, old)
        (decision,) = ledger.decide(now, contexts=None if contexts is None else [contexts[like]])
        arm = decision.arm
        paid += means[like, arm]
        lost += means[like].max() - means[like, arm]
        if len(closed[arm]):
            payer = int(closed[arm][int(decisions.payer[i, arm] * len(closed[arm]))])
            for piece in range(first[payer], first[payer + 1]):
                part = value[piece] * scale[like, arm]
                heapq.heappush(coming, (now + age[piece], decision.id, float(part), age[piece]))
    return paid / len(decisions.like), 1000.0 * lost / len(decisions.like)


def _line(label: str, paid: Floats, number: int) -> ContextLine:
    runs = paid.shape[1]
    wider = t_factor(runs - 1)

    def interval(each: Floats, least: float) -> Interval:
        return within(float(each.mean()), wider * float(each.std(ddof=1)), least)

    reward, lost = paid[number].T
    return ContextLine(
        label, interval(reward, 0.0), interval(lost, 0.0), interval(lost - paid[0, :, 1], -math.inf)
    )
