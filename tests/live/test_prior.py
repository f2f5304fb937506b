"""A prior: the closed decisions of an old log, which a new bandit learns from and marks as imported."""

from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from tests.postgres import server

import accrual as ac
from accrual.core.errors import InputError
from accrual.live import prior as priors
from accrual.live.verify_snapshots import learned, refold, same_bits, verify_snapshots
from accrual.logs.fitted import Fitted
from accrual.store.admin import export
from accrual.store.backends import open_store
from accrual.store.memory import MemoryStore

ARMS = {"jazz": 2.0, "rock": 2.0}
HOUR = 3600.0


def old_log(seed: int = 1, decisions: int = 60) -> dict[str, list[list[tuple[float, float]]]]:
    """Closed decisions, each with up to three pieces: rock pays 0.9 a piece, jazz 0.3."""
    dice = np.random.default_rng(seed)
    return {
        arm: [
            [(float(dice.uniform(0, 10 * HOUR)), value) for _ in range(dice.integers(0, 4))]
            for _ in range(decisions)
        ]
        for arm, value in (("jazz", 0.3), ("rock", 0.9))
    }


def totals(closed):
    return {arm: [sum(value for _, value in row) for row in rows] for arm, rows in closed.items()}


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
        return
    url = f"sqlite:///{tmp_path}/plays.db" if request.param == "sqlite" else server().tables()
    found = open_store(url)
    yield found
    found.close()


def test_a_bandit_knows_what_the_old_log_paid_from_its_first_decision_on(store):
    closed, clock = old_log(), [1_000_000.0]
    bandit = ac.Bandit(
        ARMS, "10h", groups=10, store=store, prior=closed, floor=0.1, seed=1, clock=lambda: clock[0]
    )
    begun = bandit.state()
    assert (begun.decisions, begun.pending) == (120, 0)
    assert bandit.decide(n=40)[0].id == 120
    state = bandit.state()
    assert (state.decisions, state.pending, state.late) == (160, 40, 0)
    for arm in state.arms:
        paid = totals(closed)[arm.name]
        assert arm.estimate == pytest.approx(np.mean(paid))
        assert arm.observed == pytest.approx(sum(paid))
    chosen = [store.decision(bandit._row.number, id_).arm for id_ in range(120, 160)]
    assert (
        np.mean(chosen) > 0.5
    )  # rock is arm 1; a cold bandit gives each half, and the floor 2 of 40 to jazz
    assert state.verdict.scored == 0
    assert state.verdict.skipped == 120
    with pytest.raises(InputError, match="was imported from an old log"):
        bandit.explain(7)
    assert bandit.explain(125).exact
    again = ac.Bandit(ARMS, "10h", groups=10, store=store, prior=closed, floor=0.1, clock=lambda: clock[0])
    assert again.state().decisions == 160
    ledger = refold(store, bandit._row, bandit._config.ledger(), store.head(bandit._row.number))
    assert same_bits(learned(ledger), learned(bandit._follower.ledger))


def test_pieces_that_come_all_at_once_teach_what_they_do_in_their_order():
    """A bandit that was there when each piece came is the control."""
    closed = old_log(decisions=8)
    told = ac.Bandit(ARMS, "10h", groups=10, prior=closed, seed=1, clock=lambda: 36_000.0)
    now = [0.0]
    seen = ac.Bandit(ARMS, "10h", groups=10, seed=1, clock=lambda: now[0])
    given = priors.imported(closed, told._config, 36_000.0).history
    (made,) = given[0].requests
    seen._store.append(seen._row.number, [made], 0.0)
    pieces: list[Any] = [piece for part in given[1:-1] for piece in part.requests]
    for piece in sorted(pieces, key=lambda piece: piece.age):
        seen._store.append(seen._row.number, [piece], piece.age)
    seen.catch_up()
    now[0] = 36_000.0
    for bandit in (told, seen):
        bandit.decide()
    for one, other in zip(told.state().arms, seen.state().arms, strict=True):
        assert one.estimate == pytest.approx(other.estimate, rel=1e-12)
        assert (one.decisions, one.pending) == (other.decisions, other.pending)


