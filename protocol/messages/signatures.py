"""Texts that curator and parties sign: HTTP requests, responses and receipts.

It does not know HTTP libraries, clocks or where keys are kept.
"""

from fractions import Fraction

from protocol.exact import digest

ACCEPTANCE_CONTEXT = b"acceptance of a plan"

REQUEST = b"request"
RESPONSE = b"response"
RECEIPT = b"receipt"
REFUSAL_RECEIPT = b"receipt of a refusal"  # a role of its own: a refusal costs nothing, and proves no answer
ENROLMENT = b"enrolment"
ROTATION = b"rotation"

PARTY_HEADER = "Subn-Party"
TIME_HEADER = "Subn-Time"
NONCE_HEADER = "Subn-Nonce"
DIGEST_HEADER = "Subn-Digest"
SIGNATURE_HEADER = "Subn-Signature"
RUN_HEADER = "Subn-Run"
RECEIPT_HEADER = "Subn-Receipt"
HELD_HEADER = "Subn-Receipts-Held"  # with a task: the number of the party's receipts that the curator holds
CURATOR_SIGNATURE_HEADER = "Subn-Curator-Signature"
VERSION_HEADER = "Subn-Version"

LARGEST_CLOCK_DIFFERENCE_MS = 300_000


def acceptance_text(plan_hash: str, exchange_key: bytes) -> bytes:
    """Text that a party signs when it joins: the plan, and the party's exchange key of this run alone."""
    return _joined(plan_hash, exchange_key.hex())


def request_text(
    method: str, target: str, body_digest: str, sender: str, time_ms: int | str, nonce: str, version: str = ""
) -> bytes:
    """Text that the sender of a request signs.

    `target` is the path with its query, and `version` the value of the version header, as sent. `body_digest` is the
    SHA-256 of the body (`protocol.exact.digest`). It travels as a header too, so that the curator knows the sender
    before it reads a byte of the body.
    """
    return _joined(method.upper(), target, body_digest, sender, str(time_ms), nonce, version)


def answered_request(request_text: bytes, signature: str) -> bytes:
    """A request as the curator signs it under its response: what its sender signed, and the signature in hex."""
    return request_text + signature.encode()


def response_text(status: int, body: bytes, request: bytes, version: str, run: str = "", held: str = "") -> bytes:
    """Text that the curator signs under its response to an `answered_request`.

    `version`, `run` and `held` are the values of the response's headers, as sent.
    """
    return response_text_of_digest(status, digest(body), request, version, run, held)


def response_text_of_digest(
    status: int, body_digest: str, request: bytes, version: str, run: str = "", held: str = ""
) -> bytes:
    """Response text for callers that hold only the SHA-256 of the body, in hex."""
    return _joined(str(status), body_digest, digest(request), version, run, held)


def receipt_text(plan_hash: str, step: str, charge: Fraction, reply: bytes, delta: Fraction = Fraction(0)) -> bytes:
    """Text of a party's statement "for this step of this plan I sent these bytes, and they cost my rows this much"."""
    return receipt_text_of_digest(plan_hash, step, charge, digest(reply), delta)


def receipt_text_of_digest(
    plan_hash: str, step: str, charge: Fraction, reply_digest: str, delta: Fraction = Fraction(0)
) -> bytes:
    """Receipt text for callers that hold only the SHA-256 of the reply, in hex. A delta of 0 is left out."""
    return _joined(plan_hash, step, str(charge), reply_digest, *([str(delta)] if delta else []))


def _joined(*parts: str) -> bytes:
    """Length-prefixed concatenation, so that different lists of parts have different texts."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
