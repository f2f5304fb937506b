"""Write a log that was made of another table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accrual.core.errors import need
from accrual.core.files import replacing

DECISIONS, PIECES = "decisions.parquet", "pieces.parquet"


def write(folder: Path, decisions: Any, pieces: Any) -> None:
    """Write both Arrow tables into `folder`, each file whole or not at all."""
    parquet = need("pyarrow.parquet", "fit")
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in ((PIECES, pieces), (DECISIONS, decisions)):
        with replacing(folder / name) as partial:
            parquet.write_table(table, partial)
