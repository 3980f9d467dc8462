"""A genuine manifest verifies; every kind of tampering is refused with a sentence that names it."""

from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from typing import Any

import pytest

from crypto.signing import SigningKey, sign
from protocol.errors import ManifestError
from protocol.exact import canonical_json
from protocol.messages.signatures import RECEIPT, receipt_text
from protocol.messages.tasks import Acceptance, encode
from protocol.run.manifest import (
    MANIFEST_CONTEXT,
    Cost,
    Manifest,
    PartyRecord,
    Receipt,
    dependence,
    edges,
    signed,
    verify_manifest,
)
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, SMALL_BITS, Driver, identity, random_codes, terms_of

CURATOR = SigningKey.from_bytes(bytes([9]) * 32)
OTHER = SigningKey.from_bytes(bytes([8]) * 32)
TABLE = b"a,b,c,d,e\nno,yes,no,no,yes\n"
ROWS = (30, 20, 10)

Json = dict[str, Any]


def receipt(
    driver: Driver, party: int, step: str, reply: bytes, charge: Fraction, delta: Fraction = Fraction(0)
) -> Receipt:
    text = receipt_text(driver.terms.plan_hash, step, charge, reply, delta)
    signature = sign(identity(party).signing, RECEIPT, text)
    return Receipt(step=step, charge=charge, delta=delta, reply=sha256(reply).hexdigest(), signature=signature)


def genuine(method: str = "dp-subn", **wishes: Any) -> Manifest:
    """Of a run that really took place, without cryptography around its sums."""
    terms = terms_of(BITS, ROWS, method=method, **wishes)
    driver = Driver(terms, random_codes(BITS, ROWS), clear=True)
    receipts: list[list[Receipt]] = [[] for _ in ROWS]
    acceptances: dict[int, Acceptance] = {}
    while (step := driver.state.step) is not None:
        for party, reply in driver.replies().items():
            if isinstance(reply, Acceptance):
                acceptances[party] = reply
            cost = step.charge(party), step.delta(party)
            receipts[party].append(receipt(driver, party, step.name, encode(reply), *cost))
            driver.receive(party, reply)
    records = tuple(
        PartyRecord(
            name=member.name,
            spent=terms.price(party),
            delta=terms.delta(party),
            exchange_key=acceptances[party].exchange_key,
            acceptance=acceptances[party].signature,
            receipts=tuple(receipts[party]),
        )
        for party, member in enumerate(terms.plan.members)
    )
    return Manifest(
        plan=terms.plan,
        schema_text=BITS.to_json(),
        curator_key=CURATOR.public,
        parties=records,
        network=edges(terms, driver.state.knowledge),
        phases=(Cost(name="parameters", cells=12, ciphertexts=0, bytes=100),),
        dependence=dependence(terms, driver.state.knowledge),
        outputs={"table.csv": sha256(TABLE).hexdigest()},
        software={"dp-subn": "0.1.0"},
        finished="2026-01-01T00:00:00Z",
    )


def check(data: bytes, table: bytes = TABLE, key: bytes | None = CURATOR.public) -> Manifest:
    return verify_manifest(data, {"table.csv": sha256(table).hexdigest()}, key, SMALL_BITS)


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent"])
def test_a_genuine_manifest_verifies(method: str) -> None:
    manifest = genuine(method)
    assert check(signed(manifest, CURATOR)) == manifest
    assert {record.spent for record in manifest.parties} == {1}


ASKING: dict[str, Any] = {"views": "pairs", "dependence": Fraction(1, 10), "alone_below": Fraction(1, 10)}


def test_a_manifest_tells_how_strongly_columns_depend_and_what_followed() -> None:
    manifest = genuine("guided", **ASKING)
    assert check(signed(manifest, CURATOR)) == manifest
    found = manifest.dependence
    assert found is not None
    assert found.alone == (found.measured < found.below)
    others = [None, found.model_copy(update={"alone": not found.alone}), found.model_copy(update={"below": 1})]
    for other, what in zip(others, ["differ in whether", "counted alone for", "bound is"], strict=True):
        with pytest.raises(ManifestError, match=what):
            check(signed(manifest.model_copy(update={"dependence": other}), CURATOR))
    with pytest.raises(ManifestError, match="differ in whether"):
        check(signed(genuine("guided").model_copy(update={"dependence": found}), CURATOR))
    assert b'"dependence"' not in signed(genuine("guided"), CURATOR)


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent"])
def test_a_genuine_manifest_with_deltas_verifies(method: str) -> None:
    manifest = genuine(method, privacy="zcdp")
    assert check(signed(manifest, CURATOR)) == manifest
    assert {record.delta for record in manifest.parties} == {manifest.plan.delta} == {Fraction(1, 10**9)}
    assert all(record.spent <= manifest.plan.epsilon for record in manifest.parties)


def hide_the_delta(manifest: Json) -> None:
    manifest["parties"][0]["delta"] = "0"


def move_a_delta(manifest: Json) -> None:
    charged = next(one for one in manifest["parties"][0]["receipts"] if one["delta"] != "0")
    charged["delta"] = "0"


