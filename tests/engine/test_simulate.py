"""`simulate`: the paper's figures, identity to the bit, results on disk, and bad input."""

import json
import re
from typing import Any, cast

import numpy as np
import pytest

import accrual as ac
from accrual.engine.recording import record
from accrual.runs.cells import on_device
from accrual.studies.gallery import cut_entry


def test_setting_1_at_a_fifth_of_the_runs():
    """Two of the printed figures within 2 %; 20 runs have a standard error of about 0.6 %."""
    policies = {"fr": ac.TPUCBFR(50), "frg": ac.TPUCBFRG(50, "begin")}
    result = ac.simulate(ac.paper.setting1(), policies, 100_000, 20)
    fr, frg = result.final_regret.mean(axis=1)
    assert fr == pytest.approx(7.21e5, rel=0.02)
    assert frg == pytest.approx(4.64e5, rel=0.02)


def test_uniform_spread_makes_exactly_tpucbfr():
    problem = ac.paper.setting1()
    for spread in ("uniform", [0.05] * 20):
        one = record(problem, ac.TPUCBFR(20), 3000)
        other = record(problem, ac.TPUCBFRG(20, spread), 3000)
        np.testing.assert_array_equal(one.arms, other.arms)


def test_tpucbew_is_insensitive_to_alpha_and_wins_only_early():
    """The two properties that are reported of it: 10 runs, differences far beyond their error."""
    policies = {f"ew{a}": ac.TPUCBEW(a) for a in (10, 20, 50)} | {"fr": ac.TPUCBFR(20)}
    result = ac.simulate(ac.paper.setting1(), policies, 40_000, 10, checkpoints=[5_000])
    early, late = result.regret.mean(axis=1).T
    assert late[:3].max() / late[:3].min() < 1.1
    assert early[1] < early[3]
    assert late[1] > late[3]


def test_identical_to_the_bit_for_threads_splits_and_order():
    problem = ac.paper.setting2(1, "late")
    policies = [ac.UCB1(), ac.DelayedUCB1(), ac.TPUCBFRG(10, "begin"), ac.TPUCBEW(5), ac.AgeTS()]
    whole = ac.simulate(problem, policies, 6000, runs=6, seed=9, threads=1)
    two = ac.simulate(problem, policies, 6000, runs=6, seed=9, threads=2)
    np.testing.assert_array_equal(whole.regret, two.regret)
    np.testing.assert_array_equal(whole.pulls, two.pulls)
    halves = [ac.simulate(problem, policies, 6000, runs=half, seed=9) for half in (range(3), range(3, 6))]
    np.testing.assert_array_equal(whole.regret, np.concatenate([half.regret for half in halves], axis=1))
    turned = ac.simulate(problem, policies[::-1], 6000, runs=6, seed=9, threads=13)
    np.testing.assert_array_equal(whole.regret, turned.regret[::-1])


def test_regret_is_counted_in_true_means():
    problem = ac.Problem(caps=[10, 20], window=6, groups=3)
    result = ac.simulate(problem, [ac.UCB1()], 400, runs=3, checkpoints=[1, 2, 17])
    assert list(result.rounds) == [1, 2, 17, 400]
    np.testing.assert_array_equal(result.regret[0, :, :2], 5.0)  # arm 0, then arm 1: gaps 5 and 0
    np.testing.assert_allclose(result.final_regret[0], result.pulls[0] @ problem.gaps)
    np.testing.assert_array_equal(result.pulls.sum(axis=2), 400)


def test_checkpoints_do_not_change_the_run():
    problem = ac.paper.setting1()
    few = ac.simulate(problem, [ac.UCB1()], 1000, runs=2, checkpoints=3)
    many = ac.simulate(problem, [ac.UCB1()], 1000, runs=2, checkpoints=ac.log_rounds(1000, 50))
    np.testing.assert_array_equal(few.final_regret, many.final_regret)
    assert len(few.rounds) == 3


def test_the_division_within_a_group_hardly_matters():
    """Both divisions reproduce the paper: they differ by less than 3 % at 10 runs."""
    even = ac.paper.setting1()
    first = ac.Problem(even.caps, even.window, even.groups, even.laws, division="first")
    regrets = [
        ac.simulate(p, [ac.TPUCBFR(20)], 30_000, 10, seed=2).final_regret.mean() for p in (even, first)
    ]
    assert regrets[0] == pytest.approx(regrets[1], rel=0.03)


@pytest.fixture(scope="module")
def result():
    return ac.simulate(ac.paper.setting1(), [ac.UCB1(), ac.TPUCBFR(20)], 2000, runs=5)


def test_table_and_rows(result):
    table = result.table()
    final = result.final_regret
    assert list(table.index) == ["UCB1", "TPUCBFR(20)"]
    assert table.loc["UCB1", "mean"] == pytest.approx(final[0].mean())
    assert table.loc["UCB1", "se"] == pytest.approx(final[0].std(ddof=1) / np.sqrt(5))
    assert table.loc["TPUCBFR(20)", "vs UCB1"] == pytest.approx((final[1] - final[0]).mean())
    assert result.rows(baseline="TPUCBFR(20)")[1]["vs TPUCBFR(20)"] == 0.0
    with pytest.raises(ac.InputError, match="no policy is labelled 'x'"):
        result.rows(baseline="x")


