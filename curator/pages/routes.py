"""All routes of the operator's pages, which `curator.app` adds to the application, and signing in and out.

It does not know what the other pages show (`party_pages`, `plan_page`, `run_pages`, `schema_pages`).
"""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Form, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.staticfiles import StaticFiles

from crypto.randomness import Stream
from curator.accounts.sessions import LIFE_SECONDS
from curator.errors import NotAuthenticated
from curator.http.dependencies import COOKIE, TheService
from curator.pages import parties as party_pages
from curator.pages import plan as plan_page
from curator.pages import runs as run_pages
from curator.pages import schemas as schema_pages
from curator.pages.frame import PageRoute, Sending, SignedIn, SignInRoute, page, see_other, with_cookie
from protocol.services.glossary import Term, terms_in

_STATIC = Path(__file__).parent / "static"
_HOME = "/runs"

router = APIRouter(route_class=PageRoute, include_in_schema=False)
entrance = APIRouter(route_class=SignInRoute, include_in_schema=False)


class _Files(StaticFiles):
    """Static files that browsers check for changes on every use, so that an update is visible at once."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def add_pages(app: FastAPI) -> None:
    for part in (router, entrance, party_pages.router, plan_page.router, run_pages.router, schema_pages.router):
        app.include_router(part)
    app.mount("/static", _Files(directory=_STATIC), name="static")


@router.get("/")
def home() -> Response:
    return see_other(_HOME)


@router.get("/words")
def words(session: SignedIn) -> Response:
    return page("words.html", session, terms=_glossary())


@entrance.get("/sign-in")
def sign_in(then: str = _HOME) -> Response:
    return page("sign_in.html", then=_own_path(then), wrong=None)


@entrance.post("/sign-in")
async def begin(
    request: Request, service: TheService, key: Annotated[str, Form()] = "", then: Annotated[str, Form()] = _HOME
) -> Response:
    try:
        token = await run_in_threadpool(service.sessions.begin, key.strip(), Stream.system())
    except NotAuthenticated as error:
        return page("sign_in.html", then=_own_path(then), wrong=str(error), status=403)
    return with_cookie(see_other(_own_path(then)), request, token, LIFE_SECONDS)


@router.post("/sign-out")
async def end(request: Request, _session: Sending, service: TheService) -> Response:
    await run_in_threadpool(service.sessions.end, request.cookies[COOKIE])
    return with_cookie(see_other("/sign-in"), request, "", 0)


@cache
def _glossary() -> tuple[Term, ...]:
    return terms_in((files("protocol") / "glossary.md").read_text(encoding="utf-8"))


def _own_path(path: str) -> str:
    """Return the page to show after signing in: `path` if it is on this server, else the list of runs."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else _HOME
