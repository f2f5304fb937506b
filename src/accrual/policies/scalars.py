"""Functions of numbers that several policies share: turns, Bernoulli divergence, Bernoulli counts.

A KL index is made for Bernoulli rewards, whose variance m (1 - m) is the largest that a reward on
[0, 1] with mean m can have. A total that is a sum of many pieces varies far less. Its n decisions
then say as much about the mean as n m (1 - m) / v Bernoulli ones would, and that number (`nB` in
the text) stands in for the count. Replacing the count so is a heuristic: it trusts an estimated
variance.
"""

from __future__ import annotations

import math

from accrual.core.jit import njit

TURN = 1e280  # an index of at least this means that nothing is known about the arm


@njit
def in_turn(pulls: int) -> float:
    """Return the index of an arm about which nothing is known: the fewest decisions come first.

    It is above the index of every arm about which something is known, for caps below `TURN`. It differs
    between `pulls` and `pulls` + 1 for any number of decisions below 1e15: if rounding made arms tie, the
    first of them would take decisions in blocks.
    """
    return 1e300 / (1.0 + pulls)


@njit
def kl(p: float, q: float) -> float:
    """Return the divergence of Bernoulli(q) from Bernoulli(p), p and q in [0, 1]."""
    value = 0.0
    if p > 0.0:
        if q <= 0.0:
            return math.inf
        value += p * math.log(p / q)
    if p < 1.0:
        if q >= 1.0:
            return math.inf
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return max(value, 0.0)


@njit
def kl_upper(p: float, level: float) -> float:
    """Return the largest q in [p, 1] with kl(p, q) <= level.

    kl is convex in q, so Newton's method from a point above the root comes down to it without
    overshooting. Two bounds give that point: Pinsker's, and one that is good near 1.
    """
    if p >= 1.0 or level <= 0.0:
        return min(p, 1.0)
    entropy = -(1.0 - p) * math.log(1.0 - p)
    if p > 0.0:
        entropy -= p * math.log(p)
    q = min(p + math.sqrt(level / 2.0), 1.0 - math.exp(-(level + entropy) / (1.0 - p)))
    if q <= p or q >= 1.0:
        return min(max(q, p), 1.0)
    for _ in range(20):
        step = (kl(p, q) - level) * q * (1.0 - q) / (q - p)
        q = max(q - step, p)
        if step <= 1e-13 * q or q <= p:
            break
    return q


@njit
def regularised(n: float, mean: float, second: float, k0: float, top: float) -> tuple[float, float]:
    """Return mean and variance after `k0` more decisions, half of them 0 and half of them `top`."""
    m = (n * mean + 0.5 * k0 * top) / (n + k0)
    return m, (n * second + 0.5 * k0 * top * top) / (n + k0) - m * m


@njit
def bernoulli_count(n: float, mean: float, variance: float) -> float:
    """Return how many Bernoulli decisions `n` decisions of this mean and variance are worth, at least n."""
    return n * max(1.0, mean * (1.0 - mean) / variance)
