"""The pages of schemas: list, read, upload, edit, check and compare them, and publish one.

It does not know how schemas are stored (`curator.accounts.registry`), or what makes one doubtful
(`protocol.services.schema_lint`).
"""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Path, Response, UploadFile
from fastapi.concurrency import run_in_threadpool

from curator.accounts.sessions import Session
from curator.accounts.views import added_schema
from curator.http.bodies import LARGE
from curator.http.dependencies import TheService
from curator.pages.frame import PageRoute, Sending, SignedIn, page, see_other
from curator.service import Service
from protocol.errors import OperatorError
from protocol.exact import Hash
from protocol.services.schema_lint import Lint, doubts, lint
from protocol.services.schema_words import editable, in_words, lines
from protocol.tables.schema import Schema

_EXAMPLE = """{"title": "",
 "attributes": [
  {"name": "age", "kind": "integer", "min": 0, "max": 110, "bins": 22, "unit": "years"},
  {"name": "sex", "kind": "categorical", "values": ["f", "m"], "missing": [""]}
 ]}
"""


class SchemaPageRoute(PageRoute):
    largest = LARGE


router = APIRouter(route_class=SchemaPageRoute, include_in_schema=False)


@dataclass(frozen=True)
class Draft:
    """What the operator has typed or uploaded, and what it is to be compared with."""

    text: str
    rows: str = ""
    beside: str = ""


@router.get("/schemas")
def schemas(session: SignedIn, service: TheService, copy: str = "") -> Response:
    text = editable(_published(service, copy)) if copy else _EXAMPLE
    return _page(session, service, Draft(text, beside=copy))


@router.get("/schemas/{hash}")
def schema(session: SignedIn, hash: Annotated[Hash, Path()], service: TheService) -> Response:
    found = _published(service, hash)
    offers = [offer for offer in service.registry.offers() if offer.schema_hash == hash]
    rows = sum(offer.rows for offer in offers)
    return page(
        "schema.html",
        session,
        schema=found,
        attributes=_attributes(found),
        offers=offers,
        doubts=list(doubts(found, rows or None)),
        text=editable(found),
        like_formulas=added_schema(found).like_formulas,
    )


async def drafted(
    text: Annotated[str, Form()] = "",
    rows: Annotated[str, Form(max_length=20)] = "",
    beside: Annotated[str, Form(max_length=64)] = "",
    file: UploadFile | None = None,
) -> Draft:
    """Return what a form holds; an uploaded file takes the text's place."""
    if file is None or not file.filename:
        return Draft(text, rows, beside)
    try:
        return Draft((await file.read()).decode("utf-8-sig"), rows, beside)
    except UnicodeDecodeError:
        raise OperatorError("the file is not in UTF-8: save it as UTF-8 and upload it again") from None


Drafted = Annotated[Draft, Depends(drafted)]


@router.post("/schemas/check")
async def check(session: Sending, draft: Drafted, service: TheService) -> Response:
    """Show all problems and doubts of what was typed or uploaded. Nothing is kept."""
    return await run_in_threadpool(_examined, session, service, draft)


@router.post("/schemas")
async def publish(session: Sending, draft: Drafted, service: TheService) -> Response:
    found = await run_in_threadpool(_lint, draft)
    if found.schema is None:
        return await run_in_threadpool(_examined, session, service, draft)
    await run_in_threadpool(service.registry.add_schema, found.schema)
    return see_other(f"/schemas/{found.schema.hash}")


def _published(service: Service, hash: str) -> Schema:
    return Schema.parse(service.registry.schema_text(hash))


def _lint(draft: Draft) -> Lint:
    rows = draft.rows.replace(",", "").strip()
    return lint(draft.text, int(rows) if rows.isascii() and rows.isdigit() else None)


def _examined(session: Session, service: Service, draft: Draft) -> Response:
    found = _lint(draft)
    beside = _published(service, draft.beside) if draft.beside and found.schema else None
    compared = lines(found.schema, beside) if found.schema and beside else None
    return _page(session, service, draft, found, compared)


def _page(
    session: Session, service: Service, draft: Draft, found: Lint | None = None, compared: list[Any] | None = None
) -> Response:
    offered: dict[str, int] = {}
    for offer in service.registry.offers():
        offered[offer.schema_hash] = offered.get(offer.schema_hash, 0) + offer.rows
    return page(
        "schemas.html",
        session,
        status=422 if found is not None and found.problems else 200,
        schemas=service.registry.schemas(),
        offered=offered,
        draft=draft,
        found=found,
        attributes=_attributes(found.schema) if found and found.schema else [],
        compared=compared,
    )


def _attributes(schema: Schema) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "words": in_words(one), "size": one.size, "description": one.description}
        for one in schema.attributes
    ]
