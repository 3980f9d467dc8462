"""The stored vectors, against what this code makes of them; `tests/vectors/make.py` says how they are renewed."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from protocol.errors import MalformedMessage
from protocol.messages.tasks import Reply, Task, decode, encode
from tests.vectors import make
from tests.vectors.messages import MESSAGES
from tests.vectors.small_run import RUNS, run_vector

FOLDER = Path(make.__file__).parent


def stored(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


GOOD = {vector["name"]: vector for vector in stored("messages.json")}
BROKEN = {vector["name"]: vector for vector in stored("broken.json")}


@pytest.mark.parametrize("name", GOOD)
def test_good_bytes_are_read_as_these_fields(name):
    vector = GOOD[name]
    data = bytes.fromhex(vector["bytes"])
    message = decode(data, "clinic")
    assert message == MESSAGES[name]
    assert message.model_dump(mode="json") == vector["fields"]
    assert message.blob.hex() == vector["blob"]
    assert encode(message) == data


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bytes_are_refused_with_their_reason(name):
    vector = BROKEN[name]
    with pytest.raises(MalformedMessage) as refused:
        decode(bytes.fromhex(vector["bytes"]), "clinic")
    assert refused.value.culprit == "clinic"
    assert vector["refusal"] in str(refused.value)


def test_every_kind_has_good_and_broken_vectors():
    kinds = {kind.model_fields["kind"].default for kind in (*get_args(Task), *get_args(Reply))}
    assert kinds == {vector["fields"]["kind"] for vector in GOOD.values()}
    assert kinds <= {name.partition(":")[0] for name in BROKEN}


def test_the_files_hold_what_would_be_written_today():
    assert stored("messages.json") == make.good_vectors()
    assert stored("broken.json") == make.broken_vectors()


@pytest.mark.parametrize("name", RUNS)
def test_a_whole_run_repeats_to_the_last_byte(name):
    expected, computed = stored(make.file_of(name)), run_vector(name)
    for part in expected:
        assert computed[part] == expected[part], part
    assert computed.keys() == expected.keys()
