"""A reward law of your own: a tip that grows the longer someone waits for it.

python examples/own_law.py
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import accrual as ac
from accrual.core.arrays import Floats
from accrual.core.jit import njit
from accrual.problems.laws import Law


class TipParams(NamedTuple):
    chance: Floats  # one number: the probability of a tip
    sizes: Floats  # groups: what a tip in this group pays


@njit
def draw_tip(params: TipParams, u: Floats, pay: Floats) -> None:
    """The first number says whether there is a tip, and if so, its place below `chance` says when."""
    decisions, groups = pay.shape
    for i in range(decisions):
        place = u[i, 0] / params.chance[0] * groups  # read before pay is written: the arrays may be one
        for g in range(groups):
            pay[i, g] = params.sizes[g] if g <= place < g + 1 else 0.0


@dataclass(frozen=True)
class TipLaw(Law):
    """A decision pays one tip, in any group alike; it grows evenly from `least` to 1."""

    chance: float
    least: float

    draw = staticmethod(draw_tip)

    def params(self, groups: int, scale: float) -> TipParams:
        return TipParams(np.array([self.chance]), scale * np.linspace(self.least, 1.0, groups))

    def means(self, groups: int) -> Floats:
        if not (0.0 < self.chance <= 1.0 and 0.0 <= self.least <= 1.0):
            raise ac.InputError(f"a tip needs a chance in (0, 1] and a least in [0, 1], not {self}")
        return self.chance / groups * np.linspace(self.least, 1.0, groups)


if __name__ == "__main__":
    laws = [TipLaw(0.5, 0.5), TipLaw(0.6, 0.0), ac.LumpLaw(0.3)]
    problem = ac.Problem(caps=[10.0] * 3, window=100, groups=20, laws=laws)
    result = ac.simulate(problem, [ac.UCB1(), ac.AgeIMED()], horizon=5_000, runs=10)
    print(result.table()[["mean", "se"]].round(0))