def test_a_fit_teaches_a_bandit_with_a_shorter_window(tmp_path):
    rows = "".join(
        f"{i},{'jazz' if i % 2 else 'rock'},{i * 600},{i % 5 / 5},{i * 600 + i % 11 * HOUR}\n"
        for i in range(600)
    )
    (tmp_path / "log.csv").write_text(f"id,arm,at,value,piece_at\n{rows}")
    fitted = ac.fit(tmp_path / "log.csv", window="12h", groups=12, time_unit="s")
    fitted.save(tmp_path / "problem.json")
    bandit = ac.Bandit(ARMS, "8h", prior=Fitted.load(tmp_path / "problem.json"))
    jazz = next(arm for arm in fitted.arms if arm.name == "jazz")
    state = bandit.state()
    assert next(arm for arm in state.arms if arm.name == "jazz").decisions == len(jazz.sample.lengths)
    assert state.late == sum(int(np.count_nonzero(arm.sample.ages >= 8 * HOUR)) for arm in fitted.arms) > 0
    with pytest.raises(InputError, match="followed for 12h only, less than the bandit's window of 1d"):
        ac.Bandit(ARMS, "24h", prior=fitted)
    with pytest.raises(InputError, match="knows none of the bandit's arms; it has jazz, rock"):
        ac.Bandit(["blues"], "8h", policy="AgeIMED", prior=fitted)


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ({"blues": [[]]}, "unknown arm 'blues'"),
        ({"jazz": []}, "at least one closed decision"),
        ({"jazz": [(1.0, 2.0)]}, "must be closed decisions"),
        ({"jazz": 3}, "must be closed decisions"),
        ({"jazz": [[(-1.0, 0.5)]]}, "age must be 0 or more"),
        ({"jazz": [[(1.0, float("nan"))]]}, "value must be a finite number"),
        ({"jazz": [[(1.0, 1e300)]]}, "value must be at most"),
        ({"jazz": [[(1.0, -0.5)]]}, "must not be negative"),
        ("log.csv", "must be a fit"),
    ],
)
def test_priors_that_cannot_be(prior, said):
    store = MemoryStore()
    with pytest.raises(InputError, match=said):
        ac.Bandit(ARMS, "10h", store=store, prior=prior)
    assert store.names() == []


def test_a_prior_is_for_a_new_bandit_whose_window_is_a_time():
    store = MemoryStore()
    with pytest.raises(InputError, match="a time, such as '60d'"):
        ac.Bandit(ARMS, 80, store=store, prior=old_log())
    ac.Bandit(ARMS, "10h", store=store)
    with pytest.raises(InputError, match="made without a prior"):
        ac.Bandit(ARMS, "10h", store=store, prior=old_log())


def test_of_too_many_decisions_some_are_taken_evenly(monkeypatch):
    monkeypatch.setattr(priors, "IMPORTED_MOST", 40)
    monkeypatch.setattr(priors, "_PIECES_AT_ONCE", 7)
    bandit = ac.Bandit(ARMS, "10h", prior=old_log())
    assert [arm.decisions for arm in bandit.state().arms] == [20, 20]
    assert bandit.state().late == 0


def test_an_export_has_the_bandits_own_decisions_and_snapshots_hold(tmp_path):
    url = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(ARMS, "10h", groups=10, store=url, prior=old_log(), floor=0.5, seed=1) as bandit:
        made = bandit.decide(n=3)
        bandit.observe(made[0].id, 0.5)
    assert export(url, None, tmp_path) == {"decisions.parquet": 3, "pieces.parquet": 1, "arms.parquet": 2}
    rows = parquet.read_table(tmp_path / "decisions.parquet").to_pylist()
    assert [(row["id"], row["propensity"]) for row in rows] == [(one.id, one.propensity) for one in made]
    found = open_store(url, readonly=True)
    assert verify_snapshots(found) == (1, [])
    found.close()


