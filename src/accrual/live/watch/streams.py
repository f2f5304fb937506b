"""`Stream`: a named flow of pieces beside the reward. Each kind of stream is a class with its settings.

A bandit declares its streams once, by name, in its configuration. In the log and in the fold a stream is its
place in that list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self

from accrual.live.watch.watcher import Watcher

REWARD = "reward"  # the name of the stream that every bandit has, and that its policy learns from
STREAMS_MOST = 20


@dataclass(frozen=True)
class Stream(ABC):
    """The settings of a stream of some kind."""

    kind: ClassVar[str]
    """The name of the kind in a stored configuration and over HTTP."""
    needs_floor: ClassVar[bool] = False
    """Whether only a bandit whose arms all have a part of the floor can have such a stream."""
    cap: float = 1.0
    """The greatest total of the stream for one decision."""

    @abstractmethod
    def checked(self, name: str) -> Self:
        """Check settings that a user gives for a stream of this name; return them with plain numbers."""

    @staticmethod
    @abstractmethod
    def watcher(streams: Sequence[DeclaredStream]) -> Watcher:
        """Return the watcher of all streams of this kind, of which there is at least one."""

    def written(self, name: str) -> dict[str, Any]:
        """Return the stream as a store keeps it in a bandit's configuration."""
        return {"name": name, "kind": self.kind, **asdict(self)}


class DeclaredStream(NamedTuple):
    """A stream of a bandit."""

    number: int  # its place among the streams of the bandit
    name: str
    settings: Any  # of the class of its kind
