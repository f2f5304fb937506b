"""The files of examples/deploy: what can be checked of them without containers."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml
from tests.serving import problem, serving

from accrual.service.metrics import Metrics
from accrual.service.settings import PREFIX, load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"


def test_the_start_script_makes_keys_with_which_the_readme_works(tmp_path):
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "ACCRUAL_STORE": f"sqlite:///{tmp_path}/s.db",
    }
    start = [str(DEPLOY / "entrypoint.sh"), "keys", "list"]
    other = tmp_path / "another pod of the same store"
    other.mkdir()
    for folder in (tmp_path, tmp_path, other):  # only the first start makes keys
        done = subprocess.run(start, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert re.findall(r"(\S+)$", done.stdout.strip(), re.M)[-2:] == ["first", "metrics"]
    assert done.stdout.count("good") == 2
    assert stat.S_IMODE((tmp_path / "first-key").stat().st_mode) == 0o600
    first, metrics = ((tmp_path / name).read_text().strip() for name in ("first-key", "metrics-key"))
    walk = re.findall(r"^(curl .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert len(walk) == 3
    with serving(tmp_path) as service:
        assert problem(service.get("/v1/bandits")) == "no-key"
        for command in walk:
            here = shlex.split(command.replace("http://127.0.0.1:8000", service.url))
            here += ["-H", f"Authorization: Bearer {first}", "-w", "%{http_code}"]
            done = subprocess.run(here, capture_output=True, text=True, check=True)
            assert done.stdout[-3:] in ("200", "201"), done.stdout
        reader = {"Authorization": f"Bearer {metrics}"}
        assert "accrual_decisions_total 1.0" in service.get("/metrics", headers=reader).text
        assert problem(service.post("/v1/bandits/plays/decisions", headers=reader)) == "scope"


def test_compose_names_files_and_settings_that_there_are():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"postgres", "accrual", "prometheus", "grafana"}
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in compose["volumes"]
    settings = services["accrual"]["environment"]
    assert load(environment=settings).workers == 2
    assert all(name.startswith(PREFIX) for name in settings)
    build = services["accrual"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    assert target.split(":")[0] in load(environment=settings).names
    for name in ("datasource.yaml", "provisioning.yaml"):
        assert yaml.safe_load((DEPLOY / "grafana" / name).read_text())["apiVersion"] == 1
    assert load(DEPLOY / "accrual.toml").rate == tomllib.loads((DEPLOY / "accrual.toml").read_text())["rate"]


def test_the_manifest_is_one_of_kubernetes_and_names_what_there_is():
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)
    claim, deployment, service = documents
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    settings = {variable["name"]: variable.get("value", "sqlite:///x.db") for variable in container["env"]}
    assert all(name.startswith(PREFIX) for name in settings)
    assert load(environment=settings).names > {"accrual"}
    assert load().stop_seconds < pod["terminationGracePeriodSeconds"]
    probes = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]
    assert probes == ["/healthz", "/healthz", "/readyz"]


def test_the_dashboard_asks_for_every_metric_and_no_other():
    board = json.loads((DEPLOY / "grafana" / "accrual.json").read_text())
    asked = {
        name.removesuffix("_bucket").removesuffix("_count")
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"accrual_\w+", target["expr"])
    }
    page = Metrics().page().decode()
    kept = {name for name in re.findall(r"^# HELP (\w+)", page, re.M) if not name.endswith("_created")}
    assert asked <= kept
    assert kept - asked == {"accrual_commit_size", "accrual_fold_lag_seconds"}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_an_image_has_what_the_container_file_copies():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert {"src", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"} <= kept
    assert "examples/deploy/entrypoint.sh" in kept
    assert all((ROOT / name).exists() for name in kept)
