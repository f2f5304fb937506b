"""Bandits after a fork: the child refuses those that its parent had open."""

from __future__ import annotations

import os
import weakref
from typing import Any

from accrual.core.errors import InputError

_OPEN: weakref.WeakSet[Any] = weakref.WeakSet()


class _Forked:
    """What an open bandit becomes in a forked child: it refuses everything but to be let go of.

    The store's connection, its lock and the statistics belong to the parent, which goes on with them: two
    processes would write the same decision ids into one file, or part in silence in memory.
    """

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name == "close":
            return super().__getattribute__(name)
        raise InputError(
            "this bandit was opened before this process was forked from another, which goes on with it; "
            "open one here, after the fork"
        )

    def close(self) -> None:
        """Do nothing: the store is the parent's to close."""


def refuse_in_children(bandit: Any) -> None:
    """Let a process that is forked from this one refuse to use this bandit; here its calls cost no more."""
    _OPEN.add(bandit)


def _in_child() -> None:
    for bandit in _OPEN:
        if isinstance(bandit, _Forked):  # by an earlier fork: this is a grandchild
            continue
        bandit.__class__ = type(f"Forked{type(bandit).__name__}", (_Forked, type(bandit)), {})


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_in_child)
