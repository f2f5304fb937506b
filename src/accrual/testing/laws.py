"""The suite for reward laws.

Subclass it in a test file, say how to make laws, and pytest does the rest::

    from accrual.testing import LawSuite

    class TestMine(LawSuite):
        def make_laws(self):
            return [Mine(0.3), Mine(0.9, spread="end")]
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.jit import python_function
from accrual.core.random import draw
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import pack
from accrual.engine.recording import record
from accrual.engine.simulate import simulate
from accrual.policies.tpucbfrg import TPUCBFR
from accrual.policies.ucb1 import UCB1
from accrual.problems.laws import Law, ScaledLaw, UniformLaw
from accrual.problems.problem import Problem

_DRAWS = 40_000
_ROUNDS = 30  # in plain Python


class LawSuite(ABC):
    """What any law must do, whatever it pays.

    Attributes
    ----------
    groups : int
        The number of groups with which the laws are tried; an even number.
    """

    groups: ClassVar[int] = 4

    @abstractmethod
    def make_laws(self) -> Sequence[Law]:
        """Return the laws to test: one or more, of one class with various settings or of several classes."""

    def test_mean_pay_of_each_group(self) -> None:
        """Many draws have the mean that `Law.means` says, in each group and in total.

        Within five standard errors of 40,000 draws, which a right law exceeds once in 1.7 million
        comparisons. A law that pays the same in every draw has to meet its mean to 1e-12.
        """
        for law in self.make_laws():
            pay, means = self._draw(law), law.means(self.groups)
            assert means.shape == (self.groups,), f"{law}: means must give one number for each group"
            for drawn, mean in [*zip(pay.T, means, strict=True), (pay.sum(axis=1), means.sum())]:
                error = drawn.std(ddof=1) / np.sqrt(len(drawn))
                assert abs(drawn.mean() - mean) <= 5 * error + 1e-12, str(law)

    def test_pay_stays_within_the_cap(self) -> None:
        """No group pays less than nothing, and no decision more than its cap."""
        for law in self.make_laws():
            pay = self._draw(law)
            assert pay.min() >= 0.0, str(law)
            assert pay.sum(axis=1).max() <= 1.0 + 1e-12, str(law)

    def test_pay_depends_on_the_decisions_own_numbers_alone(self) -> None:
        """Decisions drawn one by one or in another order pay the same, also if written over the numbers."""
        u = _numbers(200, self.groups)
        for law in self.make_laws():
            whole = self._draw(law, u)
            turned = self._draw(law, u[::-1].copy())[::-1]
            singly = np.concatenate([self._draw(law, row[None, :]) for row in u])
            in_place = u.copy()
            law.draw(law.params(self.groups, 1.0), in_place, in_place)
            for other in (turned, singly, in_place):
                np.testing.assert_array_equal(whole, other, err_msg=str(law))

    def test_pay_in_a_problem_with_other_laws(self) -> None:
        """In a problem, each law pays what it pays alone, in spans of any length."""
        laws = [UniformLaw("end"), *self.make_laws(), UniformLaw("begin")]
        problem = Problem([1.0] * len(laws), 2 * self.groups, self.groups, laws)
        rounds = 150
        u = _numbers(rounds, self.groups)
        alone = np.stack([np.cumsum(self._draw(law, u), axis=1) for law in laws], axis=1)
        for span in (150, 7):
            feed = RunFeed(problem, pack(problem), seed=5, run=2)
            parts = []
            for start in range(0, rounds, span):
                length = min(span, rounds - start)
                parts.append(feed.read(length).paid[problem.window : problem.window + length, :, 1:].copy())
            np.testing.assert_array_equal(np.concatenate(parts), alone)

    def test_a_scaled_law_pays_in_proportion(self) -> None:
        """`ScaledLaw` makes every pay smaller by the same factor."""
        u = _numbers(200, self.groups)
        for law in self.make_laws():
            scaled = self._draw(ScaledLaw(law, 0.25), u)
            np.testing.assert_allclose(scaled, 0.25 * self._draw(law, u), rtol=1e-12, err_msg=str(law))

    def test_same_pay_in_plain_python_and_on_a_simulated_gpu(self) -> None:
        """Compiled, interpreted and in numba's CUDA simulator, the numbers are the same to the bit."""
        command = (
            "import importlib, json, sys; import accrual.testing.laws as suite; "
            "sys.setswitchinterval(1e-5); from accrual.engine.cuda import engine; "
            "engine._GRID, engine._BLOCK, engine._WARP = 1, 2, 2; "  # a simulated thread is one of Python's
            "make = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(); "
            "print(json.dumps([suite.fingerprint(make.make_laws(), make.groups, device) "
            "for device in ('cpu', 'cuda')]))"
        )
        environment = {
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "NUMBA_ENABLE_CUDASIM": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        arguments = [sys.executable, "-c", command, type(self).__module__, type(self).__qualname__]
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        compiled = fingerprint(self.make_laws(), self.groups, "cpu")
        for device, found in zip(("plain Python", "simulated GPU"), json.loads(done.stdout), strict=True):
            assert found == compiled, device

    def test_the_compiled_function_takes_its_params(self) -> None:
        """`Law.draw` is compiled, and pays what its Python source does."""
        u = _numbers(50, self.groups)
        for law in self.make_laws():
            pay = np.full((50, self.groups), np.nan)
            python_function(law.draw)(law.params(self.groups, 1.0), u, pay)
            np.testing.assert_array_equal(pay, self._draw(law, u), err_msg=str(law))

    def _draw(self, law: Law, u: Floats | None = None) -> Floats:
        given = _numbers(_DRAWS, self.groups) if u is None else u
        pay = np.full((len(given), self.groups), np.nan)
        law.draw(law.params(self.groups, 1.0), given, pay)
        return pay


@functools.cache
def _numbers(decisions: int, groups: int) -> Floats:
    """Return the random numbers of the first rounds of a run, decisions x groups."""
    numbers = np.array([draw(seed=5, run=2, round_=t, lanes=groups) for t in range(1, decisions + 1)])
    numbers.setflags(write=False)
    return numbers


def fingerprint(laws: Sequence[Law], groups: int, device: str) -> Any:
    """Return what the decisions of short runs pay, and the regret of policies on them, as exact text."""
    problem = Problem([1.0] * len(laws), 2 * groups, groups, laws)
    horizon = len(laws) + _ROUNDS
    policies = [UCB1(), TPUCBFR(groups)]
    result = simulate(problem, policies, horizon, runs=2, seed=3, device=device, checkpoints=5)
    pieces = record(problem, UCB1(), horizon, seed=3).pieces
    return [result.regret.tobytes().hex(), result.pulls.tolist(), pieces.tobytes().hex()]
