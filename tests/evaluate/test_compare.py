"""Compare: a fitted problem is the log, and ranks policies as the truth does."""

from __future__ import annotations

import csv
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import course_log
import numpy as np
import pandas as pd
import pytest

import accrual as ac
from accrual.cli.app import run
from accrual.core.interval import Interval
from accrual.core.jit.compiler import njit
from accrual.engine.recording import record
from accrual.engine.simulate import simulate
from accrual.evaluate.compare import comparison as comparison_result
from accrual.evaluate.compare import setup as comparison_setup
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Fitted
from accrual.logs.open_log import open_log
from accrual.policies.base import Functions
from accrual.policies.catalog import DEFAULT
from accrual.policies.ucb1 import DelayedUCB1
from accrual.problems.laws import LeavingLaw, LumpLaw
from accrual.problems.problem import Problem
from accrual.runs.cells import gather_results
from accrual.runs.runner import Local, run_cells
from accrual.studies.demo import Demo

COLUMNS = ["--column=arm=course", "--column=value=minutes"]


@dataclass(frozen=True)
class Turns(DelayedUCB1):
    """Every arm in turn: how a log may be collected."""

    functions = Functions(index=njit(lambda params, stats, arm, moment: -float(stats.pulls[arm])))


@cache
def fitted_to(problem: Problem, decisions: int, seed: int = 0) -> Fitted:
    """The fit of a log that was simulated from `problem`, with its last window still open."""
    recording = record(problem, Turns(), decisions, seed)
    made = pd.DataFrame(
        {
            "id": np.arange(decisions),
            "arm": np.array(problem.arms)[recording.arms],
            "at": np.arange(decisions),
        }
    )
    decision, age = np.nonzero(recording.pieces)
    pieces = pd.DataFrame({"decision": decision, "value": recording.pieces[decision, age], "age": age})
    pieces = pieces[pieces.decision + pieces.age < decisions]
    with open_log(made, pieces, end=decisions) as log:
        return fit_log(log, window=problem.window, groups=problem.groups)


SPREADS = ("begin", "uniform", "end")


def problem_of(kind: str) -> Problem:
    chances = (0.3, 0.4, 0.45, 0.6)
    if kind == "leaving":
        laws = [
            LeavingLaw((1.0, *[stay] * 9), p) for stay, p in zip((0.7, 0.8, 0.9, 1.0), chances, strict=True)
        ]
        return Problem([1.0] * 4, 60, 10, laws, arms=list("abcd"))
    return Problem([1.0] * 4, 60, 10, [LumpLaw(p, kind) for p in chances], arms=list("abcd"))


# A window in rounds.


@pytest.mark.parametrize("rounds", [1, 2, 7, 61, 199, 200, 1234.4, 9_999])
@pytest.mark.parametrize("groups", [1, 10, 60, 150])
@pytest.mark.parametrize("arms", [2, 100, 2000])
def test_a_window_is_stretched_by_little_and_divided_by_all(rounds, groups, arms):
    window, alpha, part = comparison_setup.scale(rounds, groups, arms)
    assert window % alpha == 0
    assert window % part == 0
    assert (window // part) % alpha == 0 or alpha == window
    assert rounds - 0.5 <= window <= max(1.1 * rounds, rounds + 10)
    assert alpha <= groups + 1
    if rounds <= 100 and arms <= 100:
        assert part == 1


def test_the_problem_of_a_fit_is_the_log_itself():
    """In rounds of one decision each and a window of 60 of them, nothing is rounded: every row of the
    law is a logged decision, in the very rounds in which it paid."""
    truth = problem_of("leaving")
    fitted = fitted_to(truth, 2000)
    setup = comparison_setup.set_up(fitted)
    assert setup.scale == (60, 10, 1)
    assert setup.problem.groups == 60
    recording = record(truth, Turns(), 2000)
    for arm in range(4):
        (closed,) = np.nonzero((recording.arms == arm) & (np.arange(2000) + 60 <= 2000))
        law = setup.problem.arm_laws[arm]
        assert isinstance(law, ac.EmpiricalLaw)
        rows = np.asarray(law.rows) * setup.problem.caps[arm] / fitted.arms[arm].sample.scale
        logged = recording.pieces[closed]
        assert len(rows) == len(logged)
        assert np.sort(rows @ np.arange(1, 61)) == pytest.approx(np.sort(logged @ np.arange(1, 61)), abs=1e-6)
    assert setup.problem.means == pytest.approx(
        [arm.mean.value for arm in fitted.known if arm.mean], rel=1e-6
    )


def test_a_pace_of_ones_own_and_one_that_is_too_fast():
    fitted = fitted_to(problem_of("uniform"), 2000)
    assert comparison_setup.set_up(fitted, rate=0.5).problem.window == 30
    fast = comparison_setup.set_up(fitted, rate=1000)
    assert (fast.problem.window, fast.slower) == (10_000, 6.0)
    assert "slowed down 6 times" in comparison_setup.notes(fast)[0]
    assert "Ages are kept to 100 rounds" in comparison_setup.notes(fast)[1]
    said = comparison_setup.horizon_notes(fast, 30_000)
    assert said[0] == "30,000 decisions = 30 units at 1e+03 a unit of time; window 60 units."
    assert "10,000 decisions are pending at a time instead of 60,000" in said[1]
    assert "lasts 3 windows instead of 0.5" in said[1]
    assert "no decision closes within 30,000" in said[2]
    assert len(comparison_setup.horizon_notes(comparison_setup.set_up(fitted), 30_000)) == 1
    for rate in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ac.InputError, match="rate must be a positive number"):
            comparison_setup.set_up(fitted, rate=rate)


