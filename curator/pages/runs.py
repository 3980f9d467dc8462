"""The pages of runs: the list, a run that moves while one looks, cancelling it, its results.

It does not know how runs go on; what it shows is what the JSON interface says of them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from time import thread_time
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from curator.errors import NotAuthenticated
from curator.http.dependencies import COOKIE, TheService
from curator.pages.frame import PageRoute, Sending, SignedIn, page, see_other
from curator.pages.run_grid import advice, grid
from curator.rendering.templating import render
from curator.results.publication import file_sizes
from curator.service import Service
from protocol.messages.http import ENDS, RunId
from protocol.plan.promises import not_promised, promises
from protocol.plan.terms import Terms

PER_PAGE = 50
_QUICKEST = 1.0  # seconds between two pictures of a run
_SLOWEST = 10.0  # the first picture after a start takes longest, and nobody waits a minute for the second
_IDLE_SHARE = 100  # a page may take this part of the processor: one percent
_LONGEST_REASON = 500

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Run = Annotated[RunId, Path()]
Before = Annotated[RunId | None, Query(description="the last run of the page before")]


@router.get("/runs")
def runs(session: SignedIn, service: TheService, before: Before = None) -> Response:
    found = service.views.newest_runs(PER_PAGE + 1, before)
    shown = found[:PER_PAGE]
    following = shown[-1].run if len(found) > PER_PAGE else None
    return page("runs.html", session, runs=shown, following=following, before=before)


@router.get("/runs/{run}")
def run(session: SignedIn, run: Run, service: TheService) -> Response:
    terms = service.views.terms(run)
    outputs = service.views.record(run).outputs or {}
    sizes = file_sizes(service.orchestrator.folder(run), outputs)
    return page(
        "run.html",
        session,
        terms=terms,
        outputs=outputs,
        sizes=sizes,
        promises=promises(terms.plan),
        not_promised=not_promised(),
        seq=_last_event(service, run),
        **_standing(service, run, terms),
    )


@router.post("/runs/{run}/cancel")
async def cancel(_session: Sending, run: Run, service: TheService, reason: Annotated[str, Form()] = "") -> Response:
    words = " ".join(reason.split())[:_LONGEST_REASON]
    await run_in_threadpool(service.orchestrator.cancel, run, words or None)
    return see_other(f"/runs/{run}")


@router.get("/runs/{run}/live")
async def live(request: Request, _session: SignedIn, run: Run, service: TheService, after: int = 0) -> Response:
    terms = await run_in_threadpool(service.views.terms, run)
    token = request.cookies[COOKIE]
    return StreamingResponse(_pictures(service, run, terms, after, token), media_type="text/event-stream")


async def _pictures(service: Service, run: str, terms: Terms, after: int, token: str) -> AsyncIterator[bytes]:
    """The run's standing each time that it changes, and "ended" at last.

    However fast a run moves and however large it is, drawing it takes a hundredth of the time at most.
    """
    with suppress(NotAuthenticated):  # the session has ended: so does what it may see
        async for news in service.relay.news(run, after):
            picture, worked = await asyncio.to_thread(_picture, service, run, terms, token)
            yield format_sse_event(event="standing", data_str=picture)
            if news and news[-1].kind == "ended":
                break
            await asyncio.sleep(rest_after(worked))
        yield format_sse_event(event="ended", data_str="ended")


def rest_after(worked: float) -> float:
    """Seconds until the next picture."""
    return min(max(_QUICKEST, _IDLE_SHARE * worked), _SLOWEST)


def _picture(service: Service, run: str, terms: Terms, token: str) -> tuple[str, float]:
    """The standing as HTML, and how long the processor worked on it."""
    begun = thread_time()
    service.sessions.find(token)
    picture = render("run_standing.html", terms=terms, **_standing(service, run, terms))
    return picture, thread_time() - begun


def _standing(service: Service, name: str, terms: Terms) -> dict[str, Any]:
    found = service.orchestrator.view(name)
    return {"run": found, "grid": grid(found, terms), "advice": advice(found), "ended": found.state in ENDS}


def _last_event(service: Service, run: str) -> int:
    events = service.views.events(run)
    return events[-1].seq if events else 0
