"""The plan's form, built from the fields of the plan request: a new option there appears here automatically.

It does not know HTML or what an option does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from curator.interface import PlanRequest
from protocol.errors import PlanError
from protocol.options import PLAN_OPTIONS

_ELSEWHERE = ("schema", "parties", "anyway")  # chosen outside these fields
EPSILONS = "0.05 0.1 0.2 0.3 0.4 0.5 0.6 0.8 1 1.25 1.5 2 2.5 3 4 5 6 8 10"


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    hint: str
    kind: str  # "choice", "number", "exact" or "exacts"
    choices: tuple[str, ...]
    is_needed: bool
    default: str
    smallest: int | None
    largest: int | None


def fields() -> tuple[list[Field], list[Field]]:
    """Return the basic fields, which are always shown, and the fields under "More options"."""
    found = {name: _field(name, described) for name, described in _described().items() if name not in _ELSEWHERE}
    basic = [found.pop(name) for name, option in PLAN_OPTIONS.items() if option.words.is_basic]
    return basic, list(found.values())


def request_of(filled: Mapping[str, str], schema_hash: str, parties: Sequence[str] | None) -> PlanRequest:
    """Return the request that the form stands for. Raise PlanError with the field at fault."""
    values: dict[str, Any] = {"schema": schema_hash, "parties": None if parties is None else list(parties)}
    for group in fields():
        for field in group:
            text = filled.get(field.name, "")
            if text:
                values[field.name] = _value(field, text)
    try:
        return PlanRequest.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0])
        label = _described().get(name, {}).get("title", name)
        raise PlanError(f"{label}: {first['msg'].removeprefix('Value error, ')}") from None


def _described() -> dict[str, dict[str, Any]]:
    """Return the options as the request's JSON schema describes them."""
    found: dict[str, dict[str, Any]] = PlanRequest.model_json_schema()["properties"]
    return found


def _field(name: str, described: dict[str, Any]) -> Field:
    options: list[dict[str, Any]] = described.get("anyOf", [described])
    option = next(one for one in options if one.get("type") != "null")
    default = described.get("default")
    return Field(
        name=name,
        label=described["title"],
        hint=described["description"],
        kind=_kind(option),
        choices=tuple(map(str, option.get("enum", ()))),
        is_needed="anyOf" not in described,
        default="" if default is None else str(default),
        smallest=option.get("minimum"),
        largest=option.get("maximum"),
    )


def _kind(option: dict[str, Any]) -> str:
    if "enum" in option:
        return "choice"
    return {"integer": "number", "array": "exacts"}.get(option["type"], "exact")


def _value(field: Field, text: str) -> Any:
    if field.kind == "exacts":
        return [part.strip() for part in text.split(",")]
    if field.kind != "number":
        return text
    try:
        return int(text)
    except ValueError:
        raise PlanError(f"{field.label}: a whole number is expected") from None
