"""The gallery: its problems are what they claim, and its table says what the runs did."""

import csv
import math
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.cli import app
from accrual.engine.general_feed import GeneralRunFeed, world_of
from accrual.engine.result import Result
from accrual.studies.gallery.listening import listening
from accrual.studies.gallery.table import draw, lines

ENTRIES = ac.gallery.ENTRIES
PLAIN = {id: entry.problem for id, entry in ENTRIES.items() if not entry.problem.contexts}
WITH_CONTEXTS = {id: entry.problem for id, entry in ENTRIES.items() if entry.problem.contexts}


def test_ids_are_stable():
    """Scripts name problems by these; a change here breaks them."""
    assert list(ENTRIES) == [
        "setting1", "playlist", "late-best", "lump", "sparse", "k100", "w5000-early", "w5000-even",
        "w5000-late", "caps4", "equal", "k2", "k1000", "late-surprise", "at-cap", "near-cap", "jackpot",
        "hidden-jackpot", "lure", "mixed-caps", "bimodal", "two-speeds", "needle", "heavy-tails", "delay-2",
        "delay-10", "beyond-early", "beyond-late", "ctx-same", "ctx-cross", "ctx-sparse", "ctx-big",
        "ctx-context", "ctx-arm", "ctx-logistic", "ctx-useless", "ctx-wide", "ctx-arms", "ctx-visitors",
    ]  # fmt: skip


def test_problems_are_named():
    """The design promises ``ac.gallery["listening"]``: the service, a decision a round."""
    named: Any = ac.gallery
    assert named["sparse"] is ENTRIES["sparse"].problem
    problem = named["listening"]
    assert (len(problem.caps), problem.window, problem.groups) == (200, 59 * 50, 59)
    np.testing.assert_array_equal(problem.means, listening().service.problem.means)
    result = ac.simulate(problem, [ac.AgeIMED()], horizon=250, runs=1, progress=True)
    assert 0 < result.final_regret[0, 0] < 250 * problem.means.max()
    with pytest.raises(
        ac.InputError, match=r"'lisening'; did you mean 'listening'\? \(one of: setting1, .*listening\)"
    ):
        named["lisening"]


@pytest.mark.parametrize("id", ENTRIES)
def test_entries_are_well_formed(id):
    entry = ENTRIES[id]
    assert entry.id == id
    assert entry.title
    assert entry.stresses
    assert entry.horizon >= 2 * len(entry.problem.caps)
    assert (entry.horizon >= 2 * entry.problem.window) != id.startswith("beyond-")
    assert id not in PLAIN or (PLAIN[id].means > 0).all()
    assert ac.gallery.policies(entry.problem)  # each fits the window


def test_sizes():
    arms = {id: len(entry.problem.caps) for id, entry in ENTRIES.items()}
    assert (arms["playlist"], arms["k2"], arms["k100"], arms["k1000"]) == (6, 2, 100, 1000)
    assert (PLAIN["playlist"].window, PLAIN["playlist"].groups) == (80, 20)
    for spread in ("early", "even", "late"):
        entry = ENTRIES[f"w5000-{spread}"]
        assert (entry.problem.window, entry.horizon) == (5000, 20_000)


def test_loose_caps_change_nothing_but_what_a_learner_is_told():
    true, loose = PLAIN["setting1"], PLAIN["caps4"]
    np.testing.assert_allclose(loose.group_means, true.group_means)
    np.testing.assert_allclose(loose.caps, 4 * np.array(true.caps))


def test_sparse_pays_about_one_decision_in_a_hundred():
    means = PLAIN["sparse"].means  # caps are 1 and pay is all or nothing: the chance to pay
    assert 0.005 < means.mean() < 0.01
    assert means.max() == pytest.approx(0.015)


def test_equal_arms_are_equal_and_others_have_one_level_that_is_best():
    for id, problem in PLAIN.items():
        best = int((problem.gaps < 1e-12).sum())
        assert best == {"equal": 10, "k1000": 10}.get(id, 1), id


def test_late_best_is_late():
    problem = PLAIN["late-best"]
    half = problem.groups // 2
    early = problem.group_means[:, :half].sum(axis=1) / problem.means
    assert early[problem.means.argmax()] < 0.1
    assert (np.delete(early, problem.means.argmax()) > 0.9).all()


def test_long_windows_differ_in_nothing_but_their_spread():
    early, even, late = (PLAIN[f"w5000-{name}"] for name in ("early", "even", "late"))
    np.testing.assert_allclose(early.means, even.means)
    np.testing.assert_allclose(late.means, even.means)
    np.testing.assert_allclose(early.group_means, late.group_means[:, ::-1])