@pytest.mark.parametrize("refund", [-1.0, -3.0])
def test_totals_below_0_are_owned_up_to(refund):
    """Every second decision of a is paid back, once or three times."""
    decisions = pd.DataFrame({"id": range(400), "arm": ["a", "b"] * 200, "at": range(400)})
    pieces = [
        pd.DataFrame({"decision": ids, "value": value, "age": age})
        for ids, value, age in ((range(400), 1.0, 0), (range(0, 400, 4), refund, 5))
    ]
    with open_log(decisions, pd.concat(pieces), allow_negative=True) as log:
        setup = comparison_setup.set_up(fit_log(log, window=10, groups=2))
    assert setup.problem.means[1] == pytest.approx(1.0)
    said = [note for note in comparison_setup.notes(setup) if "Totals below 0" in note]
    if refund == -1.0:
        assert setup.problem.means[0] == pytest.approx(0.5, rel=0.02)
        assert said == []
    else:
        assert len(said) == 1


# The same ranking as the truth.


def regrets(
    truth: Problem, setup: comparison_setup.ComparisonSetup, horizon: int = 4000
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Labels, and mean regrets on the truth and on the fit."""
    policies = {**comparison_setup.comparison_policies(setup), "waiting": ac.AgePrior(buckets=1)}
    true = {
        label: ac.TPUCBFRG(truth.groups, list(setup.fitted.spread.value)) if "fitted" in label else policy
        for label, policy in policies.items()
    }
    found = [
        simulate(problem, compared, horizon, runs=60, seed=5).final_regret.mean(axis=1)
        for problem, compared in ((truth, true), (setup.problem, policies))
    ]
    return list(policies), found[0], found[1]


@pytest.mark.parametrize("kind", [*SPREADS, "leaving"])
def test_policies_are_ranked_as_on_the_true_problem(kind):
    """A fit to 6,000 decisions of four arms with gaps of 0.15 and more. The log misjudges a mean by
    about 0.013 (its standard error) and so a gap by a tenth, and 60 runs leave a regret uncertain by
    another tenth. So two policies whose true regrets are further apart than 1 to 1.5 must come in the
    right order, and each regret must be right to a factor of 1.6."""
    truth = problem_of(kind)
    labels, true, found = regrets(truth, comparison_setup.set_up(fitted_to(truth, 6000)))
    pairs = [(a, b) for a in range(len(labels)) for b in range(len(labels)) if true[a] > 1.5 * true[b]]
    assert len(pairs) >= 4
    assert [(labels[a], labels[b]) for a, b in pairs if found[a] <= found[b]] == []
    assert np.abs(np.log(found / true)).max() < np.log(1.6)


def test_a_problem_without_its_delays_would_not_pass():
    """The control: at a sixtieth of the pace the window is one round, and waiting costs nothing. In truth
    the learner that waits loses half as much again in the first 200 rounds, of which 60 teach it nothing."""
    truth = problem_of("uniform")
    labels, true, found = regrets(
        truth, comparison_setup.set_up(fitted_to(truth, 6000), rate=1 / 60), horizon=200
    )
    pieces, totals = labels.index("AgePrior"), labels.index("waiting")
    assert found[totals] == found[pieces]
    assert true[totals] > 1.3 * found[totals]


# What is said.


def test_lines_and_costs_by_hand(tmp_path):
    setup = comparison_setup.set_up(fitted_to(problem_of("uniform"), 2000))
    compared = comparison_setup.comparison_policies(setup, ["DelayedUCB1"])
    assert list(compared) == ["AgePrior", "DelayedUCB1"]
    cells = comparison_setup.comparison_cells(setup, compared, 1500, 6, seed=2)
    run_cells(cells, tmp_path, Local(1))
    result = gather_results(cells, tmp_path)
    found = comparison_result.make_comparison(setup, result, compared)
    by_policy = {line.policy: line for line in found.lines}
    assert set(by_policy) == set(compared)
    alike = setup.possible.posterior.alike
    assert alike < 1e-6
    means = setup.possible.drawn_means(6)  # with six runs each has means of its own
    for label, line in by_policy.items():
        p = result.labels.index(label)
        assert line.regret.value == pytest.approx((1 - alike) * result.final_regret[p].mean())
        assert line.lost.value == pytest.approx(line.regret.value / 1.5)
        pulled = [result.pulls[p, run, means[run].argmax()] for run in range(6)]
        assert line.share.value == pytest.approx((1 - alike) * 100 * np.mean(pulled) / 1500 + 100 * alike)
        difference = (result.final_regret[p] - result.final_regret[0]) / 1.5
        # Between draws, and the error of their mean; Student's t for six of them.
        half = 2.5706 * difference.std(ddof=1) * (1 + 1 / 6) ** 0.5
        assert line.more.high == pytest.approx(difference.mean() + half, abs=1e-3)
    ways = found.waiting.costs
    assert [cost.way for cost in ways] == ["at once", "pieces", "totals"]
    assert ways[2].more.value == pytest.approx(ways[2].lost.value - ways[0].lost.value)


def test_an_interval_by_hand():
    """Three draws of two runs: draws average 1, 2 and 3, and runs of a draw differ by 0.2."""
    values = np.array([0.9, 1.1, 1.9, 2.1, 2.9, 3.1])
    between, chance = 1.0, 0.02 / 2  # variance of the averages, and what the runs' variance makes of it
    half = 4.302653 * (between - chance + between / 3) ** 0.5  # Student's t for three draws
    play = comparison_result.Play(each=2, alike=0.0)
    found = comparison_result.interval(values, play)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), rel=1e-5)
    assert comparison_result.interval(values, play, (0.0, np.inf)).low >= 0
    assert comparison_result.interval(np.zeros(6), play, (0.0, np.inf)) == Interval(0.0, 0.0, 0.0)
    # With probability 0.9 arms are alike and the figure is 0: below the upper end lie 3/4 of the rest.
    mostly = comparison_result.interval(values, comparison_result.Play(each=2, alike=0.9))
    assert mostly.value == pytest.approx(0.2)
    assert (mostly.low, mostly.high) == pytest.approx((0.0, 2 + half / 1.959964 * 0.674490), rel=1e-5)


def test_the_default_is_that_of_a_bandit():
    assert comparison_setup.BASELINE == comparison_setup.USUAL[0] == DEFAULT.label
    assert inspect.signature(ac.replay).parameters["policy"].default == DEFAULT
    assert Demo().regret._oracle.policy == DEFAULT


def test_a_range_of_losses_is_not_called_95_percent():
    setup = comparison_setup.set_up(fitted_to(problem_of("uniform"), 2000))
    compared = comparison_setup.comparison_policies(setup, ["DelayedUCB1"])
    result = simulate(setup.problem, {**compared, comparison_setup.WAITING: ac.AgePrior(buckets=1),
                      comparison_setup.AT_ONCE: ac.AgePrior(buckets=1)}, 500, runs=4)  # fmt: skip
    said = comparison_result.make_comparison(setup, result, compared).summary().splitlines()
    headline = next(line for line in said if "loses least" in line)
    assert "(range " in headline
    assert "95 %" not in headline
    assert said[said.index(headline) + 1] == comparison_result.RANGES


def test_names_and_policies_that_do_not_fit():
    setup = comparison_setup.set_up(fitted_to(problem_of("uniform"), 2000))
    assert "TPUCBFRG(10, fitted)" in comparison_setup.comparison_policies(setup)
    assert list(comparison_setup.comparison_policies(setup, ["TPUCBFR(20)", "AgePrior"]))[:2] == [
        "AgePrior",
        "TPUCBFR(20)",
    ]
    with pytest.raises(ac.InputError, match="twice"):
        comparison_setup.comparison_policies(setup, ["DelayedUCB1", "DelayedUCB1"])
    with pytest.raises(ac.InputError, match="alpha must divide the window: 7 does not divide 60"):
        comparison_setup.comparison_policies(setup, ["TPUCBFR(7)"])


@pytest.mark.parametrize("name", [pytest.param("AgeIMED", marks=pytest.mark.slow), "TPUCBFR(20)"])
def test_the_live_configuration_is_one(name):
    setup = comparison_setup.set_up(fitted_to(problem_of("uniform"), 2000))
    policy = comparison_setup.comparison_policies(setup, [name])[name.replace("FRG", "FRG(10, fitted)")]
    bandit = eval(comparison_result.live(setup, policy), {"ac": ac})
    assert bandit.arms == list("abcd")
    assert bandit.policy == policy
    assert 0.0 < bandit.decide().propensity <= 1.0  # there is a floor


def timed_log(arms, refunds):
    """A log with times, in which decisions of the i-th of the arms pay 1 + i."""
    count = 60 * len(arms)
    made = pd.to_datetime(1.7e9 + 3600.0 * np.arange(count), unit="s")
    decisions = pd.DataFrame({"number": range(count), "shown": list(arms) * 60, "at": made})
    value = np.tile(np.arange(1.0, 1.0 + len(arms)), 60)
    value[:refunds] = -0.5
    later = pd.to_timedelta(900.0 * (np.arange(count) % 7), unit="s")
    pieces = pd.DataFrame({"decision_id": range(count), "value": value, "at": made + later})
    return decisions, pieces


NAMED = {"id": "number", "decision": "decision_id", "arm": "shown"}


@pytest.mark.parametrize("count", [3, 25])
def test_the_line_to_paste_begins_with_the_log_and_leaves_out_what_nobody_chose(count, tmp_path, monkeypatch):
    decisions, pieces = timed_log(["NA", *(f"arm {i}" for i in range(count))], refunds=3)
    ac.fit(decisions, pieces, NAMED, window="2h", groups=2, allow_negative=True).save(tmp_path / "p.json")
    fitted = Fitted.load(tmp_path / "p.json")
    setup = comparison_setup.set_up(fitted)
    line = comparison_result.live(setup, DEFAULT)
    assert ", window='2h', policy='AgePrior', floor=0.05, allow_negative=True, prior=fitted)" in line
    bandit = eval(line, {"ac": ac, "fitted": fitted})
    assert set(bandit.arms) == {f"arm {i}" for i in range(count)}
    assert bandit.state().decisions > 50  # from the log
    monkeypatch.chdir(tmp_path)
    again = comparison_result.live(setup, DEFAULT, "p.json")
    assert eval(again, {"ac": ac}).arms == bandit.arms
    with pytest.raises(ac.InputError, match="the log is fitted already: give columns to accrual"):
        ac.compare(fitted, columns=NAMED)


def test_a_log_is_read_as_by_fit(tmp_path):
    given = timed_log(["NA", "a"], refunds=3)
    options: dict[str, Any] = {"columns": NAMED, "allow_negative": True}
    found = ac.compare(given, ["AgePrior"], runs=2, horizon=200, **options)
    assert found.setup.fitted.log["columns"]["arm"] == "shown"
    assert found.live == ""
    assert "Left out of the next line, as if no arm had been chosen there: 'NA'." in found.summary()
    assert "live: nothing, as fewer than two arms are left" in found.summary()
    judged = ac.replay(given, "always a", uniform=True, **options)
    assert judged.log.arms == ("NA", "a")
    with pytest.raises(ac.InputError, match="compare_by_context"):
        ac.compare(given, context=["number"], **options)
    with (
        open_log(*given, **options) as log,
        pytest.raises(ac.InputError, match="the log is open already: give columns to"),
    ):
        ac.replay(log, "always a", uniform=True, columns=NAMED)


def test_a_log_is_fitted_as_by_the_command_line():
    rows = pd.DataFrame({"id": range(200), "arm": ["a", "b"] * 100, "at": range(200)})
    pieces = pd.DataFrame({"decision": range(200), "value": [1.0, 2.0] * 100, "age": 3})
    found = ac.compare((rows, pieces), ["UCB1"], runs=2, horizon=200, window=20, groups=4, cap=5.0)
    fitted = found.setup.fitted
    assert (fitted.window, fitted.groups, {arm.cap and arm.cap.given for arm in fitted.arms}) == (
        20.0,
        4,
        {5.0},
    )
    with pytest.raises(ac.InputError, match="the log is fitted already: give window to"):
        ac.compare(fitted, window=10)


# The command.


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("course")
    course_log.write(folder, visits=600)
    return folder


def line_of(course: Path, *more: str) -> list[str]:
    tables = [str(course / "decisions.csv"), str(course / "pieces.csv")]
    return ["compare", *tables, *COLUMNS, "--window=60d", "--runs=3", "--horizon=400", *more]


def test_straight_from_the_log_as_from_the_fit(course, tmp_path, capsys):
    assert run(line_of(course, f"--out={tmp_path / 'a'}")) == 0
    with open_log(course / "decisions.csv", course / "pieces.csv",
                  {"arm": "course", "value": "minutes"}) as log:  # fmt: skip
        fit_log(log, window="60d").save(tmp_path / "problem.json")
    printed = capsys.readouterr().out
    saved = ["compare", str(tmp_path / "problem.json"), "--runs=3", "--horizon=400"]
    assert run([*saved, f"--out={tmp_path / 'b'}"]) == 0
    again = capsys.readouterr().out.replace(str(tmp_path / "problem.json"), str(tmp_path / "a/problem.json"))
    assert printed.splitlines()[1:-2] == again.splitlines()[1:-2]
    assert "Ages are kept to" in printed or "Every piece pays in the round of its own age" in printed
    for folder in ("a", "b"):
        assert {path.name for path in (tmp_path / folder).iterdir()} >= {
            "report.html", "comparison.csv", "comparison.parquet", "cells",
        }  # fmt: skip
    page = (tmp_path / "a" / "report.html").read_text()
    assert "What waiting costs" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    with open(tmp_path / "a" / "comparison.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} >= {"AgePrior", "AgeIMED", "AgeTS", "DelayedUCB1"}


def test_the_same_bytes_again_and_nothing_computed_twice(course, tmp_path, capsys):
    for folder in ("a", "b", "a"):
        assert run(line_of(course, f"--out={tmp_path / folder}", "--policy=AgeIMED")) == 0
    assert "0 cells to compute, 6 already done" in capsys.readouterr().err
    for name in ("report.html", "comparison.csv"):
        one, other = ((tmp_path / folder / name).read_text() for folder in ("a", "b"))
        assert one.replace("/a/problem.json", "/b/problem.json") == other  # where the fit is kept


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--policy=AgeImed"], "unknown policy 'AgeImed'; did you mean 'AgeIMED'"),
        (["--rate=0"], "rate must be a positive number"),
        (["--horizon=2"], "horizon must be a whole number"),
        (["--runs=0"], "runs must be a whole number"),
        (["--cap=python"], "--cap must be written like"),
        (["--cap=1"], "a cap is the most that one can pay"),
        (["--column=arm"], "--column must be written like arm=course"),
        (["--window=900d"], "no closed decision"),
        (["--engine=slurm"], "unknown engine 'slurm'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(course, tmp_path, capsys, more, message):
    arguments = [
        text for text in line_of(course) if text.split("=")[0] not in {m.split("=")[0] for m in more}
    ]
    arguments += [text for text in COLUMNS if text not in arguments]
    assert run([*arguments, *more, f"--out={tmp_path / 'out'}"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("accrual: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_problem_is_fitted_already(course, tmp_path, capsys):
    (tmp_path / "problem.json").write_text("{}")
    assert run(["compare", str(tmp_path / "problem.json"), "--window=3", f"--out={tmp_path / 'o'}"]) == 2
    assert "is what a fit wrote; --window is for a log" in capsys.readouterr().err
    assert run(["compare", str(tmp_path / "problem.json"), f"--out={tmp_path / 'o'}"]) == 2
    assert "not a problem.json" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
