"""Checks that several stages share: of the curator's tasks, and of noisy counts that are sent.

It does not know rows. A task is checked before anything is read. Samplers keep their bounds with certainty, so that
counts with noise have a range.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count
from protocol.network.limits import Limits
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.tables.domain import Merged


def check_tables(terms: Terms, step: Step, task: Count, limits: Limits) -> None:
    """Refuse tables that make no sense. Privacy holds for any tables, because they share the step's budget."""
    check_merged(terms, step, task.merged)
    domain = terms.domain.with_merged(task.merged)
    if len(set(task.tables)) != len(task.tables):
        raise FailedCheck(CURATOR, f"asks for a table twice in {step.name!r}")
    if len(task.tables) > terms.domain.count:
        raise FailedCheck(
            CURATOR, f"asks for {len(task.tables)} tables in {step.name!r}, expected at most {terms.domain.count}"
        )
    for table in task.tables:
        known = all(v < len(domain.variables) for v in table)
        if not known or len({domain.base(v) for v in table}) != len(table) or not table:
            raise FailedCheck(CURATOR, f"asks for a table over {table} in {step.name!r}, which is no set of variables")
        if not limits.admits(domain, table[0], table[1:]):
            raise FailedCheck(CURATOR, f"asks for a table over {table} in {step.name!r}, larger than the plan allows")


def check_merged(terms: Terms, step: Step, merged: Sequence[Merged]) -> None:
    """Refuse merged categories that make no sense. Privacy holds however categories are merged."""
    if merged and not terms.plan.merging:
        refuse_merged(step, merged)
    check_groups(terms, step, merged)


def check_groups(terms: Terms, step: Step, merged: Sequence[Merged]) -> None:
    """Refuse groups of categories that are none."""
    bases = [base for base, _ in merged]
    if bases != sorted(set(bases)) or any(base >= terms.domain.count for base in bases):
        raise FailedCheck(
            CURATOR, f"merges categories of {bases} in {step.name!r}, which is not a rising list of variables"
        )
    for base, groups in merged:
        size = terms.domain.sizes[base]
        if len(groups) != size or set(groups) != set(range(max(groups) + 1)) or not 1 <= max(groups) < size - 1:
            raise FailedCheck(
                CURATOR, f"merges the {size} categories of variable {base} in {step.name!r}, but not into fewer"
            )


def refuse_merged(step: Step, merged: Sequence[Merged]) -> None:
    if merged:
        raise FailedCheck(CURATOR, f"merges categories in {step.name!r}, where the plan merges none")


def refuse_masked(step: Step, task: Count) -> None:
    if task.masked:
        raise FailedCheck(CURATOR, f"names tables to mask in {step.name!r} that cannot be masked")


def check_range(
    terms: Terms, step: Step, culprit: str, layout: Layout, tables: Sequence[NDArray[np.uint64]], more: int = 0
) -> None:
    """Refuse tables that no rows with noise can have; `more` is the largest noise besides the layout's own."""
    for table, rate in zip(tables, layout.rates, strict=True):
        counts, rows, noise = table.view(np.int64), layout.bound, terms.plan.definition.bound(rate) + more
        if counts.size and not -noise <= int(counts.min()) <= int(counts.max()) <= rows + noise:
            raise FailedCheck(culprit, f"sent counts for {step.name!r} that {rows} rows with noise cannot have")
