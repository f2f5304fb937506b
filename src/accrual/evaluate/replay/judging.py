"""Judge what a policy would have earned, by a log whose arms were chosen in another way.

A fixed policy is judged by weights alone (`accrual.evaluate.replay.fixed_shares`). For policies that learn,
both methods walk through the log in order of time, and at each decision ask the policy what it would
choose. It knows what had arrived strictly before: a piece counts from its own time on, not from its
decision's. docs/replay.md says what each method is unbiased for, and under which assumptions.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, need, unknown, whole
from accrual.core.files import replacing
from accrual.core.interval import Interval
from accrual.core.number_text import figure, notebook_html
from accrual.core.progress import Progress
from accrual.core.random import SEED_MOST
from accrual.evaluate.intervals import correlation, difference, t_factor, within
from accrual.evaluate.replay.fixed_shares import Fixed, fixed, judge
from accrual.evaluate.replay.log import Bools, ReplayLog, from_log, resampled
from accrual.live.ledger import Ledger
from accrual.logs.fit import fit_log
from accrual.logs.fitted import with_reading
from accrual.logs.open_log import opened
from accrual.logs.read import ReadingOptions
from accrual.policies.base import Policy
from accrual.policies.catalog import DEFAULT, as_policy

Method = Literal["rejection", "weighting", "doubly robust"]
METHODS: tuple[Method, ...] = ("rejection", "weighting", "doubly robust")

LEAST = 100  # effective decisions below which a figure would only mislead
REPEATS = 20  # replays of resampled logs, from which the intervals are made
_READ = {
    "rejection": "Policies that learn ran alone, on the decisions for which the log had chosen as "
    "they would: at a fraction of its traffic.",
    "weighting": "Policies that learn did so from all that the log had chosen, and were asked at every "
    "decision.",
    "doubly robust": "Policies that learn did so from all that the log had chosen, and were asked at every "
    "decision. A model says what their choices would pay, and what the log's own choices paid corrects it.",
}
_ASTRAY = 6.0  # standard errors by which propensities may miss the arms' frequencies


class ReplayLine(NamedTuple):
    """What a replay says about one policy, or (the first) about the log itself."""

    policy: str
    method: str
    reward: Interval  # per decision
    more: Interval  # than the log
    used: int  # decisions that the figure rests on
    effective: float  # how many decisions of equal weight they count as
    shares: tuple[float, ...]  # of each arm in what the policy chose


@dataclass(frozen=True)
class ReplayResult:
    """What `accrual.replay` found."""

    log: ReplayLog = field(repr=False)
    lines: list[ReplayLine]
    """The first is the log itself, then one for each policy that learns and three for each fixed one."""
    method: str
    """By which policies that learn were judged."""

    def summary(self) -> str:
        """Say in words what was found, a line each, with what is odd about the log and how it was read."""
        own = self.lines[0]
        cut = int((~self.log.whole).sum())
        still_open = int((self.log.whole & ~self.log.closed).sum())
        sentences = [f"The log paid {own.reward} a decision, over {len(self.log.at):,} decisions."]
        if cut or still_open:
            sentences.append(
                f"{cut:,} decisions were cut short and {still_open:,} were open at its end: they count as "
                "far as they were followed, and not as if nothing more had come."
            )
        for line in self.lines[1:]:
            if line.method in ("IPS", "self-normalised"):
                continue  # the table has them; one figure is enough to read
            paid = f"{line.policy} would have paid {line.reward} a decision"
            sentences.append(f"{paid} ({line.method}): {_versus(line)}.")
        if any(line.method == self.method for line in self.lines):
            sentences.append(_READ[self.method])
        return "\n".join(sentences if self.log.fitted is None else with_reading(self.log.fitted, sentences))

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each line: reward and difference to the log, with their 95 % intervals."""
        return [
            {
                "policy": line.policy, "method": line.method,
                "reward": line.reward.value, "reward_low": line.reward.low, "reward_high": line.reward.high,
                "more": line.more.value, "more_low": line.more.low, "more_high": line.more.high,
                "used": line.used, "effective": line.effective,
            }
            for line in self.lines
        ]  # fmt: skip

    def table(self) -> Any:
        """Return what each policy would have paid as a pandas DataFrame."""
        return need("pandas", "frames").DataFrame(self.rows()).set_index(["policy", "method"])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the reward of each line with its interval, and return matplotlib's Axes."""
        figure = need("matplotlib.figure", "plot").Figure(
            figsize=(7, 1 + 0.35 * len(self.lines)), layout="tight"
        )
        ax = figure.subplots()
        for row, line in enumerate(self.lines):
            value = line.reward
            reach = [[max(value.value - value.low, 0.0)], [max(value.high - value.value, 0.0)]]
            ax.errorbar(value.value, row, xerr=reach, fmt="o", color="#0072B2" if row else "#444444")
        names = [
            " ".join(filter(None, (line.policy, f"({line.method})" if line.method else "")))
            for line in self.lines
        ]
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set(xlabel="reward per decision, with 95 % intervals")
        ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            with replacing(path) as partial:
                figure.savefig(partial, dpi=150)
        return ax

    def _repr_html_(self) -> str:
        rows = [
            [one.policy, one.method, figure(one.reward.value), one.reward.between(), f"{one.effective:,.0f}"]
            for one in self.lines
        ]
        head = ["policy", "method", "reward", "95 %", "effective"]
        return notebook_html(self.summary().splitlines(), head, rows)


