"""From an operator's wishes and the parties' offers to terms, and back to the same terms from what is stored.

It does not know runs, or where offers are kept.
"""

from collections.abc import Sequence

from crypto.paillier.public import SMALLEST_BITS
from curator.interface import PlanRequest
from protocol.exact import canonical_json, digest
from protocol.plan.agreement import agree
from protocol.plan.plan import Member, Plan
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.tables.schema import Schema


def request_digest(request: PlanRequest) -> str:
    """Equal for requests that ask for the same."""
    return digest(canonical_json(request.model_dump(mode="json", by_alias=True)))


def terms_for(
    run: str, request: PlanRequest, schema: Schema, members: Sequence[Member], smallest_key: int = SMALLEST_BITS
) -> Terms:
    """Raises PlanError where the wishes cannot be met."""
    return agree(make_plan(run, schema, members, **request.wishes()), schema, smallest_key)


def stored_terms(plan: str, schema: str, smallest_key: int = SMALLEST_BITS) -> Terms:
    """The terms of a stored plan, as they were agreed."""
    return agree(Plan.model_validate_json(plan), Schema.parse(schema), smallest_key)
