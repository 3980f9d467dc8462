"""Who takes part: operators' keys, codes, enrolment, rotation, offers, and the members that a plan may name."""

import pytest
from sqlalchemy import select

from crypto.errors import MalformedKey
from crypto.randomness import Stream
from curator.accounts.offered import LARGEST_OFFERS, MOST_OFFERS
from curator.accounts.registry import CODE_LIFE_MS, Registry
from curator.errors import Conflict, Forbidden, NotFound
from curator.store.store import Store
from curator.store.tables import schemas
from protocol.errors import PlanError
from protocol.tables.schema import Schema
from tests.support.curator import START, Clock
from tests.support.small_runs import BITS, MIXED, identity

STREAM = Stream.keyed(b"test", "registry")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(tmp_path, clock):
    store = Store.open(f"sqlite:///{tmp_path / 'curator.db'}")
    yield Registry(store, clock)
    store.close()


def keys(number: int) -> tuple[bytes, bytes]:
    return identity(number).signing.public, identity(number).exchange.public


def enrol(registry: Registry, name: str, number: int = 0) -> None:
    code, _ = registry.new_code(name, STREAM)
    registry.enrol(code, name, *keys(number))


def refused(call, kind: type[Exception]) -> str:
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


# Operators' keys


def test_operator_keys_are_random_and_only_hashes_are_kept(registry, tmp_path):
    key = registry.new_operator_key("anna", STREAM)
    assert len(bytes.fromhex(key)) == 32
    assert [(found.label, found.created) for found in registry.operator_keys()] == [("anna", START)]
    assert key.encode() not in (tmp_path / "curator.db").read_bytes() + (tmp_path / "curator.db-wal").read_bytes()


def test_operator_keys_are_revoked_by_label(registry):
    for label in ("anna", "ben", "anna"):
        registry.new_operator_key(label, STREAM)
    registry.revoke_operator_key("anna")
    assert [found.label for found in registry.operator_keys()] == ["ben"]
    assert "no operator's key called 'anna'" in refused(lambda: registry.revoke_operator_key("anna"), NotFound)


# Enrolment


def test_a_code_enrols_its_party_once(registry, clock):
    code, expires = registry.new_code("clinic", STREAM)
    assert expires == START + CODE_LIFE_MS
    record = registry.enrol(code, "clinic", *keys(0))
    assert (record.name, record.signing_key, record.enrolled, record.revoked) == ("clinic", keys(0)[0], START, None)
    assert registry.parties() == [record]
    assert "has been used" in refused(lambda: registry.enrol(code, "clinic", *keys(1)), Forbidden)


def test_an_enrolment_whose_answer_was_lost_can_be_made_again(registry, clock):
    code, _ = registry.new_code("clinic", STREAM)
    record = registry.enrol(code, "clinic", *keys(0))
    clock.now += CODE_LIFE_MS
    assert registry.enrol(code, "clinic", *keys(0)) == record
    assert registry.parties() == [record]
    another, _ = registry.new_code("other", STREAM)
    for wrong in (code[:-1] + "x", another):
        refused(lambda w=wrong: registry.enrol(w, "clinic", *keys(0)), Forbidden)
    mixed = keys(0)[0], keys(1)[1]
    assert "has been used" in refused(lambda: registry.enrol(code, "clinic", *mixed), Forbidden)
    registry.rotate("clinic", *keys(2))
    assert "has been used" in refused(lambda: registry.enrol(code, "clinic", *keys(0)), Forbidden)
    registry.rotate("clinic", *keys(0))
    registry.revoke("clinic")
    assert "has been used" in refused(lambda: registry.enrol(code, "clinic", *keys(0)), Forbidden)


def test_a_code_is_for_its_name_and_day(registry, clock):
    code, _ = registry.new_code("clinic", STREAM)
    for wrong, name in ((code, "other"), ("0" * 30, "clinic")):
        assert "enrolment code is not valid for" in refused(
            lambda w=wrong, n=name: registry.enrol(w, n, *keys(0)), Forbidden
        )
    clock.now += CODE_LIFE_MS
    assert "has expired" in refused(lambda: registry.enrol(code, "clinic", *keys(0)), Forbidden)
    assert registry.parties() == []


