"""Cells on Ray: a real cluster that loses a node, and every refusal in one line."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import accrual as ac
from accrual.cli import app
from accrual.runs import on_ray, rows
from accrual.runs.cells import Cell, cut
from accrual.runs.runner import Local, run_cells

# Two nodes and a head that computes nothing; one node is killed when the first cell is there, and
# stays dead. The driver runs beside the cluster, in one process, because Ray is slow to import.
CLUSTER = """
import sys, threading, time
from pathlib import Path
from ray.cluster_utils import Cluster
from accrual.runs.on_ray import OnRay
from accrual.runs.runner import run_cells
from tests.runs.test_on_ray import few_cells

out, killed = Path(sys.argv[1]), []
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

def kill():
    while not list((out / "cells").glob("*.parquet")):
        time.sleep(0.01)
    killed.append(len(list((out / "cells").glob("*.parquet"))))
    cluster.remove_node(nodes[0], allow_graceful=False)

killer = threading.Thread(target=kill, daemon=True)
killer.start()
run_cells(few_cells(), out, OnRay(cluster.address))
killer.join()
cluster.shutdown()
print("killed when there were", killed[0])
"""


def few_cells() -> list[Cell]:
    """Twelve cells of a few tenths of a second."""
    policies = {policy.label: policy for policy in (ac.UCB1(), ac.TPUCBFR(20))}
    return cut("few", ac.paper.setting1(), policies, 50_000, 24, size=2)


def files(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.parquet")}


@pytest.mark.slow
def test_a_node_that_dies_changes_no_byte(tmp_path, request):
    """Once here; ``make ray-kills`` does it twenty times over the whole paper, and kills the head."""
    with tempfile.TemporaryDirectory() as place:  # a short path, as Ray's sockets need one
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        done = subprocess.run(
            [sys.executable, "-c", CLUSTER, str(tmp_path / "ray")],
            env={**os.environ, **token, "RAY_TMPDIR": place},
            cwd=request.config.rootpath,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 12, "all was done before the kill"
    # Nothing but the view: Ray keeps quiet.
    assert [line.split()[0] for line in done.stderr.splitlines() if "few" not in line] == ["12"]
    run_cells(few_cells(), tmp_path / "local", Local(1))
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    other = cut("few", ac.paper.setting1(), few_cells()[0].policies, 50_000, 2, size=2, seed=1)
    run_cells(other, tmp_path / "other", Local(1))
    assert not set(files(tmp_path / "other").values()) & set(files(tmp_path / "local").values())


@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:port", ":6379", "a/b:1", "head:70000"])
def test_an_address_is_a_host_and_a_port(address, capsys, tmp_path):
    words = [
        "paper",
        "--only",
        "audit/last",
        "--engine",
        "ray",
        "--address",
        address,
        "--out",
        str(tmp_path / "o"),
    ]
    assert app.run(words) == 2
    assert f"--address is host:port of a Ray head, or auto, not {address!r}" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "ry"], "unknown engine 'ry'; did you mean 'ray'? (one of: local, ray)"),
        (["--address", "head:1"], "--address is a Ray cluster's; it needs --engine ray"),
        (["--engine", "ray", "--jobs", "0"], "jobs must be a whole number from 1"),
        (["--engine", "ray", "--address", f"127.0.0.1:{free_port()}"], "no Ray head answers at 127.0.0.1:"),
    ],
)
def test_what_cannot_be_used_is_one_line(words, said, capsys, tmp_path):
    paper = ["paper", "--only", "audit/last", "--runs", "1", "--horizon", "100", "--out", str(tmp_path)]
    assert app.run([*paper, *words]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.rglob("*.parquet"))


def test_without_ray_the_extra_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert app.run(["paper", "--engine", "ray", "--out", str(tmp_path / "o")]) == 2
    assert "pip install 'accrual[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


# --- what a worker refuses; it runs here as it would there ---


@pytest.fixture
def mark(tmp_path):
    with on_ray._marked(tmp_path) as mark:
        yield mark


def work(cell: Cell, mark: Path) -> str | None:
    return on_ray._work(cell.problem, on_ray._rest(cell), str(mark))


def small() -> Cell:
    return cut("small", ac.paper.setting1(), {"UCB1": ac.UCB1()}, 50, 1)[0]


def test_a_worker_writes_the_cell_itself(mark):
    cell = small()
    assert work(cell, mark) is None
    assert rows.read_cell(mark.parent / cell.name).identity == cell.identity


def test_storage_that_is_not_shared_is_seen(mark, tmp_path):
    said = work(small(), tmp_path / "elsewhere" / mark.name)
    assert said is not None
    assert "does not see" in said
    assert "storage that all nodes share" in said


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [("versions", {"accrual": "9"}, "other versions"), ("code", "0" * 64, "other accrual's source")],
)
def test_a_worker_of_another_version_refuses(mark, key, value, what):
    cell = small()
    cell.identity[key] = value
    said = work(cell, mark)
    assert said is not None
    assert what in said
    assert not list(mark.parent.glob("*.parquet"))


def test_a_worker_that_cannot_write_says_so(mark, monkeypatch):
    def refuse(number: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)
    said = work(small(), mark)
    assert said is not None
    assert f"node {socket.gethostname()} cannot write" in said
    assert said.endswith("Permission denied")


def test_a_head_that_is_gone_is_noticed(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = on_ray._Head(f"127.0.0.1:{server.getsockname()[1]}")
        moment = [head._seen]
        monkeypatch.setattr(time, "monotonic", lambda: moment[0])
        moment[0] += 100
        assert head.check()
        assert not head.check()  # it is not asked again at once
    moment[0] += on_ray._GONE - 1
    assert not head.check()  # it may still come back
    moment[0] += 3
    with pytest.raises(ac.InputError, match="the Ray head does not answer any more"):
        head.check()
