"""Find what is odd about a log and about its contexts; each oddity is one line that says what to do.

A context must be known before the decision and must not follow from it. Nothing in a log says when a column
was written. So the user is asked about a column that looks as if it had been written after the decision.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.durations import show_length
from accrual.logs.log import ContextColumn, Log
from accrual.logs.read.columns import NOBODY
from accrual.logs.read.contexts import ContextCounts, count_cells

_GAP = 0.05  # of the log's length: what may lie between the last piece and the last decision
_ORPHANS = 0.01  # of the pieces
_IDENTICAL, _MORE = 0.02, 3.0  # of the pieces, and how many times as many as chance explains
CONTRADICTING = 0.01  # of the pieces, with the key of another
_UNLIKELY = 7.0  # expected number of decisions that would pay in a gap; none comes with a chance of exp(-7)
_DAYS_MOST = 4000.0  # ages up to that may be days
_TINY = 0.05  # of the log's length: ages that short may be in another unit
_ENOUGH = 50  # decisions, to tell whether a table lacks those that paid nothing
_RISING, _RISERS = (
    0.95,
    20,
)  # of the decisions with three pieces or more, whose values never fall; and how many
_LOOKED_AT = 5000  # decisions, for that
SHOWN = 5
_VALUES_MOST = 1000  # different values of a column up to which each is checked
_ALL = 0.99  # of the decisions: what holds for that many counts as a rule
_ONE = 0.98  # of the decisions, with one level
_LEAKS = 0.95  # of the variance of what decisions paid
_EXPECTED = 20.0  # decisions that should have paid, where none did
_MISSES = 6.0  # standard errors by which propensities may miss, ...
_FAR = 0.1  # ... and the share
_UNLIKE = 0.25  # how much more often a context may be missing for one arm than for the others
_FEW = 20  # with fewer decisions, nothing is reported
_STRAY = 0.05  # of the cells, which may be no numbers in a column of numbers
_SPARSE = 0.2  # of the whole numbers within a range: codes leave most of them out
_EACH = 10  # decisions for each value, on average, below which it is no code
_CODE = re.compile(r"(^|_)(id|code|type|zip|plz|category|class|segment|cluster|kind)s?$", re.IGNORECASE)


@dataclass
class OddityFacts:
    """What `oddities` needs to know besides the log itself."""

    # last_decision, last_piece: the times of the last ones, before the log was cut at its end.
    last_decision: float = 0.0
    last_piece: float = 0.0
    longest_age: float = 0.0
    alike: int = 0  # orphans whose id differs from a decision's only by spaces around it or by capitals
    ages_without_unit: bool = False  # whether there is a column of ages for which no unit is given
    payers: int = 0  # decisions that have a piece
    joined: bool = False  # whether decisions and pieces were one table
    start_stop: bool = False  # whether they were rows of start, stop and status
    thousands: str = ""  # a value whose point may separate thousands


def oddities(log: Log, facts: OddityFacts) -> list[str]:
    """Say what is odd about a log."""
    return [
        *(f"rows are left out ({count:,}): {why}" for why, count in log.rejected.items()),
        *_ends(log, facts), *_pieces(log, facts), *_values(log, facts), *_ages(log, facts), *_arms(log.arms),
    ]  # fmt: skip


def _ends(log: Log, facts: OddityFacts) -> Iterator[str]:
    gap, length = min(facts.last_decision, log.end) - facts.last_piece, log.end - log.first
    if gap > _GAP * length > 0.0 and facts.payers * gap > _UNLIKELY * length:
        yield (
            f"the last piece comes {show_length(gap, log.timestamps)} before the last decision: if the "
            f"pieces were cut there, say so with --end '{log.moment(facts.last_piece)}'; decisions after it "
            "look as if they had paid nothing"
        )


def _pieces(log: Log, facts: OddityFacts) -> Iterator[str]:
    counts = log.counts
    everything = counts.pieces + counts.orphans
    if facts.alike:
        yield (
            f"{facts.alike:,} pieces without a decision have a decision's id except for spaces or capitals: "
            "clean the ids, or their reward is missing"
        )
    elif counts.orphans > _ORPHANS * everything:
        yield (
            f"{counts.orphans:,} of {everything:,} pieces have no decision in the log: is the table of "
            "decisions complete, and are these the right ids?"
        )
    if counts.conflicts > CONTRADICTING * counts.pieces:
        yield (
            f"{counts.conflicts:,} pieces are left out because another has their decision and key and "
            f"another value or age: is {log.columns['key']!r} the key of a piece?"
        )
    if counts.identical > _IDENTICAL * counts.pieces and (
        2 * counts.identical >= counts.pieces or counts.identical > _MORE * _expected_identical(log)
    ):
        yield (
            f"{counts.identical:,} of {counts.pieces:,} pieces repeat another to the digit and have no key: "
            "if rows were written twice, remove them or name a key with --column key=COLUMN"
        )
    if (
        facts.joined
        and counts.decisions == facts.payers >= _ENOUGH
        and log.query("SELECT min(value) > 0 FROM paid")[0][0]
    ):
        yield (
            "every decision of this one table has a piece: if decisions that paid nothing are missing, as "
            "after an inner join, the means are too high; they need a row each, with the piece's columns "
            "empty"
        )


def _expected_identical(log: Log) -> float:
    """Return how many pieces of one decision would be equal by chance, if all were drawn from the log's."""
    alike = "SELECT sum(n * n) FROM (SELECT count(*)::DOUBLE AS n FROM paid GROUP BY age, value)"
    pairs = "SELECT sum(n * (n - 1) / 2) FROM (SELECT count(*)::DOUBLE AS n FROM paid GROUP BY decision)"
    ((same, both),) = log.query(f"SELECT ({alike}), ({pairs})")
    return float(same * both) / max(log.counts.pieces, 1) ** 2


