"""The process of plain Python that the suites ask."""

import os

import pytest
from numba import config

from accrual.testing.plain_python import in_plain_python


class Asked:
    def where(self, *given):
        print("not an answer")
        return [config.DISABLE_JIT, os.getpid(), *given]  # type: ignore[attr-defined]

    def fail(self):
        raise ValueError("no such arm")

    def end(self):
        os._exit(3)


def test_one_process_answers_all_and_says_what_went_wrong():
    compiled, first, *given = in_plain_python(Asked(), "where", 0.1, [1, "a\n"])
    assert (compiled, given) == (1, [0.1, [1, "a\n"]])
    assert first != os.getpid()
    with pytest.raises(AssertionError, match="ValueError: no such arm"):
        in_plain_python(Asked(), "fail")
    assert in_plain_python(Asked(), "where")[1] == first


def test_after_it_ended_another_is_started():
    _, first = in_plain_python(Asked(), "where")
    with pytest.raises(AssertionError, match="ended with exit code 3"):
        in_plain_python(Asked(), "end")
    assert in_plain_python(Asked(), "where")[1] != first
