"""Plans for operators: a request, the schema and the offers that it names, worked out within limits.

It does not know how a plan is worked out (`curator.runs.planning`), or in which process.
"""

from dataclasses import dataclass
from threading import Event

from curator.accounts.registry import Registry
from curator.interface import PlanRequest
from curator.runs.planning import Planned, Wanted
from curator.runs.ports import Seams
from protocol.forecast.advice import refuse_unless_meant

_DRAFT = "draft"  # the name of a run that is only planned


@dataclass(frozen=True)
class Planner:
    registry: Registry
    seams: Seams

    def plan(
        self, request: PlanRequest, run: str = _DRAFT, abandoned: Event | None = None, with_curve: bool = False
    ) -> Planned:
        """Return the terms that a run of this request would have, and their forecast. Nothing is stored.

        It is given up when `abandoned` is set.
        """
        wanted = Wanted(
            run=run,
            request=request,
            schema_text=self.registry.schema_text(request.schema_hash),
            members=tuple(self.registry.members(request.schema_hash, request.parties)),
            smallest_key=self.seams.smallest_key,
            with_curve=with_curve,
        )
        return self.seams.work_out(wanted, abandoned or Event())

    def plan_to_start(self, request: PlanRequest, run: str) -> Planned:
        """Return the plan of a run that is to start. Raise AdvisedAgainst unless its advice is heeded or overruled."""
        found = self.plan(request, run)
        refuse_unless_meant(found.terms.plan, request.anyway)
        return found
