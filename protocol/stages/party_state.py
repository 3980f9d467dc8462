"""State of a party in a run: stored, but never sent or printed.

It does not know how the state changes (`protocol.run.party`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crypto.sealing import ExchangeKey
from protocol.identity import Identity
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.secure_sum.keys import PairKeys
from protocol.secure_sum.sums import PartySums
from protocol.tables.domain import FoundEdges, Variables


@dataclass(frozen=True)
class PartyState:
    terms: Terms = field(repr=False)
    me: int
    identity: Identity = field(repr=False)
    run_key: ExchangeKey = field(repr=False)  # of this run alone, made at joining
    run_keys: tuple[bytes, ...] = field(repr=False, default=())  # of all members, public halves: in the first task
    share: bytes = field(repr=False, default=b"")  # this party's own share of the group key
    answered: int = 0  # position of the last step that this party has answered
    edges: FoundEdges = ()  # as the curator told them after they had been found
    sums: PartySums | None = field(repr=False, default=None)
    noise: Mapping[Variables, Vector] = field(repr=False, default_factory=dict)  # of this party's update=replace step

    @property
    def pair_keys(self) -> PairKeys:
        return PairKeys(self.terms, self.me, self.identity, self.run_key, self.run_keys)

    @property
    def due(self) -> Step | None:
        """The next step that this party has to answer."""
        later = self.terms.steps[self.answered + 1 :]
        return next((step for step in later if self.me in step.parties), None)
