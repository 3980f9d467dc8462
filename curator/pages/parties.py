"""The page of parties: list them with their offers, make one-time codes, and revoke a party.

It does not know how parties are stored (`curator.accounts.registry`). It shows the answers of the JSON interface.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError

from curator import interface
from curator.accounts import views
from curator.accounts.sessions import Session
from curator.errors import Forbidden
from curator.http.dependencies import After, TheService
from curator.pages.frame import PageRoute, Sending, SignedIn, page, see_other
from curator.service import Service
from protocol.errors import SubnError
from protocol.messages.http import PartyName

_PER_PAGE = 100
_NAME: TypeAdapter[str] = TypeAdapter(PartyName)

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/parties")
def parties(session: SignedIn, service: TheService, after: After = "") -> Response:
    return _page(session, service, after)


@router.post("/parties/codes")
async def new_code(
    request: Request, session: Sending, service: TheService, name: Annotated[str, Form()] = ""
) -> Response:
    """Create a code. Only the page that answers this request shows it."""
    try:
        found = _checked(name.strip())
        code = await run_in_threadpool(views.new_code, service.registry, service.introduction, found)
    except SubnError as error:
        return await run_in_threadpool(_page, session, service, wrong=str(error))
    return await run_in_threadpool(_page, session, service, code=code, address=str(request.base_url).rstrip("/"))


@router.post("/parties/{name}/revoke")
async def revoke(_session: Sending, name: Annotated[PartyName, Path()], service: TheService) -> Response:
    await run_in_threadpool(service.orchestrator.revoke, name)
    return see_other("/parties")


def _page(
    session: Session,
    service: Service,
    after: str = "",
    code: interface.Code | None = None,
    address: str = "",
    wrong: str | None = None,
) -> Response:
    found = views.party_page(service.registry, _PER_PAGE, after)
    titles = {record.hash: record.title for record in service.registry.schemas()}
    return page(
        "parties.html",
        session,
        status=200 if wrong is None else 422,
        parties=found.items,
        following=found.next,
        titles=titles,
        code=code,
        address=address,
        wrong=wrong,
    )


def _checked(name: str) -> str:
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise Forbidden(
            "a party's name has letters, digits, spaces and . ( ) & ' - only, begins with a letter or digit, and has "
            "100 characters at most"
        ) from None
