"""Problems and policies from TOML files."""

from __future__ import annotations

import pytest

import accrual as ac
from accrual.problems.gallery import generate
from accrual.problems.laws import LAWS
from accrual.problems.paper import NAMED_PROBLEMS
from accrual.studies.problem_files import load, named_problem, read, with_yardsticks

PROBLEM = "[problem]\ncaps = [4, 8]\nwindow = 4\ngroups = 2\n"


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """Read a file `p.toml` of this text."""
    monkeypatch.chdir(tmp_path)

    def read_text(text: str):
        (tmp_path / "p.toml").write_text(text, encoding="utf-8")
        return read("p.toml")

    return read_text


def test_a_problem_without_a_law_pays_uniformly_and_evenly(setup):
    problem, policies = setup(PROBLEM)
    assert problem.group_means.tolist() == [[1, 1], [2, 2]]
    assert (problem.division, problem.arms, policies) == ("even", ("0", "1"), {})


@pytest.mark.parametrize(
    ("law", "means"),
    [
        ('law = "uniform"', [1, 1]),
        ('law = {kind = "uniform", spread = [0.75, 0.25]}', [1.5, 0.5]),
        ('spread = [0.75, 0.25]', [1.5, 0.5]),
        ('spread = "zipf(1)"', [4 / 3, 2 / 3]),
        ('spread = [0, 1]\nlaw = {kind = "beta", a = 3, b = 1, spread = [0.5, 0.5]}', [1.5, 1.5]),
        ('law = {kind = "beta", a = [1, 3], b = 1}', [1, 1.5]),
        ('law = {kind = "bernoulli", p = 0.25}', [0.5, 0.5]),
        ('law = {kind = "lump", p = 0.25}', [0.5, 0.5]),
        ('law = {kind = "leaving", stay = 0.5}', [1, 0.5]),
        ('law = {kind = "empirical", rows = [[0.5, 0.1], [0, 0]]}', [1, 0.2]),
    ],
)  # fmt: skip
def test_laws(setup, law, means):
    assert setup(PROBLEM + law).problem.group_means[0] == pytest.approx(means)


def test_one_law_for_each_arm(setup):
    laws = '[[problem.laws]]\nkind = "bernoulli"\np = 1\n[[problem.laws]]\nkind = "uniform"\n'
    assert setup(PROBLEM + laws).problem.means.tolist() == [4, 4]


def test_policies_with_and_without_labels(setup):
    text = '[[policy]]\nname = "UCB1"\n'
    text += '[[policy]]\nname = "TPUCBFRG"\nalpha = 2\nspread = [1, 0]\nlabel = "mine"\n'
    policies = setup(PROBLEM + text).policies
    assert policies == {"UCB1": ac.UCB1(), "mine": ac.TPUCBFRG(alpha=2, spread=[1, 0])}


def test_names_and_files_load_alike(setup, tmp_path):
    setup(PROBLEM)
    assert load("p.toml").problem.window == 4
    (tmp_path / "p.toml").rename("other")
    assert load("other").problem.window == 4
    assert load("setting1").policies == {}


def test_every_named_setting_is_a_problem():
    assert len(NAMED_PROBLEMS) == 13
    for name in NAMED_PROBLEMS:
        assert len(named_problem(name).caps) == 10
    assert NAMED_PROBLEMS["setting2/c4/late"]().groups == 100
    assert named_problem("ctx-same") is ac.gallery.ENTRIES["ctx-same"].problem


