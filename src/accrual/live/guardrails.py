"""Guardrails: a second stream of pieces, such as refunds, of which no arm may have much more than another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from accrual.core.errors import InputError, only
from accrual.core.jit import python_function
from accrual.live.evidence import CUT, ERROR, LOW, SCORED
from accrual.live.guards import Guards, evidence_of, least_excess
from accrual.live.sequences import estimates

ACTIONS = ("flag", "retire")
GUARDRAILS_MOST = 20


class Guardrail(NamedTuple):
    """What is asked of a second stream of pieces, of which less is better.

    An arm is worse when it is shown to have more of the stream than the best other arm in play, by more than
    the margin. The chance that a guardrail ever finds an arm worse that is not is at most 5 %, for all arms
    together and however often one looks.

    Attributes
    ----------
    cap : float
        The greatest total of the stream for one decision.
    margin : float
        By how much an arm may have more, for a decision on average: 0.02 of refunds that are 0 or 1 are two
        more refunds in a hundred decisions.
    action : {"flag", "retire"}
        What becomes of an arm that is worse: it is only shown and logged, or it is also retired.

    Examples
    --------
    >>> import accrual as ac
    >>> bandit = ac.Bandit(["jazz", "rock"], window=80, floor=0.1,
    ...                    guardrails={"refunds": ac.Guardrail(margin=0.02)})
    >>> d = bandit.decide()
    >>> bandit.observe(d.id, 1.0, age=0, stream="refunds").status
    <Status.STORED: 'stored'>
    >>> print(bandit.state().guardrails[0].sentence)
    No arm is known to be worse on refunds.
    """

    cap: float = 1.0
    margin: float = 0.0
    action: str = "flag"


class GuardedArm(NamedTuple):
    """How an arm does on a guardrail."""

    name: str
    decisions: int  # closed ones that count
    mean: float | None  # of the stream, for a decision; None before one has closed
    excess: (
        float | None
    )  # estimated: how much more than the best other arm in play; None if it is not in play
    excess_least: float | None  # the same at the least: holds for all arms and at all times together
    worse: bool  # whether it was shown to have more by more than the margin
    retired: bool


class GuardrailState(NamedTuple):
    """What is known of the arms on one guardrail.

    Attributes
    ----------
    name : str
    cap, margin : float
    action : {"flag", "retire"}
    error : float
        The chance of ever finding an arm worse that is not.
    scored, cut : int
        Closed decisions that count; totals of the stream that were cut off at the cap.
    reason : str
        Why nothing can be said; empty where something can, now or later.
    sentence : str
        What is known, in words.
    arms : list of GuardedArm
    """

    name: str
    cap: float
    margin: float
    action: str
    error: float
    scored: int
    cut: int
    reason: str
    sentence: str
    arms: list[GuardedArm]

    @property
    def outcome(self) -> str:
        """Which of `OUTCOMES` it is."""
        if any(arm.worse for arm in self.arms):
            return OUTCOMES[0]
        return OUTCOMES[2 if self.reason else 1]


OUTCOMES = ("worse_arms", "none_worse", "cannot_tell")


def checked_guardrail(name: str, given: Any) -> Guardrail:
    """Return a guardrail as a user gives it, if it can be one."""
    if not isinstance(given, Guardrail):
        raise InputError(f"the guardrail {name!r} must be a Guardrail(cap=1.0, margin=0.02), not {given!r}")
    only("action of a guardrail", (given.action,), ACTIONS)
    cap, margin = given.cap, given.margin
    if isinstance(cap, bool) or not isinstance(cap, int | float):
        raise InputError(f"the cap of guardrail {name!r} must be a number, not {cap!r}")
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0.0 <= margin < cap:
        raise InputError(f"the margin of guardrail {name!r} must be from 0 to below its cap, not {margin!r}")
    return Guardrail(float(cap), float(margin), given.action)


def guardrail_states(
    guardrails: Sequence[tuple[str, Guardrail]],
    guards: Guards,
    playing: Sequence[int],
    name_of: Callable[[int], str],
) -> list[GuardrailState]:
    """Return what is known of each guardrail; `playing` are the arms in play."""
    return [
        _state(name, rail, guards, number, playing, name_of) for number, (name, rail) in enumerate(guardrails)
    ]


def _state(
    name: str, rail: Guardrail, guards: Guards, number: int, playing: Sequence[int],
    name_of: Callable[[int], str],
) -> GuardrailState:  # fmt: skip
    evidence = python_function(evidence_of)(guards, number)
    scored = int(evidence.counts[SCORED])
    reason = ""
    if len(playing) < 2:
        reason = "there is nothing to compare, with fewer than two arms in play"
    elif evidence.counts[LOW]:
        reason = "the floor was raised, and earlier propensities are below it"
    elif evidence.unit[0] == 0.0:
        reason = "an arm in play has no part of the floor"
    excess: dict[int, tuple[float, float]] = {}
    if scored and not reason:
        difference, _ = estimates(evidence)
        least = least_excess(evidence, playing)
        for place, arm in enumerate(playing):
            others = [other for other in playing if other != arm]
            excess[arm] = (float(difference[arm, others].max()), float(least[place]))
    arms = []
    for arm, (count, *_, total, _) in enumerate(evidence.heights[:-1].tolist()):
        mean = total / count if count else None
        estimated, at_least = excess.get(arm, (None, None))
        worse, retired = bool(guards.worse[number, arm]), arm not in playing
        arms.append(GuardedArm(name_of(arm), int(count), mean, estimated, at_least, worse, retired))
    return GuardrailState(
        name,
        rail.cap,
        rail.margin,
        rail.action,
        ERROR,
        scored,
        int(evidence.counts[CUT]),
        reason,
        _sentence(name, rail, [arm for arm in arms if arm.worse], reason),
        arms,
    )


def _sentence(name: str, rail: Guardrail, worse: Sequence[GuardedArm], reason: str) -> str:
    if worse:
        said = [arm.name + (" (retired)" if arm.retired else "") for arm in worse]
        names = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
        return (
            f"Worse on {name}: {names}, by more than {rail.margin:g} for a decision than the best other arm. "
            f"The chance that this guardrail ever says so wrongly is at most {100 * ERROR:g} %, however "
            "often one looks."
        )
    if reason:
        return f"Nothing can be said of {name}: {reason}."
    return f"No arm is known to be worse on {name}."
