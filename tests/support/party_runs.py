"""Runs that parties have joined at the fake curator, and what they have sent.

It does not know any expected value.
"""

from typing import Any

from protocol.messages.tasks import Refusal, decode
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, run_terms

RUN = "run-1"


def join(fake: FakeCurator, parties: list[Party], **wishes: Any) -> None:
    """A run that all parties have joined."""
    fake.start(run_terms(**wishes))
    for party in parties:
        party.turns()
    assert fake.runs[RUN].state.step.stage != "joining"


def task_of(fake: FakeCurator, party: Party, run: str = RUN) -> bytes:
    task = fake.task(fake.runs[run], party.name)
    assert task is not None
    return task


def sent_by(fake: FakeCurator, party: Party, step: str) -> list[bytes]:
    return [body for run, sent, name, body in fake.deliveries if (run, sent, name) == (RUN, step, party.name)]


def reason_of(reply: bytes) -> str:
    message = decode(reply, "party")
    assert isinstance(message, Refusal)
    return message.reason
