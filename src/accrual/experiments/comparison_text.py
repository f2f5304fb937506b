"""A comparison's conclusions in words, each with what it rests on."""

from __future__ import annotations

from accrual.core.figures import figure
from accrual.experiments.arm_differences import RESAMPLES
from accrual.experiments.comparison_result import Comparison
from accrual.experiments.comparison_setup import BASELINE, horizon_notes


def conclusions(comparison: Comparison) -> list[str]:
    """Say whether arms differ, which policy loses least, what waiting costs, and what was simulated."""
    horizon = int(comparison.result.rounds[-1])
    return [
        *_arms(comparison), *_policy(comparison), _waiting(comparison),
        *horizon_notes(comparison.setup, horizon),
        f"To play {comparison.best.policy} live: {comparison.live}",
    ]  # fmt: skip


def _arms(comparison: Comparison) -> list[str]:
    signal, first = comparison.setup.possible.signal, comparison.arms[0]
    p = f"p = {signal.p:.3f}" if signal.p > 1 / (RESAMPLES + 1) else f"p ≤ {signal.p:.3f}"
    test = f"resampling test of equal means over {signal.arms:,} arms: {p}"
    size = (
        f"The arms' true means vary by {_percent(signal.spread.value)} of their average "
        f"(95 % {_percent(signal.spread.low)} to {_percent(signal.spread.high)})"
    )
    if not signal.found:
        return [
            f"No sign that arms differ in what they pay ({test}). {size}, and with probability "
            f"{comparison.setup.possible.posterior.alike:.2f} not at all: a ranking of arms, or of policies, "
            "would mostly rank luck. A longer log would tell."
        ]
    rivals = sorted((line for line in comparison.arms if line.best > 0.05), key=lambda line: -line.best)
    if first.best >= 0.95:
        best = f"{first.arm!r} pays best (probability {_chance(first.best)})"
        sure = f"{best}: {first.mean} a decision"
    else:
        names = ", ".join(f"{line.arm!r} ({_chance(line.best)})" for line in rivals[:5])
        sure = f"Which pays best is not certain; the most likely, with their probabilities: {names}"
        if not rivals:
            sure = "Which of them pays best is open: none has a probability above 0.05"
    return [f"Arms differ in what they pay ({test}). {size}. {sure}."]


def _policy(comparison: Comparison) -> list[str]:
    best = comparison.best
    sentence = (
        f"{best.policy} loses least of the policies that can be played: {best.lost} per 1,000 "
        f"decisions, against playing the best arm alone; {best.share.value:.0f} % of its decisions are for "
        "that arm."
    )
    if comparison.rivals:
        sentence += f" It cannot be told from {', '.join(comparison.rivals)}."
    return [sentence]


def _waiting(comparison: Comparison) -> str:
    at_once, pieces, totals = comparison.waiting.costs
    per = (
        f"{BASELINE} loses {figure(at_once.lost.value)} per 1,000 decisions if it sees totals at once, "
        f"{figure(pieces.lost.value)} with pieces, {figure(totals.lost.value)} if it waits for totals"
    )
    saved = comparison.waiting.saved
    if saved is None:
        return f"What pieces save of the cost of waiting cannot be told from chance ({per})."
    return (
        f"Using pieces saves {saved.value:.0f} % (95 % {saved.low:.0f} to {saved.high:.0f}) of what waiting "
        f"for totals costs ({per})."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0.0005 <= share < 0.1 else f"{100 * share:.0f} %"


def _chance(value: float) -> str:
    return "above 0.99" if value > 0.99 else f"{value:.2f}"
