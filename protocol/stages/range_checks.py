"""Checks that noisy counts lie where counts with noise can lie: samplers keep their bounds with certainty.

It does not know how the counts were made or sent.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.errors import FailedCheck
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout


def check_range(
    terms: Terms, step: Step, culprit: str, layout: Layout, tables: Sequence[NDArray[np.uint64]], more: int = 0
) -> None:
    """Refuse tables that no rows with noise can have; `more` is the largest noise besides the layout's own."""
    for table, rate in zip(tables, layout.rates, strict=True):
        counts, rows, noise = table.view(np.int64), layout.bound, terms.plan.definition.bound(rate) + more
        if counts.size and not -noise <= int(counts.min()) <= int(counts.max()) <= rows + noise:
            raise FailedCheck(culprit, f"sent counts for {step.name!r} that {rows} rows with noise cannot have")
