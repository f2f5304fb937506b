"""Features: what is accepted, what is refused, what is counted, what the policy sees."""

import math
from typing import Any

import numpy as np
import pytest

from accrual.core.basis import basis_of, expand
from accrual.core.errors import InputError
from accrual.core.features import BEYOND, MISSING, UNKNOWN, Features, count_oddities
from accrual.problems.contexts import Contexts

FEATURES = Features({"country": ["de", "us"], "new": bool, "visits": (0, 50)})

CASES: list[tuple[dict[str, Any], list[float]]] = [
    ({"country": "de", "new": True, "visits": 0}, [1, 1, 0, 1, 0.0]),
    ({"country": "us", "new": False, "visits": 50}, [1, 0, 1, 0, 1.0]),
    ({"country": "fr", "new": True, "visits": 25}, [1, 0, 0, 1, 0.5]),  # a level that is unknown
    ({"country": "de", "new": np.True_, "visits": np.int64(70)}, [1, 1, 0, 1, 1.0]),  # out of range
    ({"country": "de", "visits": -3.5}, [1, 1, 0, 0.5, 0.0]),  # no word on `new`
    ({"country": None, "new": None, "visits": math.nan}, [1, 0, 0, 0.5, 0.5]),
]


@pytest.mark.parametrize(("context", "seen"), CASES)
def test_what_a_policy_sees(context, seen):
    np.testing.assert_allclose(FEATURES.seen(FEATURES.stored(context)), seen, rtol=1e-15)


def test_bends_and_pairs_of_a_context():
    """Numbers checked by hand: a quarter of the range is u = -0.5, yes is 1, a level is 0 or 1."""
    features = Features({"visits": (0, 50), "new": bool, "plan": ["free", "paid"]})
    basis = basis_of(features.layout, 40)
    columns = np.zeros(basis.width)
    expand(basis, features.seen(features.stored({"visits": 12.5, "new": True, "plan": "paid"})), columns)
    bends = [-0.125, 0.4375, -37 / 128]  # the Legendre polynomials of degree 2, 3 and 4
    pairs = [-0.5, 0.0, -0.5, 0.0, 1.0]  # visits and new, visits and each plan, new and each plan
    assert columns.tolist() == [1.0, 0.25, 1.0, 0.0, 1.0, *bends, *pairs]
    assert basis.group.tolist() == [0, 0, 0, 1, 2, 2, 3, 3]
    drawn = Contexts(numbers=1, flags=[0.5], levels=[[0.5, 0.5]]).layout
    assert drawn.feature.tolist() == features.layout.feature.tolist()
    np.testing.assert_allclose((np.sqrt(12.0) * (0.25 - 0.5) - drawn.middle[1]) / drawn.half[1], -0.5)


def test_odd_values_are_counted():
    counts = np.zeros((3, 3), np.int64)
    for context, _ in CASES:
        count_oddities(FEATURES.encoding, np.array(FEATURES.stored(context)), counts)
    expected = np.zeros((3, 3), np.int64)
    expected[0, UNKNOWN], expected[0, MISSING] = 1, 1
    expected[1, MISSING] = 2
    expected[2, BEYOND], expected[2, MISSING] = 2, 1
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize(
    ("context", "word"),
    [
        ({"contry": "de"}, "did you mean 'country'"),
        ({"country": 3}, "must be text"),
        ({"new": 1}, "True or False"),
        ({"new": "yes"}, "True or False"),
        ({"visits": "3"}, "must be a number"),
        ({"visits": True}, "must be a number"),
        ({"visits": math.inf}, "must be a number"),
        ({"visits": 10**400}, "must be a number"),
        ([1.0], "must be features with their values"),
    ],
)
def test_what_is_refused(context, word):
    with pytest.raises(InputError, match=word):
        FEATURES.stored(context)


@pytest.mark.parametrize(
    "declared",
    [
        {"a": []},
        {"a": ["x", "x"]},
        {"a": (5, 5)},
        {"a": (0, math.inf)},
        {"a": int},
        {"": bool},
        {3: bool},
        ["a"],
        {str(i): bool for i in range(51)},
        {str(i): [f"{j}" for j in range(60)] for i in range(2)},
    ],
)
def test_declarations_that_are_refused(declared):
    with pytest.raises(InputError):
        Features(declared)


def test_written_and_read():
    again = Features(FEATURES.written())
    assert again.kinds == FEATURES.kinds
    assert again.columns == FEATURES.columns
    assert again.read_back(again.stored({"country": "us", "visits": 3})) == {
        "country": "us",
        "new": None,
        "visits": 3.0,
    }
