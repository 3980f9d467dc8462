"""The local interface, on this machine only: the data owner's requests, decisions, account and audit log.

It does not know the curator. Everything but the two health checks needs the token, which only the owner's file has.
"""

import hmac
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from party.curator_link.client import Curator
from party.errors import LedgerError
from party.home.home import OpenHome, UnknownRun
from party.home.tokens import TOKEN_FILE
from party.operations.health import Health
from party.operations.metrics import Metrics
from party.pages import schemas
from party.pages.bodies import BodyGuard
from party.pages.guard import PageGuard
from party.pages.routes import add_pages
from party.pages.sessions import Door, cookie_name
from party.routes import LocalInterface
from protocol.errors import SubnError

_BEARER = HTTPBearer(auto_error=False, description=f"the content of the home's file {TOKEN_FILE!r}")
_LONGEST_PLACE = 100
# Nothing about requests is recorded or exported except in the service's own log.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def make_app(
    opened: OpenHome, token: str, health: Health, line: Curator | None = None, door: Door | None = None
) -> FastAPI:
    """Make the local interface. `line` connects to the curator; /readyz reports what `health` finds wrong."""
    door = door or Door()
    app = FastAPI(
        title="dp-subn party",
        version=version("dp-subn"),
        docs_url=None,
        redoc_url=None,
        description=__doc__ or "",
        telemetry=_NO_TELEMETRY,
    )
    app.add_exception_handler(SubnError, _problem)
    app.add_exception_handler(RequestValidationError, _misread)
    _add_health(app, health)
    app.include_router(LocalInterface(opened, door).router(), dependencies=[Depends(_guard(token))])
    add_pages(app, opened, door, health.trouble, line)
    app.add_middleware(
        BodyGuard, may_send=lambda headers: _may_decide(headers, token, opened, door), larger=schemas.FORMS
    )
    app.add_middleware(PageGuard, hosts=opened.settings.local.hosts)
    return app


def _may_decide(headers: Headers, token: str, opened: OpenHome, door: Door) -> bool:
    """Whether a request comes with the token or from a signed-in browser, by its head alone."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and _is_one_of(given.strip(), (token,)):
        return True
    cookies = cookie_parser(headers.get("cookie", ""))
    return door.session(cookies.get(cookie_name(opened.keys.identity.signing.public))) is not None


def _is_one_of(given: str, tokens: Sequence[str]) -> bool:
    return any(hmac.compare_digest(given.encode(), token.encode()) for token in tokens)


def _guard(*tokens: str) -> Callable[..., None]:
    def guard(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        if credentials is None or not _is_one_of(credentials.credentials, tokens):
            raise HTTPException(
                401, f"this needs the token in the home's file {TOKEN_FILE!r}", {"WWW-Authenticate": "Bearer"}
            )

    return guard


def add_metrics(app: FastAPI, metrics: Metrics, tokens: tuple[str, ...]) -> None:
    """Add metrics for the data owner's own Prometheus, which needs only the metrics token."""

    @app.get("/metrics", dependencies=[Depends(_guard(*tokens))], summary="Metrics, for Prometheus")
    def scrape() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _add_health(app: FastAPI, health: Health) -> None:
    @app.get("/healthz", summary="Is the process alive?")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", summary="Are ledger, disk, clock and curator in order?", response_model=None)
    def readyz() -> JSONResponse:
        checks = health.checks()
        wrong = [f"{name}: {trouble}" for name, trouble in checks.items() if trouble is not None]
        if wrong:
            return JSONResponse({"status": "not ready", "reason": "; ".join(wrong)}, 503)
        return JSONResponse({"status": "ready", "checks": dict.fromkeys(checks, "ok")})


async def _misread(_request: Request, error: Exception) -> JSONResponse:
    """Say where a request is wrong. What was sent is not repeated: it may be any bytes."""
    assert isinstance(error, RequestValidationError)
    said = "; ".join(f"{'.'.join(map(str, one['loc']))[:_LONGEST_PLACE]}: {one['msg']}" for one in error.errors())
    content = {"type": "about:blank", "title": "not understood", "status": 422, "detail": said}
    return JSONResponse(content, 422, media_type="application/problem+json")


async def _problem(_request: Request, error: Exception) -> JSONResponse:
    status = 404 if isinstance(error, UnknownRun) else 409 if isinstance(error, LedgerError) else 500
    content = {"type": "about:blank", "title": type(error).__name__, "status": status, "detail": str(error)}
    return JSONResponse(content, status, media_type="application/problem+json")
