"""Ten minutes of broken logs: every one must be fitted, or refused with an `InputError`.

Needs atheris. Run with `make fuzz`; arguments are libFuzzer's, such as -max_total_time=60.
"""

from __future__ import annotations

import importlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

atheris: Any = importlib.import_module("atheris")
importlib.import_module("accrual.logs.estimate.intervals")  # first: what is compiled cannot be instrumented

with atheris.instrument_imports(include=["accrual.fit"]):
    from accrual.core.errors import InputError
    from accrual.logs.fit import fit_log
    from accrual.logs.fitted import Fitted
    from accrual.logs.open_log import open_log

FOLDER = Path(tempfile.mkdtemp(prefix="accrual-fuzz-"))
SECONDS = 600
DECISIONS = b"id,arm,at\n" + b"".join(b"%d,%s,%d\n" % (i, (b"a", b"b")[i % 2], i) for i in range(12))
PIECES = b"decision,value,age\n" + b"".join(b"%d,%d,%d\n" % (i, i % 3, i % 4) for i in range(12))
CELLS = [
    "", "0", "1", "7", "-1", "3.5", "nan", "inf", "1e308", "1e-320", "a", "b", "2024-01-01", "9999-12-31",
    "2024-01-01 10:00:00+02:00", "2024-01-01T00:00Z", "infinity", '"', "a,b", "\n", "NULL", "9" * 23, "é",
]  # fmt: skip
tally = {"fitted": 0, "refused": 0}


def fitted_json() -> bytes:
    """A problem.json to break."""
    (FOLDER / "d.csv").write_bytes(DECISIONS)
    (FOLDER / "p.csv").write_bytes(PIECES)
    with open_log(FOLDER / "d.csv", FOLDER / "p.csv") as log:
        fit_log(log, window=4, groups=2).save(FOLDER / "x.json")
    return (FOLDER / "x.json").read_bytes()


def parquet(text: bytes) -> bytes:
    out = io.BytesIO()
    head, *rows = [line.split(",") for line in text.decode().splitlines()]
    pq.write_table(pa.table({name: [row[i] for row in rows] for i, name in enumerate(head)}), out)
    return out.getvalue()


JSON = fitted_json()
WHOLE = {"csv": (DECISIONS, PIECES), "parquet": (parquet(DECISIONS), parquet(PIECES))}


def broken(data: Any, whole: bytes) -> bytes:
    """`whole` with some bytes changed, cut out or put in."""
    result = bytearray(whole)
    for _ in range(data.ConsumeIntInRange(0, 6)):
        at = data.ConsumeIntInRange(0, len(result))
        end = min(len(result), at + data.ConsumeIntInRange(0, 8))
        result[at:end] = data.ConsumeBytes(data.ConsumeIntInRange(0, 8))
    return bytes(result)


def table(data: Any, head: str, columns: int) -> bytes:
    """Any cells under a header."""
    rows = [
        ",".join(data.PickValueInList(CELLS) for _ in range(columns))
        for _ in range(data.ConsumeIntInRange(0, 12))
    ]
    return "\n".join([head, *rows]).encode()


def one(raw: bytes) -> None:
    data = atheris.FuzzedDataProvider(raw)
    way = data.ConsumeIntInRange(0, 4)
    form = "parquet" if way == 1 else "csv"
    decisions, pieces = FOLDER / f"d.{form}", FOLDER / f"p.{form}"
    if way <= 1:
        decisions.write_bytes(broken(data, WHOLE[form][0]))
        pieces.write_bytes(broken(data, WHOLE[form][1]))
    elif way == 2:
        decisions.write_bytes(table(data, "id,arm,at,propensity,window", 5))
        pieces.write_bytes(table(data, "decision,value,piece_at,key", 4))
    elif way == 3:
        decisions.write_bytes(table(data, "id,arm,at,value,age", 5))
    else:
        (FOLDER / "y.json").write_bytes(broken(data, JSON))
    try:
        if way == 4:
            Fitted.load(FOLDER / "y.json").to_problem(window=4, groups=2)
        else:
            window = data.PickValueInList([None, 2, "3d", 1e9, 1e-9])
            with open_log(
                decisions, None if way == 3 else pieces,
                strict=data.ConsumeBool(), allow_negative=data.ConsumeBool(), memory="300MB",
            ) as log:  # fmt: skip
                fit_log(log, window).save(FOLDER / "z.json")
            Fitted.load(FOLDER / "z.json")
        tally["fitted"] += 1
    except InputError:
        tally["refused"] += 1
    if sum(tally.values()) % 500 == 0:
        print(tally, flush=True)


if __name__ == "__main__":
    arguments = [sys.argv[0], f"-max_total_time={SECONDS}", "-max_len=512", "-len_control=0"]
    atheris.Setup([*arguments, f"-artifact_prefix={FOLDER}/", *sys.argv[1:]], one)
    atheris.Fuzz()
