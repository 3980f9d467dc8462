"""Whole runs, as an insider sees them: everything that is released, less its own rows and its own noise.

It does not know how often a run is repeated.

Two parties run in noise mode `distributed`, so that exactly one full share of noise is left when the insider takes out
its own. The score of a run adds up the losses of all its releases, under the laws that the notes state: each table by
the noise that is left in it, each pick by the law of its choice among the candidates that were open at that moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.messages.tasks import Learned, Place, Placed, Reply, Task
from protocol.network.network import Family
from protocol.network.parent_sets import Candidate, candidates
from protocol.picks.by_model import sensitivity, tree_options
from protocol.picks.by_score import family_scores, noise_costs
from protocol.picks.scores import scoring
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.stages.candidates import Candidates
from protocol.stages.definitions import privabn
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.pick_pairs import PickPairs
from protocol.stages.picking import families_of, judge_of
from protocol.stages.registry import stage_of
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema
from tests.audit.picks import laws
from tests.audit.quantity import Quantity
from tests.audit.totals import ONE_ROW, Person, remembered
from tests.support.small_runs import Driver, layout_of, terms_of

INSIDER, ATTACKED = 0, 1
DELTA = Fraction(1, 50)
EPSILON = 3
SLOW = ("guided", "sets of three", "turns")  # a model is fitted before every pick
RUNS, SLOW_RUNS = 10, 4  # of a batch, on each table
SCHEMA = Schema.parse(
    {"attributes": [{"name": name, "kind": "categorical", "values": ["no", "yes"]} for name in "abc"]}
)
# One row moves in every table and in every pick: from a pair that goes together to the other pair.
TABLES = [[(1, 1, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)], [(0, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)]]
TINY = Fraction(1, 10**9)  # of usefulness, so that no family is too large for so few rows
METHODS: dict[str, dict[str, Any]] = {
    "papers": {"preset": "paper", "encoding": "native", "update": "accumulate", "score": "R"},
    "independent": {"method": "independent", "preset": "paper", "score": "I"},
    "privbayes": {"method": "privbayes", "split": (Fraction(3, 2),) * 2, "score": "R"},
    "privabn": {"method": "privabn", "split": (Fraction(3, 2),) * 2, "score": "R"},
    "jtree": {"method": "jtree", "split": (Fraction(3, 2),) * 2},
    "dp-ccbn": {"method": "dp-ccbn", "split": (Fraction(3, 2),) * 2, "score": "R"},
    "guided": {"method": "guided", "split": (Fraction(3, 4),) * 4, "further": (1, 1), "rounds": 1},
    "sets of three": {
        "method": "guided",
        "ways": 3,
        "target": "a",
        "split": (Fraction(3, 4),) * 4,
        "further": (1, 1),
        "rounds": 1,
    },
    "turns": {"update": "turns"},
}


def columns(table: Sequence[Sequence[int]]) -> list[Any]:
    return [np.array(column, dtype=np.uint8) for column in zip(*table, strict=True)]


@dataclass(frozen=True)
class Attack:
    terms: Terms
    person: Person = ONE_ROW  # has so many rows at each of so many parties, from the first after the insider

    @cached_property
    def tables(self) -> list[list[tuple[int, ...]]]:
        """Both tables that each attacked party may hold."""
        return [[table[0]] * self.person.rows + table[1:] for table in TABLES]

    @cached_property
    def rows(self) -> list[Rows]:
        return [Rows(self.terms.domain, self.terms.encoding.encode(columns(table))) for table in self.tables]

    @property
    def attacked(self) -> range:
        return range(ATTACKED, ATTACKED + self.person.parties)

    def score(self, second: bool) -> float:
        """By how much everything that one run releases speaks for the first table."""
        codes = [columns(self.tables[0]), *[columns(self.tables[second])] * self.person.parties]
        run, found = Driver(self.terms, codes, entropy=True), 0.0
        while (step := run.state.step) is not None:
            asked, known = run.tasks(), run.state.knowledge
            with remembered() as drawn:
                replies = {party: run.answer(party, task) for party, task in asked.items()}
            for party, reply in replies.items():
                run.receive(party, reply)
            attacked = [party for party in self.attacked if party in step.parties and step.stage != "joining"]
            found += sum(self.picked(run, step, party, asked[party], replies[party]) for party in attacked)
            tables = self.opened(run, step, known, replies)
            for party in attacked[:1] if drawn else attacked:
                found += self.counted(run, step, party, tables, drawn)
        return found

    # Tables

    def opened(self, run: Driver, step: Step, known: Knowledge, replies: dict[int, Reply]) -> list[Table]:
        """The tables that the curator has after this step, also those that it compares and does not keep."""
        if step.stage == "candidates":
            stage, taken = Candidates(), dict[int, Reply]()
            for party, reply in replies.items():
                taken = stage.with_reply(taken, party, reply, run.opening)
            return stage.opened(self.terms, step, known, taken, run.opening)
        return [one.table for one in run.state.knowledge.released[len(known.released) :]]

    def counted(self, run: Driver, step: Step, party: int, tables: Sequence[Table], drawn: Sequence[Vector]) -> float:
        """The loss of the tables of one step; in a pass without the insider's rows and noise."""
        if step.stage == "models":
            tables = run.state.knowledge.models[party].tables
        known = run.state.knowledge
        is_halved = any(one.is_halved for one in known.released if one.step == step.name)
        merged = known.halves if is_halved else known.merged
        layout = layout_of(self.terms, step, [table.variables for table in tables], self.terms.plan.total_rows, merged)
        own = layout.split(drawn[INSIDER]) if drawn else [np.zeros(cells, dtype=np.int64) for cells in layout.cells]
        domain, found = self.terms.domain.with_merged(merged), 0.0
        for table, noise, rate in zip(tables, own, layout.rates, strict=True):
            one, other = (rows.over(domain).table(table.variables).ravel() for rows in self.rows)
            seen = table.counts.ravel() - noise - (one if drawn else 0)  # the insider holds the first table itself
            times = self.person.parties if drawn else 1
            found += self.loss(seen - times * one, seen - times * other, float(rate))
        return found

    def loss(self, one: NDArray[np.int64], other: NDArray[np.int64], rate: float) -> float:
        """The logarithm of how much likelier the noise `one` is than the noise `other`."""
        if self.terms.plan.privacy == "pure":
            return rate * float((np.abs(other) - np.abs(one)).sum())
        return rate / 2 * float((other**2 - one**2).sum())

    # Picks

    def picked(self, run: Driver, step: Step, party: int, task: Task, reply: Reply) -> float:
        if not isinstance(reply, Placed | Learned):
            return 0.0
        found = [Family(child, parents) for child, parents in reply.families]
        before = families_of(task) if isinstance(task, Place) else []
        blind = 0 if before else 1
        plan = self.terms.plan
        if step.stage == "growth":
            return sum(
                self.grown(step, [*before, *found[:place]], family)
                for place, family in enumerate(found)
                if before or place
            )
        budget = plan.alone(plan.split[0]) if step.stage == "models" else step.budget
        epsilon = plan.definition.choice_epsilon(budget / max(1, len(found) - blind), plan.choice)
        return sum(
            self.choice(run.parties[party], step, task, [*before, *found[:place]], family, float(epsilon))
            for place, family in enumerate(found)
            if before or place
        )

    def choice(
        self, state: PartyState | None, step: Step, task: Task, before: Sequence[Family], family: Family, epsilon: float
    ) -> float:
        """The loss of one pick among the candidates that were open at that moment."""
        if self.terms.plan.picks_pairs:
            assert isinstance(task, Place)
            assert state is not None
            options = self.options(step, task, before)
            judges = [judge_of(state, step, task, rows) for rows in self.rows]
            scores = np.array([judge.scores(options) for judge in judges])
            most = Fraction(sensitivity(self.rows[0].count))
            place = [tuple(sorted(option)) for option in options].index(tuple(sorted(family.variables)))
        else:
            limits = self.terms.local_limits(ATTACKED) if step.stage == "models" else self.terms.limits
            placed = [one.child for one in before]
            outside = [v for v in range(self.terms.domain.count) if v not in placed]
            families = candidates(self.terms.domain, placed, outside, limits)
            rule = scoring(self.terms.plan.score, self.rows[0].count, self.terms.domain)
            scores = np.array([family_scores(rows, families, rule) for rows in self.rows])
            most, place = rule.sensitivity, families.index((family.child, family.parents))
        one, other = laws(scores, epsilon / (2 * float(most)), self.terms.plan.choice)[:, place]
        return float(np.log(one) - np.log(other))

    def grown(self, step: Step, before: Sequence[Family], family: Family) -> float:
        """The loss of a family that grew by private choices, of which the order is not released."""
        placed, plan = [one.child for one in before], self.terms.plan
        epsilon = plan.definition.choice_epsilon(step.budget / privabn.most_choices(self.terms, ATTACKED), plan.choice)
        most = min(len(placed), self.terms.limits.most_parents(self.terms.domain.sizes))
        one, other = self.ways_to(placed, (family.child, family.parents), None, float(epsilon), most)
        return float(np.log(one) - np.log(other))

    def ways_to(
        self, placed: Sequence[int], wanted: Candidate, now: Candidate | None, epsilon: float, left: int
    ) -> NDArray[np.float64]:
        """The chance of this family on each table, summed over the orders in which its parents may have come."""
        if not left:
            return np.full(2, float(now == wanted))
        options = privabn.options(self.terms, placed, now)
        rule = scoring(self.terms.plan.score, self.rows[0].count, self.terms.domain)
        costs = noise_costs(self.terms.domain, options, rule, privabn.noise_of_cell(self.terms))
        scores = np.array([family_scores(rows, options, rule) - costs for rows in self.rows])
        chances = laws(scores, epsilon / (2 * float(rule.sensitivity)), self.terms.plan.choice)
        found = np.zeros(2)
        for place, option in enumerate(options):
            if option == now or not option[1]:
                found += chances[:, place] * float(option == wanted)
            elif option[0] == wanted[0] and set(option[1]) <= set(wanted[1]):
                found += chances[:, place] * self.ways_to(placed, wanted, option, epsilon, left - 1)
        return found

    def options(self, step: Step, task: Place, before: Sequence[Family]) -> Sequence[Variables]:
        if step.stage == "initial":
            return tree_options(self.terms.domain.count, [family.child for family in before])
        stage = stage_of(self.terms, step)
        assert isinstance(stage, PickPairs)
        return stage.options(self.terms, step, task, self.rows[0].count)(before[len(families_of(task)) :])


def whole_run(method: str, privacy: str, person: Person = ONE_ROW) -> Quantity:
    options = {"delta": DELTA} if privacy == "zcdp" else {}
    rows = [len(TABLES[0]) - 1 + person.rows] * (1 + person.parties)
    wishes = {"noise": "distributed", "privacy": privacy, "theta": TINY, "frontier_theta": TINY}
    wishes |= {"rows_per_person": person.rows, "parties_per_person": person.parties}
    wishes |= {"insiders": 1} if person.parties > 1 else {}
    terms = terms_of(SCHEMA, rows, EPSILON, **(METHODS[method] | wishes | options))
    attack, runs = Attack(terms, person), SLOW_RUNS if method in SLOW else RUNS
    return Quantity(
        terms.price(ATTACKED),
        terms.delta(ATTACKED),
        lambda second: np.array([attack.score(second) for _ in range(runs)]),
    )
