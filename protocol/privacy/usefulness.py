"""Usefulness: the detail that a budget allows under its noise, computed exactly and from public numbers alone.

It does not know steps (`protocol.plan.schedule`) or how noise is drawn (`protocol.privacy.mechanisms`).
"""

from fractions import Fraction

from protocol.options import FamilyTables
from protocol.privacy.mechanisms import PURE, PrivacyDefinition


def useful_degree(
    rows: int,
    variables: int,
    budget: Fraction,
    theta: Fraction,
    definition: PrivacyDefinition = PURE,
    tables: FamilyTables = "maximal",
) -> int:
    """The largest k whose families of k + 1 binary variables carry theta times more information than noise.

    PrivBayes, Lemma 4.8: n e / ((d - k) 2^(k+2)) >= theta, for Laplace noise. The first k families are parts of the
    next one. Where they are counted as well, d tables share the budget.
    """
    degree = 0
    for k in range(1, variables):
        counted = variables - k if tables == "maximal" else variables
        if definition.useful_cells(rows, counted, budget, theta) >= 2 ** (k + 1):
            degree = k
    return degree


def useful_cells(
    rows: int, variables: int, budget: Fraction, theta: Fraction, definition: PrivacyDefinition = PURE
) -> int:
    """The largest useful number of cells of a family's table, for arbitrary domains (PrivBayes, section 5.2)."""
    return max(1, definition.useful_cells(rows, variables, budget, theta))
