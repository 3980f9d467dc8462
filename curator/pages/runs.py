"""The pages of runs: the list, the live view of one run, its cancellation, and its results.

It does not know how runs advance. It shows the answers of the JSON interface.
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
from markupsafe import Markup

from curator.errors import NotAuthenticated
from curator.http.dependencies import COOKIE, TheService
from curator.pages.frame import PageRoute, Sending, SignedIn, page, see_other
from curator.pages.run_grid import advice, grid
from curator.rendering.templating import render
from curator.results import phase_pictures
from curator.results.phases import networks
from curator.results.publication import file_sizes
from curator.service import Service
from protocol.messages.http import RunId
from protocol.messages.run_states import ENDS
from protocol.plan.promises import not_promised, promises
from protocol.plan.terms import Terms

PER_PAGE = 50
_QUICKEST = 1.0  # seconds between two updates of a run's view, at least
_SLOWEST = (
    10.0  # seconds at most: the first update after a start takes longest, and the second must not be a minute away
)
_IDLE_SHARE = 100  # a page may use 1/100 of the processor's time
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
    """Yield the rendered status of a run each time that it changes, and "ended" at the end.

    However large a run is and however fast it advances, rendering takes at most a hundredth of the time.
    """
    with suppress(NotAuthenticated):  # the session has ended, so its stream ends too
        async for news in service.relay.news(run, after):
            picture, worked = await asyncio.to_thread(_picture, service, run, terms, token)
            yield format_sse_event(event="standing", data_str=picture)
            if news and news[-1].kind == "ended":
                break
            await asyncio.sleep(rest_after(worked))
        yield format_sse_event(event="ended", data_str="ended")


def rest_after(worked: float) -> float:
    """Return the seconds to wait before the next update."""
    return min(max(_QUICKEST, _IDLE_SHARE * worked), _SLOWEST)


def _picture(service: Service, run: str, terms: Terms, token: str) -> tuple[str, float]:
    """Return the status as HTML, and the processor time in seconds that it took."""
    begun = thread_time()
    service.sessions.find(token)
    picture = render("run_standing.html", terms=terms, **_standing(service, run, terms))
    return picture, thread_time() - begun


def _standing(service: Service, name: str, terms: Terms) -> dict[str, Any]:
    found = service.orchestrator.view(name)
    standing = {"run": found, "grid": grid(found, terms), "advice": advice(found), "ended": found.state in ENDS}
    return standing | {"network": None if standing["ended"] else _network(service, name, terms)}


def _network(service: Service, name: str, terms: Terms) -> tuple[dict[str, Any], Markup] | None:
    """Return what the newest step did to the network, and its picture; None before there is a network."""
    live = service.orchestrator.live.get(name)
    known = live and live.at.state.knowledge
    if not known or not known.stations:
        return None
    newest = networks(terms, known)[-1]
    return newest, phase_pictures.network(terms.schema.names, newest)


def _last_event(service: Service, run: str) -> int:
    events = service.views.events(run)
    return events[-1].seq if events else 0
