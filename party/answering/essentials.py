"""The essentials of an invitation: what its data owner is shown, and what stays of it when it came to nothing.

It does not know the data owner's rules or the ledger. All of it is public.
"""

import json
from typing import Any

from party.home.keys import peer_fingerprint
from protocol.errors import PlanError, SchemaError
from protocol.exact import canonical_json
from protocol.messages.tasks import Invitation
from protocol.plan.plan import Member, Plan
from protocol.plan.stored import stored_plan
from protocol.tables.schema import Schema

MOST_PARTIES = 20  # whose names stay
_LONGEST_TITLE = 200
# Of an older plan, and what it meant where it did not say.
_OLDER = {"method": "", "noise": "", "insiders": 0, "privacy": "pure", "rows_per_person": 1, "parties_per_person": 1}


def essentials(plan: Plan, schema: Schema | None) -> dict[str, Any]:
    return {
        "title": schema.title if schema else "",
        "columns": len(schema.names) if schema else 0,
        "method": plan.method,
        "noise": plan.noise,
        "insiders": plan.insiders,
        "synthetic_rows": plan.rows,
        "parties": [_member(member) for member in plan.members],
        "more_parties": 0,
        "privacy": plan.privacy,
        "rows_per_person": plan.rows_per_person,
        "parties_per_person": plan.parties_per_person,
    }


def stored_essentials(text: str, schema: Schema | None) -> dict[str, Any]:
    """Return a stored plan's essentials; of a plan of another version, those that both versions have."""
    try:
        return essentials(stored_plan(text), schema)
    except PlanError:
        found = json.loads(text)
    few = {name: found.get(name, usual) for name, usual in _OLDER.items()}
    parties = [_stored_member(one) for one in found["members"]]
    about = {"title": schema.title if schema else "", "columns": len(schema.names) if schema else 0, "more_parties": 0}
    return {**about, **few, "synthetic_rows": found["rows"], "parties": parties}


def kept_of(invitation: Invitation) -> str:
    """The essentials as JSON, of a bounded length whatever the invitation holds."""
    try:
        schema = Schema.parse(invitation.schema_text)
    except SchemaError:
        schema = None
    plan = invitation.proposal
    few = plan.model_copy(update={"members": plan.members[:MOST_PARTIES]})
    found = essentials(few, schema)
    found["title"] = found["title"][:_LONGEST_TITLE]
    found["more_parties"] = plan.parties - few.parties
    return canonical_json(found).decode()


def _stored_member(found: dict[str, Any]) -> dict[str, Any]:
    """A member of a stored plan; of another version's, which says more about members, what this version knows."""
    known = {name: value for name, value in found.items() if name in Member.model_fields}
    return _member(Member.model_validate_json(json.dumps(known)))


def _member(member: Member) -> dict[str, Any]:
    fingerprint = peer_fingerprint(member.signing_key, member.exchange_key)
    return {
        "name": member.name,
        "rows": member.rows,
        "fingerprint": fingerprint,
        "rows_per_person": member.rows_per_person,
    }
