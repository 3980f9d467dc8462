"""The plan builder: change settings and see at once the price, the predicted error, or the reason for a refusal.

It does not know how plans are priced. It shows the answers of the JSON interface.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from hashlib import sha256
from threading import Event
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict

from crypto.errors import CryptoError
from crypto.randomness import Stream
from curator import interface
from curator.accounts.registry import OfferRecord, SchemaRecord
from curator.accounts.sessions import Session
from curator.http.abandoning import while_waited_for
from curator.http.dependencies import TheService
from curator.pages.frame import PageRoute, Sending, SignedIn, form_values, page, see_other
from curator.pages.plan_form import EPSILONS, fields, request_of
from curator.pages.run_grid import dearest
from curator.rendering.curve_picture import error_curve
from curator.runs.planning import request_digest
from curator.service import Service
from protocol.errors import PlanError, SubnError
from protocol.plan.plan import Plan
from protocol.plan.promises import odds_factor, promises
from protocol.plan.terms import Terms

Filled = ImmutableMultiDict[str, Any]

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True)
class StageTotal:
    """Forecast of one stage: the sums over its steps, and the largest bound on their noise."""

    stage: str
    epsilon: Fraction  # the highest price of this stage for any party
    steps: int
    tables: int
    cells: int
    ciphertexts: int
    bytes_per_party: int
    seconds: float
    error: float | None


@dataclass(frozen=True)
class Offers:
    """All schemas, those that most parties offer first, and the rows that each party offers for the chosen one.

    No schema is chosen unless the operator has chosen one: anybody who offers rows brings a schema along.
    """

    schemas: list[tuple[SchemaRecord, int]]  # with the number of parties that offer rows
    schema_hash: str
    rows: dict[str, OfferRecord]

    @classmethod
    def of(cls, service: Service, filled: Filled) -> "Offers":
        revoked = {party.name for party in service.registry.parties() if party.revoked is not None}
        offered = [offer for offer in service.registry.offers() if offer.party not in revoked]
        parties = Counter(schema for schema, _ in {(offer.schema_hash, offer.party) for offer in offered})
        schemas = [(one, parties[one.hash]) for one in service.registry.schemas()]
        wanted = str(filled.get("schema", ""))
        rows = {offer.party: offer for offer in offered if offer.schema_hash == wanted}
        return cls(sorted(schemas, key=lambda one: -one[1]), wanted, rows)


@router.get("/plan")
async def plan(request: Request, session: SignedIn, service: TheService) -> Response:
    return await while_waited_for(request, partial(_plan, service, session, request.query_params))


def _plan(service: Service, session: Session, filled: Filled, abandoned: Event) -> Response:
    offers = Offers.of(service, filled)
    chosen = set(filled.getlist("party")) or set(offers.rows)
    first, more = fields()
    values = {field.name: field.default for field in (*first, *more)} | {"epsilon": "1"} | form_values(filled)
    return page(
        "plan.html",
        session,
        offers=offers,
        chosen=chosen,
        first=first,
        more=more,
        values=values,
        is_open=any(values[field.name] for field in more),
        epsilons=EPSILONS,
        key=filled.get("key") or Stream.system().take(16).hex(),
        **_forecast(service, filled, offers, abandoned),
    )


@router.get("/plan/forecast")
async def forecast(request: Request, _session: SignedIn, service: TheService) -> Response:
    """Show the forecast beside the form, each time that a setting changes."""
    response = await while_waited_for(request, partial(_forecast_alone, service, request.query_params))
    shown = "&".join(part for part in request.url.query.split("&") if not part.startswith("form_token="))
    response.headers["HX-Replace-Url"] = f"/plan?{shown}"
    return response


def _forecast_alone(service: Service, filled: Filled, abandoned: Event) -> Response:
    offers = Offers.of(service, filled)
    return page("plan_forecast.html", offers=offers, **_forecast(service, filled, offers, abandoned))


@router.get("/plan/curve")
async def curve(request: Request, _session: SignedIn, service: TheService) -> Response:
    """Show the predicted error by epsilon. It takes as long as several forecasts, so the page asks for it last."""
    return await while_waited_for(request, partial(_curve_alone, service, request.query_params))


def _curve_alone(service: Service, filled: Filled, abandoned: Event) -> Response:
    offers = Offers.of(service, filled)
    try:
        found = service.orchestrator.planner.plan(
            _request(filled, offers), abandoned=abandoned, with_curve=True
        ).forecast
    except (SubnError, CryptoError):  # the forecast says it
        return page("plan_curve.html", picture=None, enough=None)
    points = [vars(point) | {"epsilon": float(Fraction(point.epsilon))} for point in found.curve]
    least = None if found.enough is None else float(Fraction(found.enough))
    return page("plan_curve.html", picture=error_curve(points, least) if len(points) > 1 else None, enough=least)


@router.post("/runs")
async def start(request: Request, _session: Sending, service: TheService) -> Response:
    filled = ImmutableMultiDict((name, str(value)) for name, value in (await request.form()).multi_items())
    run = await run_in_threadpool(_start, service, filled)
    return see_other(f"/runs/{run}")


def _start(service: Service, filled: Filled) -> str:
    body = _request(filled, Offers.of(service, filled)).model_copy(update={"anyway": "anyway" in filled})
    # Retry safety: sending the same form twice starts one run; another plan on the same page starts another run.
    key = sha256(f"{filled.get('key', '')} {request_digest(body)}".encode()).hexdigest()
    return service.orchestrator.create_run(body, key)[0]


def _request(filled: Filled, offers: Offers) -> interface.PlanRequest:
    if not offers.schema_hash:
        raise PlanError("no schema is chosen: choose one, so that its parties can be asked")
    chosen = [name for name in filled.getlist("party") if name]
    values = form_values(filled)
    return request_of({"epsilon": "1"} | values, offers.schema_hash, chosen or None)


def _forecast(service: Service, filled: Filled, offers: Offers, abandoned: Event) -> dict[str, Any]:
    """Return the forecast, or the reason why the plan is refused. Without a schema nothing is worked out."""
    if not offers.schema_hash:
        return {"refused": None, "forecast": None}
    try:
        planned = service.orchestrator.planner.plan(_request(filled, offers), abandoned=abandoned)
    except (SubnError, CryptoError) as error:
        return {"refused": str(error)}
    terms, found = planned.terms, planned.forecast
    return {
        "refused": None,
        "forecast": found,
        "agreed": terms.plan,
        "stages": stage_totals(terms, found.steps),
        "promises": promises(terms.plan),
        "odds": odds_factor(terms.plan.epsilon),
        "second_word": (word := _second_word(terms.plan)),
        "is_meant": filled.get("anyway") == word,
    }


def _second_word(plan: Plan) -> str:
    """Return the value of the box that starts a plan against advice: other advice, another value. Empty: no box."""
    return sha256("\n".join(plan.against).encode()).hexdigest() if plan.against else ""


def stage_totals(terms: Terms, steps: Sequence[interface.StepForecast]) -> list[StageTotal]:
    found: dict[str, StageTotal] = {}
    for own, step in zip(terms.steps, steps, strict=True):
        stage = own.stage
        former = found.get(stage) or StageTotal(stage, dearest(terms, stage), 0, 0, 0, 0, 0, 0.0, None)
        errors = [error for error in (former.error, step.error) if error is not None]
        found[stage] = replace(
            former,
            steps=former.steps + 1,
            tables=former.tables + step.tables,
            cells=former.cells + step.cells,
            ciphertexts=former.ciphertexts + step.ciphertexts,
            bytes_per_party=former.bytes_per_party + step.bytes_per_party,
            seconds=former.seconds + step.seconds,
            error=max(errors, default=None),
        )
    return list(found.values())
