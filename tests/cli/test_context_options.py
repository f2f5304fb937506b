"""The option --context of the commands that read a log."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def log(tmp_path):
    """A log of two arms: new visitors are better served by `short`, the others by `long`."""
    dice = np.random.default_rng(8)
    n = 3000
    new, arm = dice.random(n) < 0.5, dice.integers(0, 2, n)
    decisions = pd.DataFrame(
        {
            "id": range(n),
            "arm": np.array(["short", "long"])[arm],
            "at": range(n),
            "new": new,
            "user": range(n),
        }
    )
    paid = np.flatnonzero(dice.random(n) < np.where(new == (arm == 0), 0.6, 0.2))
    pieces = pd.DataFrame({"decision": paid, "value": 1.0, "age": dice.integers(0, 20, len(paid))})
    decisions.to_csv(tmp_path / "decisions.csv", index=False)
    pieces.to_csv(tmp_path / "pieces.csv", index=False)
    return [str(tmp_path / "decisions.csv"), str(tmp_path / "pieces.csv"), "--window=20", "--groups=4"]


def test_fit_says_whether_the_best_arm_depends_on_the_context(cli, log):
    code, said, errors = cli("fit", *log, "--context=new", "--uniform")
    assert (code, errors) == (0, "")
    said = " ".join(said.split())
    assert "Does the best arm depend on the context: yes" in said
    assert "As given, every arm had the same chance at each decision." in said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["fit", "--context=user"], "user"),
        (["fit", "--context=colour"], "colour"),
        (["compare", "--context=new", "--uniform", "--rate=2"], "leave out --rate"),
        (["compare", "--context=new", "--uniform", "--jobs=2"], "leave out --rate, --all-arms, --jobs"),
        (["compare", "--context=new", "--uniform", "--device=cuda"], "on the CPU"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(cli, log, words, text):
    command, *options = words
    code, said, error = cli(command, *log, *options)
    assert (code, said, error.count("\n")) == (2, "", 1)
    assert text in error
