"""What a result offers beyond its arrays: text, frames, files, a picture; and the progress on the way."""

import io
import sys

import numpy as np
import pytest

import accrual as ac
from accrual.core import progress


@pytest.fixture(scope="module")
def result() -> ac.Result:
    policies = {"first": ac.UCB1(), "<b>second</b>": ac.TPUCBFR(4)}
    problem = ac.Problem([1.0, 2.0], 8, 4)
    return ac.simulate(problem, policies, 60, runs=range(3, 6), checkpoints=[10, 60])


def test_repr_is_one_short_line(result):
    assert repr(result).startswith("Result(2 policies, 3 runs, 60 rounds; least mean regret: ")
    one = ac.simulate(ac.Problem([1.0], 8, 4), [ac.UCB1()], 60, runs=1)
    assert repr(one) == "Result(1 policy, 1 run, 60 rounds; least mean regret: UCB1, 0)"
    crowd = ac.Problem([1.0] * 999, 8, 4, arms=[f"<i>{k}</i>" for k in range(999)])
    assert repr(crowd) == "Problem(999 arms, window 8 in 4 groups, mean 0.5)"
    assert crowd._repr_html_().count("<tr>") == 1 + 20 + 1
    assert "and 979 more" in crowd._repr_html_()
    assert "<i>" not in crowd._repr_html_()


def test_html_names_every_policy_and_escapes_its_label(result):
    html = result._repr_html_()
    assert html.count("<tr>") == 3
    assert "&lt;b&gt;second&lt;/b&gt;" in html
    assert "<b>" not in html


def test_to_frame_has_a_row_for_every_number(result):
    frame = result.to_frame()
    assert list(frame.columns) == ["policy", "run", "round", "regret"]
    for row in frame.itertuples():
        p, r = result.labels.index(row.policy), result.runs.index(row.run)
        assert row.regret == result.regret[p, r, list(result.rounds).index(row.round)]
    assert len(frame) == result.regret.size


def test_the_ending_decides_the_format(result, tmp_path):
    result.save(tmp_path / "r.parquet")
    np.testing.assert_array_equal(ac.Result.load(tmp_path / "r.parquet").regret, result.regret)
    result.save(tmp_path / "R.CSV")
    lines = (tmp_path / "R.CSV").read_text().splitlines()
    assert lines[0] == "policy,run,round,regret"
    assert len(lines) == 1 + result.regret.size
    assert float(lines[1].rpartition(",")[2]) == result.regret[0, 0, 0]
    for name in ("r.xyz", "r"):
        with pytest.raises(ac.InputError, match=rf"ending in .parquet or .csv, not to '.*{name}'$"):
            result.save(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["R.CSV", "r.parquet"]
    with pytest.raises(ac.InputError, match=r"r\.csv: there is no folder '.*nosuch'"):
        result.save(tmp_path / "nosuch" / "r.csv")


def test_a_picture_without_a_path_is_pyplots_and_one_with_a_path_is_not(result, tmp_path):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    result.plot(tmp_path / "r.png")
    assert pyplot.get_fignums() == before
    ax = result.plot()
    assert pyplot.gcf() is ax.figure
    assert result.plot(ax=ax) is ax
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("show", "notebook", "lines"), [(None, False, 0), (None, True, 10), (True, False, 10), (False, True, 0)]
)
def test_progress_without_a_terminal_is_a_line_for_each_tenth(monkeypatch, show, notebook, lines):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(progress, "_in_notebook", lambda: notebook)
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    ac.simulate(ac.Problem([1.0, 2.0], 8, 4), [ac.UCB1()], 60, runs=40, threads=1, progress=show)
    printed = stderr.getvalue().splitlines()
    assert len(printed) == lines
    assert printed[-1:] == ["100 % of 2.4e+03 policy-rounds"] * bool(lines)


def test_a_caller_that_shows_the_progress_itself_hides_the_automatic_one(monkeypatch):
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    with progress.no_progress_bar():
        assert not progress.Progress(10)._shown
    assert progress.Progress(10)._shown
