"""From what each part of a log holds to what is known of the whole log.

Parts are made by a hash of the decision's id, so a decision and its pieces are in one of them. What
is found are counts, least and greatest values and names, which merge in any order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from accrual.core.durations import UNITS
from accrual.core.errors import InputError
from accrual.logs.read import OddityFacts, Reading, Tables, check_arms, in_natural_order, oddities
from accrual.logs.tables import Counts, Log, LogFacts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHANGED = 1e-4  # of the test whether the arms' shares of the decisions changed over time
_EXPECTED_LEAST = 5.0


@dataclass
class LogContents:
    """What the tables `decided` and `paid` of a log or of a part hold."""

    arms: tuple[str, ...]
    # first, last: the times of the first and last decision, in ticks; infinite where there is none.
    first: float
    last: float
    latest: float  # the time of the last piece, in ticks
    resolution: float  # what all times are multiples of; infinite where there are none
    counts: Counts
    facts: OddityFacts
    notes: list[str] = field(default_factory=list)
    zone: str = ""


@dataclass
class EndedCounts:
    """What is left of a log or of a part before the log's end."""

    end: float
    decisions: int
    pieces: int
    after_end: int
    unfollowed: int
    last: float
    longest_window: float
    least: float
    most: float
    halves: Ints  # arms x 2: decisions in the first and the second half of the log's time
    propensity: Floats  # arms x 2: the smallest and the largest


def read_contents(log: Log, facts: OddityFacts) -> LogContents:
    """Say what an opened log or part holds."""
    unit = log.unit
    first, last, decisions = log.query("SELECT min(tick), max(tick), count(*) FROM decided")[0]
    latest, facts.longest_age, pieces = log.query(
        f"SELECT max(tick + age * {unit}), coalesce(max(age), 0), count(*) "
        "FROM paid JOIN decided ON paid.decision = decided.rowid"
    )[0]
    facts.last_decision = -math.inf if last is None else last / unit
    facts.last_piece = -math.inf if latest is None else latest / unit
    counts = dataclasses.replace(log.counts, decisions=decisions, pieces=pieces)
    return LogContents(
        log.arms, _or(first, math.inf), _or(last, -math.inf), _or(latest, -math.inf),
        _resolution(log) if decisions else math.inf, counts, facts, list(log.notes), log.zone,
    )  # fmt: skip


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def merge_contents(parts: Sequence[LogContents]) -> LogContents:
    """Say what all parts hold together."""
    zones = {part.zone for part in parts} - {""}
    if len(zones) > 1:
        raise InputError("some times have a time zone and some have none; give all of them one, or none")
    facts = OddityFacts(
        max(part.facts.last_decision for part in parts),
        max(part.facts.last_piece for part in parts),
        max(part.facts.longest_age for part in parts),
        sum(part.facts.alike for part in parts),
        any(part.facts.ages_untold for part in parts),
    )
    columns = zip(*(dataclasses.astuple(part.counts) for part in parts), strict=True)
    counts = Counts(*map(sum, columns))
    return LogContents(
        in_natural_order({arm for part in parts for arm in part.arms}),
        min(part.first for part in parts),
        max(part.last for part in parts),
        max(part.latest for part in parts),
        min(part.resolution for part in parts),
        counts,
        facts,
        max((part.notes for part in parts), key=len),
        next(iter(zones), ""),
    )


def check_contents(contents: LogContents, tables: Tables) -> None:
    """Refuse a log from which nothing can be learned."""
    if not contents.counts.decisions:
        raise InputError(f"{tables.decisions.label}: it has a header and no rows; decisions are needed")
    check_arms(contents.arms, tables)
    if contents.counts.pieces:
        return
    if not contents.counts.orphans:
        raise InputError(f"{tables.pieces.label}: no pieces: there is nothing to learn a spread from")
    column = tables.pieces.names[tables.piece_columns["decision"]]
    why = "they differ by spaces or capitals" if contents.facts.alike else "is it the right one?"
    where = f"{tables.pieces.label}: column {column!r} (decision)"
    raise InputError(f"{where} has no id that is a decision's; {why}")


