"""The service's long proofs: killed over and over, and its description taken at its word."""

from __future__ import annotations

import re

import pytest
from tests.service.test_service_kill import killed
from tests.service.test_service_schema import probe


@pytest.mark.slow
def test_killed_a_hundred_times(tmp_path, say):
    told, kept = killed(tmp_path, kills=100)
    say(f"service: kill -9 100 times, 8 clients: {told:,} acknowledged, {kept:,} kept, 0 lost or doubled")


@pytest.mark.slow
def test_five_hundred_examples_of_every_operation(tmp_path, say):
    printed = probe(tmp_path, 500, "examples,coverage,fuzzing,stateful")
    cases = re.search(r"([\d,]+) generated", printed)
    assert cases
    say(f"service: schemathesis, 500 examples an operation: {cases[1]} requests, nothing found")