def test_a_refused_enrolment_does_not_use_the_code(registry):
    enrol(registry, "first", 0)
    code, _ = registry.new_code("clinic", STREAM)
    assert "already belongs to a party" in refused(lambda: registry.enrol(code, "clinic", *keys(0)), Conflict)
    registry.enrol(code, "clinic", *keys(1))


@pytest.mark.parametrize("weak", [bytes(32), b"\x01" + bytes(31), b"\xed" + b"\xff" * 30 + b"\x7f"])
def test_an_exchange_key_that_keeps_nothing_secret_is_refused(registry, weak):
    code, _ = registry.new_code("clinic", STREAM)
    assert "with which nothing is secret" in refused(
        lambda: registry.enrol(code, "clinic", keys(0)[0], weak), MalformedKey
    )
    registry.enrol(code, "clinic", *keys(0))
    refused(lambda: registry.rotate("clinic", keys(1)[0], weak), MalformedKey)


def test_an_exchange_key_of_another_party_is_refused(registry):
    enrol(registry, "first", 0)
    enrol(registry, "second", 1)
    code, _ = registry.new_code("clinic", STREAM)
    copied = keys(2)[0], keys(0)[1]
    assert "exchange key belongs to a party" in refused(lambda: registry.enrol(code, "clinic", *copied), Conflict)
    assert "exchange key belongs to a party" in refused(lambda: registry.rotate("second", *copied), Conflict)


def test_names_are_taken_once(registry):
    first, _ = registry.new_code("clinic", STREAM)
    second, _ = registry.new_code("clinic", STREAM)
    registry.enrol(first, "clinic", *keys(0))
    assert "a party called 'clinic' already" in refused(lambda: registry.enrol(second, "clinic", *keys(1)), Conflict)
    assert "a party called 'clinic' already" in refused(lambda: registry.new_code("clinic", STREAM), Conflict)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", " a", "a ", "curator", "operator", "the parties"])
def test_names_that_would_mislead_are_refused(registry, name):
    with pytest.raises(Forbidden, match=r"a party's name has|no party can be called"):
        registry.new_code(name, STREAM)


def test_parties_come_in_pages(registry):
    for number, name in enumerate(("c", "a", "b")):
        enrol(registry, name, number)
    assert [party.name for party in registry.parties(2)] == ["a", "b"]
    assert [party.name for party in registry.parties(2, after="b")] == ["c"]


# Rotation and revocation


def test_keys_rotate(registry):
    enrol(registry, "clinic", 0)
    registry.rotate("clinic", *keys(1))
    assert registry.parties()[0].signing_key == keys(1)[0]


def test_keys_do_not_rotate_to_those_of_another_party(registry):
    enrol(registry, "clinic", 0)
    enrol(registry, "other", 1)
    assert "already belongs to a party" in refused(lambda: registry.rotate("clinic", *keys(1)), Conflict)
    assert "no party called 'nobody'" in refused(lambda: registry.rotate("nobody", *keys(2)), NotFound)


def test_a_revoked_party_keeps_the_time_of_its_revocation(registry, clock):
    enrol(registry, "clinic")
    registry.revoke("clinic")
    clock.advance(5)
    registry.revoke("clinic")
    assert registry.parties()[0].revoked == START
    assert "no party called 'nobody'" in refused(lambda: registry.revoke("nobody"), NotFound)


# Offers, schemas, members


def test_an_offer_brings_its_schema(registry):
    enrol(registry, "clinic")
    registry.offer("clinic", "patients", BITS, 30)
    assert Schema.parse(registry.schema_text(BITS.hash)) == BITS
    assert [(one.hash, one.title) for one in registry.schemas()] == [(BITS.hash, "")]
    assert "no schema" in refused(lambda: registry.schema_text(MIXED.hash), NotFound)


def numbered(number: int, values: int = 2) -> Schema:
    codes = [f"{value:09}" for value in range(values)]
    attribute = {"name": f"attribute {number}", "kind": "categorical", "values": codes}
    return Schema.parse({"title": f"schema {number}", "attributes": [attribute]})


