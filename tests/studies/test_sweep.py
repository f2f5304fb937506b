"""Sweeps: what a file's holes become, what is computed, and what is said of it."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.cli import app
from accrual.engine.result import Result
from accrual.problems.gallery import generate
from accrual.runs.cells import gather_results
from accrual.runs.runner import Local, run_cells
from accrual.studies import sweep
from accrual.studies.sweep import best, draw, lines

HEAD = 'problem = "setting1"\nhorizon = 300\nruns = 3\n'
TWO = (
    HEAD
    + """
each = {alpha = [10, 20]}
grid = {a = [1, 2], b = {from = 1, to = 4, steps = 3, log = true}}
[[policy]]
name = "TPUCBFRG"
alpha = "{alpha}"
spread = "betabinom({a}, {b})"
[[policy]]
name = "TPUCBFR"
alpha = "{alpha}"
[[policy]]
name = "UCB1"
"""
)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Read a sweep `s.toml` of this text."""
    monkeypatch.chdir(tmp_path)

    def read_text(text: str, **given) -> sweep.Sweep:
        (tmp_path / "s.toml").write_text(text, encoding="utf-8")
        return sweep.read("s.toml", **given)

    return read_text


def test_holes_keep_numbers_and_fill_texts():
    data = {"alpha": "{k}", "deep": [{"x": "f({k}, {s})"}, 3, True], "plain": "{}"}
    filled, used = sweep.fill(data, {"k": 20, "s": 0.5, "other": 1})
    assert filled == {"alpha": 20, "deep": [{"x": "f(20, 0.5)"}, 3, True], "plain": "{}"}
    assert used == {"k", "s"}
    with pytest.raises(ac.InputError, match="unknown parameter 'alpa'; did you mean 'alpha'"):
        sweep.fill("{alpa}", {"alpha": 1})


def test_points_are_the_product_and_references_come_once(file):
    found = file(TWO)
    assert found.grid == {"a": [1, 2], "b": [1, 2, 4]}
    swept = [point for point in found.points if point.place]
    assert len(swept) == 2 * 2 * 3
    others = [(point.case["alpha"], point.label) for point in found.points if not point.place]
    assert others == [(10, "TPUCBFR(10)"), (10, "UCB1"), (20, "TPUCBFR(20)"), (20, "UCB1")]
    # One problem; each policy once: 12 on the grid, two TPUCBFR, one UCB1 for both cases.
    assert list(found.problems) == ["s/1"]
    assert len(found.policies["s/1"]) == 15
    assert found.policies["s/1"]["TPUCBFRG(10, betabinom(1, 2))"] == ac.TPUCBFRG(10, "betabinom(1, 2)")


def test_parameters_of_the_problem_make_problems(file):
    text = """
    horizon = 100
    grid = {w = [4, 8], p = [0.25, 0.5]}
    policy = [{name = "TPUCBFR", alpha = 2}]
    [problem]
    caps = [1, 2]
    window = "{w}"
    groups = 2
    law = {kind = "bernoulli", p = "{p}"}
    """
    found = file(text)
    assert [problem.window for problem in found.problems.values()] == [4, 4, 8, 8]
    assert [float(problem.means[0]) for problem in found.problems.values()] == [0.25, 0.5, 0.25, 0.5]
    assert len({point.block for point in found.points}) == 4
    assert found.runs == sweep.RUNS


def test_steps(file):
    def axis(text: str) -> list[Any]:
        policy = 'policy = [{name = "AgeUCB", alpha = 20, label = "{a}x"}]'
        found: list[Any] = file(f"{HEAD}grid = {{a = {text}}}\n{policy}").grid["a"]
        return found

    assert axis("{from = 1, to = 100, steps = 3, log = true}") == [1, 10, 100]
    assert axis("{from = 0, to = 1, steps = 5}") == [0, 0.25, 0.5, 0.75, 1]
    assert axis("['begin', 'end']") == ["begin", "end"]
    assert axis("{from = 1, to = 2, steps = 3, log = true}") == [1, 1.41, 2]


