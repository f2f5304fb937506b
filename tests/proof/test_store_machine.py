"""A store beside a plain model of it: whatever happens, the same answers and the same log."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.proof.model import Model

from accrual.store.base import AddArm, Choose, Close, Item, Pay, RetireArm, Store
from accrual.store.schema import upgrade
from accrual.store.url import open_store

WINDOW = 6.0
ARMS = [AddArm("jazz", 1.0, WINDOW), AddArm("rock", 2.0, 4.0)]

halves = st.integers(0, 16).map(lambda n: n / 2)
keys = st.none() | st.sampled_from("abc")
decisions = st.integers(-1, 12)
arms = st.integers(-1, 3)
values = st.sampled_from([0.25, 0.5, -1.0])
batches = st.lists(arms, min_size=1, max_size=3).map(tuple)
names = st.sampled_from(["jazz", "soul", "folk"])
items = st.one_of(
    st.tuples(batches, keys).map(lambda said: Choose(said[0], (WINDOW,) * len(said[0]), 0, said[1])),
    st.tuples(decisions, values, st.none() | halves, st.none(), keys).map(lambda said: Pay(*said)),
    st.tuples(decisions, values, st.none(), halves, keys).map(lambda said: Pay(*said)),
    decisions.map(Close),
    st.tuples(names, st.sampled_from([1.0, 2.0])).map(lambda said: AddArm(*said, WINDOW)),
    arms.map(RetireArm),
)


class StoreMachine(RuleBasedStateMachine):
    """Of a database at `self.url`."""

    url: str
    store: Store
    count = itertools.count()

    def open(self) -> None:
        self.store = open_store(self.url)

    def crash(self) -> None:
        """Lose the process, and keep what it had stored."""
        raise NotImplementedError

    @initialize(rounds=st.booleans())
    def start(self, rounds: bool) -> None:
        self.open()
        self.now = 0.0
        self.model = Model(rounds, ARMS, self.now)
        self.name = f"bandit {next(self.count)}"
        self.bandit = self.store.create(self.name, {"seed": 7}, ARMS, rounds, self.now)
        self.said: list[list[Item]] = []
        self.snapshot: tuple[int, bytes] | None = None

    @rule(said=st.lists(items, min_size=1, max_size=5), step=halves, skew=st.sampled_from([0.0, 1.0]))
    def append(self, said, step, skew) -> None:
        self.now += step
        told = self.store.append(self.bandit.number, said, self.now, skew)
        self.said.append(said)
        # Positions may have gaps, so they are compared in the log.
        expected = self.model.append(said, self.now, skew)
        position = [0, *self.store.read(self.bandit.number, 0, 1000).seq.tolist()]
        assert told == [answer._replace(seq=position[answer.seq]) for answer in expected]

    @rule(data=st.data())
    def say_again(self, data) -> None:
        if self.said:
            self.append(data.draw(st.sampled_from(self.said)), 0.0, 1.0)

    @rule(step=halves)
    def clock_goes_back(self, step) -> None:
        self.now = max(0.0, self.now - step)

    @rule(body=st.binary(max_size=9))
    def keep_snapshot(self, body) -> None:
        self.snapshot = (self.store.head(self.bandit.number), body)
        self.store.save_snapshot(self.bandit.number, self.snapshot[0], "form", body)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule()
    def crash_and_reopen(self) -> None:
        self.crash()
        self.open()

    @rule()
    def migrate(self) -> None:
        self.store.close()
        upgrade(self.url)
        self.open()

    @invariant()
    def same_log(self) -> None:
        number = self.bandit.number
        log = self.store.read(number, 0, 1000)
        rows = list(zip(*(column.tolist() for column in log[1:]), strict=True))
        assert rows == [(e.kind, e.at, e.decision, e.arm, e.value, e.age) for e in self.model.log]
        assert self.store.head(number) == log.seq[-1]
        middle = int(log.seq[len(log.seq) // 2])
        assert (
            self.store.read(number, middle, 3).seq.tolist() == [s for s in log.seq.tolist() if s > middle][:3]
        )

    @invariant()
    def same_rows(self) -> None:
        assert self.store.find(self.name) == self.bandit
        assert self.store.load_snapshot(self.bandit.number, "form") == self.snapshot

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


class SQLiteMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.use(self.root / "0")

    def use(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.url = f"sqlite:///{folder}/plays.db"

    def crash(self) -> None:
        left, before = self.root / str(int(self.folder.name) + 1), self.folder
        self.use(left)
        for suffix in ("", "-wal"):  # the process is gone, and its shared memory with it
            shutil.copy(before / f"plays.db{suffix}", left)
        self.store.close()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.root)


EXAMPLES = [pytest.param(40, id="quick"), pytest.param(2000, id="long", marks=pytest.mark.slow)]


@pytest.mark.parametrize("examples", EXAMPLES)
def test_sqlite(examples, say):
    run_state_machine_as_test(SQLiteMachine, settings=settings(max_examples=examples, stateful_step_count=50))
    say(f"store beside its model, SQLite: {examples} examples of up to 50 steps")
