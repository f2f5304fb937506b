"""What a replay found, in words and as a table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from accrual.core.errors import need
from accrual.core.files import replacing
from accrual.core.number_text import figure, notebook_html
from accrual.evaluate.replay.log import ReplayLog
from accrual.evaluate.replay.replay import ReplayLine

_READ = {
    "rejection": "Policies that learn ran by themselves, on the decisions for which the log had chosen as "
    "they would: at a fraction of its traffic.",
    "weighting": "Policies that learn did so from all that the log had chosen, and were asked at every "
    "decision.",
    "doubly robust": "Policies that learn did so from all that the log had chosen, and were asked at every "
    "decision. A model says what their choices would pay, and the log's own choices put it right.",
}


@dataclass(frozen=True)
class ReplayResult:
    """What `accrual.replay` found.

    Attributes
    ----------
    log : ReplayLog
    lines : list of ReplayLine
        The first is the log itself, then one for each policy that learns and three for each fixed one.
    method : str
        By which policies that learn were judged.
    """

    log: ReplayLog = field(repr=False)
    lines: list[ReplayLine]
    method: str

    def summary(self) -> str:
        """Say in words what was found, one or two sentences to a line."""
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
        return "\n".join(sentences)

    def rows(self) -> list[dict[str, Any]]:
        """Give a dict for each line: reward and difference to the log, with their 95 % intervals."""
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
        """Give what each policy would have paid as a pandas DataFrame."""
        return need("pandas", "frames").DataFrame(self.rows()).set_index(["policy", "method"])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the reward of each line with its interval; returns matplotlib's Axes."""
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
