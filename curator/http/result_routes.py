"""The results of a run over HTTP: published files, and tables of any length drawn anew.

It does not know how results are made (`curator.results.publication`, `curator.results.fresh_tables`).
"""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import FileResponse, Response, StreamingResponse

from crypto.randomness import Stream
from curator.errors import Conflict, Forbidden, NotFound
from curator.http.dependencies import Anybody, Operator, TheService
from curator.results import report
from curator.results.fresh_tables import (
    fresh_csv,
    fresh_parquet,
    published_chunks,
    published_parquet,
    started,
)
from curator.results.publication import (
    CODEBOOK,
    CODEBOOK_PAGE,
    MANIFEST,
    NETWORK,
    REPORT,
    REPORT_PAGE,
    SCHEMA,
    TABLE,
    TABLES,
)
from curator.service import Service
from protocol.messages.http import RunId

_CSV, _PARQUET = "text/csv; charset=utf-8", "application/vnd.apache.parquet"
_JSON_FILES = (MANIFEST, SCHEMA, NETWORK, TABLES, REPORT)
_MOST_ROWS = 10**9

Run = Annotated[RunId, Path()]
Rows = Annotated[
    int | None, Query(ge=1, le=_MOST_ROWS, description="draw a new table of so many rows; without it the published one")
]

router = APIRouter(prefix="/v1/runs/{run}", tags=["results"])


def _described(*media_types: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "the file", "content": {name.partition(";")[0]: {} for name in media_types}}}


@router.get("/table.csv", summary="The synthetic table", response_class=Response, responses=_described(_CSV))
def table_csv(request: Request, caller: Anybody, run: Run, service: TheService, rows: Rows = None) -> Response:
    if caller is not None:
        _check_party(service, run, caller, rows)
        _check_holder(service, caller, run)
    folder = _finished(service, run)
    if caller is not None:
        # The curator signs the digest that the manifest names: no table is held in memory for its signature.
        request.state.body_digest = (service.views.record(run).outputs or {})[TABLE]
        return _streamed(published_chunks(_present(folder / TABLE)), TABLE, _CSV)
    if rows is None:
        return _download(folder / TABLE, _CSV)
    return _streamed(fresh_csv(folder, service.views.terms(run), rows, Stream.system()), TABLE, _CSV)


@router.get("/table.parquet", summary="The same as Parquet", response_class=Response, responses=_described(_PARQUET))
def table_parquet(_operator: Operator, run: Run, service: TheService, rows: Rows = None) -> Response:
    folder, terms = _finished(service, run), service.views.terms(run)
    parquet = published_parquet(folder, terms) if rows is None else fresh_parquet(folder, terms, rows, Stream.system())
    return _streamed(parquet, "table.parquet", _PARQUET)


@router.get("/report.html", summary="The report", response_class=Response, responses=_described("text/html"))
def report_page(_operator: Operator, run: Run, service: TheService) -> FileResponse:
    return _shown(service, run, REPORT_PAGE)


@router.get("/codebook.csv", summary="The codebook", response_class=Response, responses=_described(_CSV))
def codebook_csv(_operator: Operator, run: Run, service: TheService) -> FileResponse:
    return _download(_finished(service, run) / CODEBOOK, _CSV)


@router.get("/codebook.html", summary="The codebook", response_class=Response, responses=_described("text/html"))
def codebook_page(_operator: Operator, run: Run, service: TheService) -> FileResponse:
    return _shown(service, run, CODEBOOK_PAGE)


def _shown(service: Service, run: str, name: str) -> FileResponse:
    """Show a published page in the browser. Its own policy allows its style and nothing else."""
    response = _download(_finished(service, run) / name, "text/html; charset=utf-8", "inline")
    response.headers["Content-Security-Policy"] = f"{report.POLICY}; frame-ancestors 'none'"
    return response


def _add_json_file(name: str) -> None:
    @router.get(f"/{name}", summary=f"The run's {name}", responses=_described("application/json"), name=name)
    def json_file(_operator: Operator, run: Run, service: TheService) -> FileResponse:
        return _download(_finished(service, run) / name, "application/json")


for _name in _JSON_FILES:
    _add_json_file(_name)


def _finished(service: Service, run: str) -> FilePath:
    """Return the folder of a finished run. Its files are as they were published, whatever version made the plan."""
    record = service.views.record(run)
    if record.state != "finished":
        raise Conflict(f"run {run} is {record.state.replace('_', ' ')}: only a finished run has results")
    return service.orchestrator.folder(run)


def _check_party(service: Service, run: str, party: str, rows: int | None) -> None:
    # First of all: a party learns nothing of runs that it takes no part in, not even whether they exist.
    service.views.check_member(run, party)
    if rows is not None:
        raise Forbidden("parties fetch the published table: leave rows out")


def _check_holder(service: Service, party: str, run: str) -> None:
    """Refuse a party that has enrolled under this name after the run began, such as one after a revocation."""
    if service.registry.enrolled(party) > service.views.record(run).created:
        raise Forbidden(
            f"{party} enrolled anew after this run began, and whoever held the name then took part: ask the operator "
            "for the table"
        )


def _download(path: FilePath, media_type: str, disposition: str = "attachment") -> FileResponse:
    _present(path)
    return FileResponse(path, media_type=media_type, filename=path.name, content_disposition_type=disposition)


def _present(path: FilePath) -> FilePath:
    if not path.is_file():
        archive = f": it may be in the archive {path.parent.name}.tar.gz" if (path.parent / MANIFEST).is_file() else ""
        raise NotFound(f"{path.name} of this run has been removed from the curator's disk{archive}")
    return path


def _streamed(chunks: Iterator[bytes], name: str, media_type: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(started(chunks), media_type=media_type, headers=headers)
