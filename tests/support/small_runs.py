"""Small runs for tests: public schemas, fixed identities, tiny data, and a driver that talks in the protocol's bytes.

It does not know any expected value.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey
from curator.experiments.simulation import ClearOpening, ClearSums, member_of
from curator.runs.run_crypto import public_half
from protocol.identity import Identity
from protocol.messages.tasks import Reply, Task, decode, encode
from protocol.plan.plan import Member, Plan
from protocol.plan.presets import make_plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.run.agreement import agree
from protocol.run.curator import RunState, begin, receive, tasks
from protocol.run.party import accept, answer, check
from protocol.secure_sum.plain import PlainOpening
from protocol.secure_sum.selected import SelectedOpening
from protocol.stages.party_state import PartyState
from protocol.stages.registry import stage_of
from protocol.tables.counting import Rows
from protocol.tables.domain import Merged, Variables
from protocol.tables.schema import Schema

SMALL_BITS = 512
NO_NOISE = Fraction(10**6)  # so much epsilon that every noise is 0, except with probability below 2^-1000

BITS = Schema.parse(
    {"attributes": [{"name": name, "kind": "categorical", "values": ["no", "yes"]} for name in "abcde"]}
)
MIXED = Schema.parse(
    {
        "title": "mixed",
        "attributes": [
            {
                "name": "work",
                "kind": "categorical",
                "values": ["clerk", "smith", "baker"],
                "missing": ["?"],
                "taxonomy": {"hands": ["smith", "baker"], "desk": ["clerk"]},
            },
            {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"]},
            {"name": "age", "kind": "integer", "min": 0, "max": 39, "bins": 4},
            {"name": "bmi", "kind": "real", "min": 10, "max": 40, "bins": 3},
            {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
        ],
    }
)


# `random_codes` puts most rows into the first three cities: noise easily hides the others.
CITIES = Schema.parse(
    {
        "title": "cities",
        "attributes": [
            {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
            {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"]},
            {"name": "city", "kind": "categorical", "values": [f"city {number}" for number in range(20)]},
        ],
    }
)


# Two numbers whose bins a run may find, among the bins of a fine grid.
SEARCHED = Schema.parse(
    {
        "title": "searched",
        "attributes": [
            {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
            {"name": "days", "kind": "integer", "min": 0, "max": 59, "find": 6},
            {
                "name": "cost",
                "kind": "real",
                "min": 0,
                "max": 4000,
                "bins": 40,
                "decimals": 1,
                "find": 5,
                "missing": [""],
            },
            {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"]},
        ],
    }
)


# An ordered column and one with a taxonomy, both with values enough for wavelet noise.
LONG = Schema.parse(
    {
        "title": "long",
        "attributes": [
            {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
            {"name": "days", "kind": "integer", "min": 0, "max": 59, "missing": ["?"]},
            {
                "name": "code",
                "kind": "categorical",
                "values": [f"{chapter}{number}" for chapter in "ABCDE" for number in range(8)],
                "taxonomy": {"prefix": [1]},
            },
            {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"]},
        ],
    }
)
# So many columns of two values that plans of method guided ask how strongly columns depend on each other.
FIFTY = Schema.parse(
    {"attributes": [{"name": f"c{number}", "kind": "categorical", "values": ["no", "yes"]} for number in range(50)]}
)


def identity(number: int) -> Identity:
    """The same keys for the same number, everywhere."""
    return Identity(SigningKey.from_bytes(bytes([number + 1]) * 32), ExchangeKey.from_bytes(bytes([number + 101]) * 32))


def members(rows: Sequence[int]) -> list[Member]:
    return [member_of(f"party-{k + 1}", count, identity(k)) for k, count in enumerate(rows)]


def plan_of(schema: Schema = BITS, rows: Sequence[int] = (30, 20, 10), epsilon: object = 1, **wishes: Any) -> Plan:
    """DP-SUBN over whole families of a network, unless method, update or preset say otherwise."""
    wishes = {"method": "dp-subn"} | wishes
    if "preset" not in wishes and wishes["method"] == "dp-subn":
        wishes = {"update": "accumulate"} | wishes
        if wishes["update"] != "turns":
            wishes = {"estimate": "network"} | wishes
    return make_plan("test", schema, members(rows), Fraction(str(epsilon)), **({"key_bits": SMALL_BITS} | wishes))


def terms_of(schema: Schema = BITS, rows: Sequence[int] = (30, 20, 10), epsilon: object = 1, **wishes: Any) -> Terms:
    return agree(plan_of(schema, rows, epsilon, **wishes), schema, smallest_key=SMALL_BITS)


def random_codes(schema: Schema, rows: Sequence[int], seed: int = 1) -> list[list[Any]]:
    """For every party its columns of attribute codes; neighbouring attributes depend on each other."""
    data = np.random.default_rng(seed)
    parties = []
    for count in rows:
        columns = []
        for size in schema.sizes:
            fresh = data.integers(0, size, count)
            former = columns[-1] if columns else fresh
            columns.append(np.where(data.random(count) < 0.7, former % size, fresh).astype(np.uint8))
        parties.append(columns)
    return parties


def pooled(schema: Schema, codes: Sequence[Sequence[Any]]) -> list[Any]:
    return [np.concatenate([own[index] for own in codes]) for index in range(len(schema.names))]


def layout_of(
    terms: Terms, step: Step, tables: Sequence[Variables], rows: int, merged: Sequence[Merged] = ()
) -> Layout:
    """The layout of a step's pass over these tables."""
    return stage_of(terms, step).layout(terms, step, tables, rows, merged)


