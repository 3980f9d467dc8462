"""Make terms and their forecast from an operator's request and the parties' offers, and restore stored terms.

It does not know runs, where offers are stored, or which process works a plan out (`curator.runs.plan_workers`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from pydantic import BaseModel, ConfigDict

from crypto import errors as crypto
from crypto.paillier.public import SMALLEST_BITS
from curator import interface
from curator.interface import PlanRequest
from protocol import errors as protocol
from protocol.exact import canonical_json, digest
from protocol.forecast.advice import advice, with_advice
from protocol.forecast.costs import forecast
from protocol.forecast.curve import enough, error_curve
from protocol.forecast.error import predicted
from protocol.forecast.recommendation import planned
from protocol.plan.plan import Member, Plan
from protocol.plan.rationale import reasons
from protocol.plan.stored import stored_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.stages.methods import terms_of
from protocol.tables.schema import Schema

_REFUSALS: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for module in (protocol, crypto)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, protocol.OperatorError | crypto.CryptoError)
}


@dataclass(frozen=True)
class Planned:
    """The terms that a run of a request would have, and their forecast."""

    terms: Terms
    forecast: interface.PlanForecast


class Answer(BaseModel):
    """A plan's forecast, or the reason why there is none: an error's name and text."""

    forecast: interface.PlanForecast | None = None
    refusal: tuple[str, str] | None = None


class Wanted(BaseModel):
    """A request, with everything that its plan depends on."""

    model_config = ConfigDict(frozen=True)

    run: str
    request: PlanRequest
    schema_text: str
    members: tuple[Member, ...]
    smallest_key: int = SMALLEST_BITS
    with_curve: bool = False

    def terms(self, **other: Any) -> Terms:
        """Return the terms of the request, or of one with other wishes. Raise PlanError if it cannot be met."""
        schema = Schema.parse(self.schema_text)
        wishes = self.request.wishes() | other
        return planned(self.run, schema, self.members, smallest_key=self.smallest_key, **wishes)

    def work_out(self) -> Planned:
        """Return the terms and their forecast. Raise PlanError if there can be none."""
        terms = with_advice(self.terms())
        found = plan_forecast(terms)
        return Planned(terms, found.model_copy(update=self._curve()) if self.with_curve else found)

    def _curve(self) -> dict[str, Any]:
        points = error_curve(lambda epsilon: self.terms(epsilon=epsilon))
        least = enough(points)
        told = tuple(interface.CurvePoint(**vars(point) | {"epsilon": str(point.epsilon)}) for point in points)
        return {"curve": told, "enough": None if least is None else str(least)}

    def planned(self, answer: Answer) -> Planned:
        """Return what another process has worked out, or raise its refusal here."""
        if answer.forecast is None:
            kind, text = answer.refusal or ("", "")
            raise _REFUSALS.get(kind, protocol.PlanError)(text)
        plan = Plan.model_validate_json(canonical_json(answer.forecast.plan))
        return Planned(terms_of(plan, Schema.parse(self.schema_text)), answer.forecast)


WorkOut = Callable[[Wanted, Event], Planned]  # gives up when the event is set: nobody waits for the plan any more


def work_out_here(wanted: Wanted, _abandoned: Event) -> Planned:
    """Work a plan out in this process and thread, however long that takes."""
    return wanted.work_out()


def request_digest(request: PlanRequest) -> str:
    """Return a digest that is equal for equal requests."""
    return digest(canonical_json(request.model_dump(mode="json", by_alias=True)))


def stored_terms(plan: str, schema: str, smallest_key: int = SMALLEST_BITS) -> Terms:
    """Return the terms of a stored plan, as they were agreed."""
    return agree(stored_plan(plan), Schema.parse(schema), smallest_key)


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
        advice=[interface.Advice(**vars(one)) for one in advice(terms)],
        steps=[interface.StepForecast(**vars(step)) for step in found.steps],
        bytes_per_party=found.bytes_per_party,
        seconds=found.seconds,
    )
