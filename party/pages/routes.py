"""Routes of the data owner's pages: requests, costs, answers, the audit log, and the owner's decisions.

It does not know how pages are written (`party.pages.rendering`) or who may see them (`party.pages.sessions`). Nothing
here reads a row, except through `party.comparison.comparison`, whose findings stay on this machine.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from party.books.ledger import Request as Asked
from party.comparison import comparison
from party.curator_link.client import Curator
from party.errors import LedgerError, PolicyRefusal, TalkError
from party.home.home import OpenHome
from party.pages import schema_diff
from party.pages.rendering import Renderer, glossary
from party.pages.schemas import schema_pages
from party.pages.sessions import SESSION_SECONDS, Door, Session, cookie_name, is_same
from party.pages.views import Views
from protocol.errors import DataError
from protocol.services import schema_words

STATIC = Path(__file__).parent / "static"
BY = "page"
_LONGEST_REASON = 1000
_FORM_TOKEN = "form_token"  # noqa: S105 - the name of the field


class SignedOut(Exception):
    """Nobody is signed in, or a form did not come from one of these pages."""


class UnknownPage(Exception):
    pass


def add_pages(
    app: FastAPI, opened: OpenHome, door: Door, trouble: Callable[[], str | None], line: Curator | None = None
) -> None:
    """Add the pages to `app`. Without `line` to the curator they show neither its roster nor published tables."""
    render = Renderer(opened, trouble)
    guards = SessionGuards(opened, door)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.include_router(_entry(opened, door, render, guards))
    app.include_router(_of_requests(opened, render, guards))
    app.include_router(_of_the_party(opened, render, guards, line))
    app.include_router(_deciding(opened, render, guards, line))
    app.include_router(schema_pages(opened, render, Depends(guards.reader), Depends(guards.writer)))
    _add_failures(app, render)


class SessionGuards:
    """Dependencies of the routes: they let signed-in browsers through."""

    def __init__(self, opened: OpenHome, door: Door) -> None:
        self._door, self.cookie = door, cookie_name(opened.keys.identity.signing.public)

    def reader(self, request: Request) -> Session:
        session = self._door.session(request.cookies.get(self.cookie))
        if session is None:
            raise SignedOut
        return session

    def writer(self, request: Request, form_token: Annotated[str, Form()] = "") -> Session:
        """Return the session of a request that sends a form of these pages."""
        session = self.reader(request)
        if not is_same(form_token, session.form_token):
            raise SignedOut
        return session


def _entry(opened: OpenHome, door: Door, render: Renderer, guards: SessionGuards) -> APIRouter:
    router, is_secure = APIRouter(include_in_schema=False), opened.settings.local.speaks_tls

    @router.get("/sign-in")
    def enter(ticket: str = "") -> Response:
        secret = door.enter(ticket)
        if secret is None:
            return render.page("signed_out.html", None, 401, is_used=bool(ticket))
        opened.audit.append("signed in")
        # Not a redirect but a page that leads on by itself: if the address was opened from another site, say from a
        # mail, a browser would not send a strict cookie with the redirected request.
        answer = render.page("signed_in.html", None)
        answer.set_cookie(
            guards.cookie, secret, SESSION_SECONDS, path="/", httponly=True, samesite="strict", secure=is_secure
        )
        return answer

    @router.post("/sign-out", dependencies=[Depends(guards.writer)])
    def leave(request: Request) -> Response:
        door.leave(request.cookies.get(guards.cookie))
        answer = render.page("signed_out.html", None, is_used=False)
        answer.delete_cookie(guards.cookie, path="/", httponly=True, samesite="strict", secure=is_secure)
        return answer

    return router


def _of_requests(opened: OpenHome, render: Renderer, guards: SessionGuards) -> APIRouter:
    router, views, reader = APIRouter(include_in_schema=False), Views(opened), Depends(guards.reader)

    @router.get("/requests")
    def requests(session: Annotated[Session, reader], page: Annotated[int, Query(ge=1)] = 1) -> HTMLResponse:
        return render.page("requests.html", session, **views.requests(page))

    @router.get("/requests/{plan}")
    def request(session: Annotated[Session, reader], plan: str) -> HTMLResponse:
        return _request_page(opened, render, session, _asked(opened, plan))

    @router.get("/requests/{plan}/steps")
    def steps(session: Annotated[Session, reader], plan: str) -> HTMLResponse:
        return render.page("steps.html", session, **views.request(_asked(opened, plan)))

    @router.get("/requests/{plan}/comparison")
    def comparison(session: Annotated[Session, reader], plan: str) -> HTMLResponse:
        return render.page("comparison.html", session, **views.comparison(_asked(opened, plan)), complaint=None)

    return router


def _of_the_party(opened: OpenHome, render: Renderer, guards: SessionGuards, line: Curator | None) -> APIRouter:
    router, views, reader = APIRouter(include_in_schema=False), Views(opened), Depends(guards.reader)

    @router.get("/")
    def overview(session: Annotated[Session, reader]) -> HTMLResponse:
        return render.page("overview.html", session, **views.overview())

    @router.get("/datasets/{name}")
    def dataset(session: Annotated[Session, reader], name: str) -> HTMLResponse:
        found = views.account(name)
        if found is None:
            raise UnknownPage
        return render.page("dataset.html", session, **found)

    @router.get("/left")
    def left(session: Annotated[Session, reader], page: Annotated[int, Query(ge=1)] = 1) -> HTMLResponse:
        return render.page("left.html", session, **views.left(page))

    @router.get("/audit")
    def audit(
        session: Annotated[Session, reader], search: str = "", page: Annotated[int, Query(ge=1)] = 1
    ) -> HTMLResponse:
        return render.page("audit.html", session, **views.audit(search, page))

    @router.get("/peers")
    async def peers(session: Annotated[Session, reader]) -> HTMLResponse:
        try:
            roster, away = (await line.roster() if line is not None else None), None
        except TalkError as error:
            roster, away = None, str(error)
        found = await asyncio.to_thread(views.peers, roster)
        return await asyncio.to_thread(render.page, "peers.html", session, **found, away=away)

    @router.get("/rules")
    def rules(session: Annotated[Session, reader]) -> HTMLResponse:
        return render.page("rules.html", session, **views.rules())

    @router.get("/words")
    def words(session: Annotated[Session, reader]) -> HTMLResponse:
        return render.page("words.html", session, terms=glossary())

    return router


def _deciding(opened: OpenHome, render: Renderer, guards: SessionGuards, line: Curator | None) -> APIRouter:
    router, writer = APIRouter(include_in_schema=False), Depends(guards.writer)

    @router.post("/requests/{plan}/accept")
    def accept(session: Annotated[Session, writer], plan: str) -> Response:
        return _decide(opened, render, session, _asked(opened, plan), True, "")

    @router.post("/requests/{plan}/refuse")
    def refuse(
        session: Annotated[Session, writer],
        plan: str,
        reason: Annotated[str, Form(max_length=_LONGEST_REASON)] = "",
    ) -> Response:
        return _decide(opened, render, session, _asked(opened, plan), False, " ".join(reason.split()))

    @router.post("/requests/{plan}/comparison")
    async def compare(session: Annotated[Session, writer], plan: str, target: Annotated[str, Form()] = "") -> Response:
        request = await asyncio.to_thread(_asked, opened, plan)
        try:
            if line is not None and not comparison.place_of(opened, request).table.exists():
                await asyncio.to_thread(comparison.keep_table, opened, request, await line.table(request.run))
            await asyncio.to_thread(comparison.compare, opened, request, target or None)
        except (TalkError, PolicyRefusal, DataError) as error:
            found = await asyncio.to_thread(Views(opened).comparison, request)
            return await asyncio.to_thread(render.page, "comparison.html", session, 409, **found, complaint=str(error))
        return _to(f"/requests/{plan}/comparison")

    return router


def _decide(
    opened: OpenHome, render: Renderer, session: Session, request: Asked, accept: bool, reason: str
) -> Response:
    try:
        opened.decide(request.run, accept, reason, BY)
    except LedgerError as error:
        return _request_page(opened, render, session, request, 409, str(error))
    return _to(f"/requests/{request.plan_hash}")


def _request_page(
    opened: OpenHome,
    render: Renderer,
    session: Session,
    request: Asked,
    status: int = 200,
    complaint: str | None = None,
) -> HTMLResponse:
    facts = Views(opened).request(request)
    schema = schema_diff.asked_schema(request)
    held = schema_diff.held_for(opened, request.dataset, schema) if schema is not None else None
    lines = schema_words.lines(schema, held[1] if held else None) if schema is not None else []
    name = held[0] if held else None
    return render.page("request.html", session, status, **facts, beside=lines, held=name, complaint=complaint)


def _asked(opened: OpenHome, plan: str) -> Asked:
    """Find a request by its plan's hash. The curator chooses a run's name, so no page is named by it."""
    found = opened.ledger.request_of_plan(plan)
    if found is None:
        raise UnknownPage
    return found


def _to(path: str) -> Response:
    return RedirectResponse(path, 303)


def _add_failures(app: FastAPI, render: Renderer) -> None:
    @app.exception_handler(SignedOut)
    async def signed_out(_request: Request, _error: Exception) -> HTMLResponse:
        return render.page("signed_out.html", None, 401, is_used=False)

    @app.exception_handler(UnknownPage)
    async def unknown(_request: Request, _error: Exception) -> HTMLResponse:
        return render.page("unknown.html", None, 404)