def test_the_paired_error_is_that_of_the_differences():
    """It is 0 where regrets move together, and above that of independent means where they move apart."""
    one = np.array([1.0, 2.0, 4.0])
    regret = np.array([one, one + 3.0, -one])[:, :, None]
    pulls = np.zeros((3, 3, 1), np.int64)
    rows = ac.Result(("a", "b", "c"), np.array([9]), regret, pulls, range(3)).rows()
    assert rows[1]["vs_se"] == 0.0
    assert rows[2]["vs_se"] == pytest.approx(2 * rows[0]["se"])
    assert rows[2]["vs_se"] > 1.4 * np.hypot(rows[0]["se"], rows[2]["se"]) * (1 - 1e-9)


def test_the_paired_error_in_setting_1_is_what_rows_says_of_it():
    """Both figures of the docstring, from the run that it names; a last bit may differ by machine."""
    said = re.search(
        r"`vs_se` of ([\d,]+) over 100\s+runs, where .* have ([\d,]+)", str(ac.Result.rows.__doc__)
    )
    assert said is not None
    policies = [ac.TPUCBFR(20), ac.TPUCBFRG(20, "begin")]
    base, other = ac.simulate(ac.paper.setting1(), policies, 100_000, 100, checkpoints=1).rows()
    found = other["vs_se"], np.hypot(base["se"], other["se"])
    assert found == pytest.approx([float(text.replace(",", "")) for text in said.groups()], rel=0.01)


def test_the_version_is_in_a_result_and_in_its_file(result, tmp_path):
    assert result.meta == {
        "seed": 0,
        "horizon": 2000,
        "arms": [str(arm) for arm in range(10)],
        "window": 100,
        "version": ac.__version__,
    }
    result.save(tmp_path / "result.parquet")
    assert ac.Result.load(tmp_path / "result.parquet").meta["version"] == ac.__version__


def test_save_and_load(result, tmp_path):
    path = tmp_path / "result.parquet"
    result.save(path)
    again = ac.Result.load(path)
    assert again.labels == result.labels
    assert again.runs == result.runs
    assert again.meta == json.loads(json.dumps(result.meta))
    for name in ("rounds", "regret", "pulls"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    assert [p.name for p in tmp_path.iterdir()] == ["result.parquet"]


def test_load_refuses_other_files(tmp_path):
    path = tmp_path / "other.parquet"
    path.write_bytes(b"not parquet at all")
    with pytest.raises(ac.InputError, match="is not a result that accrual saved"):
        ac.Result.load(path)


def test_plot_writes_a_picture(result, tmp_path):
    path = tmp_path / "regret.png"
    result.plot(path, bounds={"a bound": 2.0 * result.regret[0].mean(axis=0)})
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 10_000


SETTING = ac.paper.setting1()
loose: Any = ac  # for what a type checker would refuse


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: loose.simulate(SETTING, [ac.TPUCBFR(7)], 100),
            "alpha must divide the window: 7 does not divide 100 (nearest: 5 and 10)",
        ),
        (lambda: loose.TPUCBFRG(2, [0.5, -0.5]), "a spread must not be negative; group 2 is -0.5"),
        (lambda: loose.TPUCBFRG(2, [0.5, 0.4]), "a spread must sum to 1; it sums to 0.9 (divide by that)"),
        (lambda: loose.TPUCBFRG(2, [0.5, np.nan]), "a spread must be finite; group 2 is nan"),
        (lambda: loose.Problem([1, 0], 10, 5), "caps must be positive numbers; arm 1 has 0"),
        (lambda: loose.Problem([1, np.nan], 10, 5), "caps must be positive numbers; arm 1 has nan"),
        (
            lambda: loose.Problem([1, 2], 10, 4),
            "groups must divide the window: 4 does not divide 10 (nearest: 2 and 5)",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 9),
            "horizon must be at least the number of arms (10), not 9",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], np.nan),
            "horizon must be a whole number from 1 to 2147483647, not nan",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1(), ac.UCB1()], 100),
            "two policies are labelled 'UCB1'; give a dict of label to policy",
        ),
        (lambda: loose.simulate(SETTING, [], 100), "at least one policy is needed"),
        (lambda: loose.simulate(SETTING, ["UCB2"], 100), "unknown policy 'UCB2'; did you mean 'UCB1'?"),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, runs=0),
            "runs must be a whole number from 1 to 2147483647, not 0",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, runs=range(3, 3)),
            "runs must be a range of step 1 within 0 .. 2147483647, not range(3, 3)",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, seed=-1),
            "seed must be a whole number from 0 to 9223372036854775807, not -1",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, seed=0.5),
            "seed must be a whole number from 0 to 9223372036854775807, not 0.5",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, checkpoints=[101]),
            "a checkpoint must be a whole number from 1 to 100, not 101",
        ),
        (
            lambda: loose.simulate(SETTING, [ac.UCB1()], 100, device="gpu"),
            "unknown device 'gpu'; did you mean 'cpu'? (one of: cpu, cuda)",
        ),
        (lambda: loose.simulate(SETTING, [ac.UCB1()], 100, threads=0), "threads must be a whole number of"),
        (lambda: loose.TPUCBFRG(50, "begn"), "unknown spread 'begn'; did you mean 'begin'?"),
        (
            lambda: loose.paper.setting2(1, "lat"),
            "unknown scenario 'lat'; did you mean 'late'? (one of: uniform, late, early)",
        ),
        (lambda: loose.paper.setting2(5), "config must be a whole number from 1 to 4, not 5"),
        (lambda: loose.AgeIMED(k0=0), "k0 must be a positive number, not 0"),
        (lambda: loose.BetaLaw(-1, 1).means(2), "a Beta law's a must be positive, not -1"),
        (lambda: loose.BernoulliLaw(1.5).means(2), "p must be between 0 and 1 in every group"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ac.InputError, match=re.escape(message)) as error:
        call()
    assert "\n" not in str(error.value)


