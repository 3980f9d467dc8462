"""The operator's pages of schemas: what may be published, what is said of it, and that a check keeps nothing."""

import json
import re
from html import unescape
from typing import Any

import pytest

from curator.experiments.sample_data import SCHEMA
from protocol.services.schema_words import editable
from protocol.tables.schema import Schema
from tests.support.api import Api, with_api
from tests.support.curator import Desk
from tests.unit.curator.pages.test_pages import send, sign_in

SAMPLE = Schema.parse(SCHEMA)


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path)
    yield opened
    opened.store.close()


def words(answer: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def known(desk: Desk) -> int:
    return len(desk.orchestrator.registry.schemas())


async def upload(api: Api, path: str, content: bytes, **filled: str) -> Any:
    token = re.search(r'name="form_token" value="(\w+)"', (await api.http.get("/runs")).text)[1]
    files = {"file": ("schema.json", content, "application/json")}
    return await api.http.post(path, data={"form_token": token} | filled, files=files)


def test_a_schema_is_written_checked_and_published(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        before = known(desk)
        assert "Write or upload" in (await api.http.get("/schemas")).text
        checked = await send(api, "/schemas/check", text=json.dumps(SCHEMA))
        assert checked.status_code == 200
        assert "The schema can be published." in words(checked)
        assert "whole numbers from 0 to 104 in 21 bins" in words(checked)
        assert known(desk) == before
        answer = await send(api, "/schemas", text=json.dumps(SCHEMA))
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/schemas/{SAMPLE.hash}")
        assert known(desk) == before + 1
        shown = await api.http.get(f"/schemas/{SAMPLE.hash}")
        assert "Made-up hospital admissions" in shown.text
        assert "No party offers rows of this schema yet" in words(shown)
        assert f"/schemas/{SAMPLE.hash}" in (await api.http.get("/schemas")).text

    with_api(desk, story)


def test_an_uploaded_file_takes_the_text_s_place(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        content = b"\xef\xbb\xbf" + json.dumps(SCHEMA).encode()
        assert "The schema can be published." in words(await upload(api, "/schemas/check", content, text="nonsense"))
        assert (await upload(api, "/schemas", content)).status_code == 303
        refused = await upload(api, "/schemas/check", b'{"title": "\xff"}')
        assert refused.status_code == 422
        assert "the file is not in UTF-8: save it as UTF-8" in words(refused)

    with_api(desk, story)


def test_a_long_schema_is_taken_and_a_longer_one_refused_at_once(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        described = {"name": "x", "kind": "boolean", "description": "d" * 1000}
        long = json.dumps({"attributes": [described | {"name": f"a{number}"} for number in range(500)]})
        assert "The schema can be published." in words(await upload(api, "/schemas/check", long.encode()))
        assert (await upload(api, "/schemas/check", b" " * (2 << 20))).status_code == 413

    with_api(desk, story)


def test_texts_like_formulas_are_told(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        text = json.dumps({"attributes": [{"name": "x", "kind": "categorical", "values": ["=1+1", "b"]}]})
        hash = Schema.parse(text).hash
        await send(api, "/schemas", text=text)
        assert "A spreadsheet takes these texts for formulas: =1+1" in words(await api.http.get(f"/schemas/{hash}"))

    with_api(desk, story)


def test_all_problems_are_shown_at_once_and_nothing_is_published(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        before = known(desk)
        bad = '{"attributes": [{"name": "<b>", "kind": "integer", "min": 3, "max": 1}, {"name": "x", "kind": "real"}]}'
        for path in ("/schemas/check", "/schemas"):
            answer = await send(api, path, text=bad)
            assert answer.status_code == 422
            assert "4 to correct. Nothing was published." in words(answer)
            assert 'Schema, attribute "<b>", field "min": 3 is above max 1' in words(answer)
            assert "<b>" not in answer.text
            assert bad in unescape(answer.text)  # what was typed is still there
        assert known(desk) == before

    with_api(desk, story)


def test_doubts_and_differences_are_shown(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        await send(api, "/schemas", text=json.dumps(SCHEMA))
        changed = json.loads(SAMPLE.to_json())
        changed["attributes"][0]["bins"] = 7
        changed["attributes"].append({"name": "patient_id", "kind": "integer", "min": 0, "max": 9999, "bins": 9})
        answer = await send(api, "/schemas/check", text=json.dumps(changed), beside=SAMPLE.hash, rows="200")
        assert "its name is that of an identifier" in words(answer)
        assert "more cells than there are rows (200)" in words(answer)
        assert "whole numbers from 0 to 104 in 7 bins whole numbers from 0 to 104 in 21 bins" in words(answer)
        same = await send(api, "/schemas/check", text=SAMPLE.to_json(), beside=SAMPLE.hash)
        assert "All columns are the same." in words(same)

    with_api(desk, story)


def test_a_published_schema_is_edited_as_a_copy(desk):
    async def story(api: Api) -> None:
        await sign_in(api)
        await send(api, "/schemas", text=json.dumps(SCHEMA))
        copy = await api.http.get(f"/schemas?copy={SAMPLE.hash}")
        assert editable(SAMPLE) in unescape(copy.text)
        assert (await api.http.get(f"/schemas?copy={'0' * 64}")).status_code == 404
        assert (await api.http.get("/schemas/none")).status_code == 404

    with_api(desk, story)


def test_only_a_signed_in_operator_s_own_form_is_taken(desk):
    async def story(api: Api) -> None:
        for path in ("/schemas", f"/schemas/{SAMPLE.hash}"):
            assert (await api.http.get(path)).status_code == 303
        await sign_in(api)
        for path in ("/schemas", "/schemas/check"):
            answer = await api.http.post(path, data={"form_token": "0" * 32, "text": json.dumps(SCHEMA)})
            assert answer.status_code == 403
        assert SAMPLE.hash not in {one.hash for one in desk.orchestrator.registry.schemas()}

    with_api(desk, story)
