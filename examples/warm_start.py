"""A live bandit that begins with what a log knows, beside one that begins with nothing.

Run by docs/tutorial.md: ``python examples/warm_start.py problem.json``.
"""

import sys
from collections import Counter

import accrual as ac

fitted = ac.Fitted.load(sys.argv[1])
arms = {arm.name: 240.0 for arm in fitted.known}  # eight lectures of 30 minutes
with (
    ac.Bandit(arms, window="56d", store="sqlite:///courses.db", prior=fitted) as bandit,
    ac.Bandit(arms, window="56d") as beginner,
):
    for arm in bandit.state().arms:
        print(f"{arm.name}: {arm.decisions} decisions imported, {arm.estimate:.1f} minutes each")
    for name, one in (("with the log", bandit), ("without", beginner)):
        shown = Counter(decision.arm for decision in one.decide(n=40))
        print(f"the first 40 {name}:", ", ".join(f"{arm} {count}" for arm, count in shown.most_common()))
