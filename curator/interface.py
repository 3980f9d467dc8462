"""The JSON of operators' requests and the curator's answers, closed to unknown fields.

It does not know how requests are served, and it holds no secrets.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from protocol.exact import Hash
from protocol.messages.http import Asked, PartyName, PublicKey, RunId, Told
from protocol.messages.run_states import RunStateName
from protocol.options import PLAN_OPTIONS, Method, PlanOption

Item = TypeVar("Item")
Severity = Literal["note", "warning", "stop"]
_Patience = Annotated[int, Field(ge=1, le=365 * 24 * 3600)]
SentText = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]


# What operators ask


class CodeRequest(Asked):
    name: PartyName


class Code(Told):
    name: str
    code: Annotated[str, Field(description="secret and pin, joined by a point")]
    expires: datetime
    alike: Annotated[list[str], Field(description="enrolled parties whose names this one can be taken for")]


class Offer(Told):
    dataset: str
    schema_hash: Annotated[Hash, Field(alias="schema")]
    rows: int
    rows_per_person: Annotated[int | None, Field(description="at most, by the party's person keys; null: not checked")]


class Party(Told):
    name: str
    signing_key: PublicKey
    exchange_key: PublicKey
    fingerprint: Annotated[str, Field(description="of both keys, to compare by telephone")]
    revoked: bool
    enrolled: datetime
    last_seen: datetime | None
    software: Annotated[str | None, Field(description="the version that the party claims to run")]
    offers: list[Offer]


class SchemaEntry(Told):
    hash: Hash
    title: str
    attributes: Annotated[int, Field(description="how many")]


class AddedSchema(SchemaEntry):
    like_formulas: Annotated[
        list[str], Field(description="texts that a spreadsheet takes for formulas (the first of them)")
    ]


Model = TypeVar("Model", bound=BaseModel)


def with_plan_options(model: type[Model]) -> type[Model]:
    """Return a copy of the model with an added field for every option of a plan."""
    options: dict[str, Any] = {name: _asked_for(option) for name, option in PLAN_OPTIONS.items()}
    return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **options)


def _asked_for(option: PlanOption) -> tuple[Any, Any]:
    """Return the type and the field of an option in a request. If the preset decides it, null is the default."""
    words, kind = option.words, option.type
    if option.kind == "exacts":
        kind = list[get_args(kind)[0]]  # type: ignore[misc]  # a type that is known at run time only
    metadata = option.constraints if words.bounds is None else (*option.constraints, words.bounds)
    if metadata:
        kind = Annotated[(kind, *metadata)]
    if not words.is_required and words.value is None:
        kind = kind | None
    default = ... if words.is_required else words.value
    return kind, Field(default, title=words.label, description=option.sentence)


@with_plan_options
class _Planned(Asked):
    schema_hash: Annotated[Hash, Field(alias="schema")]
    parties: Annotated[list[PartyName], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="names, or null for all that offer rows of this schema"
    )


class PlanRequest(_Planned):
    """The options of a plan, as in `subn simulate`. The preset decides options that are left out."""

    join_seconds: _Patience | None = Field(
        default=None, title="Seconds to join", description="how long the run waits for all to join"
    )
    step_seconds: _Patience | None = Field(
        default=None, title="Seconds for a step", description="how long the run waits for all answers to a step"
    )

    anyway: bool = Field(
        default=False,
        title="Anyway",
        description="start the plan although advice says stop; the plan records the advice",
    )

    def wishes(self) -> dict[str, Any]:
        """Return the arguments of `protocol.forecast.recommendation.planned` besides run, schema and members."""
        asked = {name: getattr(self, name) for name in PLAN_OPTIONS}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}


class Prediction(Told):
    """The expected distance of the published table from the parties' rows: total variation, the mean of all pairs."""

    error: Annotated[
        float | None, Field(description="null if it cannot be predicted from public numbers", examples=[0.043])
    ]
    low: Annotated[float | None, Field(description="the lower end of the range of the error", examples=[0.021])]
    high: Annotated[float | None, Field(description="the upper end: 19 of 20 errors lie in it", examples=[0.085])]
    usual: Annotated[
        float | None,
        Field(description="the error for a usual table, to compare plans, even if the error is not predicted"),
    ]
    noise: Annotated[
        float, Field(description="the part of the error that is noise in the counted pairs", examples=[0.008])
    ]
    left_out: Annotated[float, Field(description="the part of the error in the pairs left out", examples=[0.035])]
    why: Annotated[
        str,
        Field(
            description="the causes of the error, or why it is not predicted",
            examples=[
                "18 % of it is noise in the pairs that are counted; the rest is due to pairs left out and to chance"
            ],
        ),
    ]


