"""Answers from the network: read up to a limit, uncompressed, and believed only with the curator's signature.

It does not know what is asked. Nothing of an answer is parsed or repeated before its signature fits.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
from pydantic import TypeAdapter

from crypto.errors import CryptoError
from crypto.signing import verify
from party.errors import Declined, TalkError, Untrusted
from protocol.errors import CURATOR
from protocol.messages.signatures import (
    CURATOR_SIGNATURE_HEADER,
    HELD_HEADER,
    RESPONSE,
    RUN_HEADER,
    VERSION_HEADER,
    response_text,
)
from protocol.messages.versions import SPOKEN, UNSAID, Versions, disagreement
from protocol.outside_json import complaint, read_as, read_json

KNOWN_ENCODINGS = ("", "identity")
_LARGEST_COMPLAINT = 1 << 16
_LONGEST_ECHO = 500

Found = TypeVar("Found")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_error(self) -> bool:
        return self.status >= httpx.codes.BAD_REQUEST

    @property
    def complaint(self) -> str:
        """The sentence in a problem+json, or whatever else says why."""
        problem = _json_object(self.body)
        text = problem.get("detail") or problem.get("title") or self.body.decode(errors="replace").strip()
        return (str(text) or httpx.codes.get_reason_phrase(self.status))[:_LONGEST_ECHO]

    def as_error(self) -> Declined:
        problem = _json_object(self.body)
        kind = str(problem.get("type", "")).rpartition(":")[2]
        return Declined(self.status, self.complaint, problem.get("culprit"), kind)

    def is_signed(self, curator_key: bytes, request: bytes) -> bool:
        """Whether the curator signed this answer to this request (`protocol.messages.signatures.answered_request`)."""
        said = (self.headers.get(name, "") for name in (VERSION_HEADER, RUN_HEADER, HELD_HEADER))
        text = response_text(self.status, self.body, request, *said)
        try:
            verify(curator_key, RESPONSE, text, bytes.fromhex(self.headers.get(CURATOR_SIGNATURE_HEADER, "")))
        except (CryptoError, ValueError):
            return False
        return True

    def check_version(self) -> None:
        """Check that both sides share a protocol version, in case the curator did not check this party's header."""
        theirs = Versions.parse(self.headers.get(VERSION_HEADER, str(UNSAID)))
        if theirs is None or SPOKEN.common(theirs) is None:
            raise Declined(self.status, disagreement(SPOKEN, theirs or UNSAID), CURATOR)

    def read(self, kind: TypeAdapter[Found]) -> Found:
        try:
            return read_as(kind, self.body, len(self.body), extra="ignore")  # a later curator may say more
        except ValueError as error:
            said = complaint(error, "its answer")
            raise TalkError(f"the curator's answer cannot be read: {said}; update one of the two") from None


async def received(response: httpx.Response, largest: int) -> Answer:
    """Read an answer of at most so many bytes as they come; a compressed one, or a longer one, is left unread."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in KNOWN_ENCODINGS:
        raise Untrusted(
            f"{response.url.host} answers in a compressed form, which this party does not ask for: a proxy in between "
            "may do that; nothing of it was read"
        )
    if response.is_error:
        largest = min(largest, _LARGEST_COMPLAINT)
    body = bytearray()
    announced = response.headers.get("Content-Length", "0")
    is_too_long = announced.isdecimal() and int(announced[:20]) > largest
    if not is_too_long:
        async for piece in response.aiter_raw():
            body += piece
            if is_too_long := len(body) > largest:
                break
    if is_too_long:
        raise Untrusted(f"{response.url.host} answers with more than {largest:,} bytes where no answer is so long")
    return Answer(response.status_code, response.headers, bytes(body))


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        found = read_json(data, _LARGEST_COMPLAINT)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
