"""An index that is not a number is an error that says whose it is, and never a choice."""

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest

import accrual as ac
from accrual.core.jit import njit
from accrual.engine.batches import Batches, play_batches
from accrual.live.ledger import Ledger
from accrual.policies import totals
from accrual.policies.base import Functions
from accrual.problems.gallery import generate
from accrual.testing.plain_python import in_plain_python


@njit
def index(params, stats, arm, moment):
    if moment.round > 30 or (moment.round == 30 and arm >= 1):
        return math.nan
    return params.cap[arm]


@dataclass(frozen=True)
class Lost(ac.IMED):
    """A policy whose index is not a number for all arms but the first in round 30, then for every arm."""

    functions: ClassVar[Functions] = Functions(index=index, closed=totals.closed)

    @property
    def label(self):
        return "Lost"


class Everywhere:
    """The error of every way to play the policy."""

    def simulation(self, device="cpu"):
        ac.simulate(ac.Problem([1.0] * 3, 4, 2), [ac.UCB1(), Lost()], horizon=50, runs=2, device=device)

    def contexts(self):
        ac.simulate(generate(2, 3, seed=1, window=20), [Lost()], horizon=50, runs=1)

    def batches(self):
        problem = ac.Problem([1.0] * 3, 4, 4)
        play_batches(Batches(problem, 5, 10, [0] * 3, [9] * 3), {"lost": Lost()}, runs=1)

    def ledger(self):
        ledger = Ledger(Lost(), [1.0] * 3, 4)
        for now in range(29):
            ledger.decide(now)
        with pytest.raises(ac.InputError, match="round 30"):
            ledger.choose(29, n=3)
        assert ledger.decisions == ledger.stats.pulls.sum() == 29
        ledger.decide(29)

    def ledger_in_a_batch(self):
        Ledger(Lost(), [1.0] * 3, 4).decide(0, n=40)

    def bandit(self):
        bandit = ac.Bandit(["a", "b", "c"], 4, policy=Lost())
        for _ in range(30):
            bandit.decide()

    def said(self, way):
        try:
            getattr(self, way)()
        except ac.InputError as error:
            return str(error)
        return None


WAYS = ["simulation", "contexts", "batches", "ledger", "ledger_in_a_batch", "bandit"]
SAID = "the index of Lost for arm 1 is not a number in round 30; correct the policy"


@njit
def infinite_index(params, stats, arm, moment):
    return math.inf if arm == moment.round % 3 else -math.inf


@dataclass(frozen=True)
class Infinite(Lost):
    """A policy whose index is infinite for one arm and minus infinity for the others."""

    functions: ClassVar[Functions] = Functions(index=infinite_index, closed=totals.closed)


def test_infinite_indices_are_numbers():
    result = ac.simulate(ac.Problem([1.0] * 3, 4, 2), [Infinite()], horizon=30, runs=1)
    assert result.pulls.tolist() == [[[10, 10, 10]]]


@pytest.mark.parametrize("way", WAYS)
def test_an_index_that_is_not_a_number_is_an_error(way):
    assert Everywhere().said(way) == SAID
    assert in_plain_python(Everywhere(), "said", way) == SAID


# In numba's simulator of a GPU: a block for each chain, then several chains in a block.
SIMULATE = """
import sys
from accrual.engine.cuda import engine as cuda
from test_lost_index import Everywhere

sys.setswitchinterval(1e-4)
cuda._GRID, cuda._BLOCK, cuda._WARP = 1, 2, 2
for threads in (cuda._THREADS, 0):
    cuda._THREADS = threads
    try:
        Everywhere().simulation("cuda")
    except ValueError as error:
        print(error)
    cuda._TEAM_LEAST, cuda._WIDE_MOST, cuda._TABLE_MOST = 2, 0, 0
"""


def test_on_a_gpu_too():
    paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", SIMULATE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [SAID, SAID], done.stderr
