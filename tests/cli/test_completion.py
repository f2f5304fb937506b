"""What a shell completes is what there is, and asking for it imports neither numba nor numpy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from accrual.cli import completion
from accrual.policies.catalog import CATALOG, CONTEXTUAL
from accrual.problems.gallery import ENTRIES
from accrual.problems.paper import NAMED_PROBLEMS


def test_the_names_are_those_that_exist():
    assert set(completion.policies()) == {*CATALOG, *CONTEXTUAL}
    assert completion.gallery() == list(ENTRIES)
    assert set(completion.settings()) == {*NAMED_PROBLEMS, *ENTRIES}


ASK = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sorted({"numba", "numpy"} & sys.modules.keys()), file=sys.stderr))
sys.argv = ["accrual"]
from accrual.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("accrual simulate setting2/c1", ["setting2/c1/uniform", "setting2/c1/late", "setting2/c1/early"]),
        ("accrual compare log.csv --policy TPUCBF", ["TPUCBFR", "TPUCBFRG"]),
        ("accrual gallery --only w5000-e", ["w5000-early", "w5000-even"]),
    ],
)
def test_a_shell_completes_names(words, completed):
    asked = {"_ACCRUAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr.strip()) == (completed, "loaded:")
