"""Upper limit on the scans of an engine that a party's part of a run takes, from public numbers.

Left out are scans that fetch the values of columns whose types no comparison can code: one before each of the two
readings of the table.

It does not know engines, or how many tables a scan really counts: small ones are joined, and kept ones not counted.
"""

from math import comb

from protocol.network.workload import largest_choice
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.registry import stage_of
from protocol.tables.any_rows import AT_ONCE

TO_JOIN = 3  # two of the table, to examine and to code it, and one of its codes


def most_scans(terms: Terms, step: Step, me: int, tables: int) -> int:
    """The most scans of one step that counts so many tables; of its codes, which were made at joining."""
    if step.stage == "joining":
        return TO_JOIN
    choices, sets = stage_of(terms, step).most_choices(terms, me), tables
    if choices and terms.plan.picks_pairs:
        sets += sum(comb(terms.domain.count, ways) for ways in range(2, max(2, terms.plan.ways) + 1))
    elif choices:
        sets += choices * largest_choice(terms.domain, terms.limits)
    return -(-sets // AT_ONCE)
