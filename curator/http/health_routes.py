"""Routes for monitoring: whether the process lives, whether the service can work, and its metrics.

It does not know how health and metrics are determined (`curator.operations.health`, `curator.operations.metrics`).
"""

import hmac
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from curator.home.keys import METRICS_TOKEN
from curator.http.dependencies import Key, TheService, operator, service_of
from curator.http.problems import LATER, Kind, problem

_NOT_READY = Kind(503, "not-ready", "The curator cannot work now", LATER)
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "the text format of Prometheus", "content": {CONTENT_TYPE_LATEST: {}}}
}

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    checks: dict[str, Literal["ok"]]


async def scraper(request: Request, credentials: Key) -> None:
    """Admit the metrics token or an operator's key. A monitoring system should not hold an operator's key."""
    known = service_of(request).metrics_token
    if credentials is None or not hmac.compare_digest(credentials.credentials.encode(), known.encode()):
        await operator(request, credentials)


@router.get("/healthz", summary="Whether the process lives")
def healthz() -> Alive:
    return Alive()


@router.get("/readyz", summary="Whether store, disk and clock are in order", response_model=Ready)
def readyz(service: TheService) -> Response:
    checks = service.health.checks()
    wrong = {name: trouble for name, trouble in checks.items() if trouble is not None}
    if wrong:
        return problem(_NOT_READY, "; ".join(f"{name}: {trouble}" for name, trouble in wrong.items()))
    return JSONResponse(Ready(checks=dict.fromkeys(checks, "ok")).model_dump())


@router.get(
    "/metrics",
    summary="Metrics, for Prometheus",
    description=f"Needs the token in the home's file {METRICS_TOKEN!r}, or an operator's key.",
    response_class=Response,
    responses=_TEXT,
    dependencies=[Depends(scraper)],
)
async def metrics(service: TheService) -> Response:
    return Response(await run_in_threadpool(service.metrics.text), media_type=CONTENT_TYPE_LATEST)
