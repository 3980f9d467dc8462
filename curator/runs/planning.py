"""Make terms and their forecast from an operator's request and the parties' offers, and restore stored terms.

It does not know runs, or where offers are stored.
"""

from collections.abc import Sequence

from crypto.paillier.public import SMALLEST_BITS
from curator import interface
from curator.interface import PlanRequest
from protocol.exact import canonical_json, digest
from protocol.forecast.costs import forecast
from protocol.forecast.error import predicted
from protocol.forecast.recommendation import planned
from protocol.plan.plan import Member, Plan
from protocol.plan.rationale import reasons
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.tables.schema import Schema


def request_digest(request: PlanRequest) -> str:
    """Return a digest that is equal for equal requests."""
    return digest(canonical_json(request.model_dump(mode="json", by_alias=True)))


def terms_for(
    run: str, request: PlanRequest, schema: Schema, members: Sequence[Member], smallest_key: int = SMALLEST_BITS
) -> Terms:
    """Return the terms of a request. Raise PlanError if it cannot be met."""
    return planned(run, schema, members, smallest_key=smallest_key, **request.wishes())


def stored_terms(plan: str, schema: str, smallest_key: int = SMALLEST_BITS) -> Terms:
    """Return the terms of a stored plan, as they were agreed."""
    return agree(Plan.model_validate_json(plan), Schema.parse(schema), smallest_key)


def plan_forecast(terms: Terms) -> interface.PlanForecast:
    """Return the forecast of a run of these terms: its price, work and predicted error."""
    found = forecast(terms)
    names = [member.name for member in terms.plan.members]
    return interface.PlanForecast(
        plan=terms.plan.model_dump(mode="json"),
        plan_hash=terms.plan_hash,
        price={name: str(price) for name, price in zip(names, found.prices, strict=True)},
        delta={name: str(delta) for name, delta in zip(names, found.deltas, strict=True)},
        predicted=interface.Prediction(**vars(predicted(terms))),
        why=list(reasons(terms)),
        steps=[interface.StepForecast(**vars(step)) for step in found.steps],
        bytes_per_party=found.bytes_per_party,
        seconds=found.seconds,
    )
