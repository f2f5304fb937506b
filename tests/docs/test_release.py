"""What `make release` refuses, and how it makes the README fit for any page."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from tools import release
from tools.release import Refused
from tools.test_versions import OURS

ROOT = Path(__file__).parents[2]
WHERE = "https://example.org/us/accrual"
DATED = "# Changelog\n\n## 0.3.0 (2026-11-15)\n\n- New.\n"


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository that is ready for release 0.3.0, on a machine with every Python."""
    monkeypatch.setattr("shutil.which", lambda name: name)
    (tmp_path / "src/accrual/core").mkdir(parents=True)
    (tmp_path / "src/accrual/core/version.py").write_text('VERSION = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(DATED)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "All")
    return tmp_path


def test_what_is_ready_is_let_through(repository):
    assert release.check(repository, WHERE) == "0.3.0"


def test_changes_that_are_not_committed(repository):
    (repository / "new").touch()
    with pytest.raises(Refused, match="not committed"):
        release.check(repository, WHERE)


def test_a_tag_that_exists(repository):
    git(repository, "tag", "v0.3.0")
    with pytest.raises(Refused, match=r"the tag v0\.3\.0 exists: raise VERSION"):
        release.check(repository, WHERE)


@pytest.mark.parametrize("heading", ["## 0.3.0 (unreleased)", "## 0.3.0", "## 0.3.01 (2026-11-15)", ""])
def test_a_version_without_a_date_in_the_changelog(repository, heading):
    (repository / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n## 0.2.0 (2026-01-01)\n")
    git(repository, "commit", "-am", "Changelog")
    with pytest.raises(Refused, match=r"no line '## 0\.3\.0 \(YYYY-MM-DD\)'"):
        release.check(repository, WHERE)


@pytest.mark.parametrize("where", ["", "git@host:us/accrual", "https://host"])
def test_no_address_of_the_repository(repository, where):
    with pytest.raises(Refused, match="say where the repository is"):
        release.check(repository, where)


def test_one_line_and_exit_code_2():
    done = subprocess.run(
        [sys.executable, "tools/release.py", ""], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_the_readme_is_absolute():
    text = release.absolute((ROOT / "README.md").read_text(encoding="utf-8"), WHERE, "v0.3.0")
    targets = [target for _, _, target in release.LINK.findall(text)]
    assert len(targets) > 20
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert f"]({WHERE}/raw/v0.3.0/docs/img/dashboard.png)" in text
    assert f"]({WHERE}/blob/v0.3.0/docs/live.md)" in text


def test_the_changelog_begins_with_this_version():
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line[:3] == "## "
    ]
    version = (ROOT / "src/accrual/core/version.py").read_text(encoding="utf-8").split('"')[-2]
    assert headings[0].startswith(f"## {version} (")


def test_the_policy_on_bounds_is_as_security_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *chain(*(extras[name] for name in extras if name not in OURS))]
    wanted = [one.partition(";")[0] for one in wanted if not one.startswith("accrual[")]
    assert all(">=" in one for one in wanted)
    assert [one.partition(">=")[0] for one in wanted if "<" in one] == ["numba", "numba-cuda"]
    said = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    assert "sets lower bounds" in said
    assert "only numba and numba-cuda, whose internals it uses, have upper bounds too" in said


def test_a_python_that_is_missing(repository, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None if name == "python3.13" else name)
    with pytest.raises(Refused, match=r"there is no python3\.13 on the PATH"):
        release.check(repository, WHERE)


def wheel_of(folder: Path, readme: str) -> Path:
    wheel = folder / "accrual.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("accrual-0.3.0.dist-info/METADATA", f"Name: accrual\nVersion: 0.3.0\n\n{readme}")
    return wheel


def test_a_description_that_renders(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    release.check_description(wheel_of(tmp_path, release.absolute(text, WHERE, "v0.3.0")))
    with pytest.raises(Refused, match=r"the README's link to \S+ is not absolute"):
        release.check_description(wheel_of(tmp_path, text))
    with pytest.raises(Refused, match="does not render with its tables and pictures"):
        release.check_description(wheel_of(tmp_path, "# accrual"))
