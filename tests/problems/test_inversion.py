"""The quantile tables hold their promise: F(x) is within 1e-9 of the u that asked for x."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from accrual.core.jit.compiler import kernel
from accrual.problems.laws import OCTAVES, SIDE, U_ERROR, BetaLaw, invert
from accrual.problems.paper import CONFIGS, SCENARIOS, setting2

Floats = npt.NDArray[np.float64]


@kernel
def _invert_all(table: Floats, u: Floats) -> Floats:
    return np.array([invert(table, v) for v in u])


def _probes() -> Floats:
    """Seven places inside every cell of the table, both halves, and the ends."""
    cells = SIDE // OCTAVES
    start = 2.0 ** -np.arange(2, OCTAVES + 2)
    within = (np.arange(cells)[:, None] + np.array([0.0, 0.07, 0.29, 0.5, 0.71, 0.93, 0.999])) / cells
    lower = np.outer(start, 1.0 + within.ravel()).ravel()
    deep = 2.0 ** -np.linspace(33, 53, 41)
    return np.concatenate([lower, 1.0 - lower, deep, 1.0 - deep, [0.0, 0.25, 0.5, 0.75]])


def _table(a: float, b: float) -> Floats:
    table: Floats = BetaLaw(a, b).params(1, 1.0).tables[0]
    return table


def _errors(table: Floats, a: float, b: float) -> tuple[Floats, Floats]:
    """At every probe: how far F(x) is from u, and x from the exact quantile."""
    u = _probes()
    x = _invert_all(table, u)
    assert ((x > -1e-9) & (x < 1 + 1e-9)).all()
    inside = np.clip(x, 0.0, 1.0)
    below = np.abs(betainc(a, b, inside) - u)
    above = np.abs(betaincc(a, b, inside) - (1.0 - u))
    exact = np.where(u < 0.5, betaincinv(a, b, u), betainccinv(a, b, 1.0 - u))
    return np.where(u < 0.5, below, above), np.abs(x - exact)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("config", CONFIGS)
def test_every_shape_of_setting_2(config, scenario):
    problem = setting2(config, scenario)
    law = problem.arm_laws[0]
    assert isinstance(law, BetaLaw)
    params, shapes = law.params(problem.groups, 1.0), np.transpose(law.shapes(problem.groups))
    for row, (a, b) in dict(zip(params.shape, map(tuple, shapes), strict=True)).items():
        in_u, _ = _errors(params.tables[row], a, b)
        assert in_u.max() <= U_ERROR == 1e-9


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 3.0), (1.0, 30.0), (30.0, 1.0), (400.0, 400.0)])
def test_other_shapes(a, b):
    in_u, _ = _errors(_table(a, b), a, b)
    assert in_u.max() <= U_ERROR


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.5, 0.7), (5.0, 0.4)])
def test_shapes_that_pile_up_at_one(a, b):
    # Between the two largest doubles below 1 such a law has more than 1e-9 of its mass, so no x
    # has the wanted F(x); x itself is then right to 1e-12.
    in_u, in_x = _errors(_table(a, b), a, b)
    assert ((in_u <= U_ERROR) | (in_x <= 1e-12)).all()


def test_the_inverse_rises_with_u():
    u = np.sort(_probes())
    assert (np.diff(_invert_all(_table(2.0, 100.0), u)) >= -1e-12).all()


def test_known_quantiles():
    u = np.array([0.0625, 0.25, 0.5, 0.81])  # F(x) = x**2
    assert _invert_all(_table(2.0, 1.0), u) == pytest.approx(np.sqrt(u), abs=1e-10)
