"""Arms that pay at two speeds, and a policy that knows the clusters, or finds them.

A site recommends ten short videos, which are watched at once, and ten courses, which are watched
late in a term. One spread fits neither. Last term's decisions show which arms belong together; a
policy that knows the clusters learns one spread for each kind.

Run it: python examples/clusters.py
"""

import numpy as np

import accrual as ac
from accrual.engine.recording import record

WINDOW, GROUPS, HORIZON, RUNS = 500, 20, 5000, 20
VIDEOS, COURSES = range(10), range(10, 20)
FAST, SLOW = "very_begin", "very_end"

means = np.linspace(0.30, 0.50, 10)
laws = [ac.BetaLaw(2 * m / (1 - m), 2.0, FAST) for m in means]
laws += [ac.BetaLaw(2 * m / (1 - m), 2.0, SLOW) for m in means + 0.02]
problem = ac.Problem([1.0] * 20, WINDOW, GROUPS, laws)

last_term = record(problem, ac.AgeIMED(), HORIZON, seed=7)
found = ac.find_clusters(last_term.stats)
print("clusters found:", found)

kinds = [ac.Cluster(VIDEOS, GROUPS, FAST), ac.Cluster(COURSES, GROUPS, SLOW)]
result = ac.simulate(
    problem,
    {
        "TPUCBFRG, all slow": ac.TPUCBFRG(GROUPS, SLOW),
        "TPUCBFRG, all fast": ac.TPUCBFRG(GROUPS, FAST),
        "TPUCBFRG, two clusters": ac.ClusteredTPUCBFRG(kinds),
        "AgeIMED": ac.AgeIMED(),
        "AgeIMED, each arm alone": ac.AgeIMED(clusters=range(20)),
        "AgeIMED, clusters found": ac.AgeIMED(clusters=found),
        "IMED without delay": ac.IMED(immediate=True),
    },
    HORIZON,
    RUNS,
)
print(f"\n{'regret after ' + str(HORIZON) + ' rounds':26s}   mean   s.e.")
for label, regret in zip(result.labels, result.final_regret, strict=True):
    print(f"{label:26s}{regret.mean():7.1f}{regret.std(ddof=1) / RUNS**0.5:7.1f}")
