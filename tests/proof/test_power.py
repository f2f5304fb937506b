"""After a power cut everything that was acknowledged is there."""

from __future__ import annotations

import pytest
from tests.proof import disk

CUTS = [pytest.param(12, id="quick"), pytest.param(250, id="long", marks=pytest.mark.slow)]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("survival", ["none", "some"])
def test_nothing_acknowledged_is_lost(cuts, survival, library, folder, say):
    """Of what was not synced nothing survives, or each sector, length and name by the fall of a coin."""
    seen = disk.under("tests.proof.power", library, folder, cuts, "FULL", survival)
    say(f"power cuts, {survival} of what was not synced survives: {cuts}: {seen}")
    assert seen["acknowledged"] > cuts
    assert (seen["lost"], seen["broken"]) == (0, 0)


@pytest.mark.parametrize("cuts", CUTS)
def test_without_full_sync_some_is(cuts, library, folder, say):
    """The control: SQLite's usual setting for write-ahead logs."""
    seen = disk.under("tests.proof.power", library, folder, cuts, "NORMAL", "none")
    say(f"power cuts, control, synchronous = NORMAL: {cuts}: {seen}")
    assert seen["lost"] > 0
    assert seen["broken"] == 0