def coins(*chances, **later):
    """Arms with these chances; with ``from_41=[...]``, with others from round 41 on."""
    changes = {int(at.removeprefix("from_")): list(map(ac.BernoulliLaw, ps)) for at, ps in later.items()}
    return ac.Problem([1.0] * len(chances), 12, 4, list(map(ac.BernoulliLaw, chances)), changes=changes)


def test_a_change_to_the_same_problem_changes_nothing():
    still, policies = coins(0.2, 0.5, 0.7), [ac.UCB1(), ac.TPUCBFR(alpha=4)]
    changing = coins(0.2, 0.5, 0.7, from_501=[0.2, 0.5, 0.7], from_78=[0.2, 0.5, 0.7])
    assert [at for at, _ in changing.phases] == [1, 78, 501]
    for given in ("regret", "pulls"):
        one, other = (
            getattr(ac.simulate(p, policies, 900, runs=2, checkpoints=50), given) for p in (still, changing)
        )
        np.testing.assert_array_equal(one, other)


def test_regret_is_against_the_best_arm_of_the_decisions_own_round():
    """Round by round: what the arm chosen then falls short of the best one then."""
    before, after = coins(0.2, 0.5, 0.7), coins(0.9, 0.5, 0.1)
    changing = coins(0.2, 0.5, 0.7, from_41=[0.9, 0.5, 0.1])
    result = ac.simulate(changing, [ac.UCB1()], 80, runs=1, checkpoints=80)
    short = simulate_pulls(changing, 80)
    gaps = np.where((np.arange(80) < 40)[:, None], before.gaps, after.gaps)
    np.testing.assert_allclose(result.regret[0, 0], np.cumsum((short * gaps).sum(axis=1)), atol=1e-12)


def simulate_pulls(problem, horizon):
    """Which arm each round chose, as rows of 0 and 1: from runs of one round more each, on the same draws."""
    pulls = [ac.simulate(problem, [ac.UCB1()], t, runs=1).pulls[0, 0] for t in range(3, horizon + 1)]
    return np.concatenate([np.eye(3), np.diff(pulls, axis=0)])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: coins(0.1, 0.2, from_5=[0.1, 0.2, 0.3]), "2 arms need 2 laws"),
        (lambda: coins(0.1, from_1=[0.2]), "a change's round must be"),
        (lambda: coins(0.1, from_5=[1.2]), "p must be"),
        (lambda: ac.Problem([1.0], 12, 4, changes=cast(Any, {5: "lump"})), "laws must be reward laws"),
        (lambda: ac.Problem([1.0], 12, 4, changes=cast(Any, [5])), "changes must be a dict"),
        (lambda: coins(0.1, from_5=[0.2]).means, "each of its phases has laws of its own"),
    ],
)
def test_what_cannot_change_says_so(make, says):
    with pytest.raises(ac.InputError, match=says):
        make()


def test_what_is_not_for_a_gpu():
    with pytest.raises(ac.InputError, match="that changes is played on the CPU"):
        ac.simulate(coins(0.1, 0.2, from_5=[0.2, 0.1]), [ac.UCB1()], 9, device="cuda")
    problem = ac.gallery.ENTRIES["ctx-same"].problem
    with pytest.raises(ac.InputError, match="with contexts is played on the CPU"):
        ac.simulate(problem, [ac.AgeLinTS()], 9, device="cuda")


def test_cells_with_contexts_are_for_the_cpu():
    """A sweep on a GPU is refused before it begins; the gallery plays them on the CPU."""
    entry = ac.gallery.ENTRIES["ctx-same"]
    compared = {"AgeLinTS": ac.AgeLinTS()}
    cells = cut_entry(entry, compared, device="cuda")
    assert {cell.device for cell in cells} == {"cpu"}
    with pytest.raises(ac.InputError, match="with contexts is played on the CPU"):
        on_device(cells, "cuda")