def cut_at_end(log: Log, whole: LogContents, reading: Reading) -> EndedCounts:
    """Leave out what is after the log's end, and make the views of a log or part."""
    unit = log.unit
    after_end = 0
    if reading.end is not None:
        end = _given_end(log, reading.end)
        after_end = _cut(log, end)
    else:
        end = max(whole.last, whole.latest) + whole.resolution * unit
    log.query("CREATE TABLE ended AS SELECT CAST($1 AS DOUBLE) AS tick", [end])
    log.query(
        "CREATE VIEW decisions AS SELECT decided.rowid AS decision, CAST(id AS VARCHAR) AS id, arm, "
        f"decided.tick / {unit} AS at, propensity, own_window, "
        f"least((ended.tick - decided.tick) / {unit}, coalesce(own_window, 'inf'::DOUBLE)) AS followed"
        f"{log.context_sql} "
        "FROM decided, ended"
    )
    log.query("CREATE VIEW pieces AS SELECT decision::BIGINT AS decision, age, value FROM paid")
    places = {name: place for place, name in enumerate(whole.arms)}
    log.arm_numbers = np.array([places[name] for name in log.arms], np.int64)
    decisions, last, longest = log.query("SELECT count(*), max(tick), max(own_window) FROM decided")[0]
    pieces, least, most = log.query("SELECT count(*), min(value), max(value) FROM paid")[0]
    unfollowed = log.query("SELECT count(*) FROM decisions WHERE followed <= 0")[0][0]
    halves = np.zeros((len(whole.arms), 2), np.int64)
    propensity = np.tile([math.inf, 0.0], (len(whole.arms), 1))
    middle = (whole.first + whole.last) / 2.0
    for arm, early, late, *ends in log.query(
        "SELECT arm, count(*) FILTER (tick <= $1), count(*) FILTER (tick > $1), "
        "coalesce(min(propensity), 1), coalesce(max(propensity), 1) FROM decided GROUP BY arm",
        [middle],
    ):
        halves[log.arm_numbers[arm]], propensity[log.arm_numbers[arm]] = (early, late), ends
    return EndedCounts(
        end, decisions, pieces, after_end, unfollowed,
        _or(last, -math.inf), _or(longest, 0.0), _or(least, 0.0), _or(most, 0.0), halves, propensity,
    )  # fmt: skip


def describe_whole(known: LogFacts, contents: LogContents, parts: Sequence[EndedCounts]) -> None:
    """Write down what is known of a whole log."""
    known.arms, known.resolution = contents.arms, contents.resolution
    known.notes, known.zone = contents.notes, contents.zone
    known.counts = dataclasses.replace(
        contents.counts,
        decisions=sum(part.decisions for part in parts),
        pieces=sum(part.pieces for part in parts),
        after_end=sum(part.after_end for part in parts),
        unfollowed=sum(part.unfollowed for part in parts),
    )
    unit = known.unit
    known.first, known.end = contents.first / unit, parts[0].end / unit
    if not known.counts.decisions:
        raise InputError(f"no decision lies before the end, {known.moment(known.end)}")
    if not known.counts.pieces:
        raise InputError(f"no piece lies before the end, {known.moment(known.end)}")
    known.longest_window = max(part.longest_window for part in parts) if known.has_window else None
    least, most = min(part.least for part in parts), max(part.most for part in parts)
    known.signed, known.largest_value = least < 0, max(abs(least), abs(most))
    span = max(part.last for part in parts) / unit - known.first + known.resolution
    count = known.counts.decisions - (known.resolution == 0.0)  # without steps, the gaps between them
    known.rate = count / span if span > 0.0 else float(count)
    smallest = np.min([part.propensity[:, 0] for part in parts], axis=0)
    largest = np.max([part.propensity[:, 1] for part in parts], axis=0)
    known.least_propensity = float(smallest.min()) if (largest > smallest).any() else None
    known.shares_changed = _changed(np.sum([part.halves for part in parts], axis=0))
    known.odd = oddities(known, contents.facts)


def _changed(halves: Ints) -> bool:
    """Test by chi-square whether arms have other shares in one half of the log's time than in the other."""
    table = halves[halves.sum(axis=1) > 0].astype(np.float64)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    large = expected.min(axis=1) >= _EXPECTED_LEAST
    if large.sum() < 2:
        return False
    distance = float(((table - expected) ** 2 / expected)[large].sum())
    return bool(special.chdtrc(int(large.sum()) - 1, distance) < _CHANGED)


def _resolution(log: Log) -> float:
    """Find what all times and ages are multiples of: 1 for numbers; a second, minute, hour or day; else 0."""
    resolution = 0.0
    for step in [UNITS[letter] for letter in "smhd"] if log.timestamps else [1.0]:
        for table, name, size in (("decided", "tick", step * log.unit), ("paid", "age", step)):
            if log.query(f"SELECT 1 FROM {table} WHERE {name} <> floor({name} / {size}) * {size} LIMIT 1"):
                return resolution
        resolution = step
    return resolution


def _given_end(log: Log, given: float | str) -> float:
    moment = "TRY_CAST($1 AS DOUBLE)"
    if log.timestamps:
        moment = f"coalesce({log.moment_sql}, epoch_us(TRY_CAST($1 AS TIMESTAMPTZ)))"
    tick: float | None = log.query(f"SELECT {moment}", [str(given)])[0][0]
    if tick is None or not math.isfinite(tick):
        needed = "a timestamp such as 2024-05-01 12:30:00" if log.timestamps else "a number"
        raise InputError(f"end must be {needed}, as the log's times are, not {str(given)!r}")
    return tick


def _cut(log: Log, end: float) -> int:
    """Leave out decisions and pieces at or after `end`; give how many."""
    before = log.query("SELECT (SELECT count(*) FROM decided) + (SELECT count(*) FROM paid)")[0][0]
    log.query(
        f"DELETE FROM paid WHERE rowid IN (SELECT paid.rowid FROM paid JOIN decided "
        f"ON paid.decision = decided.rowid WHERE decided.tick + age * {log.unit} >= $1)",
        [end],
    )
    log.query("DELETE FROM decided WHERE tick >= $1", [end])
    after = log.query("SELECT (SELECT count(*) FROM decided) + (SELECT count(*) FROM paid)")[0][0]
    return int(before - after)