class StepForecast(Told):
    name: str
    parties: int
    tables: int
    cells: int
    ciphertexts: int
    bytes_per_party: int
    seconds: float
    error: Annotated[
        float | None,
        Field(description="an upper bound on the mean total variation distance of the step's tables, from noise alone"),
    ]


class CurvePoint(Told):
    """The predicted error of the same plan at another epsilon."""

    epsilon: Annotated[str, Field(description="exact")]
    error: float
    low: float
    high: float
    method: str


class Advice(Told):
    severity: Annotated[Severity, Field(description="stop: the plan is refused unless the request says `anyway`")]
    text: Annotated[str, Field(description="what was found, and what would be better")]


class PlanForecast(Told):
    plan: dict[str, Any]
    plan_hash: Hash
    price: Annotated[dict[str, str], Field(description="exact epsilon by party")]
    delta: Annotated[dict[str, str], Field(description="exact delta by party: 0 in a plan without a delta")]
    predicted: Prediction
    why: Annotated[
        list[str],
        Field(
            description="the reasons for the plan's settings, in words",
            examples=[["The budget is divided: 95 % for counting all pairs by views, 5 % for counting what is left."]],
        ),
    ]
    advice: Annotated[list[Advice], Field(description="the most severe first")]
    steps: list[StepForecast]
    bytes_per_party: int
    seconds: float
    curve: Annotated[tuple[CurvePoint, ...], Field(description="errors by epsilon, where they were asked for")] = ()
    enough: Annotated[
        str | None,
        Field(description="the epsilon of the curve from which every doubling lowers the error by less than a fifth"),
    ] = None


class Waiting(Told):
    party: str
    since: datetime
    last_seen: datetime | None


class StepProgress(Told):
    step: str
    stage: str
    answered: list[str]
    of: list[str]
    started: datetime | None
    ended: datetime | None


class Run(Told):
    run: RunId
    state: RunStateName
    step: str | None
    waiting_for: list[Waiting]
    deadline: datetime | None
    reason: str | None
    culprit: Annotated[
        str | None,
        Field(description='a party, several of which one is at fault, "the parties", "curator" or "operator"'),
    ]
    progress: list[StepProgress]
    spent: Annotated[dict[str, str], Field(description="exact epsilon by party, up to now")]
    plan_hash: Hash
    created: datetime
    updated: datetime


class RunEntry(Told):
    """A run in a list."""

    run: RunId
    method: Method
    epsilon: str
    delta: str
    parties: Annotated[int, Field(description="how many")]
    state: RunStateName
    step: str | None
    reason: str | None
    culprit: str | None
    plan_hash: Hash
    created: datetime
    updated: datetime


class Cancellation(Asked):
    reason: SentText | None = None


class Event(Told):
    seq: int
    at: datetime
    kind: str
    data: dict[str, Any]


# Pages


class Page(Told):
    next: Annotated[str | None, Field(description="the value of `after` for the next page")]


def split_page(found: list[Item], limit: int) -> tuple[list[Item], bool]:
    """Return the page's items, and whether more follow: one more than `limit` was asked for."""
    return found[:limit], len(found) > limit


class Parties(Page):
    items: list[Party]


class Schemas(Page):
    items: list[SchemaEntry]


class Runs(Page):
    items: list[RunEntry]


# Errors


class Problem(BaseModel):
    """An error (RFC 9457), with `culprit`, `problems`, `run` and `step` where they are known."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(examples=["urn:dp-subn:problem:not-found"])]
    title: str
    status: int
    detail: str
    culprit: str | None = None
    problems: Annotated[list[str] | None, Field(description="all problems of a schema, a sentence each")] = None
    run: str | None = None
    step: str | None = None
