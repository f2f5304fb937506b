"""The CUDA engine against the CPU's: to the bit in numba's simulator, and on a GPU if there is one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from own_policy import PieceMOSS

import accrual as ac
from accrual.cli.app import run
from accrual.core.errors import InputError, MissingExtra
from accrual.policies.catalog import CATALOG
from accrual.policies.clusters import Cluster, ClusteredTPUCBFRG

ROUNDS = 30  # two windows and a half; with more, no other line of the engines and policies is reached


def every_law():
    rows = np.random.default_rng(3).dirichlet([1.0] * 5, size=7)[:, :4]
    return ac.Problem(
        caps=[1.0, 2.0, 1.5, 1.0, 1.2, 1.4, 1.1],
        window=12,
        groups=4,
        laws=[
            ac.UniformLaw("begin"),
            ac.BetaLaw([1, 2, 3, 4], 2.0),
            ac.BernoulliLaw(0.4),
            ac.LeavingLaw(0.8, 0.7),
            ac.LumpLaw(0.5, "end"),
            ac.ScaledLaw(ac.UniformLaw(), 0.7),
            ac.EmpiricalLaw(rows),
        ],
    )


def problems():
    """Every law; one for all arms, drawn from a table; and pieces all in a group's first round."""
    return {
        "every law": every_law(),
        "one law": ac.Problem([1.0, 2.0, 1.5], window=12, groups=12, laws=ac.BetaLaw(2.0, 3.0)),
        "first": ac.Problem([1.0, 2.0, 1.5], window=12, groups=4, division="first"),
    }


def policies(arms):
    """Every policy of the catalog, some with settings that make other kernels, and one of a user's own."""
    halves = [Cluster(range(1), 4, "begin", 8), Cluster(range(1, arms), 6, "end")]
    return {
        **{name: kind.example() for name, kind in CATALOG.items()},
        "two policies of a kind": ac.TPUCBFRG(6, "end"),
        "fewer buckets": ac.AgeIMED(buckets=3, clusters=[0] + [1] * (arms - 1)),
        "forgetting": ac.AgePrior(half_life=20),
        "known about arms": ac.AgePrior(about=[[k / arms, k % 2] for k in range(arms)]),
        "clusters": ClusteredTPUCBFRG(halves),
        "own": PieceMOSS(),
    }


def fingerprint(device, names=("every law", "one law", "first")):
    """Regret at some rounds and decisions of each arm, in text that keeps every bit."""
    found = {}
    for name in names:
        problem = problems()[name]
        result = ac.simulate(
            problem, policies(len(problem.caps)), ROUNDS, range(5, 7), seed=2, device=device, checkpoints=7
        )
        found[name] = {
            label: [regret.tobytes().hex(), pulls.tolist()]
            for label, regret, pulls in zip(result.labels, result.regret, result.pulls, strict=True)
        }
    return found


# In the simulator every thread is one of Python's, which take turns at every barrier: a few must be
# enough, and short turns. First a block for each chain; then blocks of teams, some without a chain of
# their own; then several chains in a block, each with a thread; then with short spans, a run at a time,
# and nothing in shared memory.
SIMULATE = """
import json, sys
import test_cuda
from accrual.engine.cuda import engine as cuda

sys.setswitchinterval(1e-4)
cuda._GRID, cuda._BLOCK, cuda._WARP = 1, 2, 2
found = {"plain": test_cuda.fingerprint("cpu"), "alone": test_cuda.fingerprint("cuda", ["every law"])}
cuda._WARP, cuda._THREADS, cuda._TEAM_LEAST, cuda._WIDE_MOST = 8, 0, 2, 0
found["teams"] = test_cuda.fingerprint("cuda", ["one law"])
cuda._WARP, cuda._TABLE_MOST = 2, 0
found["many to a block"] = test_cuda.fingerprint("cuda")
cuda._SPAN_LEAST, cuda._SPAN_MOST, cuda._CHAIN_NEAR = 3, 7, 0
sizes = cuda._sizes
cuda._sizes = lambda *given: sizes(*given)._replace(runs=1)
found["in parts"] = test_cuda.fingerprint("cuda")
print(json.dumps(found))
"""


def test_simulator_plain_python_and_compiled_code_agree_to_the_bit():
    paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    environment = {
        **os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SIMULATE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    compiled = fingerprint("cpu")
    for way, found in json.loads(done.stdout).items():
        for name, rows in found.items():
            for label, row in rows.items():
                assert row == compiled[name][label], (way, name, label)


def has_gpu():
    from accrual.engine.cuda.compiler import cuda

    return cuda.is_available()


def test_without_a_gpu_one_line_says_so():
    if has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match=r"^device 'cuda' needs an NVIDIA GPU .* use 'cpu'$"):
        ac.simulate(ac.paper.setting1(), [ac.UCB1()], 100, device="cuda")


@pytest.mark.parametrize(
    "words", [["gallery", "--only", "k2", "--runs", "2"], ["compare", "examples/views.csv", "--runs", "2"]]
)
def test_commands_say_so_too_and_compute_nothing(words, tmp_path, capsys):
    if has_gpu():
        pytest.skip("there is a GPU")
    assert run([*words, "--device", "cuda", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("accrual: device 'cuda' needs an NVIDIA GPU")
    assert not list(tmp_path.glob("cells/*"))
    assert run([*words, "--device", "gpu", "--out", str(tmp_path)]) == 2
    assert "unknown device 'gpu'" in capsys.readouterr().err


def test_with_a_driver_and_no_toolkit_one_line_names_it(monkeypatch):
    if has_gpu():
        pytest.skip("there is a GPU")
    from accrual.engine.cuda.compiler import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    monkeypatch.setattr(cuda, "cuda_error", lambda: None)
    with pytest.raises(InputError, match=r"^device 'cuda' needs a CUDA toolkit.*numba-cuda\[cu13\].*'cpu'$"):
        ac.simulate(ac.paper.setting1(), [ac.UCB1()], 100, device="cuda")


def test_where_no_kernel_runs_one_line_says_what_it_needs(monkeypatch):
    """What numba raises without a driver stands in for its many other complaints, of a toolkit say."""
    if has_gpu():
        pytest.skip("there is a GPU")
    from accrual.engine.cuda.compiler import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: True)
    with pytest.raises(
        InputError, match=r"^device 'cuda' cannot run here \(\w+: .*numba-cuda\[cu13\].*'cpu'$"
    ):
        ac.simulate(ac.paper.setting1(), [ac.UCB1()], 100, device="cuda")


def test_without_the_extra_one_line_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    for name in [name for name in sys.modules if name.startswith("accrual.engine.cuda")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"numba_cuda.*pip install 'accrual\[cuda\]'$"):
        ac.simulate(ac.paper.setting1(), [ac.UCB1()], 100, device="cuda")


def test_on_a_gpu_regret_is_the_cpus():
    """On the same draws only choices between indices equal up to rounding differ, if any.

    So the means agree far better than their standard errors; half of one is generous.
    """
    if not has_gpu():
        pytest.skip("needs an NVIDIA GPU")
    learners = [ac.UCB1(), ac.TPUCBFR(20), ac.TPUCBEW(20), ac.AgeIMED()]
    for problem in (ac.paper.setting1(), ac.paper.setting2(3, "late")):
        ours = ac.simulate(problem, learners, 5000, runs=20, device="cuda").final_regret
        theirs = ac.simulate(problem, learners, 5000, runs=20).final_regret
        error = theirs.std(axis=1, ddof=1) / np.sqrt(20)
        assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) <= 0.5 * error).all()