def _values(log: Log, facts: OddityFacts) -> Iterator[str]:
    if facts.thousands:
        yield (
            f"values have three digits after every point, such as {facts.thousands!r}: if the point "
            "separates thousands, say --decimal ','; if it is a decimal point, as it is read now, say "
            "--decimal '.'"
        )
    many, rising = log.query(
        "SELECT count(*), count(*) FILTER (rises AND last > first) FROM (SELECT bool_and(coalesce(value >= "
        "before, true)) AS rises, min(value) AS first, max(value) AS last FROM (SELECT decision, value, "
        "lag(value) OVER (PARTITION BY decision ORDER BY age, value) AS before FROM paid "
        f"WHERE decision < {_LOOKED_AT}) GROUP BY decision HAVING count(*) > 2)"
    )[0]
    if many >= _RISERS and rising > _RISING * many:
        yield (
            f"values never fall from piece to piece in {rising:,} of {many:,} decisions: if each is the "
            "total so far, take the differences; now all of them are added up"
        )


def _ages(log: Log, facts: OddityFacts) -> Iterator[str]:
    """Ask about ages without a unit that look like another one: tiny as seconds, or beyond the log."""
    length = max(facts.last_decision - log.first, 1.0)
    if facts.ages_without_unit and 1.0 <= facts.longest_age <= min(_DAYS_MOST, _TINY * length):
        yield (
            f"ages are read as seconds, and the longest is {facts.longest_age:.4g} in a log of "
            f"{show_length(length, True)}: if they are days say --age-unit d, if hours --age-unit h, if "
            "seconds --age-unit s"
        )
    elif facts.ages_without_unit and facts.longest_age > length / _TINY:
        yield (
            f"ages are read as seconds, and the longest is {show_length(facts.longest_age, True)} where all "
            f"decisions were made within {show_length(length, True)}: if they are in a smaller unit, such as "
            "milliseconds, divide them; if they are seconds, say --age-unit s"
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


class _Cells(NamedTuple):
    """Decisions by the value of a column and by arm; all arrays are values x arms."""

    values: list[str | None]  # None for those without
    made: Floats  # how many there are
    paid: Floats  # how many have paid something
    total: Floats
    square: Floats  # of the totals, added up
    weight: Floats  # 1 / propensity, added up
    weight_square: Floats


def context_oddities(log: Log) -> list[str]:
    """Say what is odd about the contexts of an opened log."""
    log.query(
        "CREATE OR REPLACE TABLE paying AS SELECT decisions.*, coalesce(total, 0.0) AS total FROM decisions "
        "LEFT JOIN (SELECT decision, sum(value) AS total FROM pieces GROUP BY decision) USING (decision)"
    )
    found: list[str] = []
    misfits: list[tuple[float, str]] = []
    for column in log.contexts:
        counts = count_cells(log, column)
        numeric = counts.numbers == counts.given and not counts.padded and column.kind != "levels"
        found += _kinds(log, column, counts, numeric)
        several = numeric and counts.different > 2
        if several:
            found += _outcome_number(log, column)
        if counts.different <= _VALUES_MOST:
            cells = _cells(log, column)
            found += [*_of_the_arm(column, cells), *_missing(log, column, cells)]
            if not several:
                found += [*_outcome(column, cells), *_one_level(column, cells)]
            misfits += _misfits(log, column, cells)
    log.query("DROP TABLE paying")
    return found + ([max(misfits)[1]] if misfits else [])


def _cells(log: Log, column: ContextColumn) -> _Cells:
    rows = log.query(
        f"SELECT {column.role}, arm, count(*), count(*) FILTER (total <> 0.0), sum(total), "
        "sum(total * total), "
        "coalesce(sum(1.0 / propensity), 0.0), coalesce(sum(1.0 / (propensity * propensity)), 0.0) "
        "FROM paying GROUP BY 1, 2"
    )
    values = sorted({row[0] for row in rows}, key=lambda value: (value is None, value))
    place = {value: i for i, value in enumerate(values)}
    sums = np.zeros((6, len(values), len(log.arms)))
    for value, arm, *numbers in rows:
        sums[:, place[value], arm] += np.array(numbers, np.float64)
    return _Cells(values, *sums)


def _kinds(log: Log, column: ContextColumn, found: ContextCounts, numeric: bool) -> Iterator[str]:
    """Say where a column may be of another kind than it was taken for."""
    name, x = column.name, column.role
    number = f"TRY_CAST({x} AS DOUBLE)"
    if numeric and not column.kind and found.whole == found.given and found.truths < found.given:
        least, most = log.query(f"SELECT min({number}), max({number}) FROM decisions")[0]
        sparse = 3 <= found.different < _SPARSE * (most - least + 1) and _EACH * found.different < found.given
        if sparse or (_CODE.search(name) and found.different > 2):
            yield (
                f"context {name!r} is read as a number, and its {found.different:,} whole numbers look like "
                f"codes: if they are, say {name}:levels; if it is a quantity, {name}:number"
            )
    if numeric:
        below = log.query(f"SELECT {number}, count(*) FROM decisions WHERE {number} < 0 GROUP BY 1 LIMIT 2")
        if len(below) == 1 and re.fullmatch(r"-(1|9+)", f"{below[0][0]:.10g}"):
            yield (
                f"context {name!r} is {below[0][0]:.10g} in {below[0][1]:,} decisions and otherwise not "
                "below 0: if that means that it is missing, leave those cells empty"
            )
        return
    stray = found.given - found.numbers
    if not column.kind and 0 < stray <= _STRAY * found.given:
        ((example,),) = log.query(f"SELECT min({x}) FROM decisions WHERE {number} IS NULL")
        yield (
            f"context {name!r} is read as levels because {stray:,} of its {found.given:,} cells are not "
            f"numbers, such as {example!r}: leave those cells empty, or say {name}:levels"
        )
    elif found.truths < found.given:
        yield from _spelled(log, column)


def _spelled(log: Log, column: ContextColumn) -> Iterator[str]:
    """Say which levels are written in several ways, and which mean that nothing is known."""
    x = column.role
    same = log.query(
        f"SELECT list(DISTINCT {x} ORDER BY {x}) AS ways FROM decisions WHERE {x} IS NOT NULL "
        f"GROUP BY trim(regexp_replace(lower({x}), '\\s+', ' ', 'g')) HAVING len(ways) > 1 "
        f"ORDER BY count(*) DESC LIMIT {SHOWN}"
    )
    if same:
        shown = "; ".join(" and ".join(map(repr, ways)) for (ways,) in same)
        yield (
            f"levels of the context {column.name!r} differ only by spaces or capitals, and count as "
            f"different: {shown}"
        )
    nobody = log.query(
        f"SELECT {x}, count(*) FROM decisions WHERE list_contains($1::VARCHAR[], lower(trim({x}))) "
        f"GROUP BY 1 ORDER BY 2 DESC LIMIT {SHOWN}",
        [["", *sorted(NOBODY)]],
    )
    if nobody:
        shown = ", ".join(f"{level!r} ({count:,} decisions)" for level, count in nobody)
        yield (
            f"context {column.name!r} has the level {shown}: if that means that it is missing, say "
            f"--na {','.join(level for level, _ in nobody)}; now it counts as a level like others"
        )


def _of_the_arm(column: ContextColumn, cells: _Cells) -> Iterator[str]:
    """Say where the context follows from the arm, or the arm from the context."""
    known = np.array([value is not None for value in cells.values])
    count = cells.made[known]
    everyone, arms = float(count.sum()), int(np.count_nonzero(count.sum(axis=0)))
    if everyone < _FEW or arms < 2 or known.sum() < 2:
        return
    if count.max(axis=0).sum() >= _ALL * everyone > count.sum(axis=1).max():
        yield (
            f"context {column.name!r} follows from the arm: decisions of one arm have one value of it. It "
            "describes the choice, not the user, so leave it out"
        )
    elif count.max(axis=1).sum() >= _ALL * everyone > count.sum(axis=0).max():
        yield (
            f"context {column.name!r} decides the arm: decisions with one value of it got one arm, so "
            "nothing tells what another would have paid them. If it was written after the choice, leave it "
            "out"
        )


def _missing(log: Log, column: ContextColumn, cells: _Cells) -> Iterator[str]:
    """Say for which arm a context is missing much more often than for the others."""
    if cells.values[-1] is not None:
        return
    missing, made = cells.made[-1], cells.made.sum(axis=0)
    others = (missing.sum() - missing) / np.maximum(made.sum() - made, 1.0)
    more = np.where(made >= _FEW, missing / np.maximum(made, 1.0) - others, 0.0)
    worst = int(more.argmax())
    if more[worst] > _UNLIKE:
        yield (
            f"context {column.name!r} is missing in {missing[worst] / made[worst]:.0%} of the decisions of "
            f"the arm {log.arms[worst]!r} and in {others[worst]:.0%} of the others: then its being missing "
            "describes the choice, not the user; fill it in, or leave the column out"
        )


def _one_level(column: ContextColumn, cells: _Cells) -> Iterator[str]:
    by_value = cells.made.sum(axis=1)
    most = int(by_value.argmax())
    if cells.values[most] is not None and by_value[most] > _ONE * by_value.sum():
        share, rest = by_value[most] / by_value.sum(), by_value.sum() - by_value[most]
        yield (
            f"context {column.name!r} is {cells.values[most]!r} in {share:.1%} of the decisions: the other "
            f"{rest:,.0f} tell little"
        )


def _outcome(column: ContextColumn, cells: _Cells) -> Iterator[str]:
    """Say where a context tells what a decision paid, as only what is written afterwards can."""
    count, paid = cells.made.sum(axis=1), cells.paid.sum(axis=1)
    total, square = cells.total.sum(axis=1), cells.square.sum(axis=1)
    everyone = count.sum()
    if everyone < _FEW or 2 * _EACH * len(count) > everyone:
        return
    parts = [_explained(count, paid, paid), _explained(count, total, square)]
    if max(parts) >= _LEAKS:
        yield _after(column.name, f"explains {max(parts):.0%} of what decisions pay")
        return
    others = (paid.sum() - paid) / np.maximum(everyone - count, 1.0)
    never = (paid == 0.0) & (count * others >= _EXPECTED)
    for place in np.flatnonzero(never)[:1]:
        yield _after(
            column.name,
            f"is {cells.values[place]!r} in {count[place]:,.0f} decisions of which none paid, where "
            f"{others[place]:.0%} of the others did",
        )


def _explained(count: Floats, total: Floats, square: Floats) -> float:
    """Return the share of the variance that the values explain."""
    mean = total.sum() / count.sum()
    whole = square.sum() - count.sum() * mean**2
    between = (total**2 / np.maximum(count, 1.0)).sum() - count.sum() * mean**2
    return float(between / whole) if whole > 1e-12 * max(square.sum(), 1e-300) else 0.0


def _outcome_number(log: Log, column: ContextColumn) -> Iterator[str]:
    number = f"TRY_CAST({column.role} AS DOUBLE)"
    (found,) = log.query(f"SELECT corr({number}, total) FROM paying WHERE isfinite({number})")[0]
    if found is not None and np.isfinite(found) and found**2 >= _LEAKS:
        yield _after(column.name, f"explains {found**2:.0%} of what decisions pay")


def _after(name: str, what: str) -> str:
    return f"context {name!r} {what}: was it written after the decision? Then leave it out"


def _misfits(log: Log, column: ContextColumn, cells: _Cells) -> Iterator[tuple[float, str]]:
    """Say where an arm was chosen more or less often than its propensities say, with how far they miss.

    Weighted by 1 / propensity, the decisions of any arm add up to all decisions, for each value of a context.
    """
    if not log.has_propensity:
        return
    made = cells.made.sum(axis=1, keepdims=True)
    mean = cells.weight / made
    error = np.sqrt(np.maximum(cells.weight_square / made - mean**2, 0.0) / made)
    enough = (made >= _FEW * len(log.arms)) & (cells.made >= _FEW)
    far = np.where(enough & (np.abs(mean - 1.0) > _FAR), np.abs(mean - 1.0) / np.maximum(error, 1e-300), 0.0)
    value, arm = np.unravel_index(int(far.argmax()), far.shape)
    if far[value, arm] > _MISSES:
        shown = "is missing" if cells.values[value] is None else f"is {cells.values[value]!r}"
        yield (
            float(far[value, arm]),
            f"propensities do not fit the log: where {column.name!r} {shown}, the decisions of the arm "
            f"{log.arms[arm]!r}, weighted by them, add up to {cells.weight[value, arm]:,.0f} and should add "
            f"up to {made[value, 0]:,.0f}; are they the chosen arm's, and was it always among the choices?",
        )
