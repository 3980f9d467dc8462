"""A curator in one process for the parties' tests: small, in memory, but it checks and signs as a real one does.

It does not know sockets or storage. It advances `protocol.run.curator`, so that whatever a party sends must really fit.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

import httpx
from fastapi import FastAPI, Request, Response

from crypto.errors import BrokenSeal
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.signing import SigningKey, sign, verify
from curator.runs.run_crypto import public_half
from party.curator_link import client
from protocol.errors import PeerError
from protocol.exact import canonical_json
from protocol.messages import signatures as a
from protocol.messages.pins import joined, pin_of
from protocol.messages.tasks import Refusal, decode, encode
from protocol.plan.terms import Terms
from protocol.run.curator import RunState, begin, receive, tasks
from protocol.secure_sum.plain import PlainOpening
from protocol.secure_sum.selected import SelectedOpening
from protocol.secure_sum.sums import CuratorSums

URL = "https://curator.example"
NOW = 1_800_000_000.0


@dataclass
class FakeRun:
    state: RunState
    opening: CuratorSums
    stored: dict[tuple[str, str], bytes] = field(default_factory=dict)  # by step and party
    ended: str | None = None
    reason: str = ""
    culprit: str | None = None

    @property
    def terms(self) -> Terms:
        return self.state.terms

    @property
    def status(self) -> str:
        if self.ended:
            return self.ended
        if self.state.step is None:
            return "finished"
        return "joining" if self.state.step.stage == "joining" else "running"


class FakeCurator:
    def __init__(self) -> None:
        self.key = SigningKey.from_bytes(b"\x77" * 32)
        self.now = NOW
        self.ca, self.version = "", ""
        self.codes: dict[str, str] = {}
        self.parties: dict[str, dict[str, Any]] = {}
        self.offers: dict[tuple[str, str], dict[str, Any]] = {}
        self.runs: dict[str, FakeRun] = {}
        self.receipts: dict[str, list[dict[str, Any]]] = {}
        self.deliveries: list[tuple[str, str, str, bytes]] = []  # every PUT that arrived: run, step, party, bytes
        self.requests: list[str] = []
        self.nonces: set[str] = set()
        self.claims: dict[tuple[str, str, str], str] = {}  # by plan, step and party: the digest of a promised answer
        self.tables: dict[str, bytes] = {}  # published: by run
        self.before: list[Callable[[Request], Response | None]] = []  # faults: may answer in the curator's place
        self.after: list[Callable[[Request, Response], Response]] = []  # faults: may spoil an answer
        self.app = self._make_app()

    def transport(self) -> httpx.ASGITransport:
        return httpx.ASGITransport(app=self.app)

    def know(self, name: str, signing_key: bytes, exchange_key: bytes) -> None:
        self.parties[name] = {"signing_key": signing_key.hex(), "exchange_key": exchange_key.hex(), "revoked": False}

    @property
    def pin(self) -> str:
        return pin_of(self.key.public, self.ca)

    def code(self, name: str, secret: str = "code-1") -> str:
        """What the operator hands out: serves once."""
        self.codes[name] = secret
        return joined(secret, self.pin)

    def start(self, terms: Terms, secret: SecretKey | None = None) -> FakeRun:
        plan, keys, opening = terms.plan, None, PlainOpening(terms.plan)
        if plan.uses_paillier:
            assert secret is not None
            keys = public_half(secret, plan, Stream.keyed(b"indicator"))
            opening = SelectedOpening(plan.noise_mode, secret.public, secret.decrypt)
        self.runs[plan.run] = FakeRun(begin(terms, 0, keys), opening)
        return self.runs[plan.run]

    def task(self, run: FakeRun, name: str) -> bytes | None:
        if run.ended or name not in (names := [member.name for member in run.terms.plan.members]):
            return None
        party = names.index(name)
        return encode(tasks(run.state)[party]) if party in run.state.waiting_for else None

    def accept(self, run: FakeRun, name: str, body: bytes) -> None:
        """One answer; whatever is wrong with it ends the run, with the party as the culprit."""
        party = [member.name for member in run.terms.plan.members].index(name)
        try:
            reply = decode(body, name)
            if isinstance(reply, Refusal):
                run.ended, run.reason, run.culprit = (
                    "refused" if reply.step == "joining" else "failed",
                    reply.reason,
                    name,
                )
            else:
                run.state = receive(run.state, party, reply, run.opening)
        except PeerError as error:
            run.ended, run.reason, run.culprit = "failed", str(error), error.culprit

    def _make_app(self) -> FastAPI:
        app = FastAPI()
        app.middleware("http")(self._checked)
        app.get("/v1/inbox")(self._inbox)
        app.put("/v1/runs/{run}/outbox/{step:path}")(self._outbox)
        app.put("/v1/runs/{run}/receipts/{step:path}")(self._promise)
        app.get("/v1/runs/mine")(self._mine)
        app.get("/v1/receipts")(self._receipts)
        app.get("/v1/roster")(self._roster)
        app.get("/v1/runs/{run}/table.csv")(self._table)
        app.get("/v1/time")(self._time)
        app.put("/v1/offers/{dataset}")(self._offer)
        app.get("/v1/introduction")(self._introduction)
        app.post("/v1/enrolments")(self._enrol)
        app.post("/v1/keys")(self._rotate)
        return app

    async def _checked(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        self.requests.append(f"{request.method} {request.url.path}")
        body = await request.body()
        for fault in self.before:
            if (answer := fault(request)) is not None:
                return answer
        if request.url.path == "/v1/introduction":
            found: Response = await call_next(request)
            return found
        answer = self._complaint(request, body)
        if answer is None:
            inner: Any = await call_next(request)
            content = b"".join([piece async for piece in inner.body_iterator])
            answer = Response(content, inner.status_code, dict(inner.headers))
        answer.headers.update({a.VERSION_HEADER: self.version} if self.version else {})
        said = self.version, answer.headers.get(a.RUN_HEADER, ""), answer.headers.get(a.HELD_HEADER, "")
        signature = sign(self.key, a.RESPONSE, a.response_text(answer.status_code, answer.body, _asked(request), *said))
        answer.headers[a.CURATOR_SIGNATURE_HEADER] = signature.hex()
        for spoil in self.after:
            answer = spoil(request, answer)
        return answer

    def _complaint(self, request: Request, body: bytes) -> Response | None:
        name, nonce = _sender(request), request.headers[a.NONCE_HEADER]
        sent = int(request.headers[a.TIME_HEADER])
        here = int(self.now * 1000)
        if abs(here - sent) > a.LARGEST_CLOCK_DIFFERENCE_MS:
            return problem(401, f"your clock says {sent} ms, the curator's says {here} ms; set yours")
        if nonce in self.nonces:
            return problem(401, "this request was sent before")
        self.nonces.add(nonce)
        if request.url.path == "/v1/enrolments":
            key = json.loads(body)["signing_key"]
        elif name not in self.parties:
            return problem(401, f"no party {name!r} is enrolled")
        elif self.parties[name]["revoked"]:
            return problem(403, f"the party {name!r} was revoked by the operator")
        else:
            key = self.parties[name]["signing_key"]
        try:
            verify(bytes.fromhex(key), a.REQUEST, _text(request), bytes.fromhex(request.headers[a.SIGNATURE_HEADER]))
        except BrokenSeal:
            return problem(401, "the signature does not fit")
        if request.headers[a.DIGEST_HEADER] != hashlib.sha256(body).hexdigest():
            return problem(401, "the body is not the signed one")
        return None

    async def _inbox(self, request: Request) -> Response:
        skipped = request.query_params.getlist("skip")
        for name, run in self.runs.items():
            task = self.task(run, _sender(request)) if name not in skipped else None
            if task is not None:
                held = str(len(self.receipts.get(_sender(request), [])))
                return Response(task, 200, {a.RUN_HEADER: name, a.HELD_HEADER: held}, "application/octet-stream")
        return Response(status_code=204)

    async def _outbox(self, run: str, step: str, request: Request) -> Response:
        name, body = _sender(request), await request.body()
        self.deliveries.append((run, step, name, body))
        found = self.runs[run]
        stored = found.stored.get((step, name))
        if stored == body:
            return Response(status_code=204)
        if stored is not None:
            return problem(409, f"{name} has answered {step!r} with other bytes", type="urn:x:problem:other-bytes")
        if self.task(found, name) is None:
            return problem(409, f"{step!r} is not asked of {name}")
        party = [member.name for member in found.terms.plan.members].index(name)
        nothing = Fraction(0)
        costs = ((s.charge(party), s.delta(party)) for s in found.terms.steps if s.name == step)
        charge, delta = next(costs, (nothing, nothing))
        refuses = isinstance(decode(body, name), Refusal)
        if refuses:
            charge = delta = nothing
        signature, role = request.headers[a.RECEIPT_HEADER], a.REFUSAL_RECEIPT if refuses else a.RECEIPT
        text = a.receipt_text(found.terms.plan_hash, step, charge, body, delta)
        verify(bytes.fromhex(self.parties[name]["signing_key"]), role, text, bytes.fromhex(signature))
        found.stored[step, name] = body
        receipt = {"run": run, "plan": found.terms.plan_hash, "step": step, "charge": str(charge)}
        receipt |= {"delta": str(delta)}
        receipt |= {"digest": hashlib.sha256(body).hexdigest(), "signature": signature}
        self.receipts.setdefault(name, []).append(receipt)
        self.accept(found, name, body)
        return Response(status_code=204)

    async def _promise(self, run: str, step: str, request: Request) -> Response:
        name, promised = _sender(request), (await request.json())["digest"]
        found = self.runs[run]
        stored = found.stored.get((step, name))
        known = (
            self.claims.get((found.terms.plan_hash, step, name))
            if stored is None
            else hashlib.sha256(stored).hexdigest()
        )
        if known not in (None, promised):
            return problem(409, f"{name} has answered {step!r} with other bytes", type="urn:x:problem:other-bytes")
        if known is None and self.task(found, name) is None:
            return problem(409, f"{step!r} is not asked of {name}")
        self.claims[found.terms.plan_hash, step, name] = promised
        return Response(status_code=204)

    async def _mine(self, request: Request) -> list[dict[str, Any]]:
        return [
            {"run": name, "plan": r.terms.plan_hash, "state": r.status, "reason": r.reason, "culprit": r.culprit}
            for name, r in self.runs.items()
            if _sender(request) in [member.name for member in r.terms.plan.members]
        ]

    async def _receipts(self, request: Request) -> list[dict[str, Any]]:
        """A page of the receipts, after the place that the party names."""
        found, after = self.receipts.get(_sender(request), []), request.query_params.get("after")
        places = [f"{one['run']}/{one['step']}" for one in found]
        start = places.index(after) + 1 if after else 0
        return found[start : start + client.MOST_LISTED]

    async def _roster(self) -> list[dict[str, Any]]:
        return [{"name": name} | party for name, party in self.parties.items()]

    async def _table(self, run: str) -> Response:
        if run not in self.tables:
            return problem(409, f"run {run} is running: only a finished run has results")
        return Response(self.tables[run], media_type="text/csv")

    async def _time(self) -> dict[str, int]:
        return {"time_ms": int(self.now * 1000)}

    async def _offer(self, dataset: str, request: Request) -> Response:
        self.offers[_sender(request), dataset] = await request.json()
        return Response(status_code=204)

    async def _introduction(self) -> dict[str, str]:
        return {"curator_key": self.key.public.hex(), "ca": self.ca}

    async def _enrol(self, request: Request) -> Response:
        sent = await request.json()
        if self.codes.get(sent["name"]) != sent["code"]:
            return problem(403, "this code is not valid for this name")
        del self.codes[sent["name"]]
        self.know(sent["name"], bytes.fromhex(sent["signing_key"]), bytes.fromhex(sent["exchange_key"]))
        content = {"name": sent["name"], "curator_key": self.key.public.hex()}
        return Response(json.dumps(content), 201, media_type="application/json")

    async def _rotate(self, request: Request) -> Response:
        sent = await request.json()
        new = {name: bytes.fromhex(sent[name]) for name in ("signing_key", "exchange_key")}
        text = canonical_json({"name": _sender(request)} | {name: key.hex() for name, key in new.items()})
        verify(new["signing_key"], a.ROTATION, text, bytes.fromhex(sent["signature"]))
        self.know(_sender(request), **new)
        return Response(status_code=204)


def _asked(request: Request) -> bytes:
    return a.answered_request(_text(request), request.headers[a.SIGNATURE_HEADER])


def _text(request: Request) -> bytes:
    """What the sender of the request has signed."""
    target, query = request.scope["raw_path"].decode(), request.scope["query_string"].decode()
    headers = (a.TIME_HEADER, a.NONCE_HEADER, a.VERSION_HEADER)
    said = (request.headers[name] for name in headers)
    target += f"?{query}" if query else ""
    return a.request_text(request.method, target, request.headers[a.DIGEST_HEADER], _sender(request), *said)


def _sender(request: Request) -> str:
    return unquote(request.headers[a.PARTY_HEADER])


def problem(status: int, detail: str, **more: Any) -> Response:
    content = {"type": "about:blank", "title": "refused", "status": status, "detail": detail} | more
    return Response(json.dumps(content), status, media_type="application/problem+json")
