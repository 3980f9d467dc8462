"""Every error that can leave a route has an entry of its own, and its document says who and why."""

import asyncio
import errno
import inspect
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Query

from crypto import errors as crypto
from curator import errors as curator
from curator.http.problems import KINDS, handle_problems, kind_of
from protocol import errors as protocol


def classes(module: Any) -> list[type[BaseException]]:
    return [found for _, found in inspect.getmembers(module, inspect.isclass) if issubclass(found, Exception)]


@pytest.mark.parametrize("module", [crypto, protocol, curator])
def test_every_error_class_has_an_entry(module: Any) -> None:
    found = classes(module)
    assert len(found) > 5
    assert not [error.__name__ for error in found if error not in KINDS and error is not curator.CuratorUnreachable]


def test_only_failures_of_the_curator_itself_are_server_errors() -> None:
    own = {protocol.SubnError, crypto.Reused, curator.CuratorError, curator.SettingsError}
    own |= {curator.StoreUnavailable, curator.Displaced, curator.Busy}
    assert {error for error, kind in KINDS.items() if kind.status >= 500} == own | {OSError}


def test_a_subclass_without_an_entry_is_what_its_parent_is() -> None:
    class Special(curator.NotAsked):
        pass

    assert kind_of(Special("x")) is KINDS[curator.NotAsked]
    assert kind_of(PermissionError()) is KINDS[OSError]


def failing(error: Exception) -> httpx.Response:
    app = FastAPI()
    handle_problems(app)

    @app.get("/v1/runs/{run}/outbox/{step}")
    async def fail(number: int = Query(default=0)) -> None:
        raise error

    return get(app, "/v1/runs/r1/outbox/s1")


def get(app: FastAPI, path: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
            return await client.get(path)

    return asyncio.run(ask())


def test_a_problem_says_status_kind_reason_culprit_run_and_step() -> None:
    answer = failing(protocol.FailedCheck("hospital-2", "sent 7 bytes, 8 expected"))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:dp-subn:problem:failed-check",
        "title": "The message fails a check",
        "status": 422,
        "detail": "hospital-2: sent 7 bytes, 8 expected",
        "culprit": "hospital-2",
        "run": "r1",
        "step": "s1",
    }


def test_whoever_is_not_known_is_told_how_to_be() -> None:
    answer = failing(curator.NotAuthenticated("give a key"))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_a_full_disk_is_a_reason_to_come_again() -> None:
    answer = failing(OSError(errno.ENOSPC, "No space left on device", "/secret/place"))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "No space left" in answer.json()["detail"]
    assert "/secret/place" not in answer.text


def test_an_unexpected_error_tells_nothing_of_itself() -> None:
    answer = failing(RuntimeError("a row's value"))
    assert answer.status_code == 500
    assert "a row's value" not in answer.text
    assert answer.json()["status"] == 500


def test_what_cannot_be_understood_is_named_and_not_repeated() -> None:
    app = FastAPI()
    handle_problems(app)

    @app.get("/number")
    async def number(number: int) -> None:
        return None

    answer = get(app, "/number?number=private-value")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("query.number: ")
    assert "private-value" not in answer.text


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404)])
def test_what_the_framework_refuses_is_a_problem_too(path: str, status: int) -> None:
    app = FastAPI()
    handle_problems(app)
    answer = get(app, path)
    assert answer.status_code == status
    assert json.loads(answer.content)["type"] == "urn:dp-subn:problem:not-found"
