"""Client of the curator: it signs every request, and accepts only answers signed by the pinned curator.

It does not know runs, tasks or the ledger.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import TypeVar
from urllib.parse import quote, urlencode

import httpx
from pydantic import TypeAdapter

from crypto.randomness import Stream
from crypto.signing import SigningKey, sign
from party.curator_link.answers import Answer, received
from party.curator_link.way import STRAIGHT, Way, inspector
from party.errors import TalkError, Unreachable, Untrusted
from party.logs import Log, silent
from protocol.exact import digest
from protocol.identity import Identity
from protocol.messages.http import (
    MOST_LISTED,
    Asked,
    Claim,
    CuratorTime,
    Enrolment,
    OfferBody,
    OwnRun,
    Peer,
    Rotation,
    SentReceipt,
    rotation_text,
)
from protocol.messages.signatures import (
    DIGEST_HEADER,
    HELD_HEADER,
    NONCE_HEADER,
    PARTY_HEADER,
    RECEIPT_HEADER,
    REQUEST,
    ROTATION,
    RUN_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    VERSION_HEADER,
    answered_request,
    request_text,
)
from protocol.messages.tasks import LARGEST_TASK
from protocol.messages.versions import SPOKEN
from protocol.services.connection import check_address, distrust, hung_up, inspected, no_answer

NONCE_BYTES = 16
_ANSWER_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_LATER = (408, 425, 429)
_SHORT = 1 << 16  # bytes of an answer that says little
_LARGEST_LIST = 1 << 26  # of parties
_LARGEST_PAGE = 1 << 23  # of runs or receipts
MOST_LISTED_IN_ALL = 200_000
LARGEST_TABLE = 1 << 30  # a synthetic table
_SOFTWARE = f"dp-subn/{version('dp-subn')}"

Listed = TypeVar("Listed", OwnRun, SentReceipt)


@dataclass(frozen=True)
class Waiting:
    """A task from the inbox, under the run's name, and the number of this party's receipts that the curator holds."""

    run: str
    task: bytes = field(repr=False)
    held: int | None = None


@dataclass(frozen=True)
class Backoff:
    """Seconds before the next try: exponential with full jitter, so that parties do not retry at the same moments."""

    first: float = 0.5
    longest: float = 30.0

    def seconds(self, failures: int, stream: Stream) -> float:
        ceiling = min(self.longest, self.first * 2 ** min(failures, 30))
        return float(ceiling) * stream.below(1 << 32) / (1 << 32)


class Curator:
    """One party's connection to its curator. Tests replace `transport`, `clock`, `sleep` and `stream`."""

    def __init__(
        self,
        url: str,
        name: str,
        key: SigningKey,
        curator_key: bytes,
        *,
        ca: str = "",
        way: Way = STRAIGHT,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        stream: Stream | None = None,
        backoff: Backoff | None = None,
        tries: int | None = None,
        log: Log = silent,
    ) -> None:
        """Connect to a curator. `tries` limits the attempts of a request, None does not; `ca` is pinned, in PEM."""
        check_address(url)
        self._name, self._key, self._curator_key = name, key, curator_key
        self._clock, self._sleep, self._log, self._tries = clock, sleep, log, tries
        self._stream = stream or Stream.system()
        self._backoff = backoff or Backoff()
        timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        self._way = way if transport is None else None
        self._http = httpx.AsyncClient(
            base_url=url,
            transport=transport or way.lasting(ca),
            timeout=timeout,
            headers={"Accept-Encoding": "identity"},  # nothing is unpacked before its signature is checked
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # none is kept
            trust_env=False,
        )

    async def __aenter__(self) -> "Curator":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._http.aclose()

    async def inbox(self, wait: int, skip: Sequence[str] = ()) -> Waiting | None:
        """The oldest task that waits for this party; `skip` names runs that wait for the data owner."""
        query = urlencode([("wait", wait), *(("skip", run) for run in skip)])
        answer = await self._call("GET", f"/v1/inbox?{query}", seconds=wait + _ANSWER_SECONDS, largest=LARGEST_TASK)
        if answer.status == httpx.codes.NO_CONTENT:
            return None
        # A name to send an answer to: which run a task belongs to follows from its plan.
        run, held = answer.headers.get(RUN_HEADER, ""), answer.headers.get(HELD_HEADER, "")
        return Waiting(run, answer.body, int(held[:20]) if held.isdecimal() else None)

    async def deliver(self, run: str, step: str, reply: bytes, receipt: bytes) -> None:
        """Deliver an answer: its receipt first, and the bytes only if the curator knows of no others for this step.

        Privacy: if two copies of a home answer one step, the bytes of the second one never leave.
        """
        claim = Claim.model_construct(digest=digest(reply), receipt=receipt.hex())
        await self._send("PUT", f"/v1/runs/{quote(run, safe='')}/receipts/{quote(step)}", claim)
        headers = {RECEIPT_HEADER: receipt.hex(), "Content-Type": "application/octet-stream"}
        await self._call("PUT", f"/v1/runs/{quote(run, safe='')}/outbox/{quote(step)}", reply, headers)

    async def my_runs(self) -> list[OwnRun]:
        return await self._listed("/v1/runs/mine", TypeAdapter(list[OwnRun]))

    async def receipts(self) -> list[SentReceipt]:
        return await self._listed("/v1/receipts", TypeAdapter(list[SentReceipt]))

    async def clock_difference(self) -> int:
        """Milliseconds by which the curator's signed time is ahead of this machine's."""
        asked = self._clock()
        found = (await self._call("GET", "/v1/time")).read(TypeAdapter(CuratorTime))
        return found.time_ms - int(1000 * (asked + self._clock()) / 2)

    async def roster(self) -> list[Peer]:
        return (await self._call("GET", "/v1/roster", largest=_LARGEST_LIST)).read(TypeAdapter(list[Peer]))

    async def table(self, run: str) -> bytes:
        """The synthetic table of a finished run, as it was published."""
        return (await self._call("GET", f"/v1/runs/{quote(run, safe='')}/table.csv", largest=LARGEST_TABLE)).body

    async def offer(self, dataset: str, schema_text: str, rows: int, rows_per_person: int | None = None) -> None:
        body = OfferBody.model_construct(schema_text=schema_text, rows=rows, rows_per_person=rows_per_person)
        await self._send("PUT", f"/v1/offers/{quote(dataset, safe='')}", body)

    async def enrol(self, secret: str, exchange_key: bytes) -> None:
        """Exchange the secret of a one-time code for membership.

        The new key signs the request, so that nobody enrols somebody else's key.
        """
        keys = self._key.public.hex(), exchange_key.hex()
        body = Enrolment.model_construct(code=secret, name=self._name, signing_key=keys[0], exchange_key=keys[1])
        await self._send("POST", "/v1/enrolments", body)

    async def rotate(self, following: Identity) -> None:
        """Announce the next keys: the old key signs the request, and the new key signs that both belong together."""
        keys = following.signing.public.hex(), following.exchange.public.hex()
        proof = sign(following.signing, ROTATION, rotation_text(self._name, *keys))
        body = Rotation.model_construct(signing_key=keys[0], exchange_key=keys[1], signature=proof.hex())
        await self._send("POST", "/v1/keys", body)

    async def _listed(self, target: str, kind: TypeAdapter[list[Listed]]) -> list[Listed]:
        """Ask page by page. Their number has a bound, whatever the curator says."""
        found: list[Listed] = []
        while True:
            after = f"?{urlencode({'after': found[-1].place})}" if found else ""
            page = (await self._call("GET", target + after, largest=_LARGEST_PAGE)).read(kind)
            found += page
            if len(page) < MOST_LISTED:
                return found
            if len(found) > MOST_LISTED_IN_ALL:
                raise TalkError(f"the curator lists more than {MOST_LISTED_IN_ALL:,} entries: nothing was believed")

    async def _send(self, method: str, target: str, body: Asked) -> Answer:
        """Send input that a person may have typed, unchecked: the curator judges it and says what is wrong."""
        return await self._call(method, target, body.to_json(), {"Content-Type": "application/json"})

    async def _call(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        seconds: float = _ANSWER_SECONDS,
        largest: int = _SHORT,
    ) -> Answer:
        """Send a request until it is answered. Every attempt is signed anew, because a nonce serves once."""
        failures = 0
        while True:
            try:
                return await self._attempt(method, target, body, headers or {}, seconds, largest)
            except Unreachable as trouble:
                failures += 1
                if failures == self._tries:
                    raise
                delay = self._backoff.seconds(failures - 1, self._stream)
                self._log("waiting for the curator", reason=str(trouble), tries=failures, seconds=round(delay, 1))
                await self._sleep(delay)

    async def _attempt(
        self, method: str, target: str, body: bytes, headers: dict[str, str], seconds: float, largest: int
    ) -> Answer:
        request = self._http.build_request(
            method, target, content=body, headers=headers, timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        )
        asked = self._sign(request, body)
        answer = await self._exchanged(request, largest)
        is_signed = answer.is_signed(self._curator_key, asked)
        if answer.status >= httpx.codes.INTERNAL_SERVER_ERROR or answer.status in _LATER:
            said = f": {answer.complaint}" if is_signed else ""  # a proxy's words are nobody's here
            raise Unreachable(f"{self._http.base_url} says {answer.status}{said}")
        if not is_signed:
            raise Untrusted(
                f"an answer ({answer.status}) from {self._http.base_url} is not signed by the curator that this "
                "party has enrolled with: something on the way answers in its place, or its key has changed (then its "
                "operator tells you the new pin for `subn-party recognise`); nothing was believed"
            )
        answer.check_version()
        if answer.is_error:
            raise answer.as_error()
        return answer

    async def _exchanged(self, request: httpx.Request, largest: int) -> Answer:
        try:
            response = await self._http.send(request, stream=True)
            try:
                return await received(response, largest)
            finally:
                await response.aclose()
        except httpx.RequestError as error:  # no server, a broken connection, or bytes that are no HTTP answer
            raise await self._no_answer(error) from error

    async def _no_answer(self, error: httpx.RequestError) -> TalkError:
        url = str(self._http.base_url)
        distrusted = distrust(url, error)
        if distrusted is not None:
            issuer = await inspector(url, self._way) if self._way is not None else None
            return Untrusted(distrusted if issuer is None else inspected(url, issuer))
        hint = hung_up(url) if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else ""
        return Unreachable(no_answer(url, error) + hint)

    def _sign(self, request: httpx.Request, body: bytes) -> bytes:
        """Sign a request in its headers. Return the `answered_request` that its answer has to name."""
        now, nonce = int(self._clock() * 1000), self._stream.take(NONCE_BYTES).hex()
        target, spoken = request.url.raw_path.decode(), str(SPOKEN)
        body_digest = digest(body)
        text = request_text(request.method, target, body_digest, self._name, now, nonce, spoken)
        signature = sign(self._key, REQUEST, text).hex()
        request.headers.update(
            {
                PARTY_HEADER: quote(self._name),
                TIME_HEADER: str(now),
                NONCE_HEADER: nonce,
                DIGEST_HEADER: body_digest,
                SIGNATURE_HEADER: signature,
                VERSION_HEADER: spoken,
                "User-Agent": _SOFTWARE,  # shown to the operator
            }
        )
        return answered_request(text, signature)