def _versus(line: ReplayLine) -> str:
    low, high = line.more.low, line.more.high
    if low > 0.0 or high < 0.0:
        word = "more" if low > 0.0 else "less"
        near, far = sorted((abs(low), abs(high)))
        return f"{abs(line.more.value):.3g} {word} than the log (95 % {near:.3g} to {far:.3g})"
    return "it cannot be told from the log's own way of choosing"


def replay(
    log: Any,
    policy: str | Policy | Mapping[str, float] | Sequence[str | Policy | Mapping[str, float]] = DEFAULT,
    uniform: bool = False,
    method: Method = "rejection",
    window: float | str | None = None,
    groups: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    **options: Unpack[ReadingOptions],
) -> ReplayResult:
    """Judge policies by a log that was collected at random.

    Parameters
    ----------
    log : path, data frame, pair of them, or Log
        One table, a pair of decisions and pieces, or what `accrual.open_log` returned.
    policy : str, Policy, mapping, or a list of them
        One that learns, such as ``"AgePrior"``, the default; or a fixed one: ``"always jazz"``, or the
        share of each arm, ``{"jazz": 0.7, "rock": 0.3}``.
    uniform : bool
        Whether every arm had the same chance; otherwise the log must have propensities.
    method : {"rejection", "weighting", "doubly robust"}
        For policies that learn; docs/replay.md says what each is unbiased for.
    window, groups : optional
        As for `accrual.fit_log`.
    seed : int
    columns : mapping, optional
        Role to column name, as for `accrual.fit`.
    **options
        How the log is read: see `accrual.open_log`. Policies that use contexts need `context`.

    Returns
    -------
    ReplayResult
        Its `summary` says in words what was found.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": range(400), "arm": ["a", "a", "b", "b"] * 100, "at": range(400)})
    >>> pieces = pd.DataFrame({"decision": range(400), "value": [1.0, 0.0, 1.0, 1.0] * 100, "age": 2})
    >>> found = replay((decisions, pieces), "always b", uniform=True, window=5)
    >>> [f"{line.method} {line.reward.value:.2f}" for line in found.lines[1:]]
    ['IPS 1.00', 'self-normalised 1.00', 'doubly robust 1.00']
    """
    with opened(log, columns, **options) as open_one:
        logged = from_log(open_one, fit_log(open_one, window, groups, uniform=uniform), uniform)
    given = policy if isinstance(policy, Sequence) and not isinstance(policy, str) else [policy]
    return ReplayResult(logged, judge_all(logged, named(given, logged), method, seed), method)


def named(given: Sequence[str | Policy | Mapping[str, float]], log: ReplayLog) -> dict[str, Policy | Fixed]:
    """Return policies by their labels, for `judge_all`."""
    labelled: dict[str, Policy | Fixed] = {}
    for one in given:
        if not isinstance(one, str | Policy | Mapping):
            raise InputError(f"a policy must be a name, a policy or shares of arms, not {one!r}")
        policy: Policy | Fixed | None = None if isinstance(one, Policy) else fixed(one, log.arms)
        if policy is None:
            policy = as_policy(one)
        if policy.label in labelled:
            raise InputError(f"policy {policy.label} is given twice")
        labelled[policy.label] = policy
    return labelled


class _Pass(NamedTuple):
    value: float
    used: int
    effective: float
    shares: tuple[float, ...]