def test_late_surprise_is_late_and_the_lure_lures():
    means = PLAIN["late-surprise"].group_means
    assert np.ptp(means[:, :-1], axis=0).max() < 1e-12
    assert np.ptp(means[:, -1]) > 0.1
    lure = PLAIN["lure"]
    assert lure.group_means[:, :5].sum(axis=1).argmax() != lure.means.argmax()


def test_jackpots_are_best_by_rare_large_totals():
    for id in ("jackpot", "hidden-jackpot"):
        problem = PLAIN[id]
        assert problem.means.argmax() == len(problem.caps) - 1
        assert problem.means.max() < 0.06


def test_contexts_do_what_the_entries_say():
    speeds = {
        id: np.array([law.speeds for law in problem.context_laws]) for id, problem in WITH_CONTEXTS.items()
    }
    effects = {
        id: np.array([law.effects for law in problem.context_laws]) for id, problem in WITH_CONTEXTS.items()
    }
    assert not speeds["ctx-same"].any()
    assert np.ptp(speeds["ctx-context"], axis=0).max() == 0
    assert not speeds["ctx-arm"][:, 1:].any()
    for id in ("ctx-context", "ctx-cross", "ctx-logistic", "ctx-visitors"):
        assert np.abs(speeds[id][:, 1:]).max() > 0.1
    assert np.ptp(speeds["ctx-cross"][:, 1:], axis=0).min() > 0
    assert np.count_nonzero(effects["ctx-sparse"][0]) == 1 + 3
    assert all(isinstance(law, ac.LogisticLaw) for law in WITH_CONTEXTS["ctx-logistic"].context_laws)
    assert effects["ctx-big"].shape == (50, 30)
    assert effects["ctx-arms"].shape == (50, 4)


@pytest.mark.parametrize("id", WITH_CONTEXTS)
def test_the_best_arm_depends_on_the_context_unless_contexts_are_useless(id):
    problem = WITH_CONTEXTS[id]
    source = GeneralRunFeed(world_of(problem), (1, 0), 512)
    source.read(512)
    assert (len(set(source.means.argmax(axis=1))) > 1) == (id != "ctx-useless")


def result(**regret: list[float]) -> Result:
    """A result of these final regrets; two arms, the first chosen 30 times of 40."""
    final = np.array(list(regret.values()), dtype=float)
    pulls = np.tile(np.array([30, 10]), (*final.shape, 1))
    labels = tuple(label.replace("__", ": ").replace("_", " ") for label in regret)
    return Result(labels, np.array([40]), final[:, :, None], pulls, range(final.shape[1]))


def test_lines_by_hand():
    given = result(no_delay__IMED=[3, 5], no_delay__TS=[2, 4], AgeIMED=[3, 9], G__a=[8, 8], G__b=[2, 10])
    floor, age, best = lines("x", given)
    assert (floor.policy, floor.variant, floor.mean, floor.over_floor) == ("no delay", "TS", 3.0, 1.0)
    assert (age.mean, age.over_floor, age.worst) == (6.0, 2.0, 3.0)
    assert age.q99 == pytest.approx(8.94 / 3)  # 99 hundredths of the way from 3 to 9
    assert age.se == pytest.approx(3.0)  # of 3 and 9: deviation sqrt(18), over sqrt(2)
    assert (best.policy, best.variant, best.over_floor) == ("G", "b", 2.0)
    assert best.worst == pytest.approx(10 / 3)
    assert age.share == 0.75


def test_no_ratio_where_regret_is_zero():
    floor, age = lines("x", result(no_delay__IMED=[0, 0], AgeIMED=[0, 0]))
    assert floor.mean == age.mean == 0.0
    assert math.isnan(age.over_floor)
    assert math.isnan(age.worst)


def test_chosen_policies():
    problem = ENTRIES["k2"].problem
    labels = list(ac.gallery.policies(problem, ["TPUCBFRG", "TPUCBFR(5)"]))
    assert labels[:3] == ["no delay: IMED", "no delay: ThompsonSampling", "TPUCBFRG: extreme_begin"]
    assert labels[-1] == "TPUCBFR(5)"
    assert len(labels) == 2 + 8 + 1
    with pytest.raises(ac.InputError, match="AgeTS is given twice"):
        ac.gallery.policies(problem, ["AgeTS", "AgeTS"])
    with pytest.raises(ac.InputError, match="unknown policy 'AgeTZ'; did you mean 'AgeTS'"):
        ac.gallery.policies(problem, ["AgeTZ"])


def test_on_problems_with_contexts_no_delay_and_no_context_are_always_there():
    problem = ENTRIES["ctx-same"].problem
    labels = list(ac.gallery.policies(problem, ["LinUCB(alpha=0.2)", "AgeLinTS"]))
    assert labels[0] == "no delay: AgeLinTS"
    assert labels[-3:] == ["LinUCB(alpha=0.2)", "AgeLinTS", "no context"]
    assert ac.gallery.policies(problem)["no context"] == ac.AgePrior()
    with pytest.raises(ac.InputError, match="no context is always there"):
        ac.gallery.policies(problem, ["no context"])


