"""The interface of a stage: everything that a kind of step needs, from its noise to its conclusion.

It does not know which stages there are (`protocol.stages.registry`) or in which order they come
(`protocol.stages.methods`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from crypto.randomness import Stream
from protocol.exact import allocate
from protocol.messages.tasks import Reply, Task
from protocol.plan.plan import Plan
from protocol.plan.step import StageName, Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Domain, Merged, Variables


@dataclass(frozen=True)
class Size:
    """Upper limits on the tables and cells of a step, for tables that depend on the network."""

    tables: int = 0
    cells: int = 0


class Stage(ABC):
    name: StageName
    label: ClassVar[str]  # for people
    reply: type[Reply]
    task: type[Task]
    is_sum: bool = False  # every party answers, and the curator learns only the total
    takes_from_frontier: ClassVar[bool] = False  # whether its pairs come out of `Knowledge.frontier`

    # Public numbers, known before the run begins

    def noise_rates(self, terms: Terms, step: Step, cells: Sequence[int]) -> tuple[Fraction, ...]:
        """Noise rate of each table of the step, given the tables' cells; their shares add up exactly to the budget."""
        return tuple(map(terms.plan.definition.rate, allocate(self.budget(terms, step), self.weights(terms, cells))))

    def budget(self, _terms: Terms, step: Step) -> Fraction:
        """The part of the step's budget that pays for its tables."""
        return step.budget

    def weights(self, _terms: Terms, cells: Sequence[int]) -> Sequence[int]:
        """Weights by which the tables share the budget."""
        return (1,) * len(cells)

    def narrowest_rate(self, _terms: Terms, _step: Step) -> Fraction | None:
        """The rate of the widest noise that the step can need; None if the step draws no noise."""
        return None

    def most_choices(self, _terms: Terms, _party: int) -> int:
        """The most private choices that a party makes in the step."""
        return 0

    def size(self, _terms: Terms, _step: Step) -> Size:
        return Size()

    def sets(self, _terms: Terms, tables: int) -> int:
        """How many sets of variables a party counts for so many tables of the step."""
        return tables

    def domain(self, terms: Terms) -> Domain:
        """The variables of the step's tables."""
        return terms.domain

    def cells_by_rate(self, terms: Terms, step: Step) -> dict[Fraction, int]:
        """The largest number of cells with noise of each rate."""
        size = self.size(terms, step)
        return {terms.plan.definition.rate(step.budget / size.tables): size.cells} if size.tables else {}

    def layout(
        self, terms: Terms, step: Step, tables: Sequence[Variables], rows: int, merged: Sequence[Merged] = ()
    ) -> Layout:
        """Layout of these tables over `rows` rows, sharing the step's budget."""
        cells = tuple(map(self.domain(terms).with_merged(merged).cells, tables))
        return Layout(cells, self.noise_rates(terms, step, cells), rows)

    def mechanism(self, plan: Plan, _task: Task) -> str:
        """The mechanism that keeps the answer private, in the ledger's words."""
        return f"secure sum, noise {plan.noise}" if self.is_sum else "own noise"

    # The curator's half

    def enter(self, _terms: Terms, known: Knowledge) -> Knowledge:
        """The curator's knowledge after the computations that come before its tasks."""
        return known

    @abstractmethod
    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        """The task of each party of the step."""

    @abstractmethod
    def largest_reply(self, terms: Terms, step: Step, known: Knowledge, party: int, sums: CuratorSums) -> int:
        """An upper bound on the bytes of one party's answer, beside what every message has."""

    @abstractmethod
    def check_reply(
        self, terms: Terms, step: Step, known: Knowledge, party: int, reply: Reply, sums: CuratorSums
    ) -> None:
        """Check one answer as it arrives, while its sender is known."""

    def with_reply(
        self, replies: Mapping[int, Reply], party: int, reply: Reply, _sums: CuratorSums
    ) -> dict[int, Reply]:
        """The step's checked answers in the order of their arrival, with one more."""
        return {**replies, party: reply}

    @abstractmethod
    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        """The curator's knowledge after the step's answers."""

    # A party's half

    def expected(self, _state: PartyState, _step: Step) -> type[Task]:
        """The kind of task that this party gets in the step."""
        return self.task

    @abstractmethod
    def check(self, state: PartyState, step: Step, task: Task) -> None:
        """Refuse tasks that the plan does not allow, before anything is charged or read."""

    @abstractmethod
    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        """Answer a task that has been checked and charged; only here are rows read."""
