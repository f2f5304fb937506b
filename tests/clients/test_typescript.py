"""The TypeScript client: built with tsc, and tried by Node against a real service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.clients.lossy_proxy import counts, dropping, lossy
from tests.serving import serving
from tools import client_types

from accrual.service import refusals

HERE = Path(__file__).parents[2] / "clients" / "typescript"
NOT_TRIED = "the TypeScript client was not tried: "
# What npm says where the registry is not there; anything else that goes wrong is a failure.
UNREACHABLE = re.compile(
    r"code (ENOTFOUND|ECONN\w+|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E[45]\d\d)"
)


def node(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the client's folder."""
    surroundings = {**os.environ, **environment}
    return subprocess.run(command, cwd=HERE, env=surroundings, capture_output=True, text=True, check=False)


def installed() -> bool:
    """Whether the folder node_modules has just what the lock file names."""
    locked = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    try:
        there = json.loads((HERE / "node_modules/.package-lock.json").read_text(encoding="utf-8"))["packages"]
    except (OSError, ValueError):
        return False
    wanted = {name: package["version"] for name, package in locked.items() if name}
    return wanted == {name: package["version"] for name, package in there.items()}


@pytest.fixture(scope="module")
def built():
    """Build the client in `dist` and its test in `build`; tsc checks the types of both."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip(f"{NOT_TRIED}there is no node or no npm")
    version = node("node", "--version").stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < 20:
        pytest.skip(f"{NOT_TRIED}node is {version}, and 20 or newer is needed")
    if not installed():
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=20000"]
        done = node("npm", "ci", *flags)
        if done.returncode and UNREACHABLE.search(done.stderr):
            pytest.skip(f"{NOT_TRIED}npm could not fetch the compiler from its registry")
        assert done.returncode == 0, done.stderr
    for project in (".", "test"):
        done = node("node", "node_modules/typescript/bin/tsc", "--project", project)
        assert done.returncode == 0, done.stdout
    return HERE / "dist"


@pytest.fixture(scope="module")
def service(built, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("typescript")) as service:
        arms = {"jazz": 1, "rock": 2}
        for name in ("web", "lossy", "plays"):
            made = service.post("/v1/bandits", {"name": name, "arms": arms, "window": "60d", "floor": 0.1})
            assert made.status_code == 201
        features = {"country": ["de", "us"], "new": "bool"}
        body = {"name": "contexts", "arms": arms, "window": "60d", "features": features, "policy": "LinUCB"}
        assert service.post("/v1/bandits", body).status_code == 201
        guarded = {
            "name": "guarded",
            "arms": arms,
            "window": "60d",
            "floor": 0.1,
            "streams": {"refunds": {"kind": "guardrail"}},
        }
        assert service.post("/v1/bandits", guarded).status_code == 201
        yield service


def test_all_that_it_can_do(service):
    with dropping(service.port, lossy(4)) as port:
        bad_line = f"http://127.0.0.1:{port}"
        done = node(
            "node", "--test", "build/client.test.js", ACCRUAL_URL=service.url, ACCRUAL_LOSSY_URL=bad_line
        )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\S+ pass 8$", done.stdout, re.M), done.stdout
    decisions, values = counts(service, "lossy")
    assert decisions == 20
    assert values == Counter([i / 100 for i in range(20)]) + Counter({1.0: 20})


def test_the_example_of_the_readme_runs(service, tmp_path):
    text = (HERE / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```js\n(.*?)```", text, re.S)
    script = HERE / "build" / "example.mjs"  # in the package, so that it finds the package by its name
    script.write_text(example.replace("http://127.0.0.1:8000", service.url), encoding="utf-8")
    done = node("node", str(script))
    assert done.stdout.endswith("404 unknown-bandit\n"), done.stdout + done.stderr
    assert counts(service, "plays") == (1, Counter([0.7, 0.1, 0.2]))


def test_it_knows_every_problem_of_the_service():
    text = (HERE / "src/errors.ts").read_text(encoding="utf-8")
    (listed,) = re.findall(r"PROBLEM_KINDS = \[(.*?)\]", text, re.S)
    assert re.findall(r'"([^"]+)"', listed) == list(refusals.KINDS)


def test_the_types_of_both_clients_are_those_of_the_service():
    """`make clients` writes them from the OpenAPI description."""
    schemas = client_types.client_schemas()
    assert {"Decision", "Piece", "PieceResult", "BanditState", "Verdict"} <= schemas.keys()
    for file, write in (
        (client_types.PYTHON, client_types.python_types),
        (client_types.TYPESCRIPT, client_types.typescript_types),
    ):
        assert file.read_text(encoding="utf-8") == write(schemas), f"{file.name} is old: run make clients"


@pytest.mark.parametrize("name", ["package.json", "package-lock.json", ".npmrc"])
def test_no_file_names_the_host_of_a_registry(name):
    assert "://" not in (HERE / name).read_text(encoding="utf-8")
