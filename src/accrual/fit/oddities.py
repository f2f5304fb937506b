"""Find what is odd about a log; each oddity is one line with what to do about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from accrual.core.durations import show_length
from accrual.fit.tables import Log, LogFacts

_GAP = 0.05  # of the log's length: what may lie between the last piece and the last decision
_ORPHANS = 0.01  # of the pieces
_IDENTICAL = 0.5  # of the pieces
_UNEVEN = 1.05  # times the smallest propensity of an arm
NOBODY = {"na", "n/a", "null", "none", "nan", "nil", "-", "?", "unknown", "undefined"}
SHOWN = 5


@dataclass
class OddityFacts:
    """What is asked of each part of a log to find what is odd about the whole."""

    # last_decision, last_piece: their times.
    last_decision: float = 0.0
    last_piece: float = 0.0
    longest_age: float = 0.0
    alike: int = 0  # orphans whose id is a decision's but for spaces around it or capitals
    # The smallest and the largest propensity, where some arm's differ.
    uneven: tuple[float, float] | None = None
    ages_untold: bool = False  # whether ages were read from a column whose unit was not told


def find_uneven(log: Log) -> tuple[float, float] | None:
    """Give the range of propensities if those of some arm differ from decision to decision."""
    if not log.has_propensity:
        return None
    rows = log.query("SELECT min(propensity), max(propensity) FROM decided GROUP BY arm")
    if all(most <= _UNEVEN * least for least, most in rows):
        return None
    return min(row[0] for row in rows), max(row[1] for row in rows)


def oddities(log: LogFacts, facts: OddityFacts) -> list[str]:
    """Say what is odd about a log."""
    return [*_ends(log, facts), *_pieces(log, facts), *_ages(log, facts), *_arms(log.arms)]


def _ends(log: LogFacts, facts: OddityFacts) -> Iterator[str]:
    gap, length = min(facts.last_decision, log.end) - facts.last_piece, log.end - log.first
    if gap > _GAP * length > 0.0:
        yield (
            f"the last piece comes {show_length(gap, log.timestamps)} before the last decision: if the "
            f"pieces were cut there, say so with --end '{log.moment(facts.last_piece)}'; decisions after it "
            "look as if they had paid nothing"
        )


def _pieces(log: LogFacts, facts: OddityFacts) -> Iterator[str]:
    counts = log.counts
    everything = counts.pieces + counts.orphans
    if facts.alike:
        yield (
            f"{facts.alike:,} pieces without a decision have a decision's id but for spaces or capitals: "
            "clean the ids, or their reward is missing"
        )
    elif counts.orphans > _ORPHANS * everything:
        yield (
            f"{counts.orphans:,} of {everything:,} pieces have no decision in the log: is the table of "
            "decisions complete, and are these the right ids?"
        )
    if counts.identical > _IDENTICAL * counts.pieces:
        yield (
            f"{counts.identical:,} of {counts.pieces:,} pieces repeat another to the digit and have no key: "
            "if rows were written twice, remove them or name a key with --column key=COLUMN"
        )
    if facts.uneven:
        least, most = facts.uneven
        yield (
            f"propensities range from {least:.3g} to {most:.3g} within an arm: the means below are plain "
            "averages, not weighted by them; accrual replay weights"
        )


def _ages(log: LogFacts, facts: OddityFacts) -> Iterator[str]:
    """Ask about ages that look like days: tiny as seconds, and within the log's length as days."""
    day = 86_400.0
    length = log.end - log.first
    if facts.ages_untold and facts.longest_age >= 1.0 and facts.longest_age * day <= 1.05 * length:
        yield (
            f"ages are read as seconds, and the longest is {facts.longest_age:.4g} in a log of "
            f"{show_length(length, True)}: if they are days say --age-unit d, if seconds --age-unit s"
        )


def _arms(arms: tuple[str, ...]) -> Iterator[str]:
    nobody = [arm for arm in arms if arm.strip().lower() in NOBODY]
    if nobody:
        names = ", ".join(map(repr, nobody[:SHOWN]))
        yield (
            f"{'an arm is' if len(nobody) == 1 else 'arms are'} called {names}: "
            "if that means that nothing was chosen, leave those decisions out"
        )
    alike: dict[str, list[str]] = defaultdict(list)
    for arm in arms:
        alike[" ".join(arm.lower().split())].append(arm)
    same = [names for names in alike.values() if len(names) > 1]
    if same:
        shown = "; ".join(" and ".join(map(repr, names)) for names in same[:SHOWN])
        yield f"arms differ only by spaces or capitals, and count as different: {shown}"
