"""The curator's HTTP application: routes, edges, health, and its OpenAPI document.

It does not know what the routes do.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from curator.http import health_routes, operator_routes, party_routes, result_routes
from curator.http.middleware import OnlyFromProxy, RequestLog, SecurityHeaders, SignedAnswers
from curator.http.open_requests import Leaving, OpenRequests
from curator.http.problems import MEDIA_TYPE, handle_problems
from curator.interface import Problem
from curator.pages.routes import add_pages
from curator.service import Service

_DESCRIPTION = (
    "One synthetic table of many parties' records under differential privacy. Parties call the curator and "
    "sign every request; operators send a key. Every error is a problem document (RFC 9457) with one clear sentence."
)
# The service's own log is the only record of requests: nothing is exported.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def make_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="dp-subn curator",
        description=_DESCRIPTION,
        version=version("dp-subn"),
        docs_url=None,  # the pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        telemetry=_NO_TELEMETRY,
    )
    app.state.service, app.state.open_requests = service, OpenRequests()
    handle_problems(app)
    app.add_middleware(SignedAnswers, key=service.keys.signing)
    if service.settings.behind_proxy:
        app.add_middleware(OnlyFromProxy, proxies=service.settings.proxies)
    app.add_middleware(Leaving, requests=app.state.open_requests)
    app.add_middleware(RequestLog, observe=service.metrics.request)
    app.add_middleware(SecurityHeaders)
    for router in (party_routes.newcomers, party_routes.router, party_routes.offers, party_routes.answers):
        app.include_router(router)  # before the operators' routes: /v1/runs/mine is not a run
    app.include_router(operator_routes.public)
    app.include_router(operator_routes.publishing)
    app.include_router(operator_routes.router)
    app.include_router(result_routes.router)
    add_pages(app)
    app.include_router(health_routes.router)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    async with service.relay:
        yield
    service.close()


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, in which every error is a problem."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document["components"]["schemas"]
        schemas["Problem"] = Problem.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        problem = {
            "description": "A problem",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = problem
        app.openapi_schema = document
    return app.openapi_schema
