"""The arms of a ledger: what was declared of each, and what its decisions have come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, whole
from accrual.live.arm_features import AboutArms
from accrual.live.kernel_state import RECENT
from accrual.policy.base import positive

Floats = npt.NDArray[np.float64]

# Caps that one piece may be worth. Sums have sixteen digits: with a piece of this size, later taken back,
# what else was paid is still right to a ten-millionth of the cap.
VALUE_MOST = 1e9
_ARRAYS = ("caps", "windows", "about", "playing", "observed", "above", "recent", "first_news")


class ArmTable:
    """What a ledger knows of its arms, apart from the policy's statistics. Arms are numbered from 0 on.

    Parameters
    ----------
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    windows : sequence of float, optional
        Each arm's own window; `span` unless given.
    span : float
        The longest window that an arm may have.
    about : AboutArms, optional
        What is known about each arm.

    Attributes
    ----------
    features : Features or None
        What may be known about an arm.
    caps, windows : ndarray of float
    about : ndarray, arms x columns
        What the policy sees of what is known about each; no columns where that is nothing.
    playing : ndarray of bool
        Whether each arm is in play: those that have retired are not.
    observed : ndarray of float
        What each arm's decisions have paid, without late pieces.
    above : ndarray of int
        How many of each arm's decisions have paid more than its cap.
    first_news : ndarray of float
        When each arm's first decision finishes its first group; infinite before that decision.
    recent : ndarray of int
        The arms of the last 1,000 decisions: that of decision `id` is at ``id % 1000``.
    founding : int
        How many arms there were from the start; those beyond were added later.
    in_play : list of int
        The numbers of the arms in play.
    own_windows : list of float
        `windows` once more, from which one is read faster.
    value_most : float
        The largest value that a piece may have.
    """

    def __init__(
        self,
        caps: Sequence[float],
        windows: Sequence[float] | None,
        span: float,
        about: AboutArms | None = None,
    ) -> None:
        if not len(caps):
            raise InputError("a ledger needs at least one arm")
        if windows is None:
            windows = [span] * len(caps)
        if len(windows) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} windows, not {len(windows)}")
        self.span = span
        self.founding = len(caps)
        self.caps = np.array([positive("a cap", cap) for cap in caps])
        self.windows = np.array([self.checked_window(window) for window in windows])
        self.features = None if about is None else about.features
        self._about = about
        self.about = np.zeros((len(caps), 0)) if about is None else about.seen(about.stored)
        self.playing = np.ones(len(caps), np.bool_)
        self.observed = np.zeros(len(caps))
        self.above = np.zeros(len(caps), np.int64)
        self.first_news = np.full(len(caps), np.inf)
        self.recent = np.zeros(RECENT, np.int64)
        self._derive()

    def _derive(self) -> None:
        """Compute what follows from the arrays, after one of them was replaced or an arm has retired."""
        self.in_play = [int(arm) for arm in np.flatnonzero(self.playing)]
        self.own_windows: list[float] = self.windows.tolist()
        self.value_most = VALUE_MOST * float(self.caps.max())

    def __len__(self) -> int:
        return len(self.caps)

    def checked_window(self, window: float) -> float:
        """Return the window of an arm or of a decision, if it may have this one."""
        own = positive("a window", window)
        if own > self.span:
            raise InputError(f"a window must be at most the ledger's {self.span:g}, not {window!r}")
        return own

    def checked_number(self, arm: int) -> int:
        """Return the number of an arm, if there is such an arm."""
        return whole("arm", arm, 0, len(self.caps) - 1)

    def about_with(self, stored: bytes | None) -> Floats:
        """Return `about` with one more arm, of which a store keeps this."""
        row = np.zeros((1, 0)) if self._about is None else self._about.seen((stored,))
        return np.concatenate([self.about, row])

    def add(self, cap: float, window: float, about: bytes | None = None) -> None:
        """Add an arm, whose cap and window have been checked, and what is known about it."""
        self.caps = np.append(self.caps, float(cap))
        self.windows = np.append(self.windows, float(window))
        self.about = self.about_with(about)
        self.playing = np.append(self.playing, True)
        self.observed = np.append(self.observed, 0.0)
        self.above = np.append(self.above, 0)
        self.first_news = np.append(self.first_news, np.inf)
        self._derive()

    def retire(self, arm: int) -> None:
        """Take an arm out of play for good."""
        self.playing[self.checked_number(arm)] = False
        self._derive()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name. They are not copied."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the arrays by copies of those that another table's `arrays` returned."""
        for name in _ARRAYS:
            setattr(self, name, arrays[name].copy())
        self._derive()
