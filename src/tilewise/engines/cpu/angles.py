"""
Arcus tangent and hypotenuse, branch-free, so that LLVM vectorises them.

arctan is Moshier's Cephes (atanf.c, atan.c): the argument is brought below
tan(pi/8) or 0.66 by arctan(x) = pi/2 - arctan(1/x) and pi/4 + arctan((x-1)/(x+1)).
hypot squares in float64, or scales by the larger operand. Errors, from tests against
longdouble on 400,000 arguments: at most 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__: list[str] = []

f4, f8 = np.float32, np.float64
inf = math.inf


def arctan_f4(x: Any) -> Any:
    """Return the angle between -pi/2 and pi/2."""
    a = abs(x)
    far, middle = a > f4(2.414213562373095), a > f4(0.4142135623730950)
    y = f4(1.5707963267948966) if far else f4(0.7853981633974483)
    more = f4(-4.371139000186241e-8) if far else f4(-2.1855695000931204e-8)
    y, more = (y, more) if middle else (f4(0.0), f4(0.0))
    r = f4(-1.0) / a if far else (a - f4(1.0)) / (a + f4(1.0))
    r = r if middle else a
    z = r * r
    p = f4(8.05374449538e-2) * z - f4(1.38776856032e-1)
    p = p * z + f4(1.99777106478e-1)
    p = p * z - f4(3.33329491539e-1)
    y = y + ((p * z * r + more) + r)
    return x if x == f4(0.0) else (-y if x < f4(0.0) else y)


def arctan_f8(x: Any) -> Any:
    """Return the angle between -pi/2 and pi/2; see `arctan_f4`."""
    a = abs(x)
    far, middle = a > f8(2.41421356237309504880), a > f8(0.66)
    y = f8(1.5707963267948966) if far else f8(0.7853981633974483)
    more = f8(6.123233995736765886130e-17) if far else f8(3.061616997868382943065e-17)
    y, more = (y, more) if middle else (f8(0.0), f8(0.0))
    r = f8(-1.0) / a if far else (a - f8(1.0)) / (a + f8(1.0))
    r = r if middle else a
    z = r * r
    p = f8(-8.750608600031904122785e-1) * z - f8(1.615753718733365076637e1)
    p = p * z - f8(7.500855792314704667340e1)
    p = p * z - f8(1.228866684490136173410e2)
    p = p * z - f8(6.485021904942025371773e1)
    q = z + f8(2.485846490142306297962e1)
    q = q * z + f8(1.650270098316988542046e2)
    q = q * z + f8(4.328810604912902668951e2)
    q = q * z + f8(4.853903996359136964868e2)
    q = q * z + f8(1.945506571482613964425e2)
    y = y + ((r * (z * (p / q)) + more) + r)
    return x if x == f8(0.0) else (-y if x < f8(0.0) else y)


def hypot_f4(x: Any, y: Any) -> Any:
    """Return the root of the sum of squares; infinite where one operand is."""
    a, b = f8(x), f8(y)
    r = f4(np.sqrt(a * a + b * b))
    return f4(inf) if abs(x) == f4(inf) or abs(y) == f4(inf) else r


def hypot_f8(x: Any, y: Any) -> Any:
    """Return the root of the sum of squares, without overflow; see `hypot_f4`."""
    a, b = abs(x), abs(y)
    high, low = (b, a) if b > a else (a, b)
    t = low / high
    r = high * np.sqrt(f8(1.0) + t * t)
    r = a + b if high == f8(0.0) else r
    return f8(inf) if a == f8(inf) or b == f8(inf) else r
