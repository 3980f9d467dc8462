"""A finished run over a schema whose every text tries to be markup: in its pages they are words."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from protocol.tables.schema import Schema
from tests.support.curator import Desk


def hostile(place: str) -> str:
    return f"{place}\"'></text></title></style><script>{place}()</script><img src=x onerror={place}()>\u202e{{{{7*7}}}}"


SCHEMA = Schema.parse(
    {
        "title": hostile("title"),
        "attributes": [
            {
                "name": hostile("name"),
                "kind": "categorical",
                "values": [hostile("value"), "yes"],
                "labels": {"yes": hostile("label")},
                "description": hostile("description"),
                "missing": [hostile("missing")],
            },
            {"name": "age", "kind": "integer", "min": 0, "max": 3, "unit": hostile("unit")},
        ],
    }
)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    desk = Desk(tmp_path_factory.mktemp("hostile"), schema=SCHEMA)
    run = desk.run(noise="distributed", epsilon="100", key_bits=2048)
    desk.finish(run)
    return desk.orchestrator.folder(run)


@pytest.mark.parametrize(
    ("page", "places"),
    [("report.html", ("name",)), ("codebook.html", ("title", "name", "value", "label", "description", "unit"))],
)
def test_texts_of_a_schema_are_words_in_pages(folder: Path, page: str, places: tuple[str, ...]) -> None:
    found = Elements()
    found.feed((folder / page).read_text(encoding="utf-8"))
    assert not found.tags & {"script", "img"}
    assert not [name for name in found.attributes if name.startswith("on")]
    words = "".join(found.words)
    for place in places:
        assert f"<script>{place}()</script>" in words
    assert "{{7*7}}" in words
