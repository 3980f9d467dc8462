"""Decoders of the protocol: messages, tasks and answers in their place, keys, ciphertexts, proofs and seals.

It does not know files or HTTP.
"""

import json
from functools import cache
from typing import Any

from pydantic import ValidationError

from crypto.errors import CryptoError
from crypto.paillier.indicator import Indicator, check_indicator
from crypto.paillier.modulus import check_modulus
from crypto.paillier.public import PublicKey, ciphertexts_from_bytes
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sealing import check_public as check_exchange
from crypto.sealing import open_sealed, seal
from crypto.signing import check_public as check_signing
from crypto.signing import sign, verify
from party.answering import saved_state
from party.errors import Unreadable
from protocol.errors import CURATOR, MalformedMessage, OperatorError, PeerError
from protocol.exact import exact
from protocol.messages.pins import checked_pin, parted
from protocol.messages.tasks import Contribution, Invitation, Refusal, Reply, decode, encode
from protocol.messages.versions import Versions
from protocol.plan.plan import Plan
from protocol.run.agreement import agree
from protocol.run.curator import take
from protocol.run.party import check
from protocol.secure_sum.selected import SelectedOpening, proven_for, selected_sums
from protocol.tables.schema import Schema
from tests.fuzz.target import Target, blames
from tests.support.small_runs import BITS, MIXED, SMALL_BITS, Driver, identity, random_codes, terms_of
from tests.vectors.broken import broken
from tests.vectors.messages import MESSAGES

ROWS = (12, 8, 6)


@cache
def secret() -> SecretKey:
    return SecretKey.generate(SMALL_BITS)


@cache
def at(step: str) -> Driver:
    """A run that waits for answers to this step; curator and parties are all there."""
    wishes: dict[str, Any] = {"split": (10,) * 4, "method": "guided", "further": (1, 1, 0), "rounds": 1}
    if step.startswith("update"):
        wishes = {"split": (10, 5, 5, 5), "noise": "local", "insiders": 0, "update": "replace"}
    elif step == "correlations":
        wishes = {"noise": "selected"}
    else:
        wishes["noise"] = "local"
    schema = BITS if step == "correlations" else MIXED
    return Driver(terms_of(schema, ROWS, 50, **wishes), random_codes(schema, ROWS), secret()).run_to(step)


@cache
def everywhere() -> list[tuple[Driver, dict[int, Any]]]:
    """Runs in several places, each with the tasks that are due there."""
    runs = [at(step) for step in ("correlations", "tables/1", "further/1", "update/2")]
    return [(run, run.tasks()) for run in runs]


# Messages


def message(data: bytes) -> None:
    assert encode(decode(data, "party-1")) == data, "two spellings of one message"


def messages() -> list[bytes]:
    return [encode(one) for one in MESSAGES.values()] + [data for _, data, _ in broken()]


def task(data: bytes) -> None:
    """A task as every party checks it, whatever step is due; only the curator can be at fault."""
    found = decode(data, CURATOR)
    for run, _ in everywhere():
        for state in run.parties:
            assert state is not None
            due = {"plan": run.terms.plan_hash, "step": state.due.name if state.due else found.step}
            try:
                check(state, found.model_copy(update=due))  # type: ignore[arg-type]
            except PeerError as error:
                blames(error, CURATOR)


def tasks() -> list[bytes]:
    return [encode(one) for _, asked in everywhere() for one in asked.values()]


def reply(data: bytes) -> None:
    """An answer as the curator takes it, whatever step is due; only the sender can be at fault."""
    found = decode(data, "party-1")
    for run, _ in everywhere():
        step = run.state.step
        assert step is not None
        party = step.parties[0]
        due = {"plan": run.terms.plan_hash, "step": step.name}
        try:
            take(run.state, party, found.model_copy(update=due), run.opening)  # type: ignore[arg-type]
        except PeerError as error:
            blames(error, run.terms.plan.members[party].name)


@cache
def replies() -> list[bytes]:
    found: list[Reply] = [Refusal(plan="0" * 64, step="joining", reason="no")]
    for step in ("joining", "correlations", "tables/1", "update/2", "further/1"):
        run = at(step) if step != "joining" else Driver(at("correlations").terms, random_codes(BITS, ROWS), secret())
        state = list(run.parties)
        found += run.replies().values()
        run.parties[:] = state  # the others need the run as it was
    return [encode(one) for one in found]


def invitation(data: bytes) -> None:
    """A plan as a party reads it: message, schema, terms and price."""
    found = decode(data, CURATOR)
    if isinstance(found, Invitation):
        agree(found.proposal, Schema.parse(found.schema_text), SMALL_BITS)


def invitations() -> list[bytes]:
    found = []
    for run, _ in everywhere():
        plan, schema = run.terms.plan, run.terms.schema.to_json()
        found.append(encode(Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text=schema)))
    return found


def plan(data: bytes) -> None:
    """A plan alone, so that changes reach its numbers: the schema is one that fits."""
    try:
        found = Plan.model_validate_json(data)
    except ValidationError:
        return  # `decode` reads plans, and words this error
    agree(found, MIXED, SMALL_BITS)


