"""Upper limit on the scans of an engine that a party's part of a run takes, from public numbers.

It does not know engines, or how many tables a scan really counts: small ones are joined, and kept ones not counted.
"""

from math import comb

from protocol.network.workload import largest_choice
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.registry import stage_of
from protocol.tables.any_rows import AT_ONCE

# Of the table to examine and to code it, each after one for values that no comparison can code; and of its codes.
TO_JOIN = 5


def most_scans(terms: Terms, step: Step, me: int, tables: int) -> int:
    """The most scans of one step that counts so many tables; of its codes, which were made at joining."""
    if step.stage == "joining":
        return TO_JOIN
    stage = stage_of(terms, step)
    choices, sets = stage.most_choices(terms, me), stage.sets(terms, tables)
    if choices and terms.plan.picks_pairs:
        sets += sum(comb(terms.domain.count, ways) for ways in range(2, max(2, terms.plan.ways) + 1))
    elif choices:
        sets += choices * largest_choice(terms.domain, terms.limits)
    return -(-sets // AT_ONCE)
