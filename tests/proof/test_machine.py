"""A bandit beside a plain model of it: whatever happens, the same answers, the same log, the same numbers."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import struct
import tempfile
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.postgres import server
from tests.proof.folds import refold
from tests.proof.load import MEMORY
from tests.proof.model import Model

import accrual as ac
from accrual.core.errors import InputError
from accrual.live import bandit as catch_up_thread
from accrual.live.commit import BanditRequest, Decide
from accrual.live.verify_snapshots import learned, same_bits
from accrual.store.admin import backup, restore
from accrual.store.backends import make_tables
from accrual.store.base import AddArm, Answer, CloseDecision, NewDecisions, NewPiece, RetireArm, StoreRequest
from accrual.store.events import Events, Kind

WINDOW = 6
POLICIES = [
    "AgeIMED",
    "ThompsonSampling",
    "TPUCBFR(alpha=3)",
    "AgePrior",
]  # groups, totals, pieces; and arms'
ABOUT = {"arm_features": {"x": (0, 1)}, "about": {"jazz": {"x": 0.25}}}  # ... features, which the last takes
LONG = int(os.environ.get("EXAMPLES", "2000"))  # fewer, where there is less time
EXAMPLES = [pytest.param(8, id="quick"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]

halves = st.integers(0, 2 * WINDOW + 2).map(lambda n: n / 2)
keys = st.none() | st.sampled_from("abc")
decisions = st.integers(-1, 12)
values = st.sampled_from([0.25, 0.5, 0.75, -0.5, math.nan])
arms = st.sampled_from(["jazz", "soul", "folk"])
caps = st.sampled_from([1.0, 2.0])
pieces = st.tuples(decisions, values, st.none() | halves, st.none(), keys).map(lambda said: NewPiece(*said))
dated = st.tuples(decisions, values, st.none(), halves, keys).map(lambda said: NewPiece(*said))
choices = st.tuples(st.integers(1, 3), keys).map(lambda said: Decide(*said))
closings = decisions.map(CloseDecision)
known = st.sampled_from([0.5, math.nan]).map(lambda x: struct.pack("<d", x))
comings = st.tuples(arms, caps, known).map(lambda said: AddArm(*said[:2], float(WINDOW), said[2]))
goings = st.integers(-1, 3).map(RetireArm)
asks = st.one_of(choices, pieces, pieces, dated, closings, comings, goings)


pytestmark = pytest.mark.filterwarnings("ignore:this decision has paid more in all")


def without_warnings(answers: list[Answer]) -> list[Answer]:
    """As a store, which knows nothing of caps, would answer."""
    return [answer._replace(warning="") for answer in answers]


class BanditMachine(RuleBasedStateMachine):
    """Of a bandit in the store at `self.url`."""

    url: str
    bandit: ac.Bandit
    count = itertools.count()

    def crash(self) -> None:
        """The process is gone. What it had stored is at `self.url`."""
        raise NotImplementedError

    def elsewhere(self) -> None:
        """Let `self.url` be another, empty place."""
        raise NotImplementedError

    @initialize(
        window=st.sampled_from([WINDOW, f"{WINDOW}s"]),
        policy=st.sampled_from(POLICIES),
        negative=st.booleans(),
        skew=st.sampled_from([0.0, 1.0]),
    )
    def start(self, window, policy, negative, skew) -> None:
        rounds = window == WINDOW
        self.now = 0.0
        self.skew = 0.0 if rounds else skew
        self.negative = negative
        self.name = f"bandit {next(self.count)}"
        self.options = {"clock": lambda: self.now, "skew": skew}
        self.takes_about = policy == "AgePrior"
        about: dict[str, Any] = ABOUT if self.takes_about else {}
        self.bandit = ac.Bandit(
            {"jazz": 1.0, "rock": 2.0}, window, groups=3, policy=policy, store=self.url, name=self.name,
            allow_negative=negative, **about, **self.options,
        )  # fmt: skip
        first = [
            self.suited(AddArm(name, cap, float(WINDOW), struct.pack("<d", x)))
            for name, cap, x in (("jazz", 1.0, 0.25), ("rock", 2.0, math.nan))
        ]
        self.model = Model(rounds, first, self.now)
        self.said: list[Sequence[BanditRequest]] = []

    def suited(self, ask: Any) -> Any:
        """What may be asked of this bandit: some have no features of arms."""
        return ask if self.takes_about or not isinstance(ask, AddArm) else ask._replace(about=None)

    @rule(said=st.lists(asks, min_size=1, max_size=5), step=halves)
    def submit(self, said, step) -> None:
        said = [self.suited(ask) for ask in said]
        self.now += step
        self.said.append(said)
        if self.wrong(said):
            with pytest.raises(InputError):
                self.bandit.submit(said)
            return
        told = self.bandit.submit(said)
        items = [self.item(ask, answer) for ask, answer in zip(said, told, strict=True)]
        assert without_warnings(told) == self.placed(self.model.append(items, self.now, self.skew))

    @rule(ask=choices, step=halves)
    def decide(self, ask, step) -> None:
        self.submit([ask], step)

    @rule(piece=pieces | dated, step=halves)
    def observe(self, piece, step) -> None:
        self.now += step
        expected = [] if self.wrong([piece]) else self.model.append([piece], self.now, self.skew)
        if not expected or expected[0].seq == 0:
            with pytest.raises(InputError):
                self.bandit.observe(*piece)
        else:
            told = self.bandit.observe(*piece)
            assert without_warnings([told]) == self.placed(expected)

    def wrong(self, said: Sequence[BanditRequest]) -> bool:
        """Whether this is to be refused, all of it."""
        gone = len(self.model.of(Kind.RETIRE_ARM)) == len(self.model.of(Kind.ADD_ARM))
        return any(
            (isinstance(ask, NewPiece) and (math.isnan(ask.value) or (ask.value < 0 and not self.negative)))
            or (isinstance(ask, NewPiece | CloseDecision) and ask.decision < 0)  # no id at all
            or (
                isinstance(ask, Decide) and (gone or any(isinstance(b, AddArm | RetireArm) for b in said[:i]))
            )
            for i, ask in enumerate(said)
        )

    def item(self, ask: BanditRequest, answer: Answer) -> StoreRequest:
        """What an ask comes to in the log: which arms are chosen is the policy's to say."""
        if not isinstance(ask, Decide):
            return ask
        arms = answer.arms or (0,) * ask.n
        return NewDecisions(arms, (float(WINDOW),) * len(arms), 0, ask.key, self.bandit.queue._salt)

    @rule(data=st.data())
    def say_again(self, data) -> None:
        if self.said:
            self.submit(data.draw(st.sampled_from(self.said)), 0.0)

    @rule(step=halves)
    def clock_goes_back(self, step) -> None:
        self.now = max(0.0, self.now - step)

    @rule(how=st.sampled_from(["let go", "crash", "move"]))
    def reopen(self, how) -> None:
        if how == "crash":
            self.crash()
        else:
            self.bandit.close()  # which keeps a snapshot
        if how == "move":
            with tempfile.TemporaryDirectory() as folder:
                backup(self.url, f"{folder}/backup.db")
                self.elsewhere()
                restore(self.url, f"{folder}/backup.db")
            make_tables(self.url)
        self.bandit = ac.Bandit.open(self.url, self.name, **self.options)
        self.same_as_refolded()

    def log(self) -> Events:
        return self.bandit._store.read(self.bandit._row.number, 0, 1 << 20)

    def placed(self, answers: list[Answer]) -> list[Answer]:
        """The model's answers with the positions that there are, which may have gaps."""
        positions = [0, *self.log().seq.tolist()]
        return [answer._replace(seq=positions[answer.seq]) for answer in answers]

    @invariant()
    def same_log(self) -> None:
        log = self.log()
        columns = attrgetter("kind", "at", "decision", "arm", "value", "age", "window", "cap", "salt")
        rows = list(zip(*(column.tolist() for column in columns(log)), strict=True))
        assert rows == [columns(event) for event in self.model.log]

    @invariant()
    def same_numbers(self) -> None:
        state, log = self.bandit.state(), self.model.log
        made = self.model.of(Kind.DECISION)
        closed = {event.decision for event in self.model.of(Kind.CLOSE)}
        pending = [d for d in made if d.decision not in closed and log[-1].at < d.at + d.window]
        paid = self.model.of(Kind.PIECE)
        in_time = [event for event in paid if not event.answer.late]
        assert state.late == len(paid) - len(in_time)
        for number, arm in enumerate(state.arms):
            assert arm.decisions == sum(d.arm == number for d in made)
            assert arm.pending == sum(d.arm == number for d in pending)
            assert arm.observed == sum(e.value for e in in_time if made[e.decision].arm == number)
            mine = [d.decision for d in made if d.arm == number]
            totals = [sum(e.value for e in in_time if e.decision == id_) for id_ in mine]
            assert arm.above_cap == sum(total > arm.cap for total in totals)

    def same_as_refolded(self) -> None:
        assert same_bits(learned(self.bandit._follower.ledger), learned(refold(self.bandit)))

    def teardown(self) -> None:
        if hasattr(self, "bandit"):
            self.same_as_refolded()
            self.bandit._store.close()