def fit_of_many(tmp_path, arms: int = 6, cap: float | None = None) -> Fitted:
    """A log in which arm k of some pays about 0.1 k of 1 an hour after its decision."""
    lines = [
        f"{i},a{i % arms},{i * 600},{0.1 * (i % arms) * (0.5 + i % 7 / 6):.3f},{i * 600 + 3600}\n"
        for i in range(arms * 40)
    ]
    (tmp_path / "many.csv").write_text("id,arm,at,value,piece_at\n" + "".join(lines))
    return ac.fit(tmp_path / "many.csv", window="4h", groups=4, time_unit="s", cap=cap)


def test_arms_that_the_log_does_not_know_begin_where_its_arms_were(tmp_path):
    fitted = fit_of_many(tmp_path)
    url = f"sqlite:///{tmp_path}/plays.db"
    bandit = ac.Bandit(["new", "newer"], "4h", store=url, prior=fitted, seed=1)
    assert bandit.state().decisions == 0
    policy = bandit._config.policy
    assert isinstance(policy, ac.AgePrior)
    assert policy.history[0] == pytest.approx(0.25, rel=0.1)
    assert policy == fitted.prior(cap=1.0)
    for number in range(60):
        made = bandit.decide()
        bandit.observe(made.id, 0.2 + number % 3 / 10, age=0.0)
    ledger = refold(
        bandit._store, bandit._row, bandit._config.ledger(), bandit._store.head(bandit._row.number)
    )
    assert same_bits(learned(ledger), learned(bandit._follower.ledger))
    bandit.close()
    told: list[dict[str, Any]] = [{}, {"prior": fitted}]
    for options in told:  # it goes on, with its prior told again or not
        with ac.Bandit(["new", "newer"], "4h", store=url, **options) as again:
            assert again._config.policy == policy
            assert again.state().decisions == 60
    with ac.Bandit.open(url) as opened:
        assert opened._config.policy == policy
    with pytest.raises(InputError, match="policy is AgePrior"):
        ac.Bandit(["new", "newer"], "4h", store=url, policy=ac.AgePrior(surprise=3))


def test_the_bandits_own_arms_are_imported_and_the_others_are_its_prior(tmp_path):
    fitted = fit_of_many(tmp_path, cap=1.0)
    bandit = ac.Bandit({"a5": 1.0, "new": 4.0}, "4h", prior=fitted)
    assert [arm.decisions for arm in bandit.state().arms] == [len(fitted.arms[5].sample.lengths), 0]
    assert bandit._config.policy == fitted.prior(without=["a5"])
    assert bandit._config.policy.history[0] == pytest.approx(0.2, rel=0.1)


def test_what_a_prior_over_arms_needs(tmp_path):
    fitted = fit_of_many(tmp_path)
    assert fitted.prior() is None  # caps were not given, and the largest total is none
    with pytest.raises(InputError, match="knows none of the bandit's arms"):
        ac.Bandit({"new": 1.0, "newer": 2.0}, "4h", prior=fitted)
    with pytest.raises(InputError, match="knows none of the bandit's arms"):
        ac.Bandit(["new", "newer"], "4h", policy="AgeIMED", prior=fitted)
    told = ac.AgePrior(history=(0.5, 0.01, 0.01, 3))
    bandit = ac.Bandit({"a5": 1.0, "new": 1.0}, "4h", policy=told, prior=fitted)
    assert bandit._config.policy == told
    with pytest.raises(InputError, match="window must be above 0 and at most"):
        fitted.prior(window=5 * HOUR)
    with pytest.raises(InputError, match="cap must be a positive number"):
        fitted.prior(cap=0)
    half = fitted.prior(cap=2.0, window=2 * HOUR)
    assert half is not None
    assert half.history[0] == pytest.approx(0.125, rel=0.1)  # all is paid after one hour
