"""Random numbers: published test vectors, and draws that depend on their counters alone."""

import numpy as np
import pytest
from scipy import stats

from accrual.core.jit.compiler import kernel
from accrual.core.random import POLICY, REWARDS, beta, draw, philox

# Random123's known answers for philox4x32-10: counter, key, output.
KNOWN = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN)
def test_philox_known_answers(counter, key, output):
    assert [int(word) for word in philox(*map(np.uint64, counter + key))] == output


def test_a_lane_does_not_depend_on_how_many_are_drawn():
    np.testing.assert_array_equal(draw(5, 2, 9, 3), draw(5, 2, 9, 40)[:3])


def test_every_counter_matters():
    base = draw(5, 2, 9, 8)
    for other in (draw(6, 2, 9, 8), draw(5, 3, 9, 8), draw(5, 2, 10, 8), draw(5, 2, 9, 8, POLICY)):
        assert not np.isclose(base, other).any()
    assert not np.isclose(draw(2**32, 2, 9, 8), draw(0, 2, 9, 8)).any()  # the seed's upper half too
    np.testing.assert_array_equal(base, draw(5, 2, 9, 8, REWARDS))


def test_draws_are_uniform():
    """Kolmogorov-Smirnov on 40,000 draws at fixed counters: p above 0.001 for this seed."""
    sample = np.concatenate([draw(1, run, round_, 20) for run in range(20) for round_ in range(100)])
    assert 0.0 <= sample.min() < sample.max() < 1.0
    assert stats.kstest(sample, "uniform").pvalue > 0.001


@kernel
def _betas(a, b, n):
    out = np.empty(n)
    for i in range(n):
        out[i] = beta(a, b, (4, 1), i + 1, 2)
    return out


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1), (0.5, 0.5), (0.3, 5), (5, 0.3), (2, 3), (1, 7), (100, 400), (1e6, 1e6), (1, 1e5)]
)
def test_beta_draws_have_the_beta_law(a, b):
    """Kolmogorov-Smirnov on 50,000 draws: p above 0.001 for this seed."""
    sample = _betas(float(a), float(b), 50_000)
    assert sample.min() >= 0.0
    assert sample.max() <= 1.0
    assert stats.kstest(sample, stats.beta(a, b).cdf).pvalue > 0.001


def test_beta_draws_stay_in_range_for_extreme_shapes():
    for a, b in [(1e-3, 1e-3), (1e-3, 1e3), (1e9, 1e-2), (1e12, 1e12)]:
        sample = _betas(a, b, 2_000)
        assert np.isfinite(sample).all()
        assert sample.min() >= 0.0
        assert sample.max() <= 1.0
