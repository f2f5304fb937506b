"""The description is true: schemathesis sends what it allows and what it forbids."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.serving import Process

# All checks but one: that whatever fits the schema is accepted. A schema cannot say that two arms must
# differ in name, or that a bandit's windows count rounds; such requests are refused with a 422.
LEFT_OUT = "positive_data_acceptance"


def probe(folder: Path, examples: int, phases: str) -> str:
    """Run schemathesis against a service; what it printed, if it found nothing."""
    with Process(folder, "--set", "rate=0") as process:
        service = process.ready()
        # What is compiled for a bandit with features takes longer than schemathesis waits for an answer.
        features = {"name": "compiled", "arms": ["a"], "window": "1d", "features": {"new": "bool"}}
        assert service.post("/v1/bandits", features).status_code == 201
        command = [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/v1/openapi.json",
            "--phases", phases, "--checks", "all", "--exclude-checks", LEFT_OUT,
            "--max-examples", str(examples), "--seed", "1", "--generation-database", "none",
            "--no-color", "--request-timeout", "300",
            "--suppress-health-check", "all", "--continue-on-failure",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stdout[-6000:]
        assert service.get("/readyz").status_code == 200
        log = (folder / "log").read_text()
    assert '"level":"error"' not in log, log[-3000:]
    return done.stdout


def test_some_examples_of_every_operation(tmp_path):
    printed = probe(tmp_path, 3, "examples,coverage,fuzzing,stateful")
    assert re.search(r"Tested: 19", printed), printed[-2000:]