def test_problems_with_contexts(setup, tmp_path):
    made = setup("problem = {features = 3, arms = 2, window = 40, spread = 'context', speed = 0.3, seed = 5}")
    expected = generate(3, 2, "context", seed=5, window=40, speed=0.3)
    assert made.problem == expected
    assert (made.problem.window, made.problem.contexts.width) == (40, 4)
    text = """[problem]
    caps = [6.4, 1]
    contexts = {numbers = 1, flags = [0.5]}
    laws = [
        {kind = "linear", effects = [1, 0.5, 0]},
        {kind = "logistic", effects = [1, 0, -1], speeds = [0.5, 0, 0], pay = "once"},
    ]
    window = 20
    arms = ["short", "long"]
    """
    given = setup(text).problem
    assert given.contexts == ac.Contexts(numbers=1, flags=[0.5])
    assert given.means_in([[1, 1, 1]]).tolist() == [[1.5, 0.5]]
    assert given.laws[1] == ac.LogisticLaw([1, 0, -1], [0.5, 0, 0], "once")
    assert given.arms == ("short", "long")
    assert load("ctx-visitors").problem is ac.gallery.ENTRIES["ctx-visitors"].problem


def test_what_stands_beside_others_on_problems_with_contexts():
    problem = named_problem("ctx-same")
    assert list(with_yardsticks(problem, {"mine": ac.LinTS()})) == ["mine", "no delay", "no context"]
    assert list(with_yardsticks(named_problem("setting1"), {"mine": ac.UCB1()})) == ["mine"]
    with pytest.raises(ac.InputError, match="'no delay' is always there"):
        with_yardsticks(problem, {"no delay": ac.LinTS()})


