"""Policies of other papers beside AgePrior and AgeIMED, on problems of the gallery.

    python benchmarks/baselines.py --runs 20

It prints mean regret over that of the no-delay floor (the better of IMED and Thompson sampling that know
every total at once; on problems with contexts, AgeLinTS that does). GaussianFilter has the prior of
`GaussianFilter.example`, because these problems have no older arms; `benchmarks/history.py` plays it with
some. Nothing was chosen on these problems.
"""

from __future__ import annotations

import argparse

from accrual.engine.simulate import simulate
from accrual.policies.age import AgeIMED
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.age_prior import AgePrior
from accrual.policies.base import Policy
from accrual.policies.baselines import QPMD, DelayedTsallisINF, PhasedElimination
from accrual.policies.gaussian_filter import GaussianFilter
from accrual.policies.imed import IMED
from accrual.policies.lin import LinTS
from accrual.policies.otf_lin import OTFLinTS, OTFLinUCB
from accrual.policies.thompson import ThompsonSampling
from accrual.policies.ucb1 import UCB1, DelayedUCB1
from accrual.problems.gallery import ENTRIES

PLAIN = ("setting1", "late-best", "lump", "w5000-even", "jackpot", "delay-10")
WITH_CONTEXTS = ("ctx-same", "ctx-sparse")
HORIZON = 20_000
ALPHAS = (1.0, 0.1, 0.01)


def plain(horizon: int) -> list[Policy]:
    """Return the policies for problems without contexts; the first two are the floor."""
    return [
        IMED(immediate=True), ThompsonSampling(immediate=True),
        AgePrior(), AgeIMED(), IMED(), DelayedUCB1(), GaussianFilter.example(10), QPMD(IMED()), QPMD(UCB1()),
        PhasedElimination(horizon), DelayedTsallisINF(0), DelayedTsallisINF(),
    ]  # fmt: skip


def with_contexts() -> list[Policy]:
    """Return the policies for problems with contexts; the first is the floor."""
    return [
        AgeLinTS(immediate=True),
        AgeLinTS(), LinTS(), *(OTFLinTS(alpha) for alpha in ALPHAS), *(OTFLinUCB(alpha) for alpha in ALPHAS),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", action="append")
    given = parser.parse_args()
    for name in given.only or (*PLAIN, *WITH_CONTEXTS):
        entry = ENTRIES[name]
        horizon = min(entry.horizon, HORIZON)
        contextual = name in WITH_CONTEXTS
        policies = with_contexts() if contextual else plain(horizon)
        result = simulate(entry.problem, policies, horizon, given.runs, given.seed, checkpoints=1)
        final = result.final_regret
        floors = 1 if contextual else 2
        floor = final[:floors].mean(axis=1).min()
        for policy, regret in list(zip(policies, final, strict=True))[floors:]:
            error = regret.std(ddof=1) / len(regret) ** 0.5 / floor
            print(
                f"{name} ({horizon:,}): {policy.label}: {regret.mean() / floor:.2f} ± {error:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
