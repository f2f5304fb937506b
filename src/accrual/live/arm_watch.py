"""What follows when an arm is found worse on a guardrail, or to pay otherwise than before.

That is a line in the log and, if a guardrail asks for it, the arm's retirement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from accrual.live.guardrails import Guardrail
from accrual.live.ledger import Ledger
from accrual.store.base import RetireArm

log = logging.getLogger("accrual.live")


class ArmWatch:
    """Looks for arms that guardrails have found worse, and for arms that no longer pay as they did.

    Every worker that shares a bandit folds the same log and finds the same; the first to retire an arm
    does so for all.

    Parameters
    ----------
    bandit : str
        Its name.
    guardrails : sequence of (str, Guardrail)
    ledger : Ledger
        The bandit's: what it has found by now is not logged again.
    name_of : callable
        Gives an arm's name.
    """

    def __init__(
        self,
        bandit: str,
        guardrails: Sequence[tuple[str, Guardrail]],
        ledger: Ledger,
        name_of: Callable[[int], str],
    ) -> None:
        self._bandit = bandit
        self._guardrails = guardrails
        self._name_of = name_of
        self._known = ledger.guards.worse != 0
        self._changed = ledger.alarms.raised != 0

    def _say_changed(self, ledger: Ledger) -> None:
        """Log the arms that have been found to pay otherwise than before."""
        alarms, known = ledger.alarms, self._changed
        self._changed = alarms.raised != 0
        new = self._changed.copy()
        new[: len(known)] &= ~known
        for arm in np.flatnonzero(new).tolist():
            lately, before = alarms.found[arm].tolist()
            log.warning(
                "an arm no longer pays as it did",
                extra={
                    "bandit": self._bandit, "arm": self._name_of(arm), "before": before, "lately": lately,
                    "decision": int(alarms.raised[arm]) - 1,
                },
            )  # fmt: skip

    def retiring(self, ledger: Ledger) -> list[RetireArm]:
        """Log what is new, and return the retirements that are due: at least one arm stays in play."""
        if np.count_nonzero(ledger.alarms.raised):
            self._say_changed(ledger)
        worse = ledger.guards.worse
        if not np.count_nonzero(worse):  # the common case
            return []
        found, known = worse != 0, self._known
        self._known = found
        new = found.copy()
        new[:, : known.shape[1]] &= ~known
        for number, arm in np.argwhere(new).tolist():
            name, rail = self._guardrails[number]
            log.warning(
                "a guardrail has found an arm worse",
                extra={
                    "bandit": self._bandit, "guardrail": name, "arm": self._name_of(arm),
                    "margin": rail.margin, "action": rail.action,
                    "closed_decisions": int(worse[number, arm]),
                },
            )  # fmt: skip
        strict = [rail.action == "retire" for _, rail in self._guardrails]
        due = [arm for arm in ledger.arms.in_play if found[strict, arm].any()]
        return [RetireArm(arm) for arm in due[: len(ledger.arms.in_play) - 1]]