def test_a_policy_plays_only_where_it_can():
    entries = ac.gallery.select(["k2", "ctx-same"])
    found = ac.gallery.choose(entries, ["TPUCBFR", "AgeLinTS", "DelayedUCB1", "TPUCBFR(5)"])
    assert [label for label in found["k2"] if "delay" not in label] == [
        "TPUCBFR",
        "DelayedUCB1",
        "TPUCBFR(5)",
    ]
    assert [label for label in found["ctx-same"] if "delay" not in label] == ["AgeLinTS", "no context"]
    assert list(ac.gallery.choose(entries, ["AgeTS"])) == ["k2"]
    with pytest.raises(ac.InputError, match="AgeLinTS can play none of these problems: k2"):
        ac.gallery.choose(entries[:1], ["AgeIMED", "AgeLinTS"])


def test_unknown_problem_suggests_one():
    with pytest.raises(ac.InputError, match="did you mean 'sparse'"):
        ac.gallery.select(["sprase"])


def test_picture_leaves_out_what_has_no_ratio(tmp_path):
    table = [
        *lines("easy", result(no_delay__IMED=[1, 3], AgeIMED=[2, 4])),
        *lines("equal", result(no_delay__IMED=[0, 0], AgeIMED=[0, 0])),
    ]
    draw(tmp_path / "a.svg", table, {"easy": "Easy & plain"})
    drawn = (tmp_path / "a.svg").read_text()
    assert "Easy &amp; plain" in drawn
    assert "equal" not in drawn


def test_command(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    code = app.run(
        ["gallery", "--only", "k2", "--only", "equal", "--policy", "AgeIMED", "--policy", "DelayedUCB1",
         "--runs", "3", "--horizon", "2e3", "--jobs", "1", "--out", str(out)]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        ".lock", "cells", "equal.parquet", "gallery.csv", "gallery.png", "k2.parquet",
    ]  # fmt: skip
    with open(out / "gallery.csv", newline="") as file:
        rows = {(row["problem"], row["policy"]): row for row in csv.DictReader(file)}
    stored = Result.load(out / "k2.parquet")
    mean = stored.final_regret[stored.labels.index("AgeIMED")].mean()
    assert float(rows["k2", "AgeIMED"]["mean"]) == pytest.approx(mean)
    assert float(rows["equal", "AgeIMED"]["mean"]) == 0.0
    assert 0.1 <= float(rows["equal", "AgeIMED"]["share"]) <= 1.0
    assert "regret over the floor's" in printed
    assert "share of the most chosen arm" in printed


def test_command_with_contexts(tmp_path, capsys):
    """Problems of both kinds in one file and one picture; what was computed is not computed again."""
    words = [
        "gallery", "--only", "k2", "--only", "ctx-visitors", "--policy", "AgeLinTS", "--policy", "AgeIMED",
        "--runs", "2", "--horizon", "2500", "--jobs", "1", "--out", str(tmp_path),
    ]  # fmt: skip
    assert app.run(words) == 0
    first = capsys.readouterr()
    assert "the better of IMED and Thompson sampling without delay" in first.out
    assert "the better of AgeLinTS and LinTS without delay" in first.out
    with open(tmp_path / "gallery.csv", newline="") as file:
        rows = {(row["problem"], row["policy"]): row for row in csv.DictReader(file)}
    assert [row for problem, row in rows if problem == "ctx-visitors"] == [
        "no delay",
        "AgeLinTS",
        "no context",
    ]
    stored = Result.load(tmp_path / "ctx-visitors.parquet")
    entry = ENTRIES["ctx-visitors"]
    alone = ac.simulate(entry.problem, {"no context": ac.AgePrior()}, 2500, 2, entry.seed)
    regret = stored.final_regret[stored.labels.index("no context")]
    np.testing.assert_array_equal(regret, alone.final_regret[0])
    row = rows["ctx-visitors", "no context"]
    assert float(row["q99"]) / float(row["over_floor"]) == pytest.approx(
        np.quantile(regret, 0.99) / regret.mean()
    )
    assert app.run(words) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "0 cells to compute, 2 already done" in again.err


def test_command_refuses_what_does_not_fit(tmp_path, capsys):
    out = ["--out", str(tmp_path / "none")]
    assert app.run(["gallery", "--only", "k3", *out]) == 2
    assert app.run(["gallery", "--only", "k2", "--policy", "TPUCBFR(7)", *out]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "unknown problem of the gallery 'k3'" in errors[0]
    assert "7 does not divide 100" in errors[1]
    assert len(errors) == 2
    assert not (tmp_path / "none").exists()