def test_a_schema_goes_with_its_last_offer_unless_an_operator_published_it(registry):
    enrol(registry, "clinic")
    for number in range(200):  # a party that changes its mind keeps one offer and one schema
        registry.offer("clinic", "patients", numbered(number), 30)
    assert [one.title for one in registry.schemas()] == ["schema 199"]
    registry.add_schema(numbered(199))
    registry.offer("clinic", "patients", BITS, 30)
    assert sorted(one.title for one in registry.schemas()) == ["", "schema 199"]
    assert sorted(one.attributes for one in registry.schemas()) == [1, 5]


def test_a_party_has_so_many_offers_and_no_more(registry, clock):
    """Offers without a limit filled 76 MB in a quarter of a minute."""
    enrol(registry, "clinic", 0)
    enrol(registry, "other", 1)
    registry.offer("other", "rows", BITS, 10)
    for number in range(MOST_OFFERS + 5):
        clock.advance(1)
        registry.offer("clinic", f"rows {number}", numbered(number), 30)
    kept = {offer.dataset for offer in registry.offers() if offer.party == "clinic"}
    assert kept == {f"rows {number}" for number in range(5, MOST_OFFERS + 5)}
    assert len(registry.schemas()) == MOST_OFFERS + 1
    assert [member.name for member in registry.members(BITS.hash, None)] == ["other"]


def test_the_schemas_of_a_partys_offers_have_a_bound_and_the_newest_offer_stays(registry, clock):
    enrol(registry, "clinic")
    large = [numbered(number, values=60_000) for number in range(8)]
    assert 4 < LARGEST_OFFERS // len(large[0].to_json()) < 7
    for number, schema in enumerate(large):
        clock.advance(1)
        registry.offer("clinic", f"rows {number}", schema, 30)
        registry.offer("clinic", f"again {number}", schema, 30)  # one schema counts once
    with registry.store.reading() as db:
        assert sum(len(text) for text in db.execute(select(schemas.c.text)).scalars()) <= LARGEST_OFFERS
    assert {"rows 7", "again 7", "rows 3"} <= {offer.dataset for offer in registry.offers()}


def test_a_schema_is_kept_once_and_pages_are_by_hash(registry):
    for schema in (BITS, MIXED, BITS):
        registry.add_schema(schema)
    first, second = sorted([BITS.hash, MIXED.hash])
    assert [one.hash for one in registry.schemas(1)] == [first]
    assert [one.hash for one in registry.schemas(1, after=first)] == [second]


def test_the_newest_offer_counts(registry, clock):
    enrol(registry, "clinic")
    for dataset, schema, rows in (("old", BITS, 30), ("new", BITS, 31), ("other", MIXED, 5), ("old", BITS, 32)):
        clock.advance(1)
        registry.offer("clinic", dataset, schema, rows)
    assert len(registry.offers()) == 3
    assert [member.rows for member in registry.members(BITS.hash, None)] == [32]


def test_members_are_those_asked_for_in_their_order(registry):
    for number, name in enumerate(("a", "b", "c")):
        enrol(registry, name, number)
        registry.offer(name, "rows", BITS, 10 + number)
    assert [(m.name, m.rows) for m in registry.members(BITS.hash, ["c", "a"])] == [("c", 12), ("a", 10)]
    registry.revoke("a")
    assert [member.name for member in registry.members(BITS.hash, None)] == ["b", "c"]
    assert "revoked" in refused(lambda: registry.members(BITS.hash, ["a"]), PlanError)
    assert "no party 'x'" in refused(lambda: registry.members(BITS.hash, ["x"]), PlanError)
    assert "b offers no rows of the schema" in refused(lambda: registry.members(MIXED.hash, ["b"]), PlanError)


def test_a_schema_that_nobody_offers_is_told_with_what_is_offered(registry):
    registry.add_schema(MIXED)
    text = refused(lambda: registry.members(MIXED.hash, None), PlanError)
    assert f"no party offers rows of the schema {MIXED.hash[:12]}... (offered: nothing yet)" in text
    assert "subn parties list" in text
    other = Schema.parse({"attributes": [{"name": "a", "kind": "boolean"}]})
    for number, name in enumerate(("north", "gone")):
        enrol(registry, name, number)
        registry.offer(name, "patients", other, 10)
    registry.revoke("gone")
    text = refused(lambda: registry.members(MIXED.hash, None), PlanError)
    assert f"(offered: north {other.hash[:12]}...)" in text
