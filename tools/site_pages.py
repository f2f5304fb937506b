"""Adds to the documentation site what does not lie in docs/: pages of the root, and the examples.

mkdocs calls the functions whose names begin with ``on_`` (`make docs`; see mkdocs.yml). Links are written
in the repository as they work there. They are rewritten here to lead to the same page of the site.
"""

from __future__ import annotations

import importlib
import json
import os
import posixpath
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
EXAMPLES = "examples/index.md"
# Where a file of the repository has another place in the site.
PLACES = {"README.md": "index.md"}
PAGES = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md",
    "clients/python/README.md", "clients/typescript/README.md",
]  # fmt: skip
COPIES = ["LICENSE", "benchmarks/loop.cpp"]
LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".csv": "text",
    ".service": "ini",
    ".yml": "yaml",
    ".json": "json",
}
NAMES = re.compile(r"^<!-- the public names of (\S+) from (.+) -->$", re.M)
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/."""
    for path in PAGES:
        _add(files, config, PLACES.get(path, path), (ROOT / path).read_text(encoding="utf-8"), path)
    for path in COPIES:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    scripts = []
    for file in sorted((ROOT / "examples").rglob("*")):
        path = file.relative_to(ROOT).as_posix()
        if file.suffix == ".ipynb":
            _add(files, config, path.replace(".ipynb", ".md"), _notebook(file), path)
        elif file.is_file() and "__pycache__" not in path:
            scripts.append(_script(file))
    _add(files, config, EXAMPLES, "# Examples\n\n" + "\n".join(scripts), EXAMPLES)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the repository's links into the site's, and its fences into those that are coloured."""
    source = getattr(page.file, "repository_path", "docs/" + page.file.src_uri)
    inside = {getattr(file, "repository_path", "docs/" + file.src_uri): file.src_uri for file in files}

    def link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = inside.get(path) or inside.get("docs/" + path)
        if place is None and path.startswith("examples"):
            place = EXAMPLES
            after = f"#{_anchor(path)})" if (ROOT / path).is_file() else after
        if place is None:  # mkdocs says that it leads nowhere
            return match[0]
        return before + os.path.relpath(place, posixpath.dirname(page.file.src_uri) or ".") + after

    text = NAMES.sub(_reference, LINK.sub(link, markdown))
    return re.sub(r"^```console run$", "```console", text, flags=re.M).replace(
        "```python\n>>>", "```pycon\n>>>"
    )


def _reference(match: re.Match[str]) -> str:
    """The public names of a module that are defined in some others, for mkdocstrings."""
    module = importlib.import_module(match[1])
    places = tuple(match[2].split(", "))
    lines = []
    for name in module.__all__:
        value = getattr(module, name)
        place = getattr(value, "__module__", None) or value.__name__  # of a module, its own name
        if place.startswith(places):
            path = place if isinstance(value, ModuleType) else f"{place}.{name}"
            lines.append(f"::: {path}\n    options:\n      heading: {match[1]}.{name}\n")
    return "\n".join(lines)


def _add(files: Files, config: MkDocsConfig, place: str, text: str, path: str) -> None:
    file = File.generated(config, place, content=text)
    file.repository_path = path  # type: ignore[attr-defined]
    files.append(file)


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.removeprefix("examples/").lower())


def _script(file: Path) -> str:
    path = file.relative_to(ROOT).as_posix()
    language = LANGUAGES.get(file.suffix, "text")
    text = file.read_text(encoding="utf-8").rstrip()
    return f"## {path.removeprefix('examples/')} {{#{_anchor(path)}}}\n\n````{language}\n{text}\n````\n"


def _notebook(file: Path) -> str:
    """A notebook as a page: its text, its code, and what that printed and drew."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f"![What the cell above draws](data:image/png;base64,{picture})"
    text = "".join(output.get("text") or data.get("text/plain", "")).rstrip()
    return f"```text\n{text}\n```" if text else ""
