"""Prints the coefficients of the functions in src/native/llvm: polynomials whose largest error, weighted as
it reaches the result, is the least. Needs mpmath, which comes with torch."""

import math

from mpmath import atanh, cos, erf, erfc, exp, floor, linspace, log, log1p, lu_solve, matrix, mp, mpf
from mpmath import pi, sin, sqrt, tanh

mp.dps = 400
POINTS = 1200

half_ln2 = log(2) / 2
root = sqrt(mpf(2))


def complement(x):
    return -log(erfc(x))


def series(function, scale):
    """`function` near 0, where its formula loses its digits, is taken a little beside 0."""

    def evaluated(x):
        x = x if abs(x) > mpf(10) ** -12 else mpf(10) ** -12
        return function(x) / scale(x)

    return evaluated


# name, coefficients, from, to, the polynomial's variable, what it is to be, how its error reaches the result
FITS = [
    ("exponential.cpp tail_f32", 5, -half_ln2, half_ln2, lambda x: x,
     series(lambda x: exp(x) - 1 - x, lambda x: x**2), lambda x: x**2 * exp(-x)),
    ("exponential.cpp tail_f64", 11, -half_ln2, half_ln2, lambda x: x,
     series(lambda x: exp(x) - 1 - x, lambda x: x**2), lambda x: x**2 * exp(-x)),
    ("hyperbolic.cpp tanh_f32", 6, mpf(0), mpf("0.625"), lambda x: x**2,
     series(lambda x: tanh(x) - x, lambda x: x**3), lambda x: x**2),
    ("hyperbolic.cpp erf_f32", 8, mpf(0), mpf(1), lambda x: x**2,
     series(lambda x: erf(x) - x, lambda x: x), lambda x: 1 / (1 + x**2 / 3)),
    ("hyperbolic.cpp erf_f64", 15, mpf(0), mpf(1), lambda x: x**2,
     series(lambda x: erf(x) - x, lambda x: x), lambda x: 1 / (1 + x**2 / 3)),
    ("hyperbolic.cpp complement_f32", 9, mpf(1), mpf(4), lambda x: x - 1, complement, erfc),
    ("hyperbolic.cpp complement_f64", 18, mpf(1), mpf(6), lambda x: x - 1, complement, erfc),
    ("logarithm.cpp cubic_f32", 10, 1 / root - 1, root - 1, lambda x: x,
     series(lambda x: log1p(x) - x + x**2 / 2, lambda x: x**3), lambda x: x**2),
    ("logarithm.cpp atanh_f64", 7, mpf(0), (root - 1) / (root + 1), lambda x: x**2,
     series(lambda x: 2 * atanh(x) - 2 * x, lambda x: x**3), lambda x: x**2),
    ("trigonometric.cpp sin_f32", 4, mpf(0), pi / 4, lambda x: x**2,
     series(lambda x: sin(x) - x, lambda x: x**3), lambda x: x**2),
    ("trigonometric.cpp sin_f64", 7, mpf(0), pi / 4, lambda x: x**2,
     series(lambda x: sin(x) - x, lambda x: x**3), lambda x: x**2),
    ("trigonometric.cpp cos_f32", 4, mpf(0), pi / 4, lambda x: x**2,
     series(lambda x: cos(x) - 1 + x**2 / 2, lambda x: x**4), lambda x: x**4),
    ("trigonometric.cpp cos_f64", 7, mpf(0), pi / 4, lambda x: x**2,
     series(lambda x: cos(x) - 1 + x**2 / 2, lambda x: x**4), lambda x: x**4),
]  # fmt: skip


def grid(begin, end):
    """Denser towards the ends, as the places of the largest errors are."""
    middle, half = (begin + end) / 2, (end - begin) / 2
    return [middle - half * cos(pi * (i + mpf("0.5")) / POINTS) for i in range(POINTS)]


def value(coefficients, x):
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def through(points, count):
    """Coefficients whose weighted errors at count + 1 points are equal in size and of alternating signs."""
    system, wanted = matrix(count + 1, count + 1), matrix(count + 1, 1)
    for i, (place, target, weight) in enumerate(points):
        for power in range(count):
            system[i, power] = place**power
        system[i, count] = (-1) ** i / weight
        wanted[i] = target
    return list(lu_solve(system, wanted))[:count]


def extremes(errors, count):
    """The largest error between each two changes of sign; of too many, the largest neighbours."""
    best = [0]
    for i in range(1, len(errors)):
        if (errors[i] > 0) == (errors[best[-1]] > 0):
            best[-1] = max(best[-1], i, key=lambda j: abs(errors[j]))
        else:
            best.append(i)
    while len(best) > count:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    return best


def fit(count, begin, end, variable, target, weight):
    samples = [(variable(x), target(x), abs(weight(x))) for x in grid(begin, end)]
    chosen = [samples[int(i)] for i in linspace(0, POINTS - 1, count + 1)]
    for _ in range(12):
        coefficients = through(chosen, count)
        errors = [(value(coefficients, place) - goal) * w for place, goal, w in samples]
        places = extremes(errors, count + 1)
        if len(places) <= count:
            break
        chosen = [samples[i] for i in places]
    return coefficients, max(abs(error) for error in errors)


def tanh_ratio(terms):
    """tanh x = x - x z P / (Q + z P) with z = x^2 and Q / P the continued fraction 3 + z / (5 + ...), cut off
    after so many terms; P and Q begin with their constant coefficients."""
    above, below = [2 * terms + 1], [1]
    for odd in range(2 * terms - 1, 1, -2):
        longer = [0, *below] + [0] * (len(above) - len(below) - 1)
        above, below = [odd * a + b for a, b in zip(above + [0], longer + [0])], above
        while above[-1] == 0:
            above.pop()
    return below, above


def pieces_of_two_by_pi(count):
    """Of 53 bits each, times 2^200: the last ones would be too small."""
    rest, pieces = 2 / pi, []
    for i in range(count):
        bits = 53 * (i + 1)
        piece = int(floor(rest * mpf(2) ** bits))
        pieces.append(math.ldexp(piece, 200 - bits))
        rest -= mpf(piece) / mpf(2) ** bits
    return pieces


def half_pi_parts():
    parts, rest = [], pi / 2
    for _ in range(3):
        parts.append(float(rest))
        rest -= parts[-1]
    return ", ".join(part.hex() for part in parts)


if __name__ == "__main__":
    print("hyperbolic.cpp tanh_below and tanh_above:", *tanh_ratio(8))
    print("trigonometric.cpp two_by_pi:", ", ".join(piece.hex() for piece in pieces_of_two_by_pi(22)))
    print("trigonometric.cpp half_pi:", half_pi_parts())
    mp.dps = 60
    for name, *rows in FITS:
        coefficients, error = fit(*rows)
        print(f"{name}: off by {float(error):.2g}")
        print("    " + ", ".join(f"{float(c):.17g}" for c in coefficients))
