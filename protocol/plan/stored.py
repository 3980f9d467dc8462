"""Plans as they were stored, perhaps by an older version of this program.

It does not know where they are stored.
"""

from pydantic import ValidationError

from protocol.errors import PlanError
from protocol.plan.plan import Plan


def stored_plan(text: str) -> Plan:
    """Read a plan that was checked when it was stored. Raise PlanError if it is of a version that had other fields."""
    try:
        return Plan.model_validate_json(text)
    except ValidationError:
        raise PlanError(
            "the run's plan was made by another version of the program, which had other options: only that version "
            "continues the run or shows all of it"
        ) from None