class Driver:
    """Curator and parties of one run, step by step; whatever they tell each other goes through its bytes.

    The cryptography is real (`secret` where the noise mode needs one) unless `clear`. Randomness is keyed unless
    `entropy`, which tests of the noise's law ask for.
    """

    def __init__(
        self,
        terms: Terms,
        codes: Sequence[Sequence[Any]],
        secret: SecretKey | None = None,
        clear: bool = False,
        entropy: bool = False,
    ) -> None:
        self.terms = terms
        self.messages: list[bytes] = []
        self.rows = [Rows(terms.finest.domain, terms.finest.encode(list(own))) for own in codes]
        self.streams = [
            Stream.system() if entropy else Stream.keyed(b"party", str(party)) for party in range(len(codes))
        ]
        self.parties: list[PartyState | None] = [None] * len(codes)
        self.clear, plan = clear, terms.plan
        keys, self.opening = None, ClearOpening() if clear else PlainOpening(plan)
        if not clear and plan.uses_paillier:
            assert secret is not None
            keys = public_half(secret, plan, Stream.keyed(b"indicator"))
            self.opening = SelectedOpening(plan.noise_mode, secret.public, secret.decrypt)
        self.state: RunState = begin(terms, 0, keys)

    def tasks(self) -> dict[int, Task]:
        return {party: self._carry(task, "curator") for party, task in tasks(self.state).items()}

    def answer(self, party: int, task: Task) -> Reply:
        """The party's answer; its state moves on."""
        own = self.parties[party]
        if own is None:
            clear = ClearSums(self.terms.plan, party, party < self.terms.plan.noise_shares) if self.clear else None
            fresh = accept(self.terms, party, identity(party), self.rows[party], self.streams[party], clear)
            self.parties[party], reply = fresh
        else:
            self.parties[party], reply = answer(own, check(own, task), self.rows[party], self.streams[party])
        return self._carry(reply, self.terms.plan.members[party].name)

    def receive(self, party: int, reply: Reply) -> None:
        self.state = receive(self.state, party, reply, self.opening)

    def replies(self) -> dict[int, Reply]:
        """Everybody's answers to the current step, not yet handed to the curator."""
        return {party: self.answer(party, task) for party, task in self.tasks().items()}

    def finish_step(self) -> None:
        for party, reply in self.replies().items():
            self.receive(party, reply)

    def run_to(self, step: str) -> "Driver":
        while self.state.step is not None and self.state.step.name != step:
            self.finish_step()
        assert self.state.step is not None, f"there is no step {step!r}"
        return self

    def finish(self) -> "Driver":
        while self.state.step is not None:
            self.finish_step()
        return self

    def _carry(self, message: Any, sender: str) -> Any:
        data = encode(message)
        self.messages.append(data)
        return decode(data, sender)
