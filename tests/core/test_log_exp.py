"""The logarithm and the exponential for vectors: right to the last place, and the same bits everywhere."""

import numpy as np
import pytest

from accrual.core.jit.compiler import kernel
from accrual.core.log_exp import vector_exp, vector_log

DRAWS = np.random.default_rng(0)
NUMBERS = np.concatenate([np.exp(DRAWS.uniform(-690, 690, 20_000)), DRAWS.uniform(0.3, 3.0, 20_000), [1.0]])
POWERS = np.concatenate([DRAWS.uniform(-700, 700, 20_000), DRAWS.uniform(-1.0, 1.0, 20_000), [0.0]])


@kernel
def logarithms(numbers, out):
    for i in range(len(numbers)):
        out[i] = vector_log(numbers[i])


@kernel
def exponentials(numbers, out):
    for i in range(len(numbers)):
        out[i] = vector_exp(numbers[i])


@pytest.mark.parametrize(
    ("compiled", "plain", "exact", "numbers"),
    [(logarithms, vector_log, np.log, NUMBERS), (exponentials, vector_exp, np.exp, POWERS)],
    ids=["log", "exp"],
)
def test_within_a_unit_in_the_last_place_and_alike_in_plain_python(compiled, plain, exact, numbers):
    out = np.empty(len(numbers))
    compiled(numbers, out)
    truth = exact(numbers.astype(np.longdouble))
    assert (np.abs(out - truth) <= np.spacing(np.abs(out))).all()
    assert [plain(number) for number in numbers[::40]] == list(out[::40])
