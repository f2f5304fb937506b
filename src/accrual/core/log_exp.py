"""A logarithm and an exponential that a compiler can vectorise.

`math.log` and `math.exp` are calls of a library, one number at a time. These two are a few operations each,
so a loop over arms computes several numbers at once. They are right to within a unit in the last place, and
have the same bits in plain Python. Algorithms and coefficients are those of fdlibm (Sun Microsystems, 1993).
"""

from __future__ import annotations

import numpy as np

from accrual.core.jit import njit

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # add up to log(2)
_INVERSE_LN2 = 1.44269504088896338700e00
_MANTISSA = 52  # bits
_MANTISSA_MASK = (1 << _MANTISSA) - 1
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of the square root of 1/2
_ONE = 0x3FF0000000000000  # the bits of 1.0
_ROUNDING = 1.5 * 2.0**52  # added to a number, it leaves the nearest integer in the lowest bits


@njit
def vector_log(x: float) -> float:
    """Return the natural logarithm of a positive number that is neither subnormal nor infinite.

    Examples
    --------
    >>> float(vector_log(10.0))
    2.302585092994046
    """
    bits = np.float64(x).view(np.int64) + (_ONE - _ROOT_HALF)
    k = float((bits >> _MANTISSA) - 1023)  # x = 2^k (1 + f), with 1 + f from the root of 1/2 to that of 2
    f = np.int64((bits & _MANTISSA_MASK) + _ROOT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * odd))
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + (even + odd)) + k * _LN2_LOW)) - f)


@njit
def vector_exp(x: float) -> float:
    """Return e to the power of a number from -708 to 709.

    Examples
    --------
    >>> float(vector_exp(2.0))
    7.38905609893065
    """
    rounded = x * _INVERSE_LN2 + _ROUNDING
    k = rounded - _ROUNDING
    high = x - k * _LN2_HIGH
    low = k * _LN2_LOW
    r = high - low
    z = r * r
    p = 6.61375632143793436117e-05 + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08)
    c = r - z * (1.66666666666666019037e-01 + z * (-2.77777777770155933842e-03 + z * p))
    near_one = 1.0 - ((low - r * c / (2.0 - c)) - high)
    power = np.float64(rounded).view(np.int64) << _MANTISSA
    return np.int64(np.float64(near_one).view(np.int64) + power).view(np.float64)