@cache
def tables() -> bytes:
    """A database that holds nothing yet: to copy one is quicker than to make one."""
    with tempfile.TemporaryDirectory() as folder:
        make_tables(f"sqlite:///{folder}/plays.db")
        return Path(folder, "plays.db").read_bytes()


class SQLiteMachine(BanditMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=MEMORY))
        self.folders = itertools.count()
        self.elsewhere()
        (self.folder / "plays.db").write_bytes(tables())

    def elsewhere(self) -> None:
        self.folder = self.root / str(next(self.folders))
        self.folder.mkdir()
        self.url = f"sqlite:///{self.folder}/plays.db"

    left: tuple[str, ...] = ("plays.db", "plays.db-wal")  # by a crash: shared memory is gone with the process

    def crash(self) -> None:
        before = self.folder
        self.elsewhere()
        for name in self.left:
            shutil.copy(before / name, self.folder)
        self.bandit._store.close()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.root)


class PostgresMachine(BanditMachine):
    def __init__(self) -> None:
        super().__init__()
        self.used: list[str] = []
        self.elsewhere()

    def elsewhere(self) -> None:
        self.url = server().tables()
        self.used.append(self.url)

    def teardown(self) -> None:
        super().teardown()
        for url in self.used:
            server().empty(url)

    def crash(self) -> None:
        server().kill_backends()
        self.bandit._store.close()


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("machine", [SQLiteMachine, PostgresMachine])
def test_whatever_happens(machine, examples, say, monkeypatch):
    monkeypatch.setattr(catch_up_thread, "_WAIT", 0.02)  # a follower looks so often whether it is to stop
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=50))
    say(f"{machine.__name__}: {examples} examples of up to 50 steps, like the model")


class LosingMachine(SQLiteMachine):
    """The control: crashes lose the write-ahead log."""

    left = ("plays.db",)


def test_what_a_crash_loses_is_found(say):
    with pytest.raises((AssertionError, InputError)):
        run_state_machine_as_test(
            LosingMachine, settings=settings(max_examples=25, stateful_step_count=50, phases=[Phase.generate])
        )
    say("LosingMachine, control, crashes lose the write-ahead log: found")
