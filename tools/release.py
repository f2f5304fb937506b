"""`make release`: build accrual and accrual-client, try them, and tag the commit. Nothing is uploaded.

docs/releasing.md says what comes before and after it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import markdown

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
CLIENT = "clients/python"
PYTHONS = ("3.11", "3.13")  # the oldest and the newest that accrual supports


class Refused(Exception):
    """Says in one line why there is no release."""


def main() -> int:
    """Release what is committed, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "repository", help="the address of the repository on the web: https://host/owner/accrual"
    )
    repository = parser.parse_args().repository.rstrip("/")
    try:
        release(ROOT, repository)
    except Refused as reason:
        print(f"no release: {reason}", file=sys.stderr)
        return 2
    return 0


def release(root: Path, repository: str) -> None:
    """Check, build, try and tag."""
    version = check(root, repository)
    tag = f"v{version}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        export(root, source, repository, tag)
        files = build(source, Path(folder, "dist"))
        client_files = build(source / CLIENT, Path(folder, "client"))
        run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files + client_files)])
        check_description(wheel_of(files))
        dist = root / "dist"
        dist.mkdir(exist_ok=True)
        for file in files + client_files:
            (dist / file.name).write_bytes(file.read_bytes())
        wheels = {"library": dist / wheel_of(files).name, "client": dist / wheel_of(client_files).name}
        for python in PYTHONS:
            try_offline(root, python, wheels, Path(folder, python))
            print(f"installed from dist without an index and used once: Python {python}")
    run(["git", "tag", "-a", tag, "-m", f"accrual {version}"], root)
    print(f"built accrual and accrual-client {version} in dist and tagged {tag}; nothing was uploaded:")
    print("see docs/releasing.md")


def check(root: Path, repository: str) -> str:
    """Find the version, and refuse what must not be released."""
    if not re.fullmatch(r"https://[^/\s]+/\S+", repository):
        raise Refused("say where the repository is: make release REPOSITORY=https://host/owner/accrual")
    if run(["git", "status", "--porcelain"], root):
        raise Refused("there are changes that are not committed (git status shows them)")
    for python in PYTHONS:
        if shutil.which(f"python{python}") is None:
            raise Refused(f"there is no python{python} on the PATH to try the release with")
    version = version_of(root)
    if run(["git", "tag", "--list", f"v{version}"], root):
        raise Refused(f"the tag v{version} exists: raise VERSION in src/accrual/core/version.py")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.M):
        raise Refused(f"CHANGELOG.md has no line '## {version} (YYYY-MM-DD)'")
    return version


def version_of(root: Path) -> str:
    """Read the version."""
    text = (root / "src/accrual/core/version.py").read_text(encoding="utf-8")
    found = re.search(r'^VERSION = "([^"]+)"$', text, re.M)
    if found is None:
        raise Refused('src/accrual/core/version.py has no line VERSION = "..."')
    return found[1]


def export(root: Path, folder: Path, repository: str, tag: str) -> None:
    """Write the committed files to a folder, with a README that works on any page."""
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    run(["git", "archive", "--output", str(archive), "HEAD"], root)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    readme = folder / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), repository, tag), encoding="utf-8")
    shutil.copy(folder / "LICENSE", folder / CLIENT)
    for place in (folder, folder / CLIENT):
        with (place / "pyproject.toml").open("a", encoding="utf-8") as project:
            project.write(f'\n[project.urls]\nRepository = "{repository}"\n')


def absolute(text: str, repository: str, tag: str) -> str:
    """Make links and pictures of the README absolute: the files of this very version."""

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return LINK.sub(link, text)


def build(source: Path, dist: Path) -> list[Path]:
    """Build the sdist, and from it the wheel."""
    run([sys.executable, "-m", "build", "--outdir", str(dist), str(source)])
    return sorted(dist.iterdir())


def wheel_of(files: list[Path]) -> Path:
    """Return the wheel among the files of one build."""
    return next(file for file in files if file.suffix == ".whl")


def check_description(wheel: Path) -> None:
    """Render the wheel's description, and refuse pictures or links that would lead nowhere."""
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        description = files.read(name).decode().partition("\n\n")[2]
    page = markdown.markdown(description, extensions=["tables", "fenced_code"])
    relative = re.findall(r'(?:src|href)="((?!https://|#)[^"]*)"', page)
    if relative:
        raise Refused(f"the README's link to {relative[0]} is not absolute")
    if "<table>" not in page or "<img alt" not in page:
        raise Refused("the README does not render with its tables and pictures")


def try_offline(root: Path, python: str, wheels: dict[str, Path], folder: Path) -> None:
    """Install each wheel into a fresh environment without an index, and use them once (`tools/smoke.py`).

    What the wheels depend on is downloaded first, and kept in out/wheelhouse for the next time.
    """
    house = root / "out/wheelhouse" / python
    for name, wheel in wheels.items():
        what = f"{wheel}[all]" if name == "library" else str(wheel)
        run([f"python{python}", "-m", "venv", str(folder / name)])
        pip = [str(folder / name / "bin/python"), "-m", "pip", "-q", "--disable-pip-version-check"]
        pinned = ["-c", str(root / "constraints.txt"), "--find-links", str(house), what]
        run([*pip, "download", "--only-binary", ":all:", "--dest", str(house), *pinned])
        run([*pip, "install", "--no-index", *pinned])
    here = folder / "work"
    here.mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(here / "compiled")}
    environment.pop("PYTHONPATH", None)
    library, client = (str(folder / name / "bin/python") for name in wheels)
    run([library, str(root / "tools/smoke.py"), version_of(root), client], here, environment)


def run(command: list[str], folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """What a command prints; one that fails ends the release."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