@pytest.mark.parametrize(
    ("tamper", "why"),
    [
        (hide_the_delta, "spent a delta of 0, but its receipts add up to a delta of 1/1000000000"),
        (move_a_delta, "says delta 0, the plan says delta 1/1000000000"),
    ],
)
def test_a_delta_that_was_left_out_is_noticed(tamper: Callable[[Json], None], why: str) -> None:
    manifest = genuine(privacy="zcdp").model_dump(mode="json")
    tamper(manifest)
    with pytest.raises(ManifestError, match=why):
        check(resigned(manifest))


def test_networks_of_several_parties_name_their_party() -> None:
    assert {family.party for family in genuine("independent").network} == {"party-1", "party-2", "party-3"}


def resigned(manifest: Json, key: SigningKey = CURATOR) -> bytes:
    """As a cheating curator would sign it."""
    signature = sign(key, MANIFEST_CONTEXT, canonical_json(manifest))
    return canonical_json({"manifest": manifest, "signature": encoded(signature)})


def encoded(data: bytes) -> str:
    """Bytes as the wire's JSON spells them."""
    spelled = Receipt(step="s", charge=Fraction(0), reply="0" * 64, signature=data).model_dump(mode="json")
    return str(spelled["signature"])


def raise_epsilon(manifest: Json) -> None:
    manifest["plan"]["epsilon"] = "2"


def halve_the_spending(manifest: Json) -> None:
    manifest["parties"][0]["spent"] = "1/2"


def lower_a_charge(manifest: Json) -> None:
    manifest["parties"][1]["receipts"][-1]["charge"] = "1/100"


def drop_a_receipt(manifest: Json) -> None:
    manifest["parties"][1]["receipts"].pop()


def swap_an_answer(manifest: Json) -> None:
    manifest["parties"][0]["receipts"][1]["reply"] = "0" * 64


def drop_a_party(manifest: Json) -> None:
    manifest["parties"].pop()


def swap_acceptances(manifest: Json) -> None:
    first, second = manifest["parties"][:2]
    first["acceptance"], second["acceptance"] = second["acceptance"], first["acceptance"]


def swap_exchange_keys(manifest: Json) -> None:
    first, second = manifest["parties"][:2]
    first["exchange_key"], second["exchange_key"] = second["exchange_key"], first["exchange_key"]


def add_rows_to_a_party(manifest: Json) -> None:
    manifest["plan"]["members"][0]["rows"] += 1


def change_the_schema(manifest: Json) -> None:
    manifest["schema_text"] = Schema.parse(
        {"attributes": [{"name": n, "kind": "categorical", "values": ["x", "y"]} for n in "abcde"]}
    ).to_json()


def invent_an_attribute(manifest: Json) -> None:
    manifest["network"][0]["attribute"] = "salary"


def ask_for_a_smaller_key(manifest: Json) -> None:
    manifest["plan"]["key_bits"] = 256


def add_a_field(manifest: Json) -> None:
    manifest["approved"] = True


def break_the_schema(manifest: Json) -> None:
    manifest["schema_text"] = "{}"


TAMPERINGS: list[tuple[Callable[[Json], None], str]] = [
    (raise_epsilon, "did not sign this plan"),
    (halve_the_spending, "spent 1/2, but its receipts add up to 1"),
    (lower_a_charge, "says 1/100, the plan says"),
    (drop_a_receipt, "receipts do not match the"),
    (swap_an_answer, "did not sign its receipt for 'correlations'"),
    (drop_a_party, "records of other parties than the plan's"),
    (swap_acceptances, "did not sign this plan"),
    (swap_exchange_keys, "did not sign this plan"),
    (add_rows_to_a_party, "did not sign this plan"),
    (change_the_schema, "no party can have agreed to this plan"),
    (break_the_schema, "no party can have agreed to this plan"),
    (invent_an_attribute, "the network names 'salary'"),
    (ask_for_a_smaller_key, "no party can have agreed to this plan"),
    (add_a_field, "this is not a manifest of version 1: manifest.approved"),
]


@pytest.mark.parametrize(("tamper", "sentence"), TAMPERINGS, ids=[tamper.__name__ for tamper, _ in TAMPERINGS])
def test_what_a_cheating_curator_could_sign_is_refused(tamper: Callable[[Json], None], sentence: str) -> None:
    manifest = genuine().model_dump(mode="json")
    tamper(manifest)
    with pytest.raises(ManifestError, match=sentence):
        check(resigned(manifest))


def test_a_change_after_signing_is_refused() -> None:
    data = signed(genuine(), CURATOR).replace(b'"cells":12', b'"cells":13')
    with pytest.raises(ManifestError, match="changed after signing"):
        check(data)


def test_another_curators_signature_is_refused_if_the_curator_is_known() -> None:
    manifest = genuine().model_copy(update={"curator_key": OTHER.public})
    assert check(signed(manifest, OTHER), key=None) == manifest
    with pytest.raises(ManifestError, match="another curator"):
        check(signed(manifest, OTHER))


def test_another_table_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"table\.csv is not the file that was published"):
        check(signed(genuine(), CURATOR), table=TABLE.replace(b"yes", b"no"))


def test_a_file_that_the_manifest_does_not_know_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"does not list the file 'rows\.csv'; it lists table\.csv"):
        verify_manifest(signed(genuine(), CURATOR), {"rows.csv": "0" * 64}, CURATOR.public, SMALL_BITS)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"manifest":1,"signature":""}'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(ManifestError, match="not a manifest of version 1"):
        check(data)
