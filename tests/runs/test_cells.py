"""A cell's name covers all code that its numbers come from."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest

import accrual as ac
from accrual.core.jit import source_hash
from accrual.runs.cells import code_hash, cut
from accrual.studies.gallery.habits import EarlyReward
from accrual.studies.paper.audit import GroupKLUCB

OWN_POLICY = """
from dataclasses import dataclass
import accrual as ac

@dataclass(frozen=True)
class Own(ac.UCB1):
    pass
"""


@pytest.mark.parametrize(
    ("edited", "counts"),
    [
        ("core/random.py", True),
        ("core/jit/compiler.py", True),
        ("problems/gallery.py", True),
        ("policies/age_prior/__init__.py", True),
        ("engine/cuda/__init__.py", True),
        ("runs/cells.py", False),
        ("studies/paper/page.py", False),
        ("cli/app.py", False),
    ],
)
def test_the_hash_of_the_code_covers_the_rooms_that_compute(tmp_path, edited, counts):
    package = Path(ac.__file__).parent
    shutil.copytree(package, tmp_path / "accrual", ignore=shutil.ignore_patterns("__pycache__", "*.css"))
    assert code_hash(tmp_path / "accrual") == code_hash()
    with open(tmp_path / "accrual" / edited, "a") as file:
        file.write("# a comment\n")
    code_hash.cache_clear()
    assert (code_hash(tmp_path / "accrual") != code_hash()) == counts


def test_policies_beside_the_gallery_and_the_paper_are_in_the_name():
    policies = {"habit": EarlyReward(), "audit": GroupKLUCB(20, "last"), "UCB1": ac.UCB1()}
    (cell,) = cut("x", ac.paper.setting1(), policies, 1000, runs=1)
    assert list(cell.identity["own_code"]) == [
        "accrual.studies.gallery.habits",
        "accrual.studies.paper.audit",
    ]


def test_an_edit_of_a_policys_module_changes_the_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "own_policy_of_a_test.py"
    path.write_text(OWN_POLICY)
    module = importlib.import_module(path.stem)
    names = []
    for text in (OWN_POLICY, OWN_POLICY + "# a comment\n"):
        path.write_text(text)
        source_hash.cache_clear()
        (cell,) = cut("x", ac.paper.setting1(), {"own": module.Own()}, 1000, runs=1)
        names.append(cell.name)
    del sys.modules[path.stem]
    assert names[0] != names[1]