def judge_all(
    log: ReplayLog, policies: Mapping[str, Policy | Fixed], method: Method = "rejection", seed: int = 0
) -> list[ReplayLine]:
    """Return one line for the log, then one for each policy that learns and three for each fixed one.

    Parameters
    ----------
    method : {"rejection", "weighting", "doubly robust"}
        For policies that learn.
    seed : int
        For policies that draw, for rejections, and for the resampled logs behind the intervals.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    whole("seed", seed, 0, SEED_MOST)
    if len(log.arms) < 2:
        raise InputError("a replay needs at least two arms to choose between")
    learning = {label: one for label, one in policies.items() if not isinstance(one, Fixed)}
    for label, policy in learning.items():
        if policy.immediate:
            raise InputError(f"{label} sees totals before they are paid, which only a simulation can offer")
        if policy.contextual and log.features is None:
            raise InputError(f"{label} chooses by contexts: say which columns they are (--context)")
    if not log.closed.any():
        raise InputError("no decision of the log is closed: none has a total to judge a policy by")
    check_propensities(log)
    logs = [log, *_resamples(log, seed)] if learning else [log]
    base = [float(one.rewards.mean()) for one in logs]
    lines = [_of_log(log)]
    with Progress(len(learning) * len(logs) * len(log.at), "decisions") as bar:
        for label, given in policies.items():
            if isinstance(given, Fixed):
                lines += [ReplayLine(label, *one, tuple(given.shares.tolist())) for one in judge(log, given)]
                continue
            passes = []
            for number, one in enumerate(logs):
                passes.append(_play(one, given, method, (seed, number)))
                bar.advance(len(log.at))
                if number == 0:
                    _enough(passes[0], label, method, log)
            lines.append(_line(label, method, log, passes, base))
    return lines


def _resamples(log: ReplayLog, seed: int) -> list[ReplayLog]:
    """Draw logs of the same times, at each of which a random closed decision pays with its pieces.

    Where decisions are in clusters, whole clusters are drawn.
    """
    dice = np.random.Generator(np.random.Philox(seed))
    payers = np.flatnonzero(log.closed)
    # Arms whose decisions are cut short more often come as often as before.
    weight = log.propensity[payers] / log.chance[payers]
    if log.cluster is None:
        drawn = [dice.choice(payers, size=len(log.at), p=weight / weight.sum()) for _ in range(REPEATS)]
    else:
        drawn = [_clusters(log.cluster[payers], payers, weight, len(log.at), dice) for _ in range(REPEATS)]
    return [resampled(log, one) for one in drawn]


def _clusters(cluster: Ints, payers: Ints, weight: Floats, count: int, dice: np.random.Generator) -> Ints:
    """Draw whole clusters of decisions until there are `count`; a decision is kept by its weight."""
    order = np.argsort(cluster, kind="stable")
    first = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    members, drawn, size = np.split(order, first[1:]), [], 0
    while size < count:
        one = members[dice.integers(len(members))]
        drawn.append(payers[one[dice.random(len(one)) * weight.max() < weight[one]]])
        size += len(drawn[-1])
    return np.concatenate(drawn)[:count]


def _of_log(log: ReplayLog) -> ReplayLine:
    known = int(log.closed.sum())
    nothing = Interval(0.0, 0.0, 0.0)
    return ReplayLine("the log", "", log.mean_reward, nothing, known, float(known), _shares(log.arm, log))


def check_propensities(log: ReplayLog) -> None:
    """Refuse propensities that the log itself contradicts.

    Each arm's decisions, each divided by its propensity, add up to the number of all decisions,
    but for chance.
    """
    for number, name in enumerate(log.arms):
        weight = np.where(log.arm == number, 1.0 / log.propensity, 0.0)
        error = max(float(weight.std()), 1e-12) / np.sqrt(len(weight))
        if abs(float(weight.mean()) - 1.0) > _ASTRAY * error:
            share = 100 * float((log.arm == number).mean())
            raise InputError(
                f"the propensities do not fit the log: arm {name!r} has {share:.3g} % of the decisions, "
                f"where they promise {share / float(weight.mean()):.3g} %"
            )


def walk(log: ReplayLog, policy: Policy, method: Method, key: tuple[int, int]) -> tuple[Ints, Bools]:
    """Walk through the log once; return what the policy chooses at each decision, and which are accepted.

    Under rejection the policy learns from the decisions that are accepted, and from nothing else;
    otherwise it learns from every decision of the log. Neither uses decisions that were cut short.
    """
    ledger = Ledger(policy, log.caps.tolist(), log.steps, seed=key[0], span=log.window, features=log.features)
    contexts = [None] * len(log.at) if log.contexts is None else [[own] for own in log.contexts]
    even = method == "rejection"
    # Rejection evens the propensities out: every choice is accepted with the same chance.
    dice = np.random.Generator(np.random.Philox(key=list(key)))
    least = float(log.chance[log.whole].min())
    spared = (log.whole & (dice.random(len(log.at)) * log.chance < least)).tolist()
    first, age, value, whole_window = (part.tolist() for part in (log.first, log.age, log.value, log.whole))
    coming: list[tuple[float, int, int]] = []  # when, which piece, the ledger's id
    chosen = np.empty(len(log.at), np.int64)
    accepted = np.zeros(len(log.at), np.bool_)
    for i, (now, arm) in enumerate(zip(log.at.tolist(), log.arm.tolist(), strict=True)):
        while coming and coming[0][0] < now:
            _, piece, id_ = heapq.heappop(coming)
            ledger.observe(id_, value[piece], age[piece])
        ledger.tick(now)
        (choice,) = ledger.choose(now, contexts=contexts[i])
        agrees = choice == arm and (spared[i] if even else whole_window[i])
        chosen[i], accepted[i] = choice, agrees
        # What a decision that was cut short paid in all is not known, so there is nothing to learn from it.
        if agrees or (whole_window[i] and not even):
            id_ = ledger.decide(now, arm=arm, contexts=contexts[i])[0].id
            for piece in range(first[i], first[i + 1]):
                heapq.heappush(coming, (now + age[piece], piece, id_))
    return chosen, accepted


def _play(log: ReplayLog, policy: Policy, method: Method, key: tuple[int, int]) -> _Pass:
    chosen, accepted = walk(log, policy, method, key)
    if method == "doubly robust":
        return _doubly_robust(log, chosen)
    used = accepted & log.closed
    weight = used / (1.0 if method == "rejection" else np.maximum(log.chance, 1e-300))
    mass = float(weight.sum())
    return _Pass(
        float(weight @ log.totals / mass) if mass else np.nan,
        int(used.sum()),
        mass**2 / float((weight**2).sum()) if mass else 0.0,
        _shares(chosen[used if method == "rejection" else log.closed], log),
    )


def _doubly_robust(log: ReplayLog, chosen: Ints) -> _Pass:
    """Judge choices by what a model expects of them, corrected by what the log's own choices paid."""
    expected = log.expected[np.arange(len(chosen)), chosen]
    weight = np.where(log.arm == chosen, 1.0 / log.propensity, 0.0)
    mass = float(weight.sum())
    return _Pass(
        float((expected + weight * (log.rewards - expected)).mean()),
        int(np.count_nonzero(weight)),
        mass**2 / float((weight**2).sum()) if mass else 0.0,
        _shares(chosen, log),
    )


