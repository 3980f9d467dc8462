"""The data owner's page of schemas: read, edit, check, compare, download; and no file of the home changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.services.schema_words import editable
from protocol.tables.schema import Schema
from tests.support.fake_curator import FakeCurator
from tests.support.owner import with_history
from tests.support.small_runs import BITS, MIXED
from tests.unit.party.pages.test_owner_pages import Visitor, words


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    party = with_history(tmp_path, FakeCurator())[0]
    yield Visitor(party).sign_in()
    party.opened.ledger.close()


def posted(visitor: Visitor, path: str, text: str = "", **more: Any) -> Any:
    return visitor.post(path, {"text": text, **more.pop("data", {})}, **more)


def test_the_schema_of_a_data_set_is_shown_to_edit(visitor: Visitor) -> None:
    answer = visitor.get("/schema")
    assert editable(BITS).splitlines()[1].strip().strip(",") in words(answer)
    assert "no, yes" in words(answer)
    assert str(visitor.party.home.path / "schema.json") in words(answer)


def test_an_edited_schema_is_checked_and_compared(visitor: Visitor) -> None:
    changed = json.loads(BITS.to_json())
    changed["attributes"][0]["values"] = ["no", "yes", "perhaps"]
    answer = posted(visitor, "/schema/check", json.dumps(changed), data={"beside": "patients", "rows": "30"})
    assert answer.status_code == 200
    assert "The schema has no problems." in words(answer)
    assert "no, yes, perhaps no, yes" in words(answer)
    same = posted(visitor, "/schema/check", BITS.to_json(), data={"beside": "patients"})
    assert "All 5 columns are the same." in words(same)


def test_all_problems_are_shown_at_once(visitor: Visitor) -> None:
    bad = '{"attributes": [{"name": "<i>", "kind": "integer", "min": 3, "max": 1}, {"name": "x", "kind": "real"}]}'
    answer = posted(visitor, "/schema/check", bad)
    assert answer.status_code == 422
    assert "4 to correct:" in words(answer)
    assert "<i>" not in answer.text


def test_a_file_takes_the_text_s_place(visitor: Visitor) -> None:
    files = {"file": ("s.json", MIXED.to_json().encode(), "application/json")}
    answer = posted(visitor, "/schema/check", "nonsense", data={"beside": "patients"}, files=files)
    assert "The schema has no problems." in words(answer)
    assert "clerk, smith, baker, or missing" in words(answer)
    wrong = posted(visitor, "/schema/check", files={"file": ("s.json", b"\xff", "application/json")})
    assert wrong.status_code == 422
    assert "the file is not in UTF-8" in words(wrong)


def test_a_long_schema_is_taken_though_other_forms_are_short(visitor: Visitor) -> None:
    described = {"name": "x", "kind": "boolean", "description": "d" * 1000}
    long = json.dumps({"attributes": [described | {"name": f"a{number}"} for number in range(500)]})
    files = {"file": ("s.json", long.encode(), "application/json")}
    assert "The schema has no problems." in words(posted(visitor, "/schema/check", files=files))
    files = {"file": ("s.json", b" " * (2 << 20), "application/json")}
    assert posted(visitor, "/schema/check", files=files).status_code == 413


def test_what_was_edited_is_downloaded_and_no_file_of_the_home_changes(visitor: Visitor) -> None:
    home = visitor.party.home.path
    before = {file: file.read_bytes() for file in home.glob("*.*") if file.suffix in (".json", ".toml")}
    assert before
    answer = posted(visitor, "/schema/download", editable(MIXED).replace("\n", "\r\n"))
    assert answer.headers["Content-Disposition"] == 'attachment; filename="schema.json"'
    assert answer.text == editable(MIXED)
    assert Schema.parse(answer.content) == MIXED
    posted(visitor, "/schema/check", editable(MIXED), data={"beside": "patients"})
    assert {file: file.read_bytes() for file in before} == before


def test_without_a_readable_schema_the_page_starts_empty(visitor: Visitor) -> None:
    (visitor.party.home.path / "schema.json").write_text("{")
    answer = visitor.get("/schema?dataset=patients")
    assert answer.status_code == 200
    assert "The columns" not in answer.text


@pytest.mark.parametrize("path", ["/schema/check", "/schema/download"])
def test_a_form_of_another_site_is_not_taken(visitor: Visitor, path: str) -> None:
    answer = visitor.send("POST", path, data={"form_token": "0" * 32, "text": BITS.to_json()})
    assert answer.status_code == 401
    assert "Content-Disposition" not in answer.headers
