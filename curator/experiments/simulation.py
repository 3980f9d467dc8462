"""A whole run in one process: K parties and a curator that exchange the protocol's own messages.

It does not know files or command lines. Nothing is private from the person who runs it: the process holds all rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from crypto.masking import TAG_BYTES
from crypto.randomness import Stream
from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey
from curator.runs.run_crypto import PaillierCrypto
from protocol.identity import Identity
from protocol.messages.tasks import Invitation, Reply, Task, decode, encode
from protocol.plan.plan import Member, Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, Layout, Vector, words_from_bytes, words_to_bytes
from protocol.run.curator import RunState, begin, receive, tasks
from protocol.run.party import accept, answer, check
from protocol.run.task_cost import task_cost
from protocol.secure_sum.sums import Contributed, CuratorSums, PartySums
from protocol.stages.party_state import PartyState
from protocol.tables.counting import Rows
from protocol.tables.domain import Codes


@dataclass
class StageCost:
    """Cost of one stage of a run, for all parties and the curator, with messages in both directions."""

    name: str
    seconds: float = 0.0
    cells: int = 0
    ciphertexts: int = 0
    bytes: int = 0


@dataclass
class Simulation:
    """A run with its costs."""

    terms: Terms
    state: RunState
    spent: list[Fraction]  # epsilon by party
    deltas: list[Fraction]
    stages: dict[str, StageCost]


@dataclass(frozen=True)
class ClearSums:
    """Contributions for `--crypto none`: the noise of the real protocol, but nothing hidden. For experiments only."""

    plan: Plan
    me: int
    keeps_noise: bool

    def contribute(self, layout: Layout, values: Vector, _context: bytes, stream: Stream) -> Contributed:
        if self.plan.noise_mode.uses_paillier:
            noise = self.plan.noise_mode.own_noise(layout, stream) if self.keeps_noise else np.zeros_like(values)
        else:
            noise = self.plan.noise_mode.own_noise(layout, stream)
        tags = tuple(bytes(TAG_BYTES * (other != self.me)) for other in range(self.plan.parties))
        return Contributed(words_to_bytes((values + noise).view(np.uint64)), tags)


@dataclass(frozen=True)
class ClearOpening:
    def contribution_bytes(self, layout: Layout) -> int:
        return WORD_BYTES * layout.size

    def check(self, layout: Layout, blob: bytes) -> None:
        """Accept any words as a contribution."""

    def add(self, total: bytes, blob: bytes) -> bytes:
        return words_to_bytes(words_from_bytes(total) + words_from_bytes(blob))

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector:
        total = np.zeros(layout.size, dtype=np.uint64)
        for blob in blobs:
            total = total + words_from_bytes(blob)
        return total.view(np.int64)


Progress = Callable[[str, str], None]  # called with step and party


def make_identities(count: int, stream: Stream) -> list[Identity]:
    """Keys of made-up parties. The plan names them, so that an experiment is repeated only with the same keys."""
    return [
        Identity(SigningKey.from_bytes(stream.take(32)), ExchangeKey.from_bytes(stream.take(32))) for _ in range(count)
    ]


def member_of(name: str, rows: int, identity: Identity) -> Member:
    return Member(name=name, rows=rows, signing_key=identity.signing.public, exchange_key=identity.exchange.public)


def simulate(
    terms: Terms,
    codes: Sequence[Sequence[Codes]],
    identities: Sequence[Identity],
    stream: Stream,
    real_crypto: bool = True,
    progress: Progress = lambda _step, _party: None,
) -> Simulation:
    """Run the agreed plan over every party's attribute codes."""
    state, opening = _curator(terms, stream.child("curator"), real_crypto)
    parties = _parties(terms, codes, identities, stream, real_crypto)
    spent, deltas = ([Fraction(0)] * terms.plan.parties for _ in range(2))
    simulation = Simulation(terms, state, spent, deltas, {})
    while (step := simulation.state.step) is not None:
        started = perf_counter()
        cost = simulation.stages.setdefault(step.stage, StageCost(step.stage))
        asked = tasks(simulation.state)
        _count_work(terms, step, asked, cost)
        for party, task in asked.items():
            name = terms.plan.members[party].name
            progress(step.name, name)
            simulation.spent[party] += step.charge(party)
            simulation.deltas[party] += step.delta(party)
            reply = parties[party].answer(carried(task, cost, "curator"))
            simulation.state = receive(simulation.state, party, carried(reply, cost, name), opening)
        cost.seconds += perf_counter() - started
    return simulation


def carried(message: Task | Reply, cost: StageCost, sender: str) -> Any:
    """Return the message as it arrives, after encoding and decoding: the two sides share nothing but its bytes."""
    data = encode(message)
    cost.bytes += len(data)
    return decode(data, sender)


def _count_work(terms: Terms, step: Step, asked: Mapping[int, Task], cost: StageCost) -> None:
    for task in asked.values():
        own = task_cost(terms, step, task)
        cost.cells += own.cells
        cost.ciphertexts += own.ciphertexts


def _curator(terms: Terms, stream: Stream, real_crypto: bool) -> tuple[RunState, CuratorSums]:
    plan = terms.plan
    first_variable = stream.below(terms.domain.count)
    if not real_crypto:
        return begin(terms, first_variable, None), ClearOpening()
    crypto = PaillierCrypto()
    keys = crypto.make_keys(plan, stream)
    if keys is None:
        return begin(terms, first_variable, None), crypto.opening(plan, None)
    return begin(terms, first_variable, keys.public), crypto.opening(plan, keys.secret)


@dataclass
class _Party:
    """One party: its rows, its stream of randomness, and its state in the run."""

    terms: Terms
    me: int
    identity: Identity
    rows: Rows
    stream: Stream
    clear: PartySums | None
    state: PartyState | None = None

    def answer(self, task: Task) -> Reply:
        if isinstance(task, Invitation):
            self.state, acceptance = accept(self.terms, self.me, self.identity, self.rows, self.stream, self.clear)
            return acceptance
        assert self.state is not None
        self.state, reply = answer(self.state, check(self.state, task), self.rows, self.stream)
        return reply


def _parties(
    terms: Terms, codes: Sequence[Sequence[Codes]], identities: Sequence[Identity], stream: Stream, real_crypto: bool
) -> list[_Party]:
    keeping = set(stream.permutation(terms.plan.parties)[: terms.plan.noise_shares])
    parties = []
    for me, (own, identity) in enumerate(zip(codes, identities, strict=True)):
        rows = Rows(terms.finest.domain, terms.finest.encode(list(own)))
        clear = None if real_crypto else ClearSums(terms.plan, me, me in keeping)
        parties.append(_Party(terms, me, identity, rows, stream.child(f"party {me}"), clear))
    return parties
