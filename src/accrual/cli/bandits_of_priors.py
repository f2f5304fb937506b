"""Bandits made from a fit or an old log, for `accrual serve --prior`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from accrual.core.errors import InputError

if TYPE_CHECKING:
    from accrual.fit.schema import Fitted


def make_bandits(priors: Sequence[str], store: str) -> None:
    """Make the bandits of ``--prior NAME=FILE`` options; one that is there already goes on as it is."""
    from accrual.live.bandit import Bandit
    from accrual.service.messages import BANDIT
    from accrual.store.backends import open_store

    for text in priors:
        name, _, file = text.partition("=")
        if not re.fullmatch(BANDIT, name) or not file:
            raise InputError(f"--prior must be written like plays=problem.json, not {text!r}")
        place = open_store(store)
        try:
            row = place.find(name)
            if row is None:
                fitted = _fitted(file)
                caps = {arm.name: arm.cap.used for arm in fitted.known if arm.cap is not None}
                Bandit(caps, timedelta(seconds=fitted.window), store=place, name=name, prior=fitted).close()
            elif not row.config.get("imported"):
                raise InputError(f"--prior: the bandit {name!r} was made without a prior; take another name")
        finally:
            place.close()


def _fitted(file: str) -> Fitted:
    """Read what a fit wrote; or fit a log that says by itself which column is what."""
    if Path(file).suffix == ".json":
        from accrual.fit.schema import load

        return load(file)
    from accrual.fit.api import fit

    return fit(file)
