"""Reward laws as arrays, and the one function that draws a decision's pay from them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from accrual.core.jit import njit_noinline
from accrual.environment.inversion import invert, table
from accrual.laws import (
    BernoulliLaw,
    BetaLaw,
    EmpiricalLaw,
    Law,
    LeavingLaw,
    LumpLaw,
    ScaledLaw,
    UniformLaw,
)
from accrual.problem import Problem
from accrual.spread import as_spread

_UNIFORM, _BETA, _BERNOULLI, _LEAVING, _LUMP, _EMPIRICAL = range(6)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Laws(NamedTuple):
    """The distinct laws of a problem, packed for kernels."""

    kind: Ints  # laws
    caps: Floats  # laws x groups: the most a group pays, as a share of the arm's cap
    chance: Floats  # laws x groups: the u below which a group pays; a lump's lie one above another
    stay: Floats  # laws x groups: the u from which someone leaves
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
        stay=np.zeros(shape),
        shape=np.zeros(shape, np.int64),
        tables=np.zeros((0, 1, 1)),
        rows=np.zeros((0, groups)),
        row_first=np.zeros(len(distinct), np.int64),
        row_count=np.zeros(len(distinct), np.int64),
        of_arm=np.array([number[id(law)] for law in problem.arm_laws], np.int64),
    )
    shapes: dict[tuple[float, float], int] = {}
    logged: list[Floats] = []
    for i, given in enumerate(distinct.values()):
        law, scale = _unscaled(given)
        if isinstance(law, EmpiricalLaw):
            rows = law.table(groups)
            laws.kind[i] = _EMPIRICAL
            laws.row_first[i] = sum(map(len, logged))
            laws.row_count[i] = len(rows)
            logged.append(scale * rows)
        elif isinstance(law, LumpLaw):
            laws.kind[i] = _LUMP
            laws.caps[i] = scale
            laws.chance[i] = law.p * np.cumsum(as_spread(law.spread).pmf(groups))
        elif isinstance(law, LeavingLaw):
            laws.kind[i] = _LEAVING
            laws.caps[i] = scale * as_spread(law.spread).pmf(groups)
            laws.stay[i], p = law.chances(groups)
            laws.chance[i] = laws.stay[i] * p
        elif isinstance(law, BetaLaw):
            laws.kind[i] = _BETA
            laws.caps[i] = scale * law.caps(groups)
            for g, (a, b) in enumerate(zip(*law.shapes(groups), strict=True)):
                laws.shape[i, g] = shapes.setdefault((a, b), len(shapes))
        elif isinstance(law, BernoulliLaw):
            laws.kind[i] = _BERNOULLI
            laws.caps[i] = scale * law.caps(groups)
            laws.chance[i] = np.broadcast_to(law.p, groups)
        elif isinstance(law, UniformLaw):
            laws.kind[i] = _UNIFORM
            laws.caps[i] = scale * law.caps(groups)
        else:
            raise TypeError(f"no way to draw from a {type(law).__name__}")
    return laws._replace(
        tables=np.array([_beta_table(a, b) for a, b in shapes]) if shapes else laws.tables,
        rows=np.concatenate(logged) if logged else laws.rows,
    )


def _unscaled(law: Law) -> tuple[Law, float]:
    scale = 1.0
    while isinstance(law, ScaledLaw):
        scale *= law.scale
        law = law.law
    return law, scale


@functools.lru_cache(maxsize=1024)  # 24 kB each, and a millisecond or more to make
def _beta_table(a: float, b: float) -> Floats:
    return table(lambda p, upper: (betainccinv if upper else betaincinv)(a, b, p))


@njit_noinline
def draw_pay(laws: Laws, law: int, u: Floats, pay: Floats) -> None:
    """Write into `pay` what each decision's groups pay, as shares of the cap.

    `pay` is decisions x groups; `u` holds the uniforms, decisions x at least as many. They may be one.
    """
    decisions, groups = pay.shape
    kind = laws.kind[law]
    caps = laws.caps[law]
    if kind == _UNIFORM:
        for i in range(decisions):
            for g in range(groups):
                k = np.uint64(g)  # numba then drops its tests for indices below 0
                pay[i, k] = caps[k] * u[i, k]
    elif kind == _BETA:
        for g in range(groups):
            quantiles = laws.tables[laws.shape[law, g]]
            for i in range(decisions):
                pay[i, g] = caps[g] * invert(quantiles, u[i, g])
    elif kind == _BERNOULLI:
        for i in range(decisions):
            for g in range(groups):
                pay[i, g] = caps[g] if u[i, g] < laws.chance[law, g] else 0.0
    elif kind == _LEAVING:
        # One u says both: below `stay` they stay, and below `chance`, which is lower, the group pays.
        for i in range(decisions):
            there = True
            for g in range(groups):
                there = there and u[i, g] < laws.stay[law, g]
                pay[i, g] = caps[g] if there and u[i, g] < laws.chance[law, g] else 0.0
    elif kind == _LUMP:
        for i in range(decisions):
            below, when = 0.0, u[i, 0]
            for g in range(groups):
                pay[i, g] = caps[g] if below <= when < laws.chance[law, g] else 0.0
                below = laws.chance[law, g]
    else:
        for i in range(decisions):
            row = laws.row_first[law] + np.int64(u[i, 0] * laws.row_count[law])
            for g in range(groups):
                pay[i, g] = laws.rows[row, g]