KEYS = "caps, window, groups, division, arms, law, laws, spread, contexts"
BAD = {
    "caps = [1\n": "p.toml is not TOML: Unclosed array (at end of document)",
    "[problem]\ncaps = 1 2": "p.toml is not TOML: Expected newline or end of document after a statement "
    "(at line 2, column 10)",
    "": "p.toml: the file needs problem",
    "problem = 3": "p.toml: problem must be a table of settings, not 3",
    "[problem]\ncaps = [1]\nwindow = 4": "p.toml: problem needs groups",
    "[problm]": "p.toml: unknown key of the file 'problm'; did you mean 'problem'? (one of: problem, policy)",
    PROBLEM + "cap = 3": f"p.toml: unknown key of problem 'cap'; did you mean 'caps'? (one of: {KEYS})",
    PROBLEM.replace("[4, 8]", "4"): "p.toml: caps must be a list, not 4",
    PROBLEM.replace("[4, 8]", "[4, '8']"): "p.toml: caps[1] must be a finite number, not '8'",
    PROBLEM.replace("[4, 8]", "[4, nan]"): "p.toml: caps[1] must be a finite number, not nan",
    PROBLEM.replace("[4, 8]", "[4, true]"): "p.toml: caps[1] must be a finite number, not True",
    PROBLEM.replace("[4, 8]", "[4, 0]"): "p.toml: caps must be positive numbers; arm 1 has 0",
    PROBLEM.replace("[4, 8]", "[]"): "p.toml: a problem needs 1 to 65535 arms, not 0",
    PROBLEM.replace("window = 4", "window = 4.5"):
        "p.toml: window must be a whole number from 1 to 10000000, not 4.5",
    PROBLEM.replace("groups = 2", "groups = 3"): (
        "p.toml: groups must divide the window: 3 does not divide 4 (nearest: 2 and 4)"
    ),
    PROBLEM + "division = 1": "p.toml: division must be text in quotes, not 1",
    PROBLEM + "division = 'evn'":
        "p.toml: unknown division 'evn'; did you mean 'even'? (one of: even, first)",
    PROBLEM + "arms = ['a', 'a']": "p.toml: 2 arms need 2 different names, not ['a', 'a']",
    PROBLEM + "law = 'betta'": (
        "p.toml: unknown kind of law 'betta'; did you mean 'beta'? (one of: {laws})"
    ),
    PROBLEM + "law = {a = 1}": "p.toml: law needs a kind, as in: {{kind = 'uniform'}} (one of: {laws})",
    PROBLEM + "law = {kind = 'beta', a = 1}": "p.toml: law needs b",
    PROBLEM + "law = {kind = 'beta', a = 'x', b = 1}": "p.toml: a must be a finite number, not 'x'",
    PROBLEM + "law = {kind = 'beta', a = -1, b = 1}": "p.toml: a Beta law's a must be positive, not -1",
    PROBLEM + "law = {kind = 'bernoulli', p = 2}": "p.toml: p must be between 0 and 1 in every group",
    PROBLEM + "law = {kind = 'bernoulli', p = [1, 1, 1]}":
        "p.toml: p must be one number or 2 (one per group), not 3",
    PROBLEM + "law = {kind = 'empirical', rows = [[0.1, 0.2], [0.3]]}": (
        "p.toml: an empirical law's rows must be numbers, as many in each row"
    ),
    PROBLEM + "spread = [1, 0]\nlaw = {kind = 'empirical', rows = [[0, 1]]}": (
        "p.toml: law takes no spread: a law of kind empirical already says when it pays"
    ),
    PROBLEM + "law = 'uniform'\nlaws = ['uniform', 'uniform']": (
        "p.toml: problem takes law (one for all arms) or laws (one for each), not both"
    ),
    PROBLEM + "laws = ['uniform']": "p.toml: 2 arms need 2 laws (or one for all), not 1",
    PROBLEM + "spread = [0.5, 0.6]": "p.toml: a spread must sum to 1; it sums to 1.1 (divide by that)",
    "problem = {features = 3}": "p.toml: problem needs arms",
    "problem = {features = 3, arms = 2, caps = [1]}": (
        "p.toml: unknown key of problem 'caps'; did you mean 'arms'? (one of: features, arms, window, "
        "active, strength, speed, seed, spread, link, pay)"
    ),
    "problem = {features = 3, arms = 2, speed = -1}": "p.toml: speed must be 0 or more, not -1",
    "problem = {features = 3, arms = 2, link = 'logit'}": (
        "p.toml: unknown link 'logit'; did you mean 'logistic'? (one of: linear, logistic)"
    ),
    "problem = {features = 3, arms = 2, active = 4}": (
        "p.toml: active must be a whole number from 0 to 3, not 4"
    ),
    "problem = {caps = [1], contexts = {numbers = 1}, laws = [{kind='linear', effects=[1]}], window = 3}": (
        "p.toml: effects must be 2 numbers for each arm, as many as a context has"
    ),
    "problem = {caps = [1], contexts = {}, window = 3}": "p.toml: problem needs laws",
    "problem = {caps = [1], contexts = {}, laws = ['uniform'], window = 3}": (
        "p.toml: unknown kind of law 'uniform' (one of: linear, logistic)"
    ),
    "problem = {caps = [1], contexts = {number = 1}, laws = [], window = 3}": (
        "p.toml: unknown key of contexts 'number'; did you mean 'numbers'? (one of: numbers, flags, levels)"
    ),
    PROBLEM + "[policy]\nname = 'UCB1'": "p.toml: policy must be a list, not {{'name': 'UCB1'}}",
    PROBLEM + "[[policy]]\nalpha = 2": "p.toml: policy[0] needs a name, as in: name = 'UCB1'",
    PROBLEM + "[[policy]]\nname = 'TPUCBFR'\nalpa = 2": (
        "p.toml: unknown setting of TPUCBFR 'alpa'; did you mean 'alpha'? (one of: alpha)"
    ),
    PROBLEM + "[[policy]]\nname = 'UCB1'\n" * 2: (
        "p.toml: two policies are labelled 'UCB1'; give one a label of its own"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_files_say_what_is_wrong(setup, text):
    laws = ", ".join(LAWS)
    with pytest.raises(ac.InputError) as caught:
        setup(text)
    assert str(caught.value) == BAD[text].format(laws=laws)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ac.InputError, match=r"p\.toml is not TOML: 'utf-8' codec can't decode"):
        read(path)


def test_a_file_nested_too_deeply(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ac.InputError, match=r"p\.toml is not TOML"):
        read(path)