def plans() -> list[bytes]:
    return [run.terms.plan.model_dump_json().encode() for run, _ in everywhere()]


# Cryptography


def keys(data: bytes) -> None:
    """The keys of a run with their proofs, as a party gets them with the first sum."""
    run, asked = everywhere()[0]
    state, found = run.parties[0], asked[0].keys
    assert state is not None
    where, data = data[0] % 3 if data else 0, data[1:]
    name = ("public_key", "modulus_proof", "indicator")[where]
    selected_sums(state.pair_keys, state.share, found.model_copy(update={name: data}), Stream.keyed(b"fuzz"))


def keys_sent() -> list[bytes]:
    found = everywhere()[0][1][0].keys
    return [bytes([0]) + found.public_key, bytes([1]) + found.modulus_proof, bytes([2]) + found.indicator]


def paillier_key(data: bytes) -> None:
    PublicKey.from_bytes(data, smallest_bits=64)


def ciphertexts(data: bytes) -> None:
    key = secret().public
    for one in ciphertexts_from_bytes(key, data, max(1, len(data) // key.ciphertext_bytes)):
        assert 0 < one < key.n_squared


def contribution(data: bytes) -> None:
    """Ciphertexts that are taken must open, or fail to add up: the curator decrypts whatever passes."""
    run = at("correlations")
    assert isinstance(run.opening, SelectedOpening)
    run.opening.decrypt(ciphertexts_from_bytes(secret().public, data, max(1, len(data) // 128)))


def contributions() -> list[bytes]:
    return [one for data in replies() if isinstance(found := decode(data, ""), Contribution) and (one := found.blob)]


def indicator(data: bytes) -> None:
    key = secret().public
    check_indicator(key, Indicator.from_bytes(key, data, 3), 2, proven_for(at("correlations").terms.plan))


def modulus_proof(data: bytes) -> None:
    check_modulus(secret().public, data, proven_for(at("correlations").terms.plan))


def sealed(data: bytes) -> None:
    open_sealed(identity(0).exchange.to_bytes(), b"info", data)


def public_keys(data: bytes) -> None:
    for checked in (check_exchange, check_signing):
        checked(data)


def signature(data: bytes) -> None:
    verify(identity(0).signing.public, b"context", b"text", data)


# Texts


def number(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert exact(str(exact(text))) == exact(text)


def code(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if "." in text:
        parted(text)
    else:
        checked_pin(text)


def versions(data: bytes) -> None:
    found = Versions.parse(data.decode("utf-8", "replace"))
    assert found is None or Versions.parse(str(found)) == found


def kept_state(data: bytes) -> None:
    """What a party keeps of a run, from a disk that was damaged."""
    terms = at("tables/1").terms
    saved_state.from_bytes(data, terms, 0, identity(0), Stream.keyed(b"fuzz"))


def kept_states() -> list[bytes]:
    state = at("tables/1").parties[0]
    assert state is not None
    found = saved_state.to_bytes(saved_state.Kept(state))
    return [found, json.dumps(json.loads(found) | {"noise": [[[0, 1], "AAAAAAAAAAA="]]}).encode()]


def _lengths() -> list[bytes]:
    return [bytes(size) for size in (0, 31, 32, 33, 64)] + [identity(0).exchange.public, identity(0).signing.public]


CRYPTO = (CryptoError,)
TARGETS = (
    Target("message", message, (MalformedMessage,), messages),
    Target("task", task, (MalformedMessage,), tasks),
    Target("reply", reply, (MalformedMessage,), replies),
    Target("invitation", invitation, (MalformedMessage, OperatorError), invitations),
    Target("plan", plan, (OperatorError,), plans),
    Target("keys", keys, (PeerError,), keys_sent),
    Target("paillier-key", paillier_key, CRYPTO, lambda: [secret().public.to_bytes(), b"\0" * 64]),
    Target("ciphertexts", ciphertexts, CRYPTO, contributions),
    Target("contribution", contribution, CRYPTO, contributions),
    Target("indicator", indicator, CRYPTO, lambda: [everywhere()[0][1][0].keys.indicator]),
    Target("modulus-proof", modulus_proof, CRYPTO, lambda: [everywhere()[0][1][0].keys.modulus_proof]),
    Target("sealed", sealed, CRYPTO, lambda: [seal(identity(0).exchange.public, b"info", b"x" * 32)]),
    Target("public-keys", public_keys, CRYPTO, _lengths),
    Target("signature", signature, CRYPTO, lambda: [sign(identity(0).signing, b"context", b"text"), bytes(64)]),
    Target("number", number, (ValueError,), lambda: [b"0.8", b"4/5", b"1e-9", b"-1.5E-3", b"1/0", b"9" * 101]),
    Target("code", code, (OperatorError,), lambda: [b"secret." + b"ab" * 16, b"AB-" * 16]),
    Target("versions", versions, (), lambda: [b"1", b"1-3", b"3-1", b"0"]),
    Target("kept-state", kept_state, (Unreadable,), kept_states),
)
