"""Reward laws as arrays, and the one function that draws a decision's pay from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from accrual.core.jit import njit
from accrual.environment.inversion import invert, table
from accrual.problem import BernoulliLaw, BetaLaw, EmpiricalLaw, Law, Problem, UniformLaw

_UNIFORM, _BETA, _BERNOULLI, _EMPIRICAL = range(4)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Laws(NamedTuple):
    """The distinct laws of a problem, packed for kernels."""

    kind: Ints  # laws
    caps: Floats  # laws x groups: the most a group pays, as a share of the arm's cap
    chance: Floats  # laws x groups: Bernoulli's p
    shape: Ints  # laws x groups: row of `tables`
    tables: Floats  # Beta quantiles, shapes x cells x coefficients
    rows: Floats  # logged decisions x groups, all empirical laws one after another
    row_first: Ints  # laws: where its rows begin
    row_count: Ints  # laws: how many rows it has
    of_arm: Ints  # arms: the law of each


def pack(problem: Problem) -> Laws:
    """The laws of `problem`, each distinct one once."""
    distinct: dict[int, Law] = {id(law): law for law in problem.arm_laws}
    number = {key: i for i, key in enumerate(distinct)}
    groups = problem.groups
    shape = (len(distinct), groups)
    laws = Laws(
        kind=np.zeros(len(distinct), np.int64),
        caps=np.zeros(shape),
        chance=np.zeros(shape),
        shape=np.zeros(shape, np.int64),
        tables=np.zeros((0, 1, 1)),
        rows=np.zeros((0, groups)),
        row_first=np.zeros(len(distinct), np.int64),
        row_count=np.zeros(len(distinct), np.int64),
        of_arm=np.array([number[id(law)] for law in problem.arm_laws], np.int64),
    )
    shapes: dict[tuple[float, float], int] = {}
    logged: list[Floats] = []
    for i, law in enumerate(distinct.values()):
        if isinstance(law, EmpiricalLaw):
            rows = law.table(groups)
            laws.kind[i] = _EMPIRICAL
            laws.row_first[i] = sum(map(len, logged))
            laws.row_count[i] = len(rows)
            logged.append(rows)
        elif isinstance(law, BetaLaw):
            laws.kind[i] = _BETA
            laws.caps[i] = law.caps(groups)
            for g, (a, b) in enumerate(zip(*law.shapes(groups), strict=True)):
                laws.shape[i, g] = shapes.setdefault((a, b), len(shapes))
        elif isinstance(law, BernoulliLaw):
            laws.kind[i] = _BERNOULLI
            laws.caps[i] = law.caps(groups)
            laws.chance[i] = np.broadcast_to(law.p, groups)
        elif isinstance(law, UniformLaw):
            laws.kind[i] = _UNIFORM
            laws.caps[i] = law.caps(groups)
        else:
            raise TypeError(f"no way to draw from a {type(law).__name__}")
    return laws._replace(
        tables=np.array([_beta_table(a, b) for a, b in shapes]) if shapes else laws.tables,
        rows=np.concatenate(logged) if logged else laws.rows,
    )


def _beta_table(a: float, b: float) -> Floats:
    return table(lambda p, upper: (betainccinv if upper else betaincinv)(a, b, p))


@njit
def draw_pay(laws: Laws, law: int, u: Floats, pay: Floats) -> None:
    """Write into `pay` what each group pays, as shares of the cap, from the uniforms `u`."""
    groups = pay.shape[0]
    kind = laws.kind[law]
    if kind == _UNIFORM:
        for g in range(groups):
            pay[g] = laws.caps[law, g] * u[g]
    elif kind == _BETA:
        for g in range(groups):
            pay[g] = laws.caps[law, g] * invert(laws.tables[laws.shape[law, g]], u[g])
    elif kind == _BERNOULLI:
        for g in range(groups):
            pay[g] = laws.caps[law, g] if u[g] < laws.chance[law, g] else 0.0
    else:
        row = laws.row_first[law] + np.int64(u[0] * laws.row_count[law])
        for g in range(groups):
            pay[g] = laws.rows[row, g]
