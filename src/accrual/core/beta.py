"""Beta variates from counter-based uniforms (Cheng, 1978: algorithms BB and BC).

Rejection sampling without state: attempt number n of lane l always reads the same two uniforms,
so a draw is a function of its counters and its two shapes.
"""

from __future__ import annotations

import math

from accrual.core.jit import njit
from accrual.core.random import pair

_LOG4 = math.log(4.0)
_LOG5 = 1.0 + math.log(5.0)
_LARGEST = 700.0  # exp beyond this overflows
SMALLEST = 1e-300  # in place of a uniform of 0, which has no logarithm


@njit
def first_shape(a: float, b: float) -> tuple[float, float]:
    """Return two numbers of the shapes that the first attempt needs.

    Where a shape is at most 1, `beta` goes another way: these then are such that no attempt is accepted.
    """
    low = min(a, b)
    if low <= 1.0:
        return 0.0, math.nan
    slope = math.sqrt((a + b - 2.0) / (2.0 * low * max(a, b) - (a + b)))
    return slope, low + 1.0 / slope


@njit
def first_try(a: float, b: float, slope: float, ratio: float) -> tuple[float, float]:
    """Return the tilt and the odds that `beta` makes of its first uniform u; `ratio` is u / (1 - u)."""
    tilt = min(slope * math.log(ratio), _LARGEST)
    return tilt, min(a, b) * math.exp(tilt)


@njit
def quickly_accepted(a: float, b: float, gamma: float, tilt: float, w: float, z: float) -> bool:
    """Whether `beta` accepts its first attempt without a logarithm; z is its uniforms' u * u * v."""
    return min(a, b) + (gamma * tilt - _LOG4) - w + _LOG5 >= 5.0 * z


@njit
def accepted(a: float, b: float, gamma: float, tilt: float, w: float, z: float) -> bool:
    """Whether `beta` accepts its first attempt where it was not quickly accepted."""
    total = a + b
    fits = gamma * tilt - _LOG4 + total * math.log(total / (total - min(a, b) + w)) >= math.log(
        max(z, SMALLEST)
    )
    return fits & (tilt < _LARGEST)


@njit
def share_of(a: float, b: float, w: float) -> float:
    """Return the draw that has these odds."""
    low = min(a, b)
    share = w / (a + b - low + w)
    return share if low == a else 1.0 - share


@njit
def beta(a: float, b: float, key: tuple[int, int], round_: int, lane: int) -> float:
    """Draw a Beta(a, b) variate for (seed, run) `key`, round and lane."""
    return beta_from(a, b, key, round_, lane, 0)


@njit
def beta_from(a: float, b: float, key: tuple[int, int], round_: int, lane: int, attempt: int) -> float:
    """Draw as `beta` does whose earlier attempts were not accepted."""
    low = min(a, b)
    high = max(a, b)
    total = a + b
    if low > 1.0:
        first = low  # the shape whose odds w / (other + w) is drawn
        slope = math.sqrt((total - 2.0) / (2.0 * low * high - total))
        gamma = low + 1.0 / slope
    else:
        first = high
        slope = 1.0 / low
        delta = 1.0 + high - low
        k1 = delta * (0.0138889 + 0.0416667 * low) / (high * slope - 0.777778)
        k2 = 0.25 + (0.5 + 0.25 / delta) * low
    while True:
        u, v = pair(key, round_, lane, attempt)
        attempt += 1
        if u <= 0.0 or v <= 0.0:
            continue
        z = u * u * v
        tilt = slope * math.log(u / (1.0 - u))
        if tilt > _LARGEST:
            share = 1.0
        else:
            w = first * math.exp(tilt)
            share = w / (total - first + w)
        if low > 1.0:
            r = gamma * tilt - _LOG4
            s = first + r - (w if tilt <= _LARGEST else math.inf)
            accept = s + _LOG5 >= 5.0 * z
            if not accept and tilt <= _LARGEST:
                accept = r + total * math.log(total / (total - first + w)) >= math.log(z)
        elif u < 0.5 and 0.25 * v + z - u * v >= k1:
            accept = False
        elif u >= 0.5 and z <= 0.25:
            accept = True
        elif (u >= 0.5 and z >= k2) or tilt > _LARGEST:
            accept = False
        else:
            w = first * math.exp(tilt)
            accept = total * (math.log(total / (total - first + w)) + tilt) - _LOG4 >= math.log(z)
        if accept:
            return share if first == a else 1.0 - share
