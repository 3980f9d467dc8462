"""The page on which the data owner reads, edits, checks and compares schemas.

It does not know rows, and it changes no file of the home: a run is matched with a data set by its schema, so somebody
who gets into the browser must not replace a schema. What was edited is downloaded, and put in its place by hand.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, UploadFile
from fastapi.responses import HTMLResponse, Response

from party.errors import SettingsError
from party.home.home import OpenHome
from party.home.settings import schema_of
from party.pages.rendering import Renderer
from party.pages.sessions import Session
from protocol.services.schema_lint import Lint, lint
from protocol.services.schema_words import editable, in_words, lines
from protocol.tables.schema import Schema

_LARGEST = 2 << 20  # bytes of a form with a schema
FORMS = {"/schema/check": _LARGEST, "/schema/download": _LARGEST}


@dataclass(frozen=True)
class Draft:
    """What the data owner has typed or uploaded, and the data set that it is to be compared with."""

    text: str
    rows: str = ""
    beside: str = ""
    complaint: str | None = None


async def drafted(
    text: Annotated[str, Form()] = "",
    rows: Annotated[str, Form(max_length=20)] = "",
    beside: Annotated[str, Form(max_length=200)] = "",
    file: UploadFile | None = None,
) -> Draft:
    """Return what a form holds; an uploaded file takes the text's place."""
    if file is None or not file.filename:
        return Draft(text, rows, beside)
    try:
        return Draft((await file.read()).decode("utf-8-sig"), rows, beside)
    except UnicodeDecodeError:
        return Draft(text, rows, beside, "the file is not in UTF-8: save it as UTF-8 and upload it again")


Drafted = Annotated[Draft, Depends(drafted)]


def schema_pages(opened: OpenHome, render: Renderer, reader: Any, writer: Any) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/schema")
    def schema(session: Annotated[Session, reader], dataset: str = "") -> HTMLResponse:
        name = dataset or next(iter(opened.settings.datasets))
        found = _held(opened, name)
        return _page(opened, render, session, Draft(editable(found) if found else "", beside=name))

    @router.post("/schema/check")
    def check(session: Annotated[Session, writer], draft: Drafted) -> HTMLResponse:
        if draft.complaint is not None:
            return _page(opened, render, session, draft)
        return _page(opened, render, session, draft, _lint(draft))

    @router.post("/schema/download", dependencies=[writer])
    def download(draft: Drafted) -> Response:
        """Send the text back as a file, with the line ends of a file: a browser sends others."""
        text = draft.text.replace("\r\n", "\n")
        name = {"Content-Disposition": 'attachment; filename="schema.json"'}
        return Response(text.encode(), media_type="application/json", headers=name)

    return router


def _lint(draft: Draft) -> Lint:
    rows = draft.rows.replace(",", "").strip()
    return lint(draft.text, int(rows) if rows.isascii() and rows.isdigit() else None)


def _held(opened: OpenHome, name: str) -> Schema | None:
    """The schema of a data set; None if the settings know none, or its file cannot be read."""
    if name not in opened.settings.datasets:
        return None
    try:
        return schema_of(opened.home, name, opened.settings.datasets[name])
    except SettingsError:
        return None


def _page(
    opened: OpenHome, render: Renderer, session: Session, draft: Draft, found: Lint | None = None
) -> HTMLResponse:
    held = _held(opened, draft.beside)
    schema = found.schema if found else None
    shown = schema or (held if found is None else None)
    dataset = opened.settings.datasets.get(draft.beside)
    facts = {
        "draft": draft,
        "found": found,
        "datasets": list(opened.settings.datasets),
        "file": str(opened.home.path / dataset.schema_file) if dataset else "",
        "compared": lines(schema, held) if schema and held else None,
        "columns": [
            {"name": one.name, "words": in_words(one), "size": one.size, "description": one.description}
            for one in (shown.attributes if shown else ())
        ],
    }
    bad = draft.complaint is not None or (found is not None and bool(found.problems))
    return render.page("schema.html", session, 422 if bad else 200, **facts)
