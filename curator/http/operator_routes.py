"""Routes for operators: codes, parties, schemas, plans and runs.

It does not know results (`curator.http.result_routes`) or how runs advance (`curator.runs.orchestrator`).
"""

from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from curator import interface
from curator.accounts import views
from curator.http.abandoning import while_waited_for
from curator.http.admission import AdmittingRoute, OperatorRoute, SchemaRoute
from curator.http.dependencies import After, Limit, Operator, TheService
from curator.service import Service
from protocol.exact import Hash
from protocol.messages.http import PartyName, RunId
from protocol.tables.schema import Schema

_EVENT_STREAM = "text/event-stream"
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "events, each with its number as id, until the run ends", "content": {_EVENT_STREAM: {}}}
}
_PLANS = {
    "all": {"summary": "all parties that offer rows", "value": {"schema": "5d" * 32, "epsilon": "0.8"}},
    "named": {
        "summary": "two parties, and wishes",
        "value": {
            "schema": "5d" * 32,
            "parties": ["hospital-1", "hospital-2"],
            "epsilon": "4/5",
            "method": "dp-ccbn",
            "noise": "distributed",
            "step_seconds": 3600,
        },
    },
}
_FORMAT_FILE = files("protocol.tables") / "table-schema.json"
_FORMAT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "a JSON Schema, the same for everybody",
        "content": {"application/schema+json": {"schema": {"type": "object"}}},
    }
}
_SCHEMA_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {
                    "title": "Example",
                    "attributes": [{"name": "sex", "kind": "categorical", "values": ["f", "m"]}],
                },
            }
        },
    }
}

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="the same key and body again give the same run",
    ),
]
Wishes = Annotated[interface.PlanRequest, Body(openapi_examples=_PLANS)]
WithCurve = Annotated[bool, Query(description="also the predicted error of the same plan by epsilon")]

router = APIRouter(prefix="/v1", tags=["operators"], route_class=OperatorRoute)
public = APIRouter(prefix="/v1", tags=["operators"], route_class=AdmittingRoute)
publishing = APIRouter(prefix="/v1", tags=["operators"], route_class=SchemaRoute)


# Parties


@router.post("/parties/codes", summary="Make a one-time enrolment code")
def new_code(_operator: Operator, body: interface.CodeRequest, service: TheService) -> interface.Code:
    return views.new_code(service.registry, service.introduction, body.name)


@router.get("/parties", summary="All parties")
def parties(_operator: Operator, service: TheService, limit: Limit = 100, after: After = "") -> interface.Parties:
    return views.party_page(service.registry, limit, after)


@router.post("/parties/{name}/revoke", status_code=204, summary="Take a party out; its runs fail")
def revoke(_operator: Operator, name: Annotated[PartyName, Path()], service: TheService) -> None:
    service.orchestrator.revoke(name)


# Schemas


class _Format(Response):
    media_type = "application/schema+json"


@public.get(
    "/schema-format",
    summary="How schemas are written, as a JSON Schema for editors; needs no key",
    response_class=_Format,
    responses=_FORMAT,
)
def schema_format() -> Response:
    return _Format(_FORMAT_FILE.read_bytes())


@publishing.post("/schemas", summary="Publish a schema", openapi_extra=_SCHEMA_BODY)
async def add_schema(_operator: Operator, request: Request, service: TheService) -> interface.AddedSchema:
    schema = await run_in_threadpool(Schema.parse, await request.body())
    await run_in_threadpool(service.registry.add_schema, schema)
    return views.added_schema(schema)


@router.get("/schemas", summary="All schemas")
def schemas(_operator: Operator, service: TheService, limit: Limit = 100, after: After = "") -> interface.Schemas:
    return views.schema_page(service.registry, limit, after)


@router.get("/schemas/{hash}", summary="One schema", responses={200: {"description": "its canonical JSON"}})
def schema(_operator: Operator, hash: Annotated[Hash, Path()], service: TheService) -> dict[str, Any]:
    return Response(service.registry.schema_text(hash), media_type="application/json")  # type: ignore[return-value]


# Plans and runs


@router.post("/plans", summary="Price a run; nothing is kept or spent")
async def plan(
    request: Request, _operator: Operator, body: Wishes, service: TheService, curve: WithCurve = False
) -> interface.PlanForecast:
    planner = service.orchestrator.planner
    found = await while_waited_for(request, lambda abandoned: planner.plan(body, abandoned=abandoned, with_curve=curve))
    return found.forecast


@router.post(
    "/runs",
    status_code=201,
    summary="Start a run",
    responses={200: {"model": interface.Run, "description": "it was there"}},
)
def create_run(
    _operator: Operator, body: Wishes, service: TheService, response: Response, idempotency_key: IdempotencyKey
) -> interface.Run:
    run, is_new = service.orchestrator.create_run(body, idempotency_key)
    response.status_code = 201 if is_new else 200
    return service.orchestrator.view(run)


@router.get("/runs", summary="All runs, the oldest first")
def runs(_operator: Operator, service: TheService, limit: Limit = 100, after: After = "") -> interface.Runs:
    found, following = interface.split_page(service.views.runs(limit + 1, after), limit)
    return interface.Runs(items=found, next=found[-1].run if following else None)


@router.get("/runs/{run}", summary="Where a run stands")
def run(_operator: Operator, run: Annotated[RunId, Path()], service: TheService) -> interface.Run:
    return service.orchestrator.view(run)


@router.post("/runs/{run}/cancel", summary="End a run; what was spent stays spent")
def cancel(
    _operator: Operator,
    run: Annotated[RunId, Path()],
    service: TheService,
    body: interface.Cancellation | None = None,
) -> interface.Run:
    service.orchestrator.cancel(run, body.reason if body else None)
    return service.orchestrator.view(run)


@router.get(
    "/runs/{run}/events", summary="What happens in a run, as it happens", response_class=Response, responses=_EVENTS
)
async def events(
    _operator: Operator,
    run: Annotated[RunId, Path()],
    service: TheService,
    last_event_id: Annotated[
        str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$", description="resume after this number")
    ] = "0",
) -> StreamingResponse:
    await run_in_threadpool(service.views.record, run)
    return StreamingResponse(_event_stream(service, run, int(last_event_id or 0)), media_type=_EVENT_STREAM)


async def _event_stream(service: Service, run: str, after: int) -> AsyncIterator[bytes]:
    async for event in service.relay.events(run, after):
        if event is None:
            yield format_sse_event(comment="still here")
        else:
            yield format_sse_event(id=str(event.seq), event=event.kind, data_str=event.model_dump_json())
