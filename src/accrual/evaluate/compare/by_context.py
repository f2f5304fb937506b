"""Policies on a log with contexts: a visitor of the log comes, and a model says what each arm would pay.

Nobody knows what an arm that the log did not choose would have paid. Here a linear model of the context says
it (`accrual.core.reward_model`), and what it says is compared with the log first: where the two disagree,
nothing is simulated. A run draws two thirds of the log's closed decisions, fits the model to them, and lets
visitors come at the log's pace, each like one of the drawn. A decision of an arm pays what a random closed
decision of that arm paid, at the ages at which it did, multiplied so that its mean is what the model says for
this visitor.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import InputError, need, whole
from accrual.core.interval import Interval
from accrual.core.number_text import figure
from accrual.core.progress import Progress
from accrual.core.random import ROUND_MOST, SEED_MOST
from accrual.evaluate.intervals import t_factor, within
from accrual.evaluate.replay import Floats, Ints, ReplayLog, check_propensities, resampled
from accrual.live.ledger import Ledger
from accrual.logs.context_worth import ARMS_MOST
from accrual.logs.fitted import Personalising
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.age_ts import AgeTS
from accrual.policies.base import Policy

BASELINE = "AgeLinTS"
HORIZON_MOST = 20_000
_ASTRAY = 4.0  # standard errors by which the model may miss what the log says of its choices


class ContextLine(NamedTuple):
    """What a policy gets, decision by decision."""

    policy: str
    reward: Interval
    lost: Interval  # per 1,000 decisions, to the arm that the model says is best for each visitor
    more: Interval  # lost than the baseline


@dataclass(frozen=True)
class ContextComparison:
    """What `accrual.compare_by_context` finds.

    Attributes
    ----------
    lines : list of ContextLine
        The first is AgeLinTS.
    horizon, runs : int
    worth : Personalising
        What choosing by context is worth, as a fit finds it.
    """

    lines: list[ContextLine]
    horizon: int
    runs: int
    worth: Personalising

    def summary(self) -> str:
        """Say in words what was found, and on which model it rests."""
        first = self.lines[0]
        sentences = [
            f"{first.policy} would lose {first.lost} per 1,000 decisions to the best choice for each."
        ]
        for line in self.lines[1:]:
            told = line.more.low > 0.0 or line.more.high < 0.0
            way = "more" if line.more.value > 0 else "less"
            versus = (
                f"{figure(abs(line.more.value))} {way} than {first.policy} (95 % {line.more.between()})"
                if told
                else f"which cannot be told from {first.policy}"
            )
            sentences.append(f"{line.policy} would lose {figure(line.lost.value)}, {versus}.")
        sentences.append(
            f"This is {self.runs} simulated runs of {self.horizon:,} decisions. What an arm pays a visitor "
            "to whom the log did not show it is said by a linear model of the context, so all of this is as "
            f"true as that model. {self.worth.assumed}"
        )
        return "\n".join(sentences)

    def rows(self) -> list[dict[str, Any]]:
        """Give a dict for each policy: reward, lost, and difference to the first, with 95 % intervals."""
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
        """Give what policies lose as a pandas DataFrame."""
        return need("pandas", "frames").DataFrame(self.rows()).set_index("policy")


def compare_contexts(
    log: ReplayLog,
    worth: Personalising,
    policies: Mapping[str, Policy],
    horizon: int | None,
    runs: int,
    seed: int,
) -> ContextComparison:
    """Simulate policies on the visitors of a log; refuse where the model cannot be trusted.

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
    runs, seed : int
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
            kept = dice.choice(closed, size=max(len(closed) * 2 // 3, 1), replace=False)
            drawn = resampled(replace(log, at=log.at[: len(kept)]), kept)
            visitor = dice.integers(len(kept), size=horizon)
            payer = dice.random((horizon, len(log.arms)))
            for number, policy in enumerate(own.values()):
                paid[number, run] = _play(drawn, policy, Visits(step, visitor, payer), run)
                bar.advance(horizon)
    return ContextComparison([_line(label, paid, i) for i, label in enumerate(own)], horizon, runs, worth)


def check_model(log: ReplayLog) -> None:
    """Refuse a model that promises more, or less, of its own choices than the log says they pay."""
    if len(log.arms) > ARMS_MOST:
        raise InputError(f"policies cannot be compared by context with more than {ARMS_MOST} arms")
    rows, choice = np.arange(len(log.at)), log.expected.argmax(axis=1)
    said = log.expected[rows, choice]
    wrong = np.where(log.arm == choice, (log.rewards - said) / log.propensity, 0.0)
    error = float(wrong.std(ddof=1)) / math.sqrt(len(wrong))
    if abs(float(wrong.mean())) > _ASTRAY * max(error, 1e-12):
        raise InputError(
            f"a linear model of the context is no fair picture of this log: it says that its choices would "
            f"pay {said.mean():.4g} a decision, and the log says {said.mean() + wrong.mean():.4g}; try fewer "
            "contexts, or their products as columns"
        )


class Visits(NamedTuple):
    """Who comes in a run, the same for every policy."""

    step: float  # of time, from one to the next
    visitor: Ints  # the number of the logged decision that each is like
    payer: Floats  # visits x arms: which of an arm's decisions pays, as a share of all of them


def _play(log: ReplayLog, policy: Policy, visits: Visits, run: int) -> tuple[float, float]:
    """Let visitors come; give what was paid a decision, on average, and what was lost."""
    means = np.maximum(log.expected, 0.0)
    closed = [np.flatnonzero(log.closed & (log.arm == arm)) for arm in range(len(log.arms))]
    usual = np.array([log.totals[own].mean() if len(own) else 0.0 for own in closed])
    scale = np.divide(means, usual, out=np.zeros_like(means), where=usual > 0.0)
    features, stored = (log.features, log.stored) if policy.contextual else (None, None)
    ledger = Ledger(policy, log.caps.tolist(), log.steps, seed=run, span=log.window, features=features)
    first, age, value = log.first.tolist(), log.age.tolist(), log.value.tolist()
    coming: list[tuple[float, int, float, float]] = []  # when, the ledger's id, value, age
    paid = lost = 0.0
    for i, who in enumerate(visits.visitor.tolist()):
        now = i * visits.step
        while coming and coming[0][0] < now:
            _, id_, worth, old = heapq.heappop(coming)
            ledger.observe(id_, worth, old)
        (decision,) = ledger.decide(now, contexts=None if stored is None else [stored[who]])
        arm = decision.arm
        paid += means[who, arm]
        lost += means[who].max() - means[who, arm]
        if len(closed[arm]):
            like = int(closed[arm][int(visits.payer[i, arm] * len(closed[arm]))])
            for piece in range(first[like], first[like + 1]):
                part = value[piece] * scale[who, arm]
                heapq.heappush(coming, (now + age[piece], decision.id, float(part), age[piece]))
    return paid / len(visits.visitor), 1000.0 * lost / len(visits.visitor)


def _line(label: str, paid: Floats, number: int) -> ContextLine:
    runs = paid.shape[1]
    wider = t_factor(runs - 1)

    def interval(each: Floats, least: float) -> Interval:
        return within(float(each.mean()), wider * float(each.std(ddof=1)), least)

    reward, lost = paid[number].T
    return ContextLine(
        label, interval(reward, 0.0), interval(lost, 0.0), interval(lost - paid[0, :, 1], -math.inf)
    )
