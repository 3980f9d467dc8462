"""The methods by name, and the steps of a run with what each party is charged, from the plan alone.

It does not know tables, messages or noise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from protocol.options import Method
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import MethodDefinition
from protocol.stages.definitions.dp_ccbn import DpCcbn
from protocol.stages.definitions.dp_subn import DpSubn
from protocol.stages.definitions.guided import Guided
from protocol.stages.definitions.independent import Independent
from protocol.stages.definitions.jtree import JTree
from protocol.stages.definitions.privabn import PrivAbn
from protocol.stages.definitions.privbayes import PrivBayes
from protocol.stages.knowledge import Knowledge
from protocol.tables.encoding import Encoding
from protocol.tables.found_edges import counted
from protocol.tables.schema import Schema

METHODS: Mapping[Method, MethodDefinition] = {
    "dp-subn": DpSubn(),
    "guided": Guided(),
    "privbayes": PrivBayes(),
    "privabn": PrivAbn(),
    "jtree": JTree(),
    "dp-ccbn": DpCcbn(),
    "independent": Independent(),
}


def terms_of(plan: Plan, schema: Schema) -> Terms:
    """The terms of a plan, whether or not it can be run (`protocol.run.agreement` refuses plans that cannot)."""
    found = counted(schema, plan.edges)
    encoding = Encoding.of(found, plan.encoding)
    return Terms(plan, found, encoding, steps(plan, encoding.domain.count), schema)


def steps(plan: Plan, variables: int) -> tuple[Step, ...]:
    """All steps of a run over `variables` variables."""
    everybody, method = tuple(range(plan.parties)), METHODS[plan.method]
    found = [Step("joining", "joining", everybody), *method.steps(plan, everybody, variables)]
    assert all(after.stage in method.order[before.stage] for before, after in pairwise(found)), found
    return tuple(_priced(plan, _with_others(plan, found)))


def beginning(terms: Terms, first_variable: int) -> Knowledge:
    """The curator's knowledge before any answer."""
    count = terms.domain.count
    families = METHODS[terms.plan.method].first_families(terms, first_variable)
    return Knowledge(np.zeros((count, count)), families)


def _with_others(plan: Plan, found: Sequence[Step]) -> Iterator[Step]:
    """The steps, each party's first answer with what other parties' own releases cost the persons in its table.

    Privacy: a person with rows at m parties also pays for what m - 1 others release alone, at worst the dearest. This
    party does not see these releases, so they are spent before any answer of its own counts (`people.md`).
    """
    if plan.parties_per_person == 1:
        yield from found
        return
    alone = dict.fromkeys(found[0].parties, Fraction(0))
    for step in found:
        alone = _added(alone, step.spends) if step.is_alone else alone
    waiting = {party: _dearest(plan.parties_per_person - 1, alone, party) for party in alone}
    yield found[0]
    for step in found[1:]:
        first = {party: others for party in step.parties if (others := waiting.pop(party, Fraction(0)))}
        yield replace(step, spends=_added(step.spends, first))


def _added(one: Mapping[int, Fraction], other: Mapping[int, Fraction]) -> dict[int, Fraction]:
    return {party: one.get(party, Fraction(0)) + other.get(party, Fraction(0)) for party in {**one, **other}}


def _dearest(count: int, alone: Mapping[int, Fraction], party: int) -> Fraction:
    """The sum of the largest `count` of what the parties spend alone, `party` left out."""
    others = sorted((spend for other, spend in alone.items() if other != party), reverse=True)
    return sum(others[:count], Fraction(0))


def _priced(plan: Plan, found: Iterable[Step]) -> Iterator[Step]:
    """The steps with their charges.

    Privacy: rho adds up and epsilon(rho) is concave. With zcdp a step is therefore charged the epsilon that it adds
    to all steps before it. A run that ends early has cost the epsilon of the steps that were answered.
    """
    spent = dict.fromkeys(range(plan.parties), Fraction(0))
    for step in found:
        charges, equal = (
            {},
            dict[tuple[Fraction, Fraction], tuple[Fraction, Fraction]](),
        )  # most parties are charged alike
        for party, spend in step.spends.items():
            before, after = spent[party], spent[party] + spend
            if (before, after) not in equal:
                epsilon = _worth(plan, after) - _worth(plan, before)
                equal[before, after] = epsilon, Fraction(0) if before else plan.delta
            charges[party] = equal[before, after]
            spent[party] = after
        yield replace(step, charges=charges)


def _worth(plan: Plan, spent: Fraction) -> Fraction:
    return plan.definition.epsilon_spent(spent, plan.epsilon, plan.delta)
