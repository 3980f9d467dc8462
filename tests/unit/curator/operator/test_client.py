"""The operator's client where the network or the curator misbehaves."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from curator.errors import CuratorUnreachable
from curator.operator.client import CuratorClient, CuratorRefused

Handler = Callable[[httpx.Request], httpx.Response]


def client(handler: Handler, pauses: list[float] | None = None) -> CuratorClient:
    noted = [] if pauses is None else pauses
    return CuratorClient("https://curator.example", "k3y", httpx.MockTransport(handler), noted.append)


def scripted(*answers: httpx.Response | Exception) -> Handler:
    left = iter(answers)

    def answer(_request: httpx.Request) -> httpx.Response:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    return answer


def problem(status: int, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"title": "t", "status": status} | more)


def test_the_key_and_names_go_where_they_belong() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204)

    client(answer).revoke("Spital/Süd?")
    assert seen[0].headers["Authorization"] == "Bearer k3y"
    assert seen[0].url.raw_path == b"/v1/parties/Spital%2FS%C3%BCd%3F/revoke"


def test_pages_are_read_to_their_end() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after")
        page = {"items": [{"name": "a"}], "next": "a"} if after is None else {"items": [{"name": "b"}], "next": None}
        return httpx.Response(200, json=page)

    assert [party["name"] for party in client(answer).parties()] == ["a", "b"]


def test_starting_a_run_is_tried_again_with_the_same_key() -> None:
    pauses: list[float] = []
    keys: list[str] = []
    script = scripted(httpx.ConnectError("down"), httpx.ReadTimeout("slow"), httpx.Response(201, json={"run": "r"}))

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        return script(request)

    assert client(answer, pauses).create_run({}, "k")["run"] == "r"
    assert (keys, pauses) == (["k"] * 3, [0.25, 0.5])


def test_starting_a_run_is_given_up_after_four_tries_and_never_repeated_when_refused() -> None:
    with pytest.raises(CuratorUnreachable, match=r"no curator answers at https://curator\.example: down"):
        client(scripted(*[httpx.ConnectError("down")] * 4)).create_run({}, "k")
    with pytest.raises(CuratorRefused, match="another request") as refused:
        client(scripted(problem(409, detail="another request"))).create_run({}, "k")
    assert (refused.value.status, refused.value.problem["status"]) == (409, 409)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (problem(503, detail="the disk is full"), "answers 503: the disk is full"),
        (httpx.Response(502, text="<html>"), "answers 502, but not like a curator"),
        (httpx.Response(404, json=["no"]), "answers 404, but not like a curator"),
        (httpx.Response(200, text="hello"), "does not answer like a curator"),
        (httpx.Response(200, json=[1]), "does not answer like a curator"),
    ],
)
def test_what_is_no_answer_of_a_curator_is_said(answer: httpx.Response, words: str) -> None:
    with pytest.raises(CuratorUnreachable, match=words):
        client(scripted(answer)).run("r")


def test_a_problem_without_a_sentence_still_says_something() -> None:
    with pytest.raises(CuratorRefused, match=r"^t$"):
        client(scripted(problem(403))).run("r")
    with pytest.raises(CuratorRefused, match="the curator answered 403"):
        client(scripted(httpx.Response(403, json={}))).run("r")


# Downloads


def broken_off() -> Iterator[bytes]:
    yield b"half"
    raise httpx.ReadError("cut")


def test_a_download_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    client(scripted(httpx.Response(200, content=b"a,b\n"))).download("r", "table.csv", target)
    assert target.read_bytes() == b"a,b\n"
    with pytest.raises(CuratorUnreachable, match="cut"):
        client(scripted(httpx.Response(200, content=broken_off()))).download("r", "table.csv", target)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert target.read_bytes() == b"a,b\n"
    with pytest.raises(CuratorRefused, match="not finished"):
        client(scripted(problem(409, detail="not finished"))).download("r", "table.csv", tmp_path / "x")


# Events


def stream(*numbers: int) -> httpx.Response:
    return httpx.Response(
        200, text=": hi\n\n" + "".join(f"id: {n}\ndata: {json.dumps({'seq': n})}\n\n" for n in numbers)
    )


def state(name: str) -> httpx.Response:
    return httpx.Response(200, json={"state": name})


def test_events_go_on_after_a_broken_connection_where_they_broke() -> None:
    pauses: list[float] = []
    asked: list[str] = []
    script = scripted(
        stream(1, 2), state("running"), httpx.ConnectError("down"), problem(503), stream(3), state("finished")
    )

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            asked.append(request.headers["Last-Event-ID"])
        return script(request)

    assert [event["seq"] for event in client(answer, pauses).events("r")] == [1, 2, 3]
    assert asked == ["0", "2", "2", "2"]
    assert pauses == [0.25, 0.5, 1.0]


def test_events_of_a_curator_that_stays_away_end_with_an_error() -> None:
    pauses: list[float] = []
    with pytest.raises(CuratorUnreachable, match="no curator answers"):
        list(client(scripted(*[httpx.ConnectError("down")] * 61), pauses).events("r"))
    assert len(pauses) == 60
    assert max(pauses) == 5.0


def test_events_of_an_unknown_run_are_refused_at_once() -> None:
    with pytest.raises(CuratorRefused, match="no such run"):
        list(client(scripted(problem(404, detail="no such run"))).events("r"))
