"""A full disk or a failing one is an error and never a false acknowledgement; afterwards it works again."""

from __future__ import annotations

import pytest
from tests.proof import disk

FAULTS = [pytest.param(24, id="quick"), pytest.param(500, id="long", marks=pytest.mark.slow)]


@pytest.mark.parametrize("faults", FAULTS)
def test_nothing_is_acknowledged_that_is_not_there(faults, library, folder, say):
    seen = disk.under("tests.proof.failing", library, folder, faults, "heeds")
    say(f"disk full, I/O errors: {faults}: {seen}")
    assert seen["refused"] > faults
    assert (seen["lost"], seen["broken"]) == (0, False)


@pytest.mark.parametrize("faults", FAULTS)
def test_a_caller_that_ignores_the_error_loses(faults, library, folder, say):
    """The control: acknowledged all the same."""
    seen = disk.under("tests.proof.failing", library, folder, faults, "ignores")
    say(f"disk full, I/O errors, control, errors ignored: {faults}: {seen}")
    assert seen["lost"] > 0