def _enough(own_pass: _Pass, label: str, method: Method, log: ReplayLog) -> None:
    if own_pass.effective < LEAST:
        closed = int(log.closed.sum())
        if method == "rejection":
            why = (
                f"a choice is accepted with the smallest propensity, here {log.chance[log.whole].min():.2g}; "
                "a longer log or fewer arms would give more, or --method weighting"
            )
        else:
            why = "the log seldom chose what the policy would, or with very uneven propensities"
        raise InputError(
            f"too little to judge {label} by: {own_pass.used:,} of {closed:,} closed decisions can be used, "
            f"which count as {own_pass.effective:.0f}, where {LEAST} are needed ({why})"
        )


def _line(label: str, method: str, log: ReplayLog, passes: list[_Pass], base: list[float]) -> ReplayLine:
    """Make a line from passes and means: the log's own first, then those of the resampled logs."""
    own, other = np.array([one.value for one in passes]), np.array(base)
    first, wider = passes[0], t_factor(REPEATS - 1)
    reward = within(first.value, wider * float(np.nanstd(own[1:], ddof=1)), *log.possible, first.effective)
    return ReplayLine(
        label,
        method,
        reward,
        difference(reward, log.mean_reward, _correlation(own[1:], other[1:])),
        first.used,
        first.effective,
        first.shares,
    )


def _correlation(one: Floats, other: Floats) -> float:
    known = np.isfinite(one)
    return correlation(one[known], other[known])


def _shares(chosen: Ints, log: ReplayLog) -> tuple[float, ...]:
    counts = np.bincount(chosen, minlength=len(log.arms))
    return tuple((counts / max(len(chosen), 1)).tolist())
