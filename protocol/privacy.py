"""What a table costs, and how much noise and detail a budget allows: exact, and from public numbers alone.

It does not know phases (`schedule`) or how noise is drawn (`crypto.noise`).
"""

from fractions import Fraction

# Privacy: bounded neighbours. Changing one row's values takes one count down and another up (SPEC section 1).
SENSITIVITY = 2


def noise_rate(epsilon: Fraction) -> Fraction:
    """The alpha of the discrete Laplace noise, P(x) ~ exp(-alpha |x|), that makes one table epsilon-private."""
    return epsilon / SENSITIVITY


def useful_degree(rows: int, variables: int, epsilon: Fraction, theta: Fraction) -> int:
    """The largest k whose families of k + 1 binary variables carry theta times more information than noise.

    PrivBayes, Lemma 4.8: n e / ((d - k) 2^(k+2)) >= theta.
    """
    degree = 0
    for k in range(1, variables):
        if rows * epsilon >= theta * (variables - k) * 2 ** (k + 2):
            degree = k
    return degree


def useful_cells(rows: int, variables: int, epsilon: Fraction, theta: Fraction) -> int:
    """The same for arbitrary domains (PrivBayes, section 5.2): the largest number of cells of a family's table."""
    return max(1, int(rows * epsilon / (2 * variables * theta)))
