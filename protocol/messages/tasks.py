"""Every message between the curator and a party: frozen, versioned, closed to unknown fields.

It does not know the order of messages (`protocol.run.curator`, `protocol.run.party`), or how bytes travel.

On the wire a message is MAGIC, the length of its header (4 bytes, big endian), the header as canonical JSON, and
its blob: ciphertexts or 64-bit words. Nothing is ever evaluated, and equal messages have equal bytes.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from protocol.errors import MalformedMessage
from protocol.exact import Hash, canonical_json
from protocol.plan.plan import LONGEST_NAME, Frozen, Name, Plan
from protocol.text import checked_name

MAGIC = b"SUBN\x01"
_LARGEST_HEADER = 1 << 26
_LONGEST_COMPLAINT = 300

Index = Annotated[int, Field(ge=0, lt=1 << 20)]
Variables = tuple[Index, ...]
Family = tuple[Index, Variables]  # child, parents
Merged = tuple[Index, Annotated[tuple[Index, ...], Field(min_length=1)]]  # a variable; the merged category of each code
Tag = Annotated[bytes, Field(max_length=16)]
RunKey = Annotated[bytes, Field(min_length=32, max_length=32)]  # a party's exchange key of this run alone, public half


class Message(Frozen):
    model_config = ConfigDict(hide_input_in_errors=True)

    plan: Hash  # of the plan that the message belongs to
    step: Name
    blob: Annotated[bytes, Field(exclude=True, repr=False)] = b""


class Invitation(Message):
    """Curator to party: the plan and its schema, to be accepted or refused."""

    kind: Literal["invitation"] = "invitation"
    proposal: Plan
    schema_text: str


class Acceptance(Message):
    """Party to curator: "I run this plan", with the party's exchange key of this run.

    The message carries the party's share of the group key, sealed for each other party.
    """

    kind: Literal["acceptance"] = "acceptance"
    exchange_key: RunKey
    signature: bytes  # under the plan's hash and the exchange key
    contributions: tuple[bytes, ...]  # by recipient; empty for the party itself and where no group key is needed


class Keys(Frozen):
    """Keys that each party needs before the first sum in noise mode `selected`."""

    public_key: bytes
    modulus_proof: bytes
    indicator: bytes
    contributions: tuple[bytes, ...]  # by sender, sealed to the recipient


class Joined(Frozen):
    """What every party is shown of each member's acceptance."""

    exchange_key: RunKey
    signature: bytes


Roster = Annotated[
    tuple[Joined, ...],
    Field(description="every member's signed exchange key, in the first task that a party gets after joining"),
]


class Count(Message):
    """Curator to party: the tables of one sum pass, or of one party's update."""

    kind: Literal["count"] = "count"
    roster: Roster = ()
    tables: tuple[Variables, ...]
    merged: tuple[Merged, ...] = ()  # variables with merged categories, numbered after the plan's own
    keys: Keys | None = None
    masked: tuple[Index, ...] = ()  # update=replace: tables whose former noise the predecessor takes out


class TakeBack(Message):
    """Curator to party (update=replace): take your noise out of these tables of your last update."""

    kind: Literal["take-back"] = "take-back"
    tables: tuple[Variables, ...]


class Contribution(Message):
    """Party to curator: the answer to `Count` and `TakeBack`, in the blob.

    In a pass the tags show for each other party which masks this party has used, and nothing of the masks.
    """

    kind: Literal["contribution"] = "contribution"
    tags: tuple[Tag, ...] = ()  # by party; empty for the party itself


class Place(Message):
    """Curator to party: the network so far; place your share of the variables, or pick further pairs (score M).

    With score M the blob holds a model of all tables released so far. For every clique of the model's tree it gives
    the weight of each combination of codes, as 64-bit words. Codes are those of the merged categories.
    """

    kind: Literal["place"] = "place"
    roster: Roster = ()
    families: tuple[Family, ...]
    further: tuple[Variables, ...] = ()  # pairs picked in addition to the network's
    frontier: tuple[Variables, ...] = ()  # update=turns: the pairs among which to pick
    merged: tuple[Merged, ...] = ()
    cliques: tuple[Variables, ...] = ()  # of the model's tree, from the root outwards
    parents: tuple[Index, ...] = ()  # for every clique, the position of its parent in `cliques`


class Placed(Message):
    """Party to curator: the families that the party picked privately."""

    kind: Literal["placed"] = "placed"
    families: tuple[Family, ...]


class Learn(Message):
    """Curator to party (method independent): learn a model of your own rows."""

    kind: Literal["learn"] = "learn"
    roster: Roster = ()


class Learned(Message):
    """Party to curator: the party's network, and the noisy tables of its maximal families in the blob."""

    kind: Literal["learned"] = "learned"
    families: tuple[Family, ...]


class Refusal(Message):
    """Party to curator: "I do not answer this task", with a reason that tells nothing about rows. Ends the run."""

    kind: Literal["refusal"] = "refusal"
    culprit: Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(checked_name)] = ""  # an accused party
    reason: Annotated[str, Field(min_length=1, max_length=2000)]


Task = Invitation | Count | TakeBack | Place | Learn
Reply = Acceptance | Contribution | Placed | Learned | Refusal
AnyMessage = Annotated[Task | Reply, Field(discriminator="kind")]

_ADAPTER: TypeAdapter[Task | Reply] = TypeAdapter(AnyMessage)


def encode(message: Task | Reply) -> bytes:
    header = canonical_json(message.model_dump(mode="json"))
    return MAGIC + len(header).to_bytes(4, "big") + header + message.blob


def decode(data: bytes, sender: str) -> Task | Reply:
    """The message in `data`; `MalformedMessage` names the sender as its culprit."""
    header, blob = _split(data, sender)
    try:
        message = _ADAPTER.validate_json(header)
    except ValidationError as error:
        raise MalformedMessage(
            sender, f"sent no valid message of version 1: {_first(error.errors(include_input=False))}"
        ) from None
    if canonical_json(message.model_dump(mode="json")) != header:
        # Retry safety: a message has exactly one spelling, so that a task already answered is recognised by its hash.
        raise MalformedMessage(sender, "sent a message whose header is not in canonical JSON")
    if blob and not isinstance(message, Contribution | Learned | Place):
        raise MalformedMessage(
            sender, f"sent a message of kind {message.kind!r}, which ends with its header, but {len(blob)} bytes follow"
        )
    return message.model_copy(update={"blob": blob}) if blob else message


def _split(data: bytes, sender: str) -> tuple[bytes, bytes]:
    start = len(MAGIC) + 4
    if data[:4] != MAGIC[:4] or len(data) < start:
        raise MalformedMessage(
            sender, f"sent bytes that are no message: expected a message that starts with {MAGIC[:4]!r}"
        )
    if data[4:5] != MAGIC[4:]:
        raise MalformedMessage(
            sender, f"speaks protocol version {data[4]}, this side speaks {MAGIC[4]}: update one of them"
        )
    length = int.from_bytes(data[len(MAGIC) : start], "big")
    if length > min(_LARGEST_HEADER, len(data) - start):
        raise MalformedMessage(sender, f"announced a header of {length} bytes, but {len(data) - start} bytes follow")
    return data[start : start + length], data[start + length :]


def _first(errors: list[Any]) -> str:
    where = ".".join(str(part) for part in errors[0]["loc"]) or "header"
    return f"{where}: {errors[0]['msg']}"[:_LONGEST_COMPLAINT]
