"""Several synthetic tables from one published model: what they are for, and how estimates from them are combined.

It does not know how tables are drawn. One wording for the report and the command line.
"""

PURPOSE = (
    "All copies are drawn from the same published model, so they cost no privacy. They tell how much of an estimate is "
    "chance of drawing."
)
CONDITION = (
    "Condition: the real rows are a simple random sample, n is large, and the relationship in question is in the model "
    "(a modelled pair or family); for anything else T is too small. Rules for multiple imputation that take the "
    "variance between copies for unknown parameters do not apply: all copies come from one model."
)


def rule(rows: int, drawn: int) -> str:
    """The formula, for copies of `drawn` rows of a model of `rows` real ones."""
    return (
        "estimate        q = (q_1 + ... + q_m) / m, with q_i from copy i\n"
        f"its variance    T = (n'/n + 1/m) (v_1 + ... + v_m) / m  +  D, with n = {rows:,} real rows, n' = {drawn:,}\n"
        "                rows in a copy, v_i the usual variance as if copy i were a simple random sample,\n"
        "                and D the variance that the noise of the privacy mechanism adds"
    )
