"""Do arms differ, and what may their means be: the test is right in size, luck is not taken for signal."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f_oneway

import accrual as ac
from accrual.evaluate.compare import setup as comparison_setup
from accrual.evaluate.compare.arm_differences import Means, Posterior, differ
from accrual.evaluate.compare.comparison import make_comparison
from accrual.evaluate.compare.possible_problems import PossibleProblems

LAWS = {
    "log-normal": lambda dice, n: dice.lognormal(0.0, 1.2, n),
    "clicks": lambda dice, n: 1.0 * (dice.random(n) < 0.05),
}


def seen_in(totals: list[np.ndarray]) -> Means:
    return Means(
        np.array([float(len(one)) for one in totals]),
        np.array([one.mean() for one in totals]),
        np.array([one.var(ddof=1) for one in totals]),
    )


def p_of(totals: list[np.ndarray], seed: int = 0) -> float:
    seen = seen_in(totals)
    return differ(seen, totals, Posterior(seen), seed).p


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("counts", [(300, 30, 10), (20,) * 30])
def test_arms_that_pay_alike_are_seldom_said_to_differ(law, counts):
    """At 5 %, of 40 logs 7 or more cry wolf in fewer than 4 of 1,000 such tests."""
    cried = 0
    for seed in range(40):
        dice = np.random.default_rng([seed, len(counts)])
        cried += p_of([LAWS[law](dice, n) for n in counts], seed) < 0.05
    assert cried <= 6


def test_arms_that_only_vary_more_are_not_said_to_differ():
    """The same mean, 2,000 decisions of spread 1 and 60 of spread 30: a test on one common variance would
    find a difference nearly always (the control), as the few that vary are 30 times as far off."""
    cried = naive = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        totals = [100 + dice.standard_normal(2000), 100 + 30 * dice.standard_normal(60)]
        cried += p_of(totals, seed) < 0.05
        naive += f_oneway(*totals).pvalue < 0.05
    assert cried <= 6
    assert naive > 20


def test_arms_that_differ_are_found():
    dice = np.random.default_rng(1)
    totals = [scale * dice.lognormal(0.0, 1.0, 800) for scale in (1.0, 1.0, 1.4)]
    assert p_of(totals) <= 0.01
    assert p_of([np.ones(50), np.ones(30)]) == 1.0  # nothing varies, nothing differs


@pytest.mark.parametrize("law", LAWS)
def test_means_are_drawn_towards_each_other_by_as_much_as_they_are_uncertain(law):
    """100 arms alike, 30 decisions each: the best looks at least half again as good as the average,
    and what is left of that is a small part; with 400 times the decisions hardly any is drawn in."""
    dice = np.random.default_rng(5)
    totals = [LAWS[law](dice, 30) for _ in range(100)]
    seen = seen_in(totals)
    assert seen.mean.max() > 1.5 * seen.mean.mean()
    drawn = Posterior(seen).draw(dice, 300)
    assert drawn.max(axis=1).mean() < 1.3 * drawn.mean()
    many = Means(seen.decisions * 400, seen.mean, seen.variance)
    close = Posterior(many).draw(dice, 300).mean(axis=0)
    assert close[seen.mean > 0] == pytest.approx(seen.mean[seen.mean > 0], rel=0.15)


def test_draws_cover_true_means():
    """Forty logs of 20 arms whose means vary by 30 %: of 800 intervals of 95 %, 93 to 99 % hold the truth
    (three standard errors are 2.3 %, and payments of so skewed a law are not quite Poisson)."""
    held = []
    for seed in range(40):
        dice = np.random.default_rng(seed)
        true = dice.gamma(11.0, 1 / 11.0, 20)
        seen = seen_in([scale * dice.exponential(1.0, 150) for scale in true])
        low, high = np.quantile(Posterior(seen).draw(dice, 400), [0.025, 0.975], axis=0)
        held.append((low <= true) & (true <= high))
    assert 0.925 <= np.mean(held) <= 0.99


# A log of many arms that are all alike.


@cache
def alike(arms: int = 200, each: int = 25) -> ac.Fitted:
    """Totals of mean 1, in two pieces, whatever the arm."""
    dice = np.random.default_rng(3)
    count = arms * each
    arm = dice.permutation(np.repeat(np.arange(arms), each))
    total = dice.exponential(1.0, count)
    decisions = pd.DataFrame({"id": np.arange(count), "arm": [f"a{a}" for a in arm], "at": np.arange(count)})
    early = pd.DataFrame(
        {"decision": np.arange(count), "value": 0.6 * total, "age": dice.integers(0, 5, count)}
    )
    late = pd.DataFrame(
        {"decision": np.arange(count), "value": 0.4 * total, "age": dice.integers(5, 20, count)}
    )
    with ac.open_log(decisions, pd.concat([early, late]), end=count + 20) as log:
        return ac.fit_log(log, window=20, groups=5)


def test_many_arms_alike_have_little_to_lose():
    """In the log the best arm pays 60 % more than the average; who believed that would say that 600 of
    every 1,000 are lost by not knowing it. In truth nothing can be lost."""
    fitted = alike()
    means = [arm.mean.value for arm in fitted.known if arm.mean]
    assert max(means) > 1.5
    found = ac.compare(fitted, ["AgePrior"], runs=16, horizon=1000)
    (line,) = found.lines
    assert line.lost.value < 60
    assert line.lost.low == 0.0
    assert not found.setup.possible.signal.found
    careful, first = found.summary().splitlines()[:2]
    assert careful.startswith("careful: fewer than 30 decisions of a0, a1, a2, a3, a4 and 195 more arms paid")
    assert first.startswith("No sign that arms differ in what they pay (resampling test of equal means")
    assert "cannot be told from chance" in found.summary()


def test_draws_are_problems_of_the_drawn_means():
    setup = comparison_setup.set_up(alike())
    possible = PossibleProblems(setup.fitted.known, setup.problem, seed=4)
    for number in range(3):
        drawn = possible.draw(number)
        assert drawn.problem.means == pytest.approx(possible.drawn_means(number + 1)[number], rel=1e-9)
        assert drawn.at_once.means == pytest.approx(drawn.problem.means, rel=1e-9)
        assert (drawn.at_once.window, drawn.problem.window) == (1, 20)


def test_an_arm_that_pays_1_or_nothing_goes_on_doing_so():
    """Drawn means change how often it pays, and only by what rounding leaves how much."""
    dice = np.random.default_rng(0)
    decisions = pd.DataFrame({"id": range(2000), "arm": ["a", "b"] * 1000, "at": range(2000)})
    paying = np.flatnonzero(dice.random(2000) < np.tile([0.2, 0.3], 1000))
    with ac.open_log(decisions, pd.DataFrame({"decision": paying, "value": 1.0, "age": 2}), end=2010) as log:
        setup = comparison_setup.set_up(ac.fit_log(log, window=10, groups=2))
    drawn = setup.possible.draw(1)
    for cap, law in zip(drawn.problem.caps, drawn.problem.arm_laws, strict=True):
        assert isinstance(law, ac.EmpiricalLaw)
        totals = cap * np.asarray(law.rows).sum(axis=1)
        paid = totals[totals > 0]
        assert paid == pytest.approx(np.full(len(paid), 1.0), rel=0.01)


def test_what_waiting_costs_is_one_learner_and_never_above_100_percent():
    """Late pieces: who waits loses more. Who sees all at once is the same learner, and where a window is
    one round, all three are the same to the bit."""
    dice = np.random.default_rng(8)
    count = 4000
    arm = dice.integers(0, 4, count)
    total = dice.random(count) < np.array([0.3, 0.4, 0.45, 0.6])[arm]
    decisions = pd.DataFrame({"id": range(count), "arm": np.array(list("abcd"))[arm], "at": range(count)})
    paying = np.flatnonzero(total)
    age = dice.integers(0, 60, len(paying))
    with ac.open_log(
        decisions, pd.DataFrame({"decision": paying, "value": 1.0, "age": age}), end=count + 60
    ) as log:
        fitted = ac.fit_log(log, window=60, groups=10)
    found = ac.compare(fitted, ["AgePrior"], runs=40, horizon=1200)
    at_once, _, totals = found.waiting.costs
    assert at_once.lost.value < totals.lost.value
    assert found.waiting.saved is None or found.waiting.saved.high <= 100.0
    short = ac.compare(fitted, ["AgePrior"], runs=8, horizon=600, rate=1 / 60)
    assert len({cost.lost.value for cost in short.waiting.costs}) == 1
    assert short.waiting.saved is None
    assert "cannot be told from chance" in short.summary()


def test_what_is_found_can_be_read_in_python(tmp_path):
    found = ac.compare(alike(), ["AgePrior"], runs=2, horizon=400)
    assert list(found.table().index) == ["AgePrior"]
    assert "<table>" in found._repr_html_()
    found.plot(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 1000
    setup = found.setup
    with pytest.raises(ac.InputError, match="policy AgeTS is given twice"):
        ac.compare(setup.fitted, ["AgeTS", ac.AgeTS()], runs=2, horizon=400)
    again = make_comparison(setup, found.result, {"AgePrior": ac.AgePrior()})
    assert again.summary() == found.summary()
