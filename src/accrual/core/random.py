"""Counter-based random numbers: a draw is a function of (seed, run, round, lane), nothing else.

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). There is no
state to carry, so a result cannot depend on threads, order, chunks or a restart.
"""

from __future__ import annotations

import math

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.jit import njit
from accrual.core.log_exp import vector_exp, vector_log

Word = np.uint64

SEED_MOST = 2**63 - 1
RUN_MOST = 2**31 - 1
ROUND_MOST = 2**31 - 1

# The last word of the counter: with it, a policy's own draws are never those of the rewards.
REWARDS = 0
POLICY = 1  # and upwards: one for each attempt of a rejection sampler
FLOOR = 2**31  # far beyond any of these attempts: whether a decision is given to an arm at random
ALARM = FLOOR + 1  # breaks ties among totals where alarms watch whether totals change

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_11 = np.uint64(11)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_UNIT = 1.0 / 9007199254740992.0  # 2**-53
_TURN = 2.0 * math.pi


@njit
def philox(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> tuple[Word, Word, Word, Word]:
    """Compute one Philox4x32-10 block: four words of counter and two of key, each a uint64 below 2**32."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0 = (p1 >> _32) ^ c1 ^ k0
        c1 = p1 & _LOW
        c2 = (p0 >> _32) ^ c3 ^ k1
        c3 = p0 & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@njit
def _unit(high: Word, low: Word) -> float:
    """Make a double in [0, 1) with 53 random bits from two 32-bit words."""
    return float(((high << _32) | low) >> _11) * _UNIT


@njit
def uniforms(seed: int, run: int, round_: int, stream: int, out: Floats) -> None:
    """Fill `out` (of even length) with uniforms on [0, 1); ``out[lane]`` depends on lane alone."""
    k0 = np.uint64(seed) & _LOW
    k1 = np.uint64(seed) >> _32
    t = np.uint64(round_)
    r = np.uint64(run)
    s = np.uint64(stream)
    for block in range(out.shape[0] // 2):
        number = np.uint64(block)
        a, b, c, d = philox(t, r, number, s, k0, k1)
        # Unsigned: numba then drops its tests for indices below 0.
        out[_TWO * number] = _unit(a, b)
        out[_TWO * number + _ONE] = _unit(c, d)


@njit
def pair(key: tuple[int, int], round_: int, lane: int, attempt: int) -> tuple[float, float]:
    """Draw two uniforms of the policies' own stream for (seed, run) `key`; any lane, any attempt."""
    seed, run = key
    a, b, c, d = philox(
        np.uint64(round_),
        np.uint64(run),
        np.uint64(lane),
        np.uint64(POLICY + attempt),
        np.uint64(seed) & _LOW,
        np.uint64(seed) >> _32,
    )
    return _unit(a, b), _unit(c, d)


@njit
def normal(key: tuple[int, int], round_: int, lane: int) -> float:
    """Draw from the standard normal law, for (seed, run) `key`, round and lane (Box and Muller, 1958)."""
    u, v = pair(key, round_, lane, 0)
    return math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(_TURN * v)


@njit
def coin(seed: int, run: int, round_: int, stream: int) -> float:
    """Return the one uniform on [0, 1) that a stream has for a round."""
    a, b, _, _ = philox(
        np.uint64(round_),
        np.uint64(run),
        np.uint64(0),
        np.uint64(stream),
        np.uint64(seed) & _LOW,
        np.uint64(seed) >> _32,
    )
    return _unit(a, b)


@njit
def floor_coin(seed: int, run: int, round_: int) -> float:
    """Return the uniform on [0, 1) that decides whether the floor chooses the arm of a round."""
    return coin(seed, run, round_, FLOOR)


def draw(seed: int, run: int, round_: int, lanes: int, stream: int = REWARDS) -> Floats:
    """Draw the first `lanes` uniforms of one round.

    Examples
    --------
    >>> draw(seed=0, run=3, round_=7, lanes=2)
    array([0.08092139, 0.55012448])
    """
    out = np.empty(lanes + lanes % 2)
    uniforms(seed, run, round_, stream, out)
    return out[:lanes]


# Beta variates from counter-based uniforms (Cheng, 1978: algorithms BB and BC), by rejection sampling without
# state: attempt n of lane l always reads the same two uniforms, so a draw is a function of its counters and
# its two shapes. Where both shapes are above 1 (BB), an attempt has no branches: a loop over arms makes one
# for each arm, many at once.
_LOG4 = math.log(4.0)
_LARGEST = 700.0  # exp beyond this overflows
_SMALLEST = 1e-300  # instead of a uniform of 0, which has no logarithm


@njit
def proposal(a: float, b: float) -> tuple[float, float]:
    """Return the two numbers that an attempt needs, from the shapes.

    If a shape is at most 1, `beta` uses another algorithm; with these two numbers no attempt is then
    accepted.
    """
    low = min(a, b)
    if low <= 1.0:
        return 0.0, math.nan
    slope = math.sqrt((a + b - 2.0) / (2.0 * low * max(a, b) - (a + b)))  # at most 1
    return slope, low + 1.0 / slope


@njit
def proposed(a: float, b: float, slope: float, u: float) -> tuple[float, float]:
    """Return the tilt and the odds that an attempt makes of its first uniform."""
    tilt = slope * vector_log(max(u, _SMALLEST) / (1.0 - u))
    return tilt, min(a, b) * vector_exp(tilt)


@njit
def accepted(a: float, b: float, gamma: float, tilt: float, odds: float, z: float) -> float:
    """Return an attempt's draw, or -1 if it is not accepted; z is u * u * v of its uniforms."""
    low, total = min(a, b), a + b
    rest = total - low + odds
    share = odds / rest
    share = share if low == a else 1.0 - share
    fits = gamma * tilt - _LOG4 + total * vector_log(total / rest) >= vector_log(max(z, _SMALLEST))
    return share if fits else -1.0


@njit
def beta(a: float, b: float, key: tuple[int, int], round_: int, lane: int) -> float:
    """Draw a Beta(a, b) variate for (seed, run) `key`, round and lane."""
    return beta_from(a, b, key, round_, lane, 0)


@njit
def beta_from(a: float, b: float, key: tuple[int, int], round_: int, lane: int, attempt: int) -> float:
    """Continue `beta` from this attempt, when the earlier ones were not accepted."""
    if min(a, b) <= 1.0:
        return _small_beta(a, b, key, round_, lane)
    slope, gamma = proposal(a, b)
    draw = -1.0
    while draw < 0.0:
        u, v = pair(key, round_, lane, attempt)
        attempt += 1
        tilt, odds = proposed(a, b, slope, u)
        draw = accepted(a, b, gamma, tilt, odds, u * u * v)
    return draw


@njit
def _small_beta(a: float, b: float, key: tuple[int, int], round_: int, lane: int) -> float:
    """Draw a Beta(a, b) variate, one of whose shapes is at most 1."""
    low = min(a, b)
    high = max(a, b)
    total = a + b
    slope = 1.0 / low
    delta = 1.0 + high - low
    k1 = delta * (0.0138889 + 0.0416667 * low) / (high * slope - 0.777778)
    k2 = 0.25 + (0.5 + 0.25 / delta) * low
    attempt = 0
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
            w = high * math.exp(tilt)
            share = w / (total - high + w)
        if u < 0.5 and 0.25 * v + z - u * v >= k1:
            accept = False
        elif u >= 0.5 and z <= 0.25:
            accept = True
        elif (u >= 0.5 and z >= k2) or tilt > _LARGEST:
            accept = False
        else:
            accept = total * (math.log(total / (total - high + w)) + tilt) - _LOG4 >= math.log(z)
        if accept:
            return share if high == a else 1.0 - share
