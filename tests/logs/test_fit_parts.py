"""A log that is cut into parts gives the very same fit: to the last byte of problem.json."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accrual as ac
from accrual.cli import app
from accrual.core.errors import InputError
from accrual.logs.estimate.intervals import ExactScale, GroupEstimate, Sums
from accrual.logs.fit import fit_log
from accrual.logs.log import open_log
from accrual.logs.parts import Part, PartedLog, part_readings
from accrual.logs.read.reading import Reading


def write_log(folder: Path, size: int = 4000, **columns) -> tuple[str, str]:
    """Orphans, repeats, own windows, one huge payment, and values with many digits."""
    dice = np.random.default_rng(5)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(dice.random(size)) * 90 * 86400, unit="s")
    decisions = pd.DataFrame({"id": [f"d{i}" for i in range(size)], "arm": dice.integers(12, size=size)})
    decisions["at"] = at.round("us")
    decisions["window"] = np.where(dice.random(size) < 0.1, 5.0, 40.0)
    owner = dice.integers(size + 50, size=5 * size)  # some have no decision
    start = decisions["at"].reindex(owner, fill_value=at[0]).to_numpy()
    pieces = pd.DataFrame({"decision": [f"d{i}" for i in owner], "value": dice.lognormal(0, 2, len(owner))})
    pieces["at"] = start + pd.to_timedelta(dice.exponential(6.0, len(owner)) * 86400, unit="s")
    pieces["key"] = dice.integers(3, size=len(owner)).astype(str)
    pieces.loc[7, "value"] = 1e6
    for name, value in columns.items():
        pieces[name] = value
    paths = str(folder / "decisions.parquet"), str(folder / "pieces.parquet")
    decisions.to_parquet(paths[0])
    pieces.to_parquet(paths[1])
    return paths


@contextmanager
def in_parts(paths: tuple[str, str], count: int, reading: Reading) -> Iterator[PartedLog]:
    parts = [Part(*paths, one) for one in part_readings(reading, count)]
    try:
        yield PartedLog(lambda method, *given: [getattr(part, method)(*given) for part in parts])
    finally:
        for part in parts:
            part.close()


@pytest.mark.parametrize("options", [{}, {"end": "2024-03-10"}], ids=["whole", "cut at an end"])
def test_any_number_of_parts_gives_the_same_bytes(tmp_path, options):
    paths = write_log(tmp_path)
    with open_log(*paths, age_unit="d", **options) as log:
        assert log.counts.orphans > 0
        assert log.counts.repeats > 0
        fit_log(log).save(tmp_path / "whole.json")
    for count in (1, 2, 7):
        with in_parts(paths, count, Reading.made(None, {"age_unit": "d", **options})) as parted:
            fit_log(parted).save(tmp_path / f"{count}.json")
        assert (tmp_path / f"{count}.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    other = write_log(tmp_path, value=np.random.default_rng(6).lognormal(0, 2, 20_000))
    with open_log(*other, age_unit="d", **options) as log:
        fit_log(log).save(tmp_path / "other.json")
    assert (tmp_path / "other.json").read_bytes() != (tmp_path / "whole.json").read_bytes()


def test_sums_do_not_depend_on_the_order():
    dice = np.random.default_rng(0)
    pay = dice.lognormal(0, 3, (500, 4))
    done, arm = dice.integers(5, size=500), dice.integers(3, size=500)
    found = []
    for order in (np.arange(500), dice.permutation(500)):
        sums = Sums(4, [float(pay.max())] * 3, 500)
        for some in np.array_split(order, 7):
            part = Sums(4, [float(pay.max())] * 3, 500)
            part.add(pay[some], done[some], arm[some])
            sums.merge(part)
        found.append(GroupEstimate(sums.together()))
    assert np.array_equal(found[0].covariance, found[1].covariance)
    mean = np.array([pay[done > g, g].mean() for g in range(4)])
    assert found[0].group_means == pytest.approx(mean, rel=1e-12)


def test_one_huge_payment_spoils_no_other_arm():
    dice = np.random.default_rng(4)
    size = 2000
    decisions = pd.DataFrame({"id": range(size), "arm": ["a", "b"] * (size // 2), "at": np.arange(size) / 9})
    pieces = pd.DataFrame({"decision": range(size), "value": dice.random(size), "age": dice.random(size)})
    found = []
    for value in (0.5, 1e15):
        pieces.loc[0, "value"] = value  # of arm a
        found.append(ac.fit(decisions, pieces, window=1.0, groups=2, end=300.5).arms[1])
    assert found[0].mean == found[1].mean
    assert found[0].spread == found[1].spread


@pytest.mark.parametrize("largest", [1e-300, 1.0, 1e120])
def test_exact_sums_are_as_good_as_plain_ones(largest):
    values = np.random.default_rng(1).random(1000) * largest
    scale = ExactScale.of(largest, 1000)
    sums = np.array([part.sum() for part in scale.split(values)])
    assert scale.joined(sums) == pytest.approx(values.sum(), rel=1e-13)


def test_what_a_part_refuses_is_refused_by_the_whole(tmp_path):
    (tmp_path / "d.csv").write_text("id,arm,at\n1,a,0\n2,a,1\n3,a,2\n")
    (tmp_path / "p.csv").write_text("decision,value,at\n1,1,1\n")
    paths = str(tmp_path / "d.csv"), str(tmp_path / "p.csv")
    with pytest.raises(InputError, match="holds only 'a'"), in_parts(paths, 3, Reading.made(None, {})):
        pass
    (tmp_path / "d.csv").write_text("id,arm,at\n1,a,0\n2,b,1\n3,a,x\n")
    bad = r"row 3: column 'at' \(at\) is 'x'"
    with pytest.raises(InputError, match=bad), in_parts(paths, 3, Reading.made(None, {})):
        pass
    with pytest.raises(InputError, match="only on one machine"):
        part_readings(Reading.made(None, {"bad_rows": "skip"}), 3)


def test_what_ray_cannot_read_is_one_line(capsys, tmp_path):
    assert app.run(["fit", f"sqlite:///{tmp_path}/x.db", "--engine", "ray"]) == 2
    assert "reads files that all nodes see" in capsys.readouterr().err


# Three nodes and a head that computes nothing; one node is killed once its parts have been read, and
# stays dead, so that another node must read them again.
CLUSTER = """
import sys, threading, time
from ray.cluster_utils import Cluster
from accrual.studies import fit_on_ray
from accrual.runs.on_ray import OnRay
from accrual.logs.fit import fit_log

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
where = OnRay(cluster.address, 6)
with fit_on_ray.open_on_ray(sys.argv[1], sys.argv[2], None, {"age_unit": "d"}, where) as log:
    cluster.remove_node(nodes[0], allow_graceful=False)
    fit_log(log).save(sys.argv[3])
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_that_dies_changes_no_byte(tmp_path, request):
    paths = write_log(tmp_path)
    with tempfile.TemporaryDirectory() as place:  # a short path, as Ray's sockets need one
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        done = subprocess.run(
            [sys.executable, "-c", CLUSTER, *paths, str(tmp_path / "ray.json")],
            env={**os.environ, **token, "RAY_TMPDIR": place},
            cwd=request.config.rootpath,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    with open_log(*paths, age_unit="d") as log:
        fit_log(log).save(tmp_path / "whole.json")
    assert (tmp_path / "ray.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
