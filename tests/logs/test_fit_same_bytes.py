"""A fit is the same to the last byte of problem.json, whatever the number of threads or the order of rows."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import accrual as ac


def write_log(folder: Path, size: int = 4000, order: int | None = None) -> tuple[str, str]:
    """Orphans, repeats, own windows, one huge payment, and values with many digits."""
    dice = np.random.default_rng(5)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(dice.random(size)) * 90 * 86400, unit="s")
    decisions = pd.DataFrame({"id": [f"d{i}" for i in range(size)], "arm": dice.integers(12, size=size)})
    decisions["at"] = at.round("us")
    decisions["window"] = np.where(dice.random(size) < 0.1, 5.0, 40.0)
    owner = dice.integers(size + 50, size=5 * size)  # some have no decision
    start = decisions["at"].reindex(owner, fill_value=at[0]).to_numpy()
    pieces = pd.DataFrame({"decision": [f"d{i}" for i in owner], "value": dice.lognormal(0, 2, len(owner))})
    pieces["at"] = start + pd.to_timedelta(dice.exponential(6.0, len(owner)) * 86400, unit="s")
    pieces["key"] = dice.integers(3, size=len(owner)).astype(str)
    pieces.loc[7, "value"] = 1e6
    if order is not None:
        decisions, pieces = (table.sample(frac=1.0, random_state=order) for table in (decisions, pieces))
    paths = str(folder / "decisions.parquet"), str(folder / "pieces.parquet")
    decisions.to_parquet(paths[0], row_group_size=2048)  # so that several threads have something to read
    pieces.to_parquet(paths[1], row_group_size=2048)
    return paths


@pytest.mark.parametrize("options", [{}, {"end": "2024-03-10"}], ids=["whole", "cut at an end"])
def test_threads_and_the_order_of_rows_change_no_byte(tmp_path, monkeypatch, options):
    connect = duckdb.connect
    found = []
    for threads, order in ((1, None), (2, None), (7, 1)):
        monkeypatch.setattr(
            duckdb, "connect",
            lambda path, config, threads=threads: connect(path, config={**config, "threads": threads}),
        )  # fmt: skip
        key = {"key": "key"}  # told, for so many contradictions would look like kinds of pieces
        fitted = ac.fit(*write_log(tmp_path, order=order), key, age_unit="d", **options)
        assert fitted.log["orphans"] > 0
        assert fitted.log["repeats"] > 0
        fitted.save(tmp_path / "found.json")
        found.append((tmp_path / "found.json").read_bytes())
    assert found[0] == found[1] == found[2]


def test_one_huge_payment_spoils_no_other_arm():
    dice = np.random.default_rng(4)
    size = 2000
    decisions = pd.DataFrame({"id": range(size), "arm": ["a", "b"] * (size // 2), "at": np.arange(size) / 9})
    pieces = pd.DataFrame({"decision": range(size), "value": dice.random(size), "age": dice.random(size)})
    found = []
    for value in (0.5, 1e15):
        pieces.loc[0, "value"] = value  # of arm a
        found.append(ac.fit(decisions, pieces, window=1.0, groups=2, end=300.5).arms[1])
    assert found[0].mean == found[1].mean
    assert found[0].spread == found[1].spread
