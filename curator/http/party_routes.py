"""Routes for parties: enrolment, keys, offers, tasks, answers, and the party's own records.

It does not know how answers are checked (`curator.runs.orchestrator`) or signatures verified
(`curator.accounts.authentication`).
"""

from typing import IO, Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from crypto.signing import verify
from curator.accounts.registry import Registry
from curator.http.admission import AdmittingRoute, AnswerRoute, OfferRoute, PartyRoute
from curator.http.bodies import announced_bytes, received, write_body
from curator.http.dependencies import Newcomer, Party, TheService
from curator.runs.orchestrator import Orchestrator
from curator.runs.spool import Question, no_room
from protocol.messages import http
from protocol.messages.http import LONGEST_POLL, DatasetName, RunId, StepName
from protocol.messages.signatures import DIGEST_HEADER, HELD_HEADER, RECEIPT_HEADER, ROTATION, RUN_HEADER
from protocol.tables.schema import Schema

OCTETS = "application/octet-stream"
_MOST_SKIPPED = 1000
_SIGNATURE_BYTES = 64
_ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {"description": "the oldest task that waits for this party", "content": {OCTETS: {}}},
    204: {"description": "nothing waits"},
}
_BYTES = {"requestBody": {"required": True, "content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}}

newcomers = APIRouter(prefix="/v1", tags=["parties"], route_class=AdmittingRoute)
router = APIRouter(prefix="/v1", tags=["parties"], route_class=PartyRoute)
offers = APIRouter(prefix="/v1", tags=["parties"], route_class=OfferRoute)
answers = APIRouter(prefix="/v1", tags=["parties"], route_class=AnswerRoute)


@newcomers.get("/introduction", summary="The curator's key and CA, for who can prove them")
def introduction(service: TheService) -> http.Introduction:
    key, ca = service.introduction
    return http.Introduction(curator_key=key.hex(), ca=ca)


@newcomers.post("/enrolments", status_code=201, summary="Enrol with a one-time code")
def enrol(body: Newcomer, service: TheService) -> http.Enrolled:
    keys = bytes.fromhex(body.signing_key), bytes.fromhex(body.exchange_key)
    record = service.registry.enrol(body.code, body.name, *keys)
    return http.Enrolled(name=record.name, curator_key=service.keys.signing.public.hex())


@router.post("/keys", status_code=204, summary="Change this party's keys")
def rotate(party: Party, body: http.Rotation, service: TheService) -> None:
    text = http.rotation_text(party, body.signing_key, body.exchange_key)
    # The new key must sign the change too, so that nobody can claim a key that belongs to somebody else.
    verify(bytes.fromhex(body.signing_key), ROTATION, text, bytes.fromhex(body.signature))
    service.registry.rotate(party, bytes.fromhex(body.signing_key), bytes.fromhex(body.exchange_key))


@offers.put("/offers/{dataset}", status_code=204, summary="Offer rows of a schema")
async def offer(
    party: Party, dataset: Annotated[DatasetName, Path()], body: http.OfferBody, service: TheService
) -> None:
    """Take an offer. Offers are read one after the other: those that wait hold no thread."""
    async with service.offering:
        await run_in_threadpool(_offer, service.registry, party, dataset, body)


def _offer(registry: Registry, party: str, dataset: str, body: http.OfferBody) -> None:
    registry.offer(party, dataset, Schema.parse(body.schema_text), body.rows, body.rows_per_person)


@router.get("/inbox", summary="The next task", response_class=Response, responses=_ANSWERED)
async def inbox(
    party: Party,
    service: TheService,
    wait: Annotated[int, Query(ge=0, le=LONGEST_POLL, description="seconds to wait for a task")] = 0,
    skip: Annotated[
        list[RunId] | None, Query(max_length=_MOST_SKIPPED, description="runs that wait for their data owner")
    ] = None,
) -> Response:
    found = await service.relay.inbox(party, wait, tuple(skip or ()))
    if found is None:
        return Response(status_code=204)
    run, task = found
    # A copy of the party that is behind learns by this number that the curator holds receipts which it does not know.
    held = await run_in_threadpool(service.views.receipts_held, party)
    return Response(task, media_type=OCTETS, headers={RUN_HEADER: run, HELD_HEADER: str(held)})


@router.put("/runs/{run}/receipts/{step:path}", status_code=204, summary="Promise an answer, before it is sent")
def promise(
    party: Party,
    run: Annotated[RunId, Path()],
    step: Annotated[StepName, Path()],
    body: http.Claim,
    service: TheService,
) -> None:
    service.orchestrator.promise(run, step, party, body.digest, bytes.fromhex(body.receipt))


@answers.put("/runs/{run}/outbox/{step:path}", status_code=204, summary="Answer a task", openapi_extra=_BYTES)
async def deliver(
    request: Request,
    party: Party,
    run: Annotated[RunId, Path()],
    step: Annotated[StepName, Path()],
    service: TheService,
    receipt: Annotated[http.Signature, Header(alias=RECEIPT_HEADER)],
) -> None:
    """Take an answer that is expected now. A repetition of an accepted answer is not read again."""
    size = announced_bytes(request.headers)
    if size is None:
        raise HTTPException(411, "an answer says how long it is: send Content-Length")
    digest, orchestrator = request.headers[DIGEST_HEADER], service.orchestrator
    if not await run_in_threadpool(orchestrator.awaits, run, step, party, digest, size):
        return
    with service.spool.place((run, step, party), size) as file:
        try:
            await write_body(received(request, size), file)
        except OSError as error:
            orchestrator.store_failed(failure := no_room(error))
            raise failure from error
        async with service.spool.turn(size):
            await run_in_threadpool(_deliver, orchestrator, (run, step, party), file, bytes.fromhex(receipt))


def _deliver(orchestrator: Orchestrator, question: Question, file: IO[bytes], receipt: bytes) -> None:
    file.seek(0)
    orchestrator.deliver(*question, file.read(), receipt)


@router.get("/runs/mine", summary="The runs that this party is in, page by page")
async def my_runs(request: Request, party: Party, service: TheService, after: RunId | None = None) -> list[http.OwnRun]:
    async with request.app.state.open_requests.listing(party):
        return await run_in_threadpool(service.views.of_party, party, after or "")


@router.get("/receipts", summary="Everything that this party has ever delivered, page by page")
async def receipts(
    request: Request, party: Party, service: TheService, after: http.ReceiptPlace | None = None
) -> list[http.SentReceipt]:
    async with request.app.state.open_requests.listing(party):
        return await run_in_threadpool(service.views.receipts, party, after or "")


@router.get("/time", summary="The curator's clock, in its signed words")
def time(_party: Party, service: TheService) -> http.CuratorTime:
    return http.CuratorTime(time_ms=service.health.clock())


@router.get("/roster", summary="All parties and their keys")
def roster(_party: Party, service: TheService) -> list[http.Peer]:
    return [
        http.Peer(
            name=record.name,
            signing_key=record.signing_key.hex(),
            exchange_key=record.exchange_key.hex(),
            revoked=record.revoked is not None,
        )
        for record in service.registry.parties()
    ]
