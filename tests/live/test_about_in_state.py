"""What is known about arms, as a bandit's state, a notebook and an explanation show it."""

from __future__ import annotations

import accrual as ac

KNOWN = {"genre": ["jazz", "rock"], "minutes": (0, 60)}


def bandit(**options) -> ac.Bandit:
    """A bandit of two arms, the first of which pays more, after some decisions."""
    made = ac.Bandit({"a": 10.0, "b": 10.0}, 4, seed=1, **options)
    for _ in range(40):
        decision = made.decide()
        made.observe(decision.id, 8.0 if decision.arm == "a" else 2.0, age=0)
    return made


def test_a_state_says_what_is_known_about_each_arm():
    made = bandit(arm_features=KNOWN, about={"a": {"genre": "jazz", "minutes": 31.625}})
    assert [arm.about for arm in made.state().arms] == [
        {"genre": "jazz", "minutes": 31.625},
        {"genre": None, "minutes": None},
    ]
    made.add_arm("c", about={"genre": "rock"})  # after a state was read: it is in the next one
    assert made.state().arms[2].about == {"genre": "rock", "minutes": None}
    page = made.state()._repr_html_()
    assert "<th>what is known about it</th>" in page
    assert "<td>genre: jazz, minutes: 31.625</td>" in page
    assert "<td>genre: rock</td>" in page


def test_a_bandit_without_features_of_arms_says_nothing_of_them():
    made = bandit()
    assert [arm.about for arm in made.state().arms] == [None, None]
    assert "known" not in made.state()._repr_html_().split("<table>")[1]
    assert all("known" not in term for reason in made.explain(39).reasons for term in reason.terms)


def test_an_explanation_says_what_is_expected_from_what_is_known():
    made = bandit(arm_features=KNOWN, about={"a": {"genre": "jazz"}, "b": {"genre": "rock"}})
    term = "expected from what is known about it"
    of = {reason.arm: reason.terms for reason in made.explain(39).reasons}
    assert 8.5 > of["a"][term] > 5.0 > of["b"][term] > 1.5  # in the unit of the pieces, not of caps