POLICY = 'policy = [{name = "TPUCBFR", alpha = "{a}"}]\n'
BAD = {
    HEAD + POLICY: "s.toml: the file needs grid",
    HEAD + "grid = {}\n" + POLICY: "s.toml: [grid] needs a parameter, as in: a = [1, 2, 4]",
    HEAD + "grid = {a = []}\n" + POLICY: "s.toml: a needs values, each once, not []",
    HEAD + "grid = {a = [5, 5]}\n" + POLICY: "s.toml: a needs values, each once, not [5, 5]",
    HEAD + "grid = {a = 5}\n" + POLICY: "s.toml: a must be a list, not 5",
    HEAD + "grid = {a = [true]}\n" + POLICY: "s.toml: a[0] must be a finite number, not True",
    HEAD + "grid = 5\n" + POLICY: "s.toml: grid must be a table of parameters, not 5",
    HEAD + "grid = {'a b' = [1]}\n" + POLICY: (
        "s.toml: a parameter's name is letters, figures and underscores, not 'a b'"
    ),
    HEAD + "grid = {b = [5]}\n" + POLICY: "s.toml: unknown parameter 'a' (one of: b)",
    HEAD + "grid = {a = [5], b = [1]}\n" + POLICY: (
        "s.toml: no problem and no policy has a {b} where the values of b could go"
    ),
    HEAD + "grid = {a = [5]}\neach = {a = [5]}\n" + POLICY: (
        "s.toml: a is in [grid] and in [each]; it can be in one of them"
    ),
    HEAD + "grid = {a = [7]}\n" + POLICY: (
        "s.toml: alpha must divide the window: 7 does not divide 100 (nearest: 5 and 10)"
    ),
    HEAD + "grid = {a = {from = 5, to = 1, steps = 3}}\n" + POLICY: (
        "s.toml: a goes from a number up to a greater one (from above 0 if log = true), not "
        "{'from': 5, 'to': 1, 'steps': 3}"
    ),
    HEAD + "grid = {a = {from = 0, to = 1, steps = 3, log = true}}\n" + POLICY: (
        "s.toml: a goes from a number up to a greater one (from above 0 if log = true), not "
        "{'from': 0, 'to': 1, 'steps': 3, 'log': True}"
    ),
    HEAD + "grid = {a = {from = 1, to = 1.001, steps = 9, log = true}}\n" + POLICY: (
        "s.toml: a has steps too small to tell apart: {'from': 1, 'to': 1.001, 'steps': 9, 'log': True}"
    ),
    HEAD + "grid = {a = {from = 1, to = 2}}\n" + POLICY: "s.toml: a needs steps",
    HEAD + "grid = {a = {from = 1, to = 2, steps = 1000000}}\n" + POLICY: (
        "s.toml: the steps of a must be a whole number from 2 to 100000, not 1000000"
    ),
    HEAD + "grid = {a = {from = 1, to = 9, steps = 500}, b = {from = 1, to = 9, steps = 500}}\n" + POLICY: (
        "s.toml: a sweep needs 1 to 100,000 points, not 250,000"
    ),
    HEAD + 'grid = {a = [5, 10]}\npolicy = [{name = "TPUCBFR", alpha = "{a}", label = "x"}]': (
        "s.toml: two policies are labelled 'x'; give one a label of its own"
    ),
    HEAD.replace("runs = 3", "runs = 0") + "grid = {a = [5]}\n" + POLICY: (
        "s.toml: runs must be a whole number from 1 to 2147483647, not 0"
    ),
    "problem = 'setting9'\ngrid = {a = [5]}\n" + POLICY: None,
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_files_say_what_is_wrong(file, text):
    with pytest.raises(ac.InputError) as caught:
        file(text)
    if BAD[text] is not None:
        assert str(caught.value) == BAD[text]
    else:
        assert "unknown setting 'setting9'; did you mean 'setting1'" in str(caught.value)


def test_cells_share_draws_and_keep_devices_apart(file):
    found = file(TWO)
    [cells] = found.cells().values()
    assert [len(cell.policies) for cell in cells] == [15]
    assert cells[0].identity["checkpoints"][-1] == 300
    [card] = found.cells("cuda").values()
    assert card[0].device == "cuda"
    assert card[0].name != cells[0].name
    with pytest.raises(ac.InputError, match="unknown device 'gpu'"):
        found.cells("gpu")
    many = file(TWO.replace("steps = 3", "steps = 9"), runs=70, horizon=100_000)
    [cells] = many.cells().values()
    assert [(len(cell.policies), cell.runs.stop) for cell in cells] == [
        (16, 31), (16, 62), (16, 70), (16, 31), (16, 62), (16, 70), (7, 31), (7, 62), (7, 70)
    ]  # fmt: skip


def test_lines_are_what_simulate_gives(file, tmp_path):
    found = file(TWO)
    [cells] = found.cells().values()
    run_cells(cells, tmp_path / "out", Local(1))
    cases = lines(found, {"s/1": gather_results(cells, tmp_path / "out")})
    assert [len(case) for case in cases] == [8, 8]
    for case in cases:
        means = [line.mean for line in case]
        assert means == sorted(means)
    line = next(line for line in cases[1] if line.point.place == {"a": 2, "b": 4})
    alone = ac.simulate(ac.paper.setting1(), [ac.TPUCBFRG(20, "betabinom(2, 4)")], 300, 3)
    assert line.mean == pytest.approx(alone.final_regret.mean(), rel=1e-12)


WITH_CONTEXTS = """
horizon = 300
runs = 2
each = {d = [1, 2]}
grid = {w = [40, 80], alpha = [0.1, 0.5]}
[problem]
features = "{d}"
arms = 2
window = "{w}"
[[policy]]
name = "AgeLinTS"
alpha = "{alpha}"
label = "AgeLinTS {alpha}"
"""


def test_problems_with_contexts_have_no_delay_and_no_context_beside(file):
    found = file(WITH_CONTEXTS)
    assert [problem.window for problem in found.problems.values()] == [40, 80, 40, 80]
    assert list(found.policies["s/1"]) == ["AgeLinTS 0.1", "AgeLinTS 0.5", "no delay", "no context"]
    beside = [point for point in found.points if point.yardstick]
    assert [(point.label, point.case["d"], point.place) for point in beside[:3]] == [
        ("no delay", 1, {"w": 40}), ("no context", 1, {"w": 40}), ("no delay", 1, {"w": 80}),
    ]  # fmt: skip
    assert (len(beside), len(found.points)) == (2 * 2 * 2, 2 * 2 * 4)
    longer = file(WITH_CONTEXTS, horizon=100_000, runs=1000).cells()
    usual = file(TWO, horizon=100_000, runs=1000).cells()
    assert len(longer["s/1"][0].runs) < len(usual["s/1"][0].runs)  # contexts take longer


def test_yardsticks_are_never_the_best():
    point = sweep.Point({}, {"a": 1}, 1, "x", "no delay", yardstick=True)
    found, _ = by_hand(p=[10, 20], q=[13, 21])
    final = np.array([[10.0, 20.0], [13.0, 21.0], [1.0, 2.0]])[:, :, None]
    result = Result(("p", "q", "no delay"), np.array([10]), final, np.zeros((3, 2, 1), np.int64), range(2))
    [case] = lines(replace(found, points=[*found.points, point]), {"x": result})
    assert (case[0].point.label, best(case).point.label) == ("no delay", "p")
    assert case[0].over_best == -13.5


def test_policies_that_cannot_play_are_refused_before_any_work(file):
    for policy, said in {
        'name = "TPUCBFR"\nalpha = 2': r"TPUCBFR\(2\) learns from single pieces",
        'name = "LinTS"\nlabel = "no delay"': "'no delay' is always there on a problem with contexts",
    }.items():
        with pytest.raises(ac.InputError, match=said):
            file(f"{WITH_CONTEXTS}\n[[policy]]\n{policy}")
    with pytest.raises(ac.InputError, match=r"LinTS.waiting. chooses by contexts, and the problem has none"):
        file(f'{TWO}\n[[policy]]\nname = "LinTS"')


def test_command_with_contexts(file, capsys, tmp_path):
    file(WITH_CONTEXTS)
    words = ["sweep", "s.toml", "--jobs", "1", "--show", "1", "--out", "here"]
    assert app.run(words) == 0
    first = capsys.readouterr()
    assert "d = 1: 4 points, 2 runs" in first.out
    assert first.out.count("AgeLinTS 0.") == 2  # the best one of each case
    assert (first.out.count("no delay"), first.out.count("no context")) == (4, 4)
    with open(tmp_path / "here" / "sweep.csv", newline="") as table:
        rows = {(row["d"], row["w"], row["policy"]): row for row in csv.DictReader(table)}
    alone = ac.simulate(generate(2, 2, window=40), {"x": ac.AgeLinTS(alpha=0.1)}, 300, 2)
    assert float(rows["2", "40", "AgeLinTS 0.1"]["mean"]) == pytest.approx(
        alone.final_regret.mean(), rel=1e-12
    )
    assert app.run(words) == 0
    second = capsys.readouterr()
    assert (second.out, "0 cells to compute, 4 already done" in second.err) == (first.out, True)


def point(label: str, place: dict[str, int]) -> sweep.Point:
    return sweep.Point({}, place, 0 if place else 1, "x", label)


def by_hand(**finals: list[float]) -> Any:
    """A case of points at a = 1, 2, ... and a policy `other`, with these final regrets."""
    points = [point(label, {} if label == "other" else {"a": n + 1}) for n, label in enumerate(finals)]
    final = np.array(list(finals.values()), dtype=float)
    pulls = np.zeros((*final.shape, 1), np.int64)
    result = Result(tuple(finals), np.array([10]), final[:, :, None], pulls, range(final.shape[1]))
    grid = {"a": [point.place["a"] for point in points if point.place]}
    found = sweep.Sweep(10, final.shape[1], 0, grid, points, {}, {})
    return [found, lines(found, {"x": result})]


def test_differences_are_taken_run_by_run():
    _, [case] = by_hand(p=[10, 20], q=[13, 21], other=[1, 2])
    other, p, q = case
    assert best(case) is p  # of the grid: `other` is better, and not on it
    assert (p.mean, p.over_best, p.over_best_se) == (15.0, 0.0, 0.0)
    assert q.se == pytest.approx(4.0)  # of 13 and 21: deviation sqrt(32), over sqrt(2)
    assert q.over_best == 2.0
    assert q.over_best_se == pytest.approx(1.0)  # of 3 and 1, far less than the regret's own
    assert other.over_best == -13.5


def test_a_single_run_has_no_errors():
    _, [case] = by_hand(p=[10], q=[13])
    assert math.isnan(case[1].se)
    assert math.isnan(case[1].over_best_se)


def test_a_line_for_one_parameter(tmp_path):
    found, cases = by_hand(p=[10, 20], q=[13, 21], other=[1, 2])
    draw(tmp_path / "a.svg", found, cases)
    drawn = (tmp_path / "a.svg").read_text()
    assert "best: p" in drawn
    assert "other" in drawn


def test_command(file, capsys, tmp_path):
    file(TWO)
    assert app.run(["sweep", "s.toml", "--runs", "2", "--jobs", "1", "--show", "2"]) == 0
    first = capsys.readouterr()
    out = tmp_path / "out" / "s"
    assert sorted(path.name for path in out.iterdir()) == [".lock", "cells", "sweep.csv", "sweep.png"]
    assert "alpha = 10: 6 points, 2 runs" in first.out
    assert first.out.count("TPUCBFRG(20, ") == 2
    assert first.out.count("UCB1 ") == 2
    with open(out / "sweep.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 16
    assert list(rows[0]) == ["alpha", "a", "b", "policy", "runs", "mean", "se", "over_best", "over_best_se"]
    assert {row["a"] for row in rows if row["policy"].startswith("TPUCBFRG")} == {"1", "2"}
    # Again: nothing is computed, and nothing else is said.
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert app.run(["sweep", "s.toml", "--runs", "2", "--jobs", "1", "--show", "2"]) == 0
    second = capsys.readouterr()
    assert (second.out, "0 cells to compute, 1 already done" in second.err) == (first.out, True)
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_bad_input_is_one_line_and_leaves_nothing(file, capsys, tmp_path):
    file(TWO)
    for words, said in {
        ("none.toml",): "cannot read none.toml",
        ("s.toml", "--device", "gpu"): "unknown device 'gpu'",
        ("s.toml", "--runs", "0"): "runs must be a whole number",
        ("s.toml", "--horizon", "3"): "horizon must be a whole number from 10",
    }.items():
        assert app.run(["sweep", *words]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["best-spread", "best-spread-fine", "contexts", "window"])
def test_the_examples_are_sweeps(name, request):
    found = sweep.read(request.config.rootpath / "examples" / f"{name}.toml")
    assert found.points
