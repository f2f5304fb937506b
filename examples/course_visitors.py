"""A course platform with new and returning visitors: the right course for each, learned from lectures seen.

New visitors stay with the short course and leave the long one; returning visitors watch the long one to its
end. A lecture watched is a piece of 1, and it comes days after the course was recommended. Nobody tells the
bandit who likes what.

Run it: python examples/course_visitors.py
"""

import numpy as np

import accrual as ac

LECTURES = {  # watched on average, by course and by whether the visitor is new
    ("short", True): 5.0, ("short", False): 4.0, ("long", True): 2.0, ("long", False): 9.0,
}  # fmt: skip
WINDOW = 200  # decisions, within which nearly all lectures are watched


def visit(bandit: ac.Bandit, visitors: int, dice: np.random.Generator) -> list[tuple[bool, str]]:
    """Let visitors come one after the other; return who got which course."""
    lectures: dict[int, list[int]] = {}  # round: the decisions of which a lecture is watched then
    shown = []
    for number in range(1, visitors + 1):
        for decision in lectures.pop(number, []):
            bandit.observe(decision, 1.0)
        new = bool(dice.integers(2))
        context = {
            "new": new,
            "device": str(dice.choice(["phone", "desktop"])),
            "hour": int(dice.integers(24)),
        }
        chosen = bandit.decide(context=context)
        shown.append((new, chosen.arm))
        for _ in range(min(int(dice.poisson(LECTURES[chosen.arm, new])), 20)):
            when = number + 1 + int(dice.exponential(WINDOW / 5))
            lectures.setdefault(when, []).append(chosen.id)
    return shown


def main() -> None:
    """Show 1,500 visitors a course each, and say who got which."""
    bandit = ac.Bandit(
        arms={"short": 20.0, "long": 20.0},
        window=WINDOW,
        features={"new": bool, "device": ["phone", "desktop"], "hour": (0, 24)},
        seed=1,
    )
    shown = visit(bandit, 1500, np.random.default_rng(7))[750:]
    for new, word in ((True, "new"), (False, "returning")):
        courses = [course for is_new, course in shown if is_new == new]
        print(f"{word} visitors get the long course {courses.count('long') / len(courses):.0%} of the time")
    explanation = bandit.explain(1499)
    print(f"decision {explanation.id}, for {explanation.context}: {explanation.arm}")
    for reason in explanation.reasons:
        adds = {name: round(value, 1) for name, value in reason.terms.items() if name.endswith(" adds")}
        print(
            f"  {reason.arm}: {reason.terms['expected total in this context']:.1f} lectures, of which {adds}"
        )


if __name__ == "__main__":
    main()
