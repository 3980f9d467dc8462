"""The JSON of the curator's HTTP interface: what is asked and what is answered, closed to unknown fields.

It does not know how requests are served, and it holds no secrets.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from protocol.exact import Exact
from protocol.messages.tasks import Hash
from protocol.plan.plan import Method, Preset, ScoreName, Update
from protocol.privacy.mechanisms import Choice, Privacy
from protocol.privacy.noise_modes import Noise
from protocol.tables.encoding import EncodingName

RunStateName = Literal["joining", "running", "finished", "failed", "refused", "cancelled", "timed_out"]
ENDS: tuple[RunStateName, ...] = ("finished", "failed", "refused", "cancelled", "timed_out")

# Names go into paths, files and logs: letters, digits and a few marks, no blanks at the ends.
_NAME = r"^[\w](?:[\w .()&'-]{0,98}[\w.)])?$"
PartyName = Annotated[str, Field(pattern=_NAME, examples=["hospital-1"])]
DatasetName = Annotated[str, Field(pattern=_NAME, examples=["patients"])]
RunId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,100}$")]
StepName = Annotated[str, Field(pattern=r"^[a-z]+(/[0-9]{1,6})?$", examples=["correlations", "update/2"])]
PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["5d" * 32])]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$", examples=["a7" * 64])]
_Patience = Annotated[int, Field(ge=1, le=365 * 24 * 3600)]
SentText = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
_ExactText = Annotated[Exact, WithJsonSchema({"type": "string", "examples": ["0.8", "4/5"]})]


class Asked(BaseModel):
    """Base of request bodies."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Told(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


# What parties ask


class Enrolment(Asked):
    """Signed with the new key: whoever enrols a key holds it."""

    code: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
    name: PartyName
    signing_key: PublicKey
    exchange_key: PublicKey


class Introduction(Told):
    """Believed only by whom it is proved to: by the pin in an enrolment code."""

    curator_key: PublicKey
    ca: Annotated[str, Field(description="PEM; empty where every machine trusts the certificate")]


class Enrolled(Told):
    name: str
    curator_key: PublicKey


class Rotation(Asked):
    """Signed with the old key; `signature` is the new one's."""

    signing_key: PublicKey
    exchange_key: PublicKey
    signature: Signature


class OfferBody(Asked):
    """ "I hold this many rows of this schema." """

    schema_text: Annotated[str, Field(alias="schema", min_length=2, max_length=1 << 20)]
    rows: Annotated[int, Field(ge=1, le=2 * 10**9, examples=[20000])]


class OwnRun(Told):
    run: RunId
    plan: Hash
    state: RunStateName
    reason: str | None
    culprit: str | None


class SentReceipt(Told):
    run: RunId
    plan: Hash
    step: str
    charge: Annotated[str, Field(description="exact epsilon")]
    delta: str = "0"
    digest: Hash
    signature: Signature


class Peer(Told):
    name: str
    signing_key: PublicKey
    exchange_key: PublicKey
    revoked: bool


# What operators ask


class CodeRequest(Asked):
    name: PartyName


class Code(Told):
    name: str
    code: Annotated[str, Field(description="secret and pin, joined by a point")]
    expires: datetime


class Offer(Told):
    dataset: str
    schema_hash: Annotated[Hash, Field(alias="schema")]
    rows: int


class Party(Told):
    name: str
    signing_key: PublicKey
    exchange_key: PublicKey
    fingerprint: Annotated[str, Field(description="of the signing key, to compare by voice")]
    revoked: bool
    enrolled: datetime
    last_seen: datetime | None
    software: Annotated[str | None, Field(description="the version that it said it runs")]
    offers: list[Offer]


class SchemaEntry(Told):
    hash: Hash
    title: str
    attributes: Annotated[int, Field(description="how many")]


class PlanRequest(Asked):
    """The wishes of `subn simulate`; what is left out the preset decides."""

    schema_hash: Annotated[Hash, Field(alias="schema")]
    parties: Annotated[list[PartyName], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="names, or null for all that offer rows of this schema"
    )
    epsilon: _ExactText
    method: Method = "dp-subn"
    preset: Preset = "recommended"
    privacy: Privacy | None = None
    delta: _ExactText | None = Field(default=None, description="of privacy zcdp; below one over the number of rows")
    insiders: Annotated[int, Field(ge=0, le=1000)] | None = None
    noise: Noise | None = None
    update: Update | None = None
    rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    encoding: EncodingName | None = None
    score: ScoreName | None = None
    choice: Choice | None = None
    split: Annotated[list[_ExactText], Field(min_length=2, max_length=4)] | None = None
    theta: _ExactText | None = None
    degree: Annotated[int, Field(ge=0, le=1000)] | None = None
    rows: Annotated[int, Field(ge=1, le=10**9)] | None = None
    key_bits: Annotated[int, Field(ge=256, le=16384, multiple_of=8)] | None = None
    join_seconds: _Patience | None = Field(default=None, description="how long the run waits for all to join")
    step_seconds: _Patience | None = Field(default=None, description="how long it waits for all answers to a step")

    def wishes(self) -> dict[str, Any]:
        """What `protocol.plan.presets.make_plan` takes besides epsilon, method and preset."""
        decided = {"schema_hash", "parties", "epsilon", "method", "preset", "join_seconds", "step_seconds"}
        named = {name: getattr(self, name) for name in type(self).model_fields if name not in decided}
        return named | {"split": None if self.split is None else tuple(self.split)}


class Prediction(Told):
    """The expected distance of the published table from the parties' rows: total variation, the mean of all pairs."""

    error: Annotated[float | None, Field(description="null where public numbers do not tell it", examples=[0.043])]
    low: Annotated[
        float | None, Field(description="if attributes depend on each other half as much as usual", examples=[0.028])
    ]
    high: Annotated[float | None, Field(description="if they depend twice as much", examples=[0.075])]
    noise: Annotated[float, Field(description="its part that is noise in pairs that are counted", examples=[0.008])]
    left_out: Annotated[float, Field(description="its part in pairs that are not counted", examples=[0.035])]
    why: Annotated[
        str,
        Field(
            description="what it rests on, or why there is none",
            examples=["18 % of it is noise in the pairs that are counted; the rest is due to pairs left out"],
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
        Field(description="an upper bound on the mean total variation distance of the step's tables, by noise alone"),
    ]


class PlanForecast(Told):
    plan: dict[str, Any]
    plan_hash: Hash
    price: Annotated[dict[str, str], Field(description="exact epsilon by party")]
    delta: Annotated[dict[str, str], Field(description="exact delta by party: 0 but with privacy zcdp")]
    predicted: Prediction
    why: Annotated[
        list[str],
        Field(
            description="why the plan is as it is, in words",
            examples=[["The budget is divided: 95 % for counting all pairs by views, 5 % for counting what is left."]],
        ),
    ]
    steps: list[StepForecast]
    bytes_per_party: int
    seconds: float


class CuratorTime(Told):
    time_ms: Annotated[int, Field(description="milliseconds since 1970, UTC")]


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
    culprit: Annotated[str | None, Field(description='a party, "curator" or "operator"')]
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
    next: Annotated[str | None, Field(description="give it as `after` for the next page")]


class Parties(Page):
    items: list[Party]


class Schemas(Page):
    items: list[SchemaEntry]


class Runs(Page):
    items: list[RunEntry]


# Errors


class Problem(BaseModel):
    """RFC 9457; `culprit`, `run` and `step` where they are known."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(examples=["urn:dp-subn:problem:not-found"])]
    title: str
    status: int
    detail: str
    culprit: str | None = None
    run: str | None = None
    step: str | None = None
