"""A curator in one process with a clock and parties of the test: real store, real protocol, no network.

It does not know any expected value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.signing import sign
from curator.home.keys import CuratorKeys
from curator.interface import PlanRequest
from curator.runs.orchestrator import Orchestrator
from curator.runs.ports import Seams
from curator.runs.run_crypto import PaillierCrypto
from curator.settings import Settings
from curator.store.store import Store
from protocol.messages.signatures import RECEIPT, REFUSAL_RECEIPT, receipt_text
from protocol.messages.tasks import Invitation, Refusal, decode, encode
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.party import accept, answer, check
from protocol.stages.party_state import PartyState
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, SMALL_BITS, identity, random_codes

START = 1_800_000_000_000  # milliseconds; some day in 2027
ROWS = (30, 20, 10)


@dataclass
class Clock:
    now: int = START

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@dataclass(frozen=True)
class OneKey(PaillierCrypto):
    """The real cryptography, without the time that it takes to draw a key for every run."""

    secret: SecretKey

    def draw(self, bits: int) -> SecretKey:
        assert bits == self.secret.public.bits
        return self.secret


@dataclass
class Outgoing:
    run: str
    step: str
    body: bytes
    receipt: bytes


class Bystander:
    """A party as the curator sees it: it answers every task once, and sends the same bytes ever after."""

    def __init__(self, number: int, name: str, codes: Sequence[Any]) -> None:
        self.name, self.number, self.identity = name, number, identity(number)
        self._codes, self._stream = list(codes), Stream.keyed(b"bystander", name)
        self._states: dict[str, tuple[Terms, Rows, PartyState]] = {}
        self.outbox: dict[tuple[str, str], Outgoing] = {}

    def handle(self, run: str, question: bytes) -> Outgoing:
        task = decode(question, "curator")
        if (run, task.step) not in self.outbox:
            self.outbox[run, task.step] = self._send(run, task.step, encode(self._answer(run, task)))
        return self.outbox[run, task.step]

    def refuse(self, run: str, question: bytes, reason: str = "not today") -> Outgoing:
        task = decode(question, "curator")
        if task.kind == "invitation":
            self._states[run] = (agree(task.proposal, Schema.parse(task.schema_text), SMALL_BITS), None, None)
        return self._send(run, task.step, encode(Refusal(plan=task.plan, step=task.step, reason=reason)), refused=True)

    def _answer(self, run: str, task: Any) -> Any:
        if isinstance(task, Invitation):
            terms = agree(task.proposal, Schema.parse(task.schema_text), SMALL_BITS)
            rows = Rows(terms.finest.domain, terms.finest.encode(self._codes))
            me = [member.name for member in terms.plan.members].index(self.name)
            state, reply = accept(terms, me, self.identity, rows, self._stream)
        else:
            terms, rows, state = self._states[run]
            state, reply = answer(state, check(state, task), rows, self._stream)
        self._states[run] = (terms, rows, state)
        return reply

    def _send(self, run: str, step: str, body: bytes, refused: bool = False) -> Outgoing:
        terms = self._states[run][0]
        me = [member.name for member in terms.plan.members].index(self.name)
        charge, delta = next((one.charge(me), one.delta(me)) for one in terms.steps if one.name == step)
        if refused:
            charge = delta = Fraction(0)
        text = receipt_text(terms.plan_hash, step, charge, body, delta)
        role = REFUSAL_RECEIPT if refused else RECEIPT
        return Outgoing(run, step, body, sign(self.identity.signing, role, text))


@dataclass
class Desk:
    """Everything of one curator, with parties that have enrolled and offered their rows."""

    home: Path
    url: str = ""
    rows: tuple[int, ...] = ROWS
    schema: Schema = BITS
    crypto: Any = None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.settings = Settings(home=self.home, database_url=self.url)
        self.keys = CuratorKeys.create(self.home, Stream.keyed(b"curator's keys"))
        self.codes = random_codes(self.schema, self.rows)
        self.parties = [Bystander(k, f"party-{k + 1}", codes) for k, codes in enumerate(self.codes)]
        self._started = 0
        self.open()
        registry = self.orchestrator.registry
        for party, rows in zip(self.parties, self.rows, strict=True):
            code, _ = registry.new_code(party.name, Stream.keyed(b"code", party.name))
            keys = party.identity
            registry.enrol(code, party.name, keys.signing.public, keys.exchange.public)
            registry.offer(party.name, "rows", self.schema, rows)

    def open(self) -> None:
        self.store = Store.open(self.settings.store_url)
        self._started += 1
        self.orchestrator = Orchestrator(
            self.store,
            self.keys,
            self.settings,
            Seams(
                clock=self.clock,
                streams=self.streams,
                crypto=self.crypto or PaillierCrypto(),
                smallest_key=SMALL_BITS,
            ),
        )
        self.views = self.orchestrator.views
        self.orchestrator.recover()

    _drawn = 0

    def streams(self, purpose: str) -> Stream:
        """Never the same twice; a restarted process draws other randomness than the one before."""
        self._drawn += 1
        return Stream.keyed(b"desk%d" % self._started, purpose + str(self._drawn))

    def restart(self) -> None:
        """As after kill -9: nothing of memory survives."""
        self.store.close()
        self.open()

    def request(self, **wishes: Any) -> PlanRequest:
        # Few rows make a table of noise: `anyway`.
        chosen = {"schema": self.schema.hash, "epsilon": "1", "key_bits": SMALL_BITS, "anyway": True} | wishes
        return PlanRequest.model_validate(chosen)

    def run(self, key: str = "key", **wishes: Any) -> str:
        return self.orchestrator.create_run(self.request(**wishes), key)[0]

    def deliver(self, party: Bystander, sent: Outgoing) -> None:
        """Also what the relay does then: work out what follows."""
        self.orchestrator.deliver(sent.run, sent.step, party.name, sent.body, sent.receipt)
        self.orchestrator.advance(sent.run)

    def answer_one(self, party: Bystander) -> bool:
        """Whether the party had something to answer."""
        found = self.orchestrator.inbox(party.name)
        if found is None:
            return False
        self.deliver(party, party.handle(*found))
        return True

    def answer_all(self) -> None:
        while sum(self.answer_one(party) for party in self.parties):
            pass

    def finish(self, run: str) -> None:
        self.answer_all()
        self.orchestrator.tick()
        assert self.views.run(run).state == "finished", self.views.run(run)
