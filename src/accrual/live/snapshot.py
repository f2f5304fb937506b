"""A ledger as bytes, and back: what its events come to, so that they need not be folded again."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.jit import fingerprint
from accrual.live.ledger import Ledger

# 1: closing a decision finished its groups at once; 2: no evidence; 3: no alarms; 4: no features; 5: nothing
# about arms
_FORMAT = 6
_MOST = 900_000_000  # bytes: what a database takes in one piece

Arrays = dict[str, npt.NDArray[Any]]


def form_of(ledger: Ledger) -> str | None:
    """Return a name for the snapshots that a ledger may start from: those of its policy and its code.

    None where the code is in no file (typed into a console, for example): it could not be told
    later whether it is still the same.
    """
    code = fingerprint(ledger.kernels.compiled.extend, Ledger, type(ledger.policy))
    if code is None:
        return None
    features = ledger.visitors.features
    shown = "" if features is None else f" {features.written()}"
    if ledger.arms.features is not None:
        shown += f" about {ledger.arms.features.written()}"
    if ledger.guardrails:
        shown += f" {ledger.guardrails!r}"
    words = f"{ledger.policy!r} {ledger.window} {ledger.span!r} {ledger.limits!r} {code}{shown}"
    return f"{_FORMAT}-{hashlib.sha256(words.encode()).hexdigest()[:32]}"


def pack(arrays: Arrays) -> bytes | None:
    """Return arrays as bytes; None where they are too large to keep."""
    if sum(array.nbytes for array in arrays.values()) > _MOST:
        return None
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def unpack(body: bytes) -> Arrays | None:
    """Return the arrays that `pack` made bytes of; None where the bytes are damaged."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
