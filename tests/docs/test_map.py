"""CONTRIBUTING's map is the truth: its rooms, its picture, what rooms import, and the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

from tools import architecture

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
AGAIN = "run `make map`"


def test_the_picture_has_the_layers_that_the_linter_checks():
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.picture(), AGAIN
    assert {room for row in architecture.layers() for room in row} == set(architecture.ROOMS)


def test_the_table_has_every_room_and_what_it_imports():
    assert architecture.guide(TEXT) == TEXT, AGAIN
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|[^|]*\| \S", TEXT, re.M)
    assert listed == [room for row in architecture.layers() for room in row]


def test_imports_go_down():
    order = {room: number for number, row in enumerate(architecture.layers()) for room in row}
    known = architecture.imports()
    assert any(known.values())
    assert all(order[other] > order[room] for room, others in known.items() for other in others)


def test_every_file_that_the_guide_names_is_there():
    named = re.findall(r"`((?:src|clients|tests|docs|examples|tools)/[\w./-]*)`", TEXT)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_room_that_has_tests_has_its_folder():
    rooms = {room for row in architecture.layers() for room in row}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders - rooms == {"clients", "docs", "proof"}


def test_no_test_imports_a_benchmark():
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    found = [
        path.name for path, text in texts.items() if re.search(r"^\s*(from|import) benchmarks\b", text, re.M)
    ]
    assert len(texts) > 50
    assert found == []
