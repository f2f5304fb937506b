"""The tail after the window: exact laws, bounds that hold where they should, and what nobody can know."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import runpy
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accrual.bounds import truncation_loss
from accrual.core.errors import InputError
from accrual.engine.recording import record
from accrual.logs.estimate.tail import Tail, estimate_tail, payments, window_for
from accrual.policies.age import AgeIMED
from accrual.problems.laws import LumpLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import Continuous

ROOT = Path(__file__).parents[2]
WINDOW = 100
AGE = AgeIMED().edges(WINDOW).astype(float)  # uneven
EVEN = np.linspace(0, WINDOW, 21)[1:]
GRIDS = pytest.mark.parametrize("edges", [AGE, EVEN], ids=["age", "even"])

RISING = {
    "normal": stats.truncnorm(-1, 9, loc=30, scale=30),
    "gamma": stats.gamma(2.5, scale=20),
    "weibull": stats.weibull_min(1.5, scale=50),
    "uniform": stats.uniform(0, 130),
}
FALLING = {
    "power": stats.lomax(1, scale=5),
    "heavier power": stats.lomax(0.5),
    "weibull": stats.weibull_min(0.7, scale=30),
    "two paces": None,
}


def cdf_of(law, name):
    if name == "two paces":
        return lambda age: 1 - 0.7 * np.exp(-np.asarray(age) / 5) - 0.3 * np.exp(-np.asarray(age) / 80)
    return law.cdf


def cut(cdf, edges):
    """The spread in the window and the share after it."""
    shares = np.diff(np.concatenate([[0.0], cdf(edges)]))
    return shares / shares.sum(), 1.0 - float(cdf(edges[-1]))


# --- the estimate ---------------------------------------------------------------------------------


def test_by_hand():
    # The last two of four buckets: 0.15, 0.1, then 0.1 (2/3 + 4/9 + ...) = 0.2 after the window.
    tail = estimate_tail([0.5, 0.25, 0.15, 0.1], edges=[1, 2, 3, 4])
    assert tail.share == pytest.approx(0.2 / 1.2, rel=1e-12)
    assert tail.rate == pytest.approx(math.log(1.5), rel=1e-12)
    assert (tail.low, tail.high, tail.window) == (0.0, 1.0, 4.0)


@GRIDS
@pytest.mark.parametrize("typical", [15, 40, 150])
def test_an_exponential_tail_is_found_exactly(edges, typical):
    shares, truth = cut(stats.expon(scale=typical).cdf, edges)
    tail = estimate_tail(shares, edges)
    assert tail.share == pytest.approx(truth, rel=1e-8)
    assert tail.rate == pytest.approx(1 / typical, rel=1e-8)
    assert not tail.heavier


@GRIDS
@pytest.mark.parametrize("last", [0.2, 0.5, 1])
@pytest.mark.parametrize("name", RISING)
def test_it_is_an_upper_bound_where_the_hazard_rises(name, last, edges):
    shares, truth = cut(RISING[name].cdf, edges)
    tail = estimate_tail(shares, edges, last=last)
    assert tail.share > truth
    assert not tail.heavier


@GRIDS
@pytest.mark.parametrize("last", [0.2, 0.5, 1])
@pytest.mark.parametrize("name", FALLING)
def test_it_is_a_lower_bound_where_the_hazard_falls_and_that_is_noticed(name, last, edges):
    shares, truth = cut(cdf_of(FALLING[name], name), edges)
    tail = estimate_tail(shares, edges, last=last)
    assert tail.share < truth
    assert tail.heavier


@given(
    rates=st.lists(st.floats(0.001, 0.3), min_size=8, max_size=8),
    widths=st.lists(st.floats(0.5, 20), min_size=8, max_size=8),
    last=st.floats(0.05, 1),
)
def test_the_bound_holds_for_every_rising_hazard(rates, widths, last):
    # A hazard that steps up from bucket to bucket; survival is the exponential of minus its integral.
    edges = np.cumsum(widths)
    survival = np.exp(-np.concatenate([[0.0], np.cumsum(np.sort(rates) * widths)]))
    shares = -np.diff(survival)
    tail = estimate_tail(shares / shares.sum(), edges, last=last)
    assert tail.share >= survival[-1] * (1 - 1e-6) - 1e-11
    assert not tail.heavier


@given(truth=st.floats(0.001, 0.999), typical=st.floats(5, 500))
def test_without_an_assumption_the_window_says_nothing(truth, typical):
    # Whatever the tail, some law has it and this spread in the window; the estimate cannot tell.
    shares, _ = cut(stats.expon(scale=typical).cdf, EVEN)
    law = np.concatenate([(1 - truth) * np.cumsum(shares), [1.0]])  # all of the tail at one late age
    seen = np.diff(np.concatenate([[0.0], law[:-1]]))
    assert estimate_tail(seen / seen.sum(), EVEN).share == pytest.approx(estimate_tail(shares, EVEN).share)


def test_what_does_not_fade_has_no_estimate():
    tail = estimate_tail([0.25] * 4, edges=[1, 2, 3, 4])
    assert (tail.share, tail.rate) == (1.0, 0.0)
    with pytest.raises(InputError, match=r"does not reach 0\.99"):
        window_for(tail.cdf)


def test_what_has_ended_has_no_tail():
    tail = estimate_tail([0.5, 0.5, 0, 0], edges=[1, 2, 3, 4])
    assert tail.share == 0.0
    assert tail.cdf([1, 4, 9]).tolist() == [0.5, 1.0, 1.0]


def test_a_tail_goes_on_where_the_window_ends():
    law = stats.expon(scale=40)
    shares, _ = cut(law.cdf, AGE)
    tail = estimate_tail(shares, AGE)
    ages = np.array([*AGE, 150.0, 400.0])
    assert tail.cdf(ages) == pytest.approx(law.cdf(ages), rel=1e-8)
    longer = Continuous(tail.cdf, window=200)
    assert longer.tail == pytest.approx(math.exp(-5), rel=1e-8)
    assert window_for(longer, 0.999) == pytest.approx(40 * math.log(1000), rel=1e-8)


# --- the interval ---------------------------------------------------------------------------------


@pytest.mark.parametrize("payments", [150, 3000])
def test_the_interval_covers(payments):
    # 200 logs: the share covered has a standard error of 0.015, and four of them are allowed.
    dice = np.random.default_rng(5)
    shares, truth = cut(stats.expon(scale=40).cdf, EVEN)
    covered = heavier = 0
    for _ in range(200):
        counts = dice.poisson(payments * shares)
        tail = estimate_tail(counts / counts.sum(), EVEN, counts)
        covered += tail.low <= truth <= tail.high
        heavier += tail.heavier
    assert 0.95 - 0.06 <= covered / 200 <= 0.95 + 0.045
    assert heavier / 200 <= 0.025 + 0.045


def test_the_interval_is_narrower_with_more_payments_and_a_lower_level():
    shares, _ = cut(stats.expon(scale=40).cdf, EVEN)

    def width(count, level=0.95):
        tail = estimate_tail(shares, EVEN, count * shares, level=level)
        assert tail.low < tail.share < tail.high
        return tail.high - tail.low

    assert width(100_000) < width(1000) / 5
    assert width(1000, level=0.5) < width(1000) / 2


def test_nothing_late_is_not_taken_for_proof_of_no_tail():
    counts = np.array([100, 0, 0, 0])
    tail = estimate_tail(counts / 100, edges=[1, 2, 3, 4], counts=counts)
    assert tail.share == 0.0
    assert 0.0 < tail.high < 0.01
    assert not tail.heavier


def test_payments_of_a_learner():
    # Lumps of 1 in a round of their own: payments are binomial, and n p / (1 - p) are about as many.
    shape = Continuous(stats.expon(scale=30).cdf, WINDOW)
    problem = Problem([1.0], WINDOW, WINDOW, LumpLaw(0.4 * (1 - shape.tail), shape))
    run = record(problem, AgeIMED(), horizon=4000).stats
    counts = payments(run.seen, run.paid, run.square)
    paid, seen = run.paid[0], run.seen[0]
    assert counts == pytest.approx(paid / (1 - paid / seen), rel=1e-9)
    tail = estimate_tail(paid / seen / (paid / seen).sum(), AGE, counts)
    assert tail.low < shape.tail < tail.high
    assert tail.high < 0.12


def test_pay_that_never_varies_leaves_no_doubt():
    counts = payments([[50, 50, 50]], [[20, 10, 5]], [[8, 2, 0.5]])
    tail = estimate_tail([4 / 7, 2 / 7, 1 / 7], [1, 2, 3], counts)
    assert tail.low == pytest.approx(tail.high, rel=1e-4)


# --- windows --------------------------------------------------------------------------------------


@given(share=st.floats(0.01, 0.999), typical=st.floats(1e-3, 1e6))
def test_the_window_for_a_share(share, typical):
    window = window_for(lambda age: 1 - np.exp(-age / typical), share)
    assert window == pytest.approx(-typical * math.log1p(-share), rel=1e-6)


def test_the_window_of_steps_is_the_age_of_the_step():
    assert window_for(lambda age: np.where(age >= 7, 1.0, 0.3), 0.5) == pytest.approx(7)


# --- what truncation costs ------------------------------------------------------------------------

shares_of_reward = st.floats(0, 0.95)
arms = st.lists(
    st.tuples(st.floats(0, 1), shares_of_reward, shares_of_reward, st.floats(0, 1)), min_size=1, max_size=6
)


@given(arms)
def test_truncation_never_costs_more(arms):
    full = np.array([mean for mean, *_ in arms])
    low = np.array([min(a, b) for _, a, b, _ in arms])
    high = np.array([max(a, b) for _, a, b, _ in arms])
    tail = low + np.array([where for *_, where in arms]) * (high - low)
    seen = (1 - tail) * full
    chosen = seen.argmax()
    loss = full.max() - full[chosen]
    bound = truncation_loss(seen, high, low)
    assert loss <= bound + 1e-12
    # The forms in the text: in means of all reward, and for a learner that chooses anything.
    most, least = high.max(), low.min()
    assert loss <= full.max() * (most - least) / (1 - least) + 1e-12
    bias = seen.max() * (1 / (1 - most) - 1 / (1 - least))
    assert (full.max() - full <= bias + (seen.max() - seen) / (1 - least) + 1e-12).all()


@given(st.lists(st.tuples(st.floats(0, 1), shares_of_reward, shares_of_reward), min_size=2, max_size=4))
def test_the_truncation_bound_is_reached(arms):
    seen = np.array([mean for mean, *_ in arms])
    low = np.array([min(a, b) for _, a, b in arms])
    high = np.array([max(a, b) for _, a, b in arms])
    worst = 0.0
    for corner in itertools.product([False, True], repeat=len(seen)):  # every extreme of the tails
        full = seen / (1 - np.where(corner, high, low))
        worst = max(worst, *(full.max() - full[seen == seen.max()]))
    assert truncation_loss(seen, high, low) == pytest.approx(worst, abs=1e-12)


def test_tails_that_are_alike_cost_nothing_and_unknown_ones_anything():
    assert truncation_loss([0.5, 0.4], tail=0.7, least=0.7) == 0.0
    assert truncation_loss([0.5, 0.4], tail=[1.0, 0.1]) == 0.0  # the favourite's own tail only helps
    assert truncation_loss([0.5, 0.0], tail=[0.1, 1.0]) == math.inf
    assert truncation_loss([0.5], tail=1.0) == 0.0


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: estimate_tail([0.5, 0.5], [1, 2, 3]), "2 shares need 2 edges"),
        (lambda: estimate_tail([0.5, 0.5], [2, 1]), "edges must be finite, above 0, and each above"),
        (lambda: estimate_tail([0.5, 0.5], [0, 1]), "edges must be finite, above 0, and each above"),
        (lambda: estimate_tail([0.5, 0.5], "ab"), "edges must be a list of ages"),
        (lambda: estimate_tail([1.0], [1]), "at least two buckets"),
        (lambda: estimate_tail([0.5, 0.6], [1, 2]), r"sums to 1\.1"),
        (lambda: estimate_tail([0.5, 0.5], [1, 2], counts=[1]), "counts must be 2 numbers"),
        (lambda: estimate_tail([0.5, 0.5], [1, 2], counts=[1, -1]), "counts must be 2 numbers"),
        (lambda: estimate_tail([0.5, 0.5], [1, 2], counts="x"), "counts must be 2 numbers"),
        (lambda: estimate_tail([0.5, 0.5], [1, 2], last=0), "last must be above 0"),
        (lambda: estimate_tail([0.5, 0.5], [1, 2], level=1.5), "level must be above 0"),
        (lambda: payments([[1, 2]], [[1]], [[1]]), "of one shape"),
        (lambda: window_for(cast(Any, 3)), "a cdf or a continuous spread"),
        (lambda: window_for(np.tanh, share=1), "share must be above 0 and below 1"),
        (lambda: truncation_loss([[1]], 0.1), "means must be a flat list"),
        (lambda: truncation_loss([-1], 0.1), "means must be a flat list"),
        (lambda: truncation_loss([1, 2], [0.1, 0.2, 0.3]), "one per arm"),
        (lambda: truncation_loss([1, 2], 0.1, 0.2), "0 <= least <= tail <= 1"),
    ],
)
def test_bad_input_is_one_clear_line(call, says):
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


# --- the example and the pages --------------------------------------------------------------------


def test_the_example_says_what_it_should(capsys):
    runpy.run_path(str(ROOT / "examples" / "unbounded.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = [
        [float(word) for word in re.findall(r"inf|[\d.]+", line)]
        for line in printed.splitlines()
        if re.match(r" +\d+ .*\d$", line)
    ]
    assert [row[0] for row in rows] == [20, 40, 80, 160, 320, 1280, 5120]
    for _, truth, _, low, high, loss, most, *_ in rows:
        assert low - 0.001 <= truth <= high + 0.001
        assert loss <= most
    regret = {row[0]: row[-2:] for row in rows}
    assert regret[20][0] > 5 * regret[320][0]  # too short a window costs for good
    assert regret[5120][1] > 2 * regret[5120][0]  # and a long one costs a learner that waits for it
    assert printed.count("True") >= 1  # a power law gives itself away


def test_every_attribute_of_a_tail_is_described():
    text = inspect.getsource(Tail)
    for name in Tail.__dataclass_fields__:
        described = rf'^    {name}: .*\n(?:    high: .*\n)?    """'  # low and high share one
        assert name.startswith("_") or re.search(described, text, re.MULTILINE), name
