"""Kernels and snapshots are thrown away after an edit that can change numbers, and after no other."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import accrual

EDIT = """
import json
from pathlib import Path
import accrual as ac
from accrual.core.jit import compiler
from accrual.core.jit.compiler import fingerprint
from accrual.engine.fast_loop import loop
from accrual.engine.feed import fill_kernel
from accrual.engine.law_kernels import pack
from accrual.live.ledger import Ledger
from accrual.live.log_follower import form_of

policy = ac.AgeIMED()
ledger = Ledger(policy, [1.0, 1.0], 12)

def fingerprints(edited=None):
    if edited is not None:
        with open(Path(ac.__file__).parent / edited, "a") as file:
            file.write("# a comment\\n")
    compiler.source_hash.cache_clear()
    found = {
        "play": fingerprint(loop(policy.functions, policy.feedback, False, False)),
        "draw": fingerprint(fill_kernel(pack(ac.paper.setting1()).draw)),
        "snapshot": form_of(ledger),
    }
    assert None not in found.values()
    return found

edits = [None, "engine/result.py", "engine/simulate.py", "cli/app.py", "runs/cells.py",
         "problems/laws.py", "policies/age/learning.py", "live/ledger.py"]
print(json.dumps([fingerprints(edited) for edited in edits]))
"""


def test_only_edits_that_can_change_numbers_change_fingerprints(tmp_path: Path) -> None:
    package = Path(accrual.__file__).parent
    shutil.copytree(package, tmp_path / "accrual", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", EDIT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, *harmless, law, age, ledger = json.loads(done.stdout)
    assert all(found == first for found in harmless)

    def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
        return {name for name in before if before[name] != after[name]}

    assert changed(first, law) == {"play", "draw"}  # the loop that plays imports the laws
    assert changed(law, age) == {"play", "snapshot"}
    assert changed(age, ledger) == {"snapshot"}
