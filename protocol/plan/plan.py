"""The plan: everything that a run will do, in public numbers, agreed before any row is read.

It does not know what follows from it (`protocol.plan.terms`), how its options are described (`protocol.options`) or how
good defaults are chosen (`protocol.plan.presets`).
"""

import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from protocol.exact import Exact, canonical_json, digest
from protocol.options import MOST_ROWS_OF_A_PERSON, PICKING_RULES, Method, PlanOptions, Update, is_zero
from protocol.privacy.mechanisms import DEFINITIONS, PrivacyDefinition
from protocol.privacy.noise_modes import NOISE_MODES, NoiseMode
from protocol.text import checked_name

Estimate = Literal["network", "graphical-model"]
Views = Literal["pairs", "single", "halves"]
TableBudgets = Literal["equal", "square-root"]
CoverObjective = Literal["expected-error", "paper"]
CoverBudgets = Literal["equal", "cube-root", "square-root"]

LONGEST_NAME = 200
MOST_SENTENCES, LONGEST_SENTENCE = 20, 1000  # of advice
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(checked_name)]
Sentence = Annotated[str, Field(min_length=1, max_length=LONGEST_SENTENCE), AfterValidator(checked_name)]


class Frozen(BaseModel):
    """Base of everything that is agreed on or sent: immutable, closed to unknown fields, with one spelling."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, ser_json_bytes="base64", val_json_bytes="base64"
    )


class Member(Frozen):
    """A party as the other parties know it, with the public number of its rows."""

    name: Name
    rows: Annotated[int, Field(ge=1, le=2 * 10**9)]
    signing_key: Annotated[bytes, Field(min_length=32, max_length=32)]
    exchange_key: Annotated[bytes, Field(min_length=32, max_length=32)]
    # How many rows it has of a person at most, checked by its person keys; None: not checked, for it names no key.
    rows_per_person: Annotated[
        Annotated[int, Field(ge=1, le=MOST_ROWS_OF_A_PERSON)] | None, Field(exclude_if=lambda bound: bound is None)
    ] = None


class Weighed(Frozen):
    """A method that a recommendation has weighed, with its predicted error."""

    method: Method
    error: Exact | None  # None where public numbers do not tell it, or the plan cannot be run
    why: str


class Plan(Frozen, PlanOptions):
    """What the operator may choose (`PlanOptions`), and what follows for this run and from the preset."""

    version: Literal[1] = 1
    method: Method
    weighed: tuple[Weighed, ...] = ()  # method recommended: the methods among which the prediction chose
    # Advice that said stop, and that the operator overruled. A plan without it keeps the text that it had before.
    against: Annotated[tuple[Sentence, ...], Field(max_length=MOST_SENTENCES, exclude_if=operator.not_)] = ()
    run: Name
    schema_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    members: tuple[Member, ...]
    picks: tuple[Annotated[int, Field(ge=0)], ...]  # variables that each party places in phase 2
    frontier_theta: Exact  # usefulness of the frontier's tables
    cover_objective: CoverObjective
    cover_budgets: CoverBudgets
    # What phase 1 counts: all pairs by views; every variable alone; or every variable alone, then views of halves.
    views: Views = "pairs"
    further: tuple[Annotated[int, Field(ge=0)], ...] = ()  # pairs that each party picks in a round, or in its turn
    table_budgets: TableBudgets = "equal"  # how the tables of a network share their pass
    estimate: Estimate = "network"
    merging: bool = False  # estimate=graphical-model: categories below their noise are modelled as one
    # The part of the budget that finds out how strongly columns depend on each other, and the mean distance of pairs
    # from independence below which every column is counted alone. Plans without the question keep their text.
    dependence: Annotated[Exact, Field(exclude_if=is_zero)] = Fraction(0)
    alone_below: Annotated[Exact, Field(exclude_if=is_zero)] = Fraction(0)

    @property
    def parties(self) -> int:
        return len(self.members)

    @property
    def total_rows(self) -> int:
        return sum(member.rows for member in self.members)

    @property
    def definition(self) -> PrivacyDefinition:
        return DEFINITIONS[self.privacy]

    @property
    def edges_budget(self) -> Fraction:
        """The budget of the pass that finds edges."""
        return self.definition.budget(self.epsilon, self.delta) * self.edges if self.edges else Fraction(0)

    @property
    def dependence_budget(self) -> Fraction:
        """The budget of the pass that finds out how strongly columns depend on each other."""
        whole = self.definition.budget(self.epsilon, self.delta) if self.dependence else Fraction(0)
        return whole * self.dependence

    def in_sums(self, budget: Fraction) -> Fraction:
        """The budget of one row in a sum over all parties, which holds all rows of a person (`people.md`)."""
        return self.definition.of_row(budget, self.rows_per_person * self.parties_per_person)

    def alone(self, budget: Fraction) -> Fraction:
        """The budget of one row in what a single party releases, if a person's parties share the budget."""
        return self.definition.of_row(budget / self.parties_per_person, self.rows_per_person)

    @property
    def noise_mode(self) -> NoiseMode:
        return NOISE_MODES[self.noise](self.definition, self.parties, self.insiders, self.key_bits)

    @property
    def uses_paillier(self) -> bool:
        """Whether contributions travel encrypted; never with method independent, which has no sum."""
        return self.noise_mode.uses_paillier and self.method != "independent"

    @property
    def noise_shares(self) -> int:
        """Number of full shares of noise that stay in a sum of noise mode `selected`."""
        return self.insiders + 1

    @property
    def placing_budget(self) -> Fraction:
        """The budget with which each party places whole families of the first network."""
        places: Mapping[Method, int] = {"dp-subn": 1, "privbayes": 0, "privabn": 0}
        return self.split[places[self.method]] if self.method in places else Fraction(0)

    @property
    def picks_pairs(self) -> bool:
        """Whether pairs are picked and counted one by one, instead of whole families of a network."""
        return self.method == "guided" or self.picks_in_turns

    @property
    def picks_in_turns(self) -> bool:
        """Whether the parties pick pairs in the search frontier, one party after the other."""
        return self.rule in PICKING_RULES

    @property
    def last_picks(self) -> int:
        """The number of pairs that the last party to pick may pick; 'parameters' counts them."""
        return next((picks for picks in reversed(self.further) if picks), 0)

    @property
    def rule(self) -> Update | None:
        """The update rule, where there are updates."""
        return self.update if self.method == "dp-subn" else None

    @property
    def guided_rounds(self) -> int:
        """Number of rounds of method guided; 0 without a budget for them."""
        has_picks = any(self.picks) and any(self.further)
        return self.rounds if self.method == "guided" and all(self.split[1:3]) and has_picks else 0

    def hash(self) -> str:
        return digest(canonical_json(self.model_dump(mode="json")))
