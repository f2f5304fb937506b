"""A live bandit on a SQLite file: decide, learn from pieces, stop, and go on.

A radio app opens with one of three stations. What a listener is worth comes song by song over the
next hours, some of it twice, because phones send again what they are not sure has arrived. The app is
restarted in the middle. Time is simulated: a clock that the example sets.

Run it: python examples/live.py
"""

import heapq
import tempfile
from pathlib import Path

import numpy as np

import accrual as ac

STATIONS = {"jazz": 0.35, "rock": 0.55, "talk": 0.20}  # what a listener is worth, of a cap of 1
HOUR = 3600.0


class Clock:
    """Tells the time of the example."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def listen(bandit: ac.Bandit, clock: Clock, listeners: int, dice: np.random.Generator) -> None:
    """New listeners come every few seconds; their songs count when they are over."""
    songs: list[tuple[float, int, int]] = []  # when, decision, which song
    worth: dict[int, float] = {}
    for _ in range(listeners):
        clock.now += float(dice.exponential(200.0))
        while songs and songs[0][0] <= clock.now:
            when, id_, song = heapq.heappop(songs)
            for _ in range(int(dice.integers(1, 3))):  # sometimes it is sent again
                bandit.observe(id_, worth[id_] / 5, at=when, key=f"song-{song}")
        decision = bandit.decide()
        worth[decision.id] = float(dice.uniform(0, 2 * STATIONS[decision.arm])) * 0.9
        for song in range(5):
            heapq.heappush(songs, (clock.now + float(dice.exponential(HOUR / 2)), decision.id, song))


def show(bandit: ac.Bandit) -> None:
    state = bandit.state()
    print(f"{state.decisions} decisions, {state.pending} pending, {state.late} late pieces")
    for arm in state.arms:
        low, high = arm.interval or (0.0, arm.cap)
        print(
            f"  {arm.name}: {arm.decisions:4d} decisions, observed {arm.observed:6.1f}, "
            f"estimate {arm.estimate or 0:.2f} ({low:.2f} to {high:.2f}), share {arm.share:.0%}"
        )


def main() -> None:
    clock, dice = Clock(), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'radio.db'}"
        with ac.Bandit(list(STATIONS), window="4h", groups=240, store=store, clock=clock) as bandit:
            listen(bandit, clock, 100, dice)
            show(bandit)
        with ac.Bandit.open(store, clock=clock) as bandit:  # the next day, or another program
            listen(bandit, clock, 100, dice)
            show(bandit)
            why = bandit.explain(199)
            print(f"Decision {why.id} was {why.arm!r}:")
            for reason in why.reasons:
                terms = ", ".join(f"{name} {value:.2f}" for name, value in reason.terms.items())
                print(f"  {reason.arm}: {reason.index:.2f} ({terms})")


if __name__ == "__main__":
    main()
