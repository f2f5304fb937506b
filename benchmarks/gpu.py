"""The CUDA engine on a GPU: the same numbers as the CPU's, and how fast.

`-P` keeps this folder off the path, where numba would look for packages of its own.

python benchmarks/gpu.py reference    # on any machine: CPU figures to compare with
python benchmarks/gpu.py check        # statistics and regret against them
python benchmarks/gpu.py speed        # policy-rounds a second
python benchmarks/gpu.py paper        # the paper's whole experiment section
python benchmarks/gpu.py runs10000    # Setting 1 with 10,000 runs of each learner
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import accrual as ac
from accrual.engine.fast_loop import Chain, Checkpoints, PolicyPlan
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import pack
from accrual.policies.base import Moment
from accrual.studies.bench import compared
from accrual.studies.paper.runner import make_policy, make_problem
from accrual.studies.paper.settings import BLOCKS

REFERENCE = Path("out/cuda-reference.npz")
HORIZON, RUNS = 100_000, 100


def every_policy(window: int) -> dict[str, ac.Policy]:
    """One policy of each kind, for seven arms and a window that these numbers of groups divide."""
    groups = next(count for count in (20, 4) if window % count == 0)
    policies: list[ac.Policy] = [
        ac.UCB1(), ac.DelayedUCB1(), ac.TPUCBFR(groups), ac.TPUCBFRG(groups, "begin"), ac.TPUCBEW(groups),
        ac.KLUCB(), ac.IMED(), ac.ThompsonSampling(), ac.AgeIMED(), ac.AgeTS(), ac.AgeUCB(groups),
        ac.AgePrior(), ac.AgePrior(about=[[k / 7, k % 2] for k in range(7)]),
    ]  # fmt: skip
    return {policy.label: policy for policy in policies}


def every_law() -> ac.Problem:
    """A problem with an arm of each reward law."""
    rows = np.random.default_rng(3).dirichlet([1.0] * 5, size=7)[:, :4]
    laws: list[ac.Law] = [
        ac.UniformLaw("begin"), ac.BetaLaw([1, 2, 3, 4], 2.0), ac.BernoulliLaw(0.4), ac.LeavingLaw(0.8, 0.7),
        ac.LumpLaw(0.5, "end"), ac.ScaledLaw(ac.UniformLaw(), 0.7), ac.EmpiricalLaw(rows),
    ]  # fmt: skip
    return ac.Problem(caps=[1.0, 2.0, 1.5, 1.0, 1.2, 1.4, 1.1], window=12, groups=4, laws=laws)


def compared_settings() -> dict[str, tuple[ac.Problem, dict[str, ac.Policy]]]:
    """Settings 1 and 2 as `check` plays them."""
    settings = {
        "setting1": ac.paper.setting1(),
        "setting2/c1/late": ac.paper.setting2(1, "late"),
        "setting2/c4/early": ac.paper.setting2(4, "early"),
    }
    found = {}
    for name, problem in settings.items():
        alpha = problem.groups
        policies: list[ac.Policy] = [
            ac.UCB1(), ac.DelayedUCB1(), ac.TPUCBFR(alpha), ac.TPUCBFRG(alpha, "begin"), ac.TPUCBEW(alpha),
            ac.AgeIMED(), ac.AgeTS(), ac.AgePrior(),
        ]  # fmt: skip
        found[name] = (problem, {policy.label: policy for policy in policies})
    return found


def reference() -> None:
    """Write what the CPU finds on the runs that `check` plays."""
    found = {}
    for name, (problem, policies) in compared_settings().items():
        found[name] = ac.simulate(problem, policies, HORIZON, RUNS).final_regret
        print(name, found[name].mean(axis=1).round(), flush=True)
    REFERENCE.parent.mkdir(exist_ok=True)
    np.savez(REFERENCE, **found)  # type: ignore[arg-type]  # its names are settings', not arguments'


def check() -> None:
    """The regret of whole runs, then statistics after some hundred rounds."""
    _same_regret()
    problem = every_law()
    for label, policy in every_policy(problem.window).items():
        _same_indices(label, problem, policy)
        _same_statistics(label, problem, policy)


def _same_regret() -> None:
    """How far the regret of whole runs is from that of `reference`."""
    known = np.load(REFERENCE) if REFERENCE.exists() else None
    if known is None:
        print(f"no {REFERENCE}: regret not compared (python -P benchmarks/gpu.py reference)")
        return
    for name, (problem, policies) in compared_settings().items():
        result = ac.simulate(problem, policies, HORIZON, RUNS, device="cuda")
        for label, ours, theirs in zip(result.labels, result.final_regret, known[name], strict=True):
            error = float(np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(RUNS))
            same = np.isclose(ours, theirs, 1e-12, 0).sum()
            print(
                f"{name:18} {label:22} cuda {ours.mean():12,.0f} cpu {theirs.mean():12,.0f} "
                f"z {(ours.mean() - theirs.mean()) / error:+.3f}, the same to 1e-12 in {same} "
                f"of {RUNS} runs", flush=True,
            )  # fmt: skip


def _same_indices(label: str, problem: ac.Problem, policy: ac.Policy, runs: int = 16) -> None:
    """How far the indices are apart when both sides have the very same statistics."""
    from accrual.engine.cuda import kernels
    from accrual.engine.cuda.compiler import cuda
    from accrual.engine.cuda.parts import pick_from

    laws = pack(problem)
    plan = PolicyPlan(policy, problem, laws)
    first = policy.stats(plan.params)
    make_params, make_stats = type(plan.params), type(first)
    pick = pick_from(len(plan.params))
    enter = kernels.enter_into((None,) * len(first))
    index, survey = policy.functions.index, policy.functions.survey

    @cuda.jit
    def ask(all_params, all_stats, moment, out):  # type: ignore[no-untyped-def]
        params = make_params(*pick(all_params, 0))
        stats = make_stats(*enter(all_stats, 0, 0, 0))
        survey(params, stats, moment)
        for k in range(len(out)):
            out[k] = index(params, stats, k, moment)

    params = tuple(cuda.to_device(np.stack([field])) for field in plan.params)
    worst = []
    for run in range(runs):
        feed = RunFeed(problem, laws, 0, run)
        chain = Chain(plan, feed.span, (0, run))
        done = 0
        for t in (13, 25, 60, 150, 300):
            chain.advance(
                feed.read(t - 1 - done),
                done + 1,
                t - 1 - done,
                Checkpoints(np.zeros(0, np.int64), np.zeros(0)),
            )
            done = t - 1
            moment = Moment(t, float(np.log(t - 1.0)), 0, run)
            out = cuda.to_device(np.zeros(len(problem.caps)))
            ask[1, 1](
                params,
                tuple(cuda.to_device(field[np.newaxis, ..., np.newaxis]) for field in chain.stats),
                moment,
                out,
            )
            theirs = out.copy_to_host()
            survey(plan.params, chain.stats, moment)
            ours = np.array([index(plan.params, chain.stats, k, moment) for k in range(len(theirs))])
            known = np.isfinite(ours)
            apart = np.abs(theirs[known] - ours[known]) / np.maximum(np.abs(ours[known]), 1e-300)
            worst.append(apart.max(initial=0.0))
    far = np.mean(np.array(worst) > 1e-12)
    print(
        f"{label:26} the same statistics: indices within {max(worst):.1e}, {far:.0%} over 1e-12", flush=True
    )


def _same_statistics(label: str, problem: ac.Problem, policy: ac.Policy, runs: int = 32) -> None:
    """How far statistics are apart where all choices were the same."""
    from accrual.core.progress import Progress
    from accrual.engine.cuda import engine

    horizon = 300
    laws = pack(problem)
    plan = PolicyPlan(policy, problem, laws)
    none = np.array([horizon], np.int64)
    sizes = engine._sizes(problem, laws, [plan], none, runs)
    source = engine.GpuRunFeeds(problem, laws, sizes, (0, range(runs)))
    team = engine.Team([plan], none, source)
    engine.finish(source, [team], horizon, Progress(1))
    theirs = {name: team.of_chains(array) for name, array in team.stats._asdict().items()}
    same, worst = 0, 0.0
    for run in range(runs):
        feed = RunFeed(problem, laws, 0, run)
        chain = Chain(plan, feed.span, (0, run))
        chain.advance(feed.read(horizon), 1, horizon, Checkpoints(none, np.zeros(1)))
        if not np.array_equal(theirs["pulls"][run], chain.stats.pulls):
            continue
        same += 1
        for name, array in chain.stats._asdict().items():
            mine = np.asarray(array, np.float64)
            known = np.isfinite(mine)
            apart = np.abs(mine[known] - theirs[name][run][known])
            worst = max(
                worst, float(apart.max(initial=0.0) / max(np.abs(mine[known]).max(initial=0.0), 1e-9))
            )
    print(
        f"{label:22} {same} of {runs} runs chose alike for {horizon} rounds; statistics within {worst:.1e}",
        flush=True,
    )


def speed() -> None:
    """Policy-rounds a second, many runs and few, from the difference of two horizons."""
    one, two = ac.paper.setting1(), ac.paper.setting2(4, "late")
    cases: list[tuple[str, ac.Problem, Sequence[ac.Policy], int, int]] = [
        ("Setting 1, TPUCBFR(20)", one, [ac.TPUCBFR(20)], 100_000, 4_000),
        ("Setting 1, TPUCBFR(20)", one, [ac.TPUCBFR(20)], 10_000, 20_000),
        ("Setting 1, 11 policies", one, compared(50), 10_000, 10_000),
        ("Setting 1, 11 policies", one, compared(50), 100, 40_000),
        ("Setting 2 (100, 10) late, 11 policies", ac.paper.setting2(1, "late"), compared(10), 10_000, 10_000),
        ("Setting 2 (200, 100) late, 11 policies", two, compared(100), 10_000, 4_000),
        ("Setting 2 (200, 100) late, 11 policies", two, compared(100), 100, 20_000),
        ("Setting 1, UCB1", one, [ac.UCB1()], 100_000, 4_000),
        ("Setting 1, TPUCBEW(20)", one, [ac.TPUCBEW(20)], 10_000, 4_000),
        ("Setting 1, TPUCBEW(20)", one, [ac.TPUCBEW(20)], 100, 10_000),
        ("Setting 1, AgeIMED", one, [ac.AgeIMED()], 10_000, 4_000),
        ("Setting 1, AgeIMED", one, [ac.AgeIMED()], 100, 10_000),
        ("Setting 1, AgeTS", one, [ac.AgeTS()], 10_000, 4_000),
        ("Setting 1, AgePrior", one, [ac.AgePrior()], 10_000, 4_000),
        ("Setting 1, AgePrior", one, [ac.AgePrior()], 1_000, 10_000),
        ("Setting 1, AgePrior", one, [ac.AgePrior()], 100, 10_000),
    ]
    for name, problem, policies, runs, horizon in cases:
        play = _simulation(problem, policies, runs)
        began = time.perf_counter()
        play(200)
        compiling = time.perf_counter() - began
        short, long = _timed(play, horizon), _timed(play, 3 * horizon)
        rate = len(policies) * runs * 2 * horizon / (long - short)
        print(
            f"{name:40} {runs:7,} runs x {horizon:6,}: {rate:9.3g} policy-rounds/s "
            f"({short:.2f} and {long:.2f} s; first {compiling:.1f} s)", flush=True,
        )  # fmt: skip


def _simulation(
    problem: ac.Problem, policies: Sequence[ac.Policy] | Mapping[str, ac.Policy], runs: int
) -> Callable[[int], ac.Result]:
    return lambda horizon: ac.simulate(problem, policies, horizon, runs, device="cuda", checkpoints=100)


def _timed(work: Callable[[int], object], horizon: int) -> float:
    began = time.perf_counter()
    work(horizon)
    return time.perf_counter() - began


def paper() -> None:
    """Every block of the paper at full size: compiled first, then timed all together."""
    problems = {name: make_problem(name) for name in {block.problem for block in BLOCKS.values()}}
    jobs = {
        block.id: _simulation(
            problems[block.problem], {learner.label: make_policy(learner) for learner in block.learners}, RUNS
        )
        for block in BLOCKS.values()
    }
    total = HORIZON * RUNS * sum(len(block.learners) for block in BLOCKS.values())
    compiling = sum(_timed(job, 200) for job in jobs.values())
    print(f"{len(jobs)} blocks, {total:.3g} policy-rounds; compiling {compiling:.0f} s", flush=True)
    with ThreadPoolExecutor(len(jobs)) as pool:
        began = time.perf_counter()
        results = dict(zip(jobs, pool.map(lambda job: job(HORIZON), jobs.values()), strict=True))
        seconds = time.perf_counter() - began
    print(f"all blocks at a time: {seconds:.2f} s, {total / seconds:.3g} policy-rounds/s", flush=True)
    for name, result in results.items():
        means = result.final_regret.mean(axis=1)
        print(
            name, ", ".join(f"{label} {mean:.4g}" for label, mean in zip(result.labels, means, strict=True))
        )


def runs10000() -> None:
    """Setting 1 with 10,000 runs of each learner."""
    problem, policies = ac.paper.setting1(), [*compared(50), ac.TPUCBEW(50), ac.AgeIMED()]
    play = _simulation(problem, policies, 10_000)
    play(200)
    began = time.perf_counter()
    result = play(HORIZON)
    seconds = time.perf_counter() - began
    rounds = len(policies) * 10_000 * HORIZON
    print(f"Setting 1, 10,000 runs: {seconds:.1f} s, {rounds / seconds:.3g} policy-rounds/s")
    for row in result.rows():
        print(f"{row['policy']:28} {row['mean']:12,.0f} ± {row['se']:.0f}", flush=True)


def main() -> None:
    commands = {f.__name__: f for f in (reference, check, speed, paper, runs10000)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", nargs="+", choices=commands)
    for name in parser.parse_args().command:
        print(f"-- {name}", flush=True)
        commands[name]()


if __name__ == "__main__":
    main()
