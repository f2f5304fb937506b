"""The laws of a problem, packed for kernels.

The laws of a problem may be of several kinds, each with a function and arrays of its own, and which law a
kernel draws from is known only while it runs. So `pack` joins the arrays of all laws of one kind, and makes
one function that draws from the law of a given number.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Ints
from accrual.core.errors import InputError
from accrual.core.jit import njit, njit_noinline
from accrual.problems.laws import Draw, Law
from accrual.problems.problem import Problem


class LawArrays(NamedTuple):
    """The distinct laws of a problem, as kernels read them."""

    kind: Ints  # laws: the number of its kind
    ends: Ints  # laws x arrays x 2: where the law's part of each array of its kind begins and ends
    params: tuple[
        Any, ...
    ]  # kinds: a tuple of arrays, in each of which the laws of the kind follow each other


class _Kind(NamedTuple):
    """Laws that are drawn by one function."""

    draw: Draw
    params: type  # the named tuple that `draw` takes
    fields: int  # of that tuple


@dataclass(frozen=True)
class PackedLaws:
    """The distinct laws of a problem, and the function that draws from them.

    ``draw(arrays, law, u, pay)`` calls the `Law.draw` of the law of that number.
    """

    draw: Any
    arrays: LawArrays
    of_arm: Ints  # arms: the number of its law
    count: int


def pack(problem: Problem) -> PackedLaws:
    """Pack the laws of `problem`, each distinct law once."""
    distinct: dict[int, Law] = {id(law): law for law in problem.arm_laws}
    number = {key: i for i, key in enumerate(distinct)}
    params = [_params(law, problem.groups) for law in distinct.values()]
    kinds = [
        _Kind(law.draw, type(given), len(given)) for law, given in zip(distinct.values(), params, strict=True)
    ]
    # In the order of their names, so that two problems with the same kinds of laws share their kernels.
    ordered = sorted(set(kinds), key=lambda kind: (kind.draw.__module__, kind.draw.__qualname__))
    ends = np.zeros((len(distinct), max(kind.fields for kind in kinds), 2), np.int64)
    joined = []
    for kind in ordered:
        laws = [i for i, other in enumerate(kinds) if other == kind]
        fields = []
        for f in range(kind.fields):
            array, ends[laws, f] = _join([params[i][f] for i in laws])
            fields.append(array)
        joined.append(kind.params(*fields))
    arrays = LawArrays(np.array([ordered.index(kind) for kind in kinds]), ends, tuple(joined))
    of_arm = np.array([number[id(law)] for law in problem.arm_laws], np.int64)
    return PackedLaws(_drawing(tuple(ordered)), arrays, of_arm, len(distinct))


def pack_each(problems: Sequence[Problem]) -> list[PackedLaws]:
    """Pack the laws of several problems for the same kernels, one law for each arm of each problem."""
    first = problems[0]
    every = [law for problem in problems for law in problem.arm_laws]
    joint = pack(Problem([1.0] * len(every), first.window, first.groups, every))
    arms = len(first.caps)
    each = []
    for at in range(0, len(every), arms):
        own = joint.of_arm[at : at + arms]
        arrays = joint.arrays._replace(kind=joint.arrays.kind[own], ends=joint.arrays.ends[own])
        each.append(PackedLaws(joint.draw, arrays, np.arange(arms), arms))
    return each


def _params(law: Law, groups: int) -> Any:
    """Return a law's parameters, checked to be what kernels can read."""
    params, kind = law.params(groups, 1.0), type(law).__name__
    names = getattr(params, "_fields", ())
    if not names:
        raise InputError(f"the params of {kind} must be a named tuple of arrays, not {params!r}")
    for name, array in zip(names, params, strict=True):
        if not (isinstance(array, np.ndarray) and array.ndim and array.size):
            raise InputError(f"{name} in the params of {kind} must be an array that is not empty")
    return params


def _join(arrays: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], Ints]:
    """Join arrays along their first axis, each object once; return also where each begins and ends."""
    first: dict[int, int] = {}
    parts: list[npt.NDArray[Any]] = []
    size = 0
    for array in arrays:
        if id(array) not in first:
            first[id(array)] = size
            parts.append(array)
            size += len(array)
    begins = np.array([first[id(array)] for array in arrays])
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.ascontiguousarray(joined), np.stack([begins, begins + [len(array) for array in arrays]], axis=1)


@functools.cache
def _drawing(kinds: tuple[_Kind, ...]) -> Any:
    """Make ``draw(arrays, law, u, pay)`` for laws of these kinds."""
    last = len(kinds) - 1
    draw, make, slices = kinds[last].draw, kinds[last].params, _slicing(kinds[last].fields)

    @njit_noinline
    def draw_kind(arrays: LawArrays, law: int, u: Any, pay: Any) -> None:
        draw(make(*slices(arrays.params[last], arrays.ends[law])), u, pay)

    if last == 0:
        return draw_kind
    draw_before = _drawing(kinds[:last])

    @njit
    def draw_any(arrays: LawArrays, law: int, u: Any, pay: Any) -> None:
        if arrays.kind[law] == last:
            draw_kind(arrays, law, u, pay)
        else:
            draw_before(arrays, law, u, pay)

    return draw_any


@functools.cache
def _slicing(fields: int) -> Any:
    """Make ``slices(params, ends)``, which returns one law's part of each array.

    Compiled code can index a tuple only with constants, hence the recursion.
    """
    last = fields - 1

    @njit
    def slice_last(params: Any, ends: Ints) -> Any:
        return (params[last][ends[last, 0] : ends[last, 1]],)

    if last == 0:
        return slice_last
    slices_before = _slicing(last)

    @njit
    def slices(params: Any, ends: Ints) -> Any:
        return slices_before(params, ends) + slice_last(params, ends)

    return slices
