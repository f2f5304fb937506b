"""Cells on disk: what they are known by, that they come whole, and that a killed run resumes."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.cli.app import run as command
from accrual.runs import cells, rows, runner
from accrual.runs.runner import Local
from accrual.studies.paper import runner as blocks
from accrual.studies.paper import runner as reproduction
from accrual.studies.paper.runner import PaperOptions, cut_block, make_problem
from accrual.studies.paper.settings import BLOCKS

ACCRUAL = str(Path(sys.executable).with_name("accrual"))
SMALL: dict[str, Any] = {"runs": 3, "horizon": 400, "executor": Local(2)}
ONLY = ("setting1/alpha5", "audit/last")


def files(folder) -> dict[str, str]:
    """The SHA-256 of every file in a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small finished run."""
    out = tmp_path_factory.mktemp("done")
    reproduction.run(PaperOptions(out, ONLY, **SMALL))
    return out


def some_cell() -> cells.Cell:
    return cut_block(BLOCKS["audit/last"], make_problem("audit/last"), 400, 3)[0]


def test_a_cell_holds_what_simulate_gives(done):
    cell = some_cell()
    found = rows.read_cell(done / rows.CELLS / cell.name)
    result = ac.simulate(cell.problem, cell.policies, 400, range(3), 0, checkpoints=cells.checkpoints(400))
    assert found.learners == result.labels
    assert np.array_equal(found.regret, result.regret)
    assert np.array_equal(found.pulls, result.pulls)
    assert np.array_equal(found.rounds, result.rounds)


def test_everything_that_determines_the_numbers_is_in_the_name(monkeypatch):
    block, problem = BLOCKS["audit/last"], make_problem("audit/last")
    base = cut_block(block, problem, 400, 3)[0].name
    other = dataclasses.replace(problem, division="first")
    names = [
        base,
        cut_block(block, problem, 401, 3)[0].name,
        cut_block(block, problem, 400, 2)[0].name,
        cut_block(block, other, 400, 3)[0].name,
        cut_block(block, dataclasses.replace(problem, caps=(1.0, 1.5)), 400, 3)[0].name,
        cut_block(dataclasses.replace(block, learners=BLOCKS["audit/very_end"].learners), problem, 400, 3)[
            0
        ].name,
    ]
    monkeypatch.setattr(blocks, "SEED", 1)
    names.append(cut_block(block, problem, 400, 3)[0].name)
    monkeypatch.setattr(blocks, "SEED", 0)
    monkeypatch.setattr(cells, "code_hash", lambda: "another engine")
    names.append(cut_block(block, problem, 400, 3)[0].name)
    assert len(set(names)) == len(names)


def test_logged_sessions_are_in_the_name_too():
    a = ac.Problem([80], 80, 20, ac.EmpiricalLaw(np.full((2, 20), 0.01)))
    b = ac.Problem([80], 80, 20, ac.EmpiricalLaw(np.full((2, 20), 0.011)))
    block = BLOCKS["spotify"]
    assert cut_block(block, a, 400, 1)[0].name != cut_block(block, b, 400, 1)[0].name


def test_a_second_run_computes_nothing_and_changes_nothing(done):
    before = files(done)
    summary = reproduction.run(PaperOptions(done, ONLY, **SMALL))
    assert (summary.reused, summary.policy_rounds) == (summary.cells, 0)
    assert files(done) == before


def test_threads_and_restarts_leave_the_same_bytes(done, tmp_path):
    reproduction.run(PaperOptions(tmp_path, ONLY[1:], runs=3, horizon=400, executor=Local(1)))
    reproduction.run(PaperOptions(tmp_path, ONLY, runs=3, horizon=400, executor=Local(1)))
    assert files(tmp_path) == files(done)


def test_more_runs_keep_the_cells_that_are_there(tmp_path):
    first = reproduction.run(PaperOptions(tmp_path, ["audit/last"], runs=10, horizon=200))
    second = reproduction.run(PaperOptions(tmp_path, ["audit/last"], runs=25, horizon=200))
    assert (first.cells, second.cells, second.reused) == (1, 3, 1)


def test_fresh_computes_again(tmp_path):
    options = PaperOptions(tmp_path, ["audit/last"], runs=2, horizon=200)
    reproduction.run(options)
    before = files(tmp_path)
    assert reproduction.run(dataclasses.replace(options, fresh=True)).reused == 0
    assert files(tmp_path) == before


def test_any_damage_is_seen(done, tmp_path):
    """Flip one bit at 150 places: the cell is refused, or reads as it was.

    It may do the latter because Parquet repeats itself: a schema is stored twice, and a range of
    values beside the values. Most of the bytes count, so most flips must be refused.
    """
    source = done / rows.CELLS / some_cell().name
    data, good = source.read_bytes(), rows.read_cell(source)
    refused = 0
    for place in np.linspace(0, len(data) - 1, 150).astype(int):
        broken = bytearray(data)
        broken[place] ^= 1 << (place % 8)
        path = tmp_path / "cell.parquet"
        path.write_bytes(broken)
        try:
            found = rows.read_cell(path)
        except rows.DamagedCell:
            refused += 1
        else:
            assert np.array_equal(found.regret, good.regret)
            assert found.identity == good.identity
    assert refused > 75
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(rows.DamagedCell):
        rows.read_cell(path)
    path.write_bytes(b"")
    with pytest.raises(rows.DamagedCell):
        rows.read_cell(path)


def test_a_damaged_cell_stops_the_run_and_costs_nothing_else(tmp_path, capsys):
    words = ["paper", "--only", "audit", "--runs", "2", "--horizon", "200", "--out", str(tmp_path)]
    assert command(words) == 0
    good = files(tmp_path)
    victim = next((tmp_path / rows.CELLS).glob("audit-last*"))
    victim.write_bytes(victim.read_bytes()[:-50])
    broken = files(tmp_path)
    capsys.readouterr()
    assert command(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert victim.name in said
    assert "delete it" in said
    assert files(tmp_path) == broken
    victim.unlink()
    assert command(words) == 0
    assert files(tmp_path) == good


def test_a_cell_under_anothers_name_is_refused(done, tmp_path):
    name = some_cell().name
    store = tmp_path / rows.CELLS
    store.mkdir()
    wrong = next(path for path in (done / rows.CELLS).iterdir() if path.name != name)
    (store / name).write_bytes(wrong.read_bytes())
    with pytest.raises(ac.InputError, match="another cell's"):
        reproduction.run(PaperOptions(tmp_path, ["audit/last"], **SMALL))


def test_a_full_disk_is_one_line_and_keeps_what_is_done(tmp_path, capsys, monkeypatch):
    words = [
        "paper",
        "--only",
        "audit",
        "--runs",
        "20",
        "--horizon",
        "200",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    real, written = os.fsync, []

    def fsync(number: int) -> None:
        written.append(number)
        if len(written) > 4:  # two a cell: the file and its folder
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    assert command(words) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "parquet: No space left on device" in said
    assert "2 of 4 cells are done and kept" in said
    assert len(files(tmp_path / rows.CELLS)) == 2
    monkeypatch.setattr(os, "fsync", real)
    assert reproduction.run(PaperOptions(tmp_path, ["audit"], runs=20, horizon=200)).reused == 2


def test_a_limit_on_file_sizes_is_one_line(tmp_path):
    """A real refusal by the system, in the middle of a write."""
    words = [ACCRUAL, "paper", "--only", "audit/last", "--runs", "10", "--horizon", "2000"]
    limit = 3000
    done = subprocess.run(
        [*words, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("*.part*"))


def test_a_disk_that_fills_while_the_report_is_written_is_one_line(tmp_path, capsys, monkeypatch):
    words = ["paper", "--only", "audit/last", "--runs", "2", "--horizon", "200", "--out", str(tmp_path)]

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, to: full() if to.name == "tables.csv" else replace(self, to)
    )
    assert command(words) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1] == f"accrual: {tmp_path}/tables.csv: No space left on device"
    )
    assert not list(tmp_path.rglob("*.part*"))


@pytest.mark.parametrize("place", ["/dev/null/paper", "/proc/paper"])
def test_a_folder_that_cannot_be_written_is_one_line(place, capsys):
    assert command(["paper", "--only", "audit/last", "--runs", "1", "--horizon", "200", "--out", place]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"cannot write to {place}" in said


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    with runner.locked_folder(tmp_path), pytest.raises(ac.InputError, match="another accrual is at work"):
        reproduction.run(PaperOptions(tmp_path, ["audit/last"], **SMALL))


def test_half_written_files_of_a_killed_run_are_swept(tmp_path):
    store = tmp_path / rows.CELLS
    store.mkdir()
    (store / ".audit.123.part.parquet").write_bytes(b"half")
    (tmp_path / ".report.123.part.html").write_bytes(b"half")
    reproduction.run(PaperOptions(tmp_path, ["audit/last"], **SMALL))
    assert not [name for name in files(tmp_path) if ".part" in name]


@pytest.mark.parametrize(
    ("given", "message"), [({"runs": 0}, "runs"), ({"horizon": 5}, "horizon"), ({"only": ["x"]}, "setting")]
)
def test_bad_options_are_refused_before_any_work(tmp_path, given, message):
    with pytest.raises(ac.InputError, match=message):
        PaperOptions(tmp_path / "new", **given)
    assert not (tmp_path / "new").exists()


def test_a_cell_under_way_is_given_up_when_the_work_is_stopped(tmp_path):
    """A cell that was not given up would be played to its end, some minutes later, and leave its file."""
    short, long = (
        cells.cut("x", ac.paper.setting1(), {"UCB1": ac.UCB1()}, horizon, 1)[0] for horizon in (500, 10**9)
    )
    work = Local(jobs=2).run([short, long], tmp_path)
    assert next(work) is short
    work.close()
    assert [path.name for path in tmp_path.iterdir()] == [short.name]


def test_no_jobs_are_refused():
    with pytest.raises(ac.InputError, match="jobs must be a whole number from 1"):
        Local(0)


def test_cells_put_together_are_what_simulate_gives(tmp_path):
    """Cut over runs and over policies, in any order."""
    problem = ac.paper.setting1()
    policies = {"a": ac.UCB1(), "b": ac.TPUCBFR(20), "c": ac.DelayedUCB1()}
    cut = [
        cell
        for labels in ("ab", "c")
        for cell in cells.cut(
            "x", problem, {label: policies[label] for label in labels}, 300, 5, size=2, seed=3
        )
    ]
    runner.run_cells(cut, tmp_path, Local(2))
    found = cells.gather_results(cut, tmp_path)
    expected = ac.simulate(problem, policies, 300, 5, seed=3, checkpoints=cells.checkpoints(300))
    assert (found.labels, found.runs, found.meta) == (expected.labels, expected.runs, expected.meta)
    assert np.array_equal(found.regret, expected.regret)
    assert np.array_equal(found.pulls, expected.pulls)
    assert np.array_equal(found.rounds, expected.rounds)
    next((tmp_path / rows.CELLS).iterdir()).unlink()
    with pytest.raises(ac.InputError, match="is missing"):
        cells.gather_results(cut, tmp_path)


def test_the_name_of_a_cell_is_one_of_a_file():
    cell = cells.cut("../a b/ü", ac.paper.setting1(), {"UCB1": ac.UCB1()}, 100, 1)[0]
    assert cell.name.startswith("-a-b-_000-000_")


def test_the_manifest_says_how_it_was_made(done):
    manifest = rows.read_manifest(done)
    assert (
        manifest["command"] == "accrual paper --only setting1/alpha5 --only audit/last --runs 3 --horizon 400"
    )
    assert [entry["id"] for entry in manifest["settings"]] == list(ONLY)
    assert set(manifest["versions"]) == {"accrual", "numba", "numpy", "scipy"}
    # The paper's numbers are for 100,000 rounds; with 400 there is nothing to compare.
    assert all(one["printed"] is None for entry in manifest["settings"] for one in entry["learners"])
    json.dumps(manifest)


@pytest.mark.slow
def test_killed_at_random_and_resumed_to_the_same_bytes(tmp_path):
    """Twice here; ``make paper-kills`` does it twenty times over the whole paper."""
    words = [ACCRUAL, "paper", "--only", "audit", "--runs", "30", "--horizon", "2000"]
    rest: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = time.monotonic()
    subprocess.run([*words, "--out", str(tmp_path / "whole")], check=True, **rest)
    lasted = time.monotonic() - started
    chance = random.Random(7)
    for _ in range(2):
        child = subprocess.Popen([*words, "--out", str(tmp_path / "killed")], **rest)
        time.sleep(lasted * chance.uniform(0.3, 0.9))
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run([*words, "--out", str(tmp_path / "killed")], check=True, **rest)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
