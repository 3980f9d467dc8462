"""Several synthetic tables from one published model: their purpose, and how to combine estimates from them.

It does not know how tables are drawn. The report and the command line share these texts.
"""

PURPOSE = (
    "All copies are drawn from the same published model, so they cost no privacy. They show how much of an estimate is "
    "due to the random drawing of rows."
)
CONDITION = (
    "Condition: the real rows are a simple random sample, n is large, and the relationship in question is in the model "
    "(a modelled pair or family). For anything else T is too small. Rules for multiple imputation take the variance "
    "between copies as uncertainty about parameters. They do not apply here, because all copies come from one model."
)


def rule(rows: int, drawn: int) -> str:
    """Return the formula for copies of `drawn` rows each, from a model of `rows` real rows."""
    return (
        "estimate        q = (q_1 + ... + q_m) / m, with q_i from copy i\n"
        f"its variance    T = (n'/n + 1/m) (v_1 + ... + v_m) / m  +  D, with n = {rows:,} real rows, n' = {drawn:,}\n"
        "                rows in a copy, v_i the usual variance as if copy i were a simple random sample,\n"
        "                and D the variance that the noise of the privacy mechanism adds"
    )
