"""The operator's side of the curator's HTTP interface.

It does not know command lines.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from curator.errors import CuratorUnreachable
from curator.files import PUBLIC, whole_file
from curator.home.tls import client_context
from protocol.errors import OperatorError
from protocol.messages.run_states import ENDS
from protocol.messages.signatures import VERSION_HEADER
from protocol.messages.versions import SPOKEN
from protocol.outside_json import read_json
from protocol.services.connection import OTHER_PROXY, check_address, distrust, hung_up, no_answer

_TIMEOUT = httpx.Timeout(30, read=120)
_LIMITS = httpx.Limits(keepalive_expiry=60)  # a new connection costs a handshake; the curator keeps them for 75
_EVENT_SILENCE = 60  # seconds; the curator sends a comment at least every 15
_FIRST_PAUSE, _LONGEST_PAUSE, _MOST_FAILURES = 0.25, 5.0, 60
_CHUNK = 1 << 20


class CuratorRefused(OperatorError):
    """The curator answered with a problem: `status` is the HTTP status, `problem` the whole document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"the curator answered {status}"))
        self.status, self.problem = status, problem


class CuratorClient:
    """A client of the curator for operators. Tests replace the network by `transport` and sleeping by `wait`."""

    def __init__(
        self,
        url: str,
        key: str,
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], None] = sleep,
        ca: str = "",
    ) -> None:
        """Connect with an operator's key. `ca` is the PEM text of the only trusted CA; empty: the machine's CAs."""
        self._url, self._wait = url, wait
        check_address(url)
        headers = {"Authorization": f"Bearer {key}", VERSION_HEADER: str(SPOKEN)}
        timeout = _TIMEOUT
        try:
            secure = client_context(ca)
            self._http = httpx.Client(
                base_url=url, headers=headers, transport=transport, timeout=timeout, verify=secure, limits=_LIMITS
            )
        except ssl.SSLError:
            raise OperatorError("the CA file holds no certificate in PEM form: give the curator's tls/ca.pem") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise OperatorError(f"{url!r} is not the URL of a curator: {error}") from None
        except (ImportError, ValueError):  # of a proxy that httpx does not know
            raise OperatorError(f"HTTPS_PROXY or ALL_PROXY in the environment: {OTHER_PROXY}") from None

    def __enter__(self) -> "CuratorClient":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._http.close()

    def plan(self, wishes: Mapping[str, Any], with_curve: bool = False) -> dict[str, Any]:
        return self._object("POST", "/v1/plans", json=wishes, params={"curve": "true"} if with_curve else {})

    def create_run(self, wishes: Mapping[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Start a run. A repetition with the same key gives the same run, so a broken connection is retried."""
        headers = {"Idempotency-Key": idempotency_key}
        return self._patiently(lambda: self._object("POST", "/v1/runs", json=wishes, headers=headers))

    def run(self, run: str) -> dict[str, Any]:
        return self._object("GET", f"/v1/runs/{_segment(run)}")

    def runs(self) -> list[dict[str, Any]]:
        return list(self._pages("/v1/runs"))

    def cancel(self, run: str, reason: str | None) -> dict[str, Any]:
        return self._object("POST", f"/v1/runs/{_segment(run)}/cancel", json={"reason": reason} if reason else {})

    def parties(self) -> list[dict[str, Any]]:
        return list(self._pages("/v1/parties"))

    def code(self, name: str) -> dict[str, Any]:
        return self._object("POST", "/v1/parties/codes", json={"name": name})

    def revoke(self, name: str) -> None:
        self._object("POST", f"/v1/parties/{_segment(name)}/revoke")

    def add_schema(self, text: bytes) -> dict[str, Any]:
        return self._object("POST", "/v1/schemas", content=text, headers={"Content-Type": "application/json"})

    def schemas(self) -> list[dict[str, Any]]:
        return list(self._pages("/v1/schemas"))

    def schema(self, schema_hash: str) -> dict[str, Any]:
        return self._object("GET", f"/v1/schemas/{_segment(schema_hash)}")

    def download(self, run: str, name: str, to: Path, rows: int | None = None) -> None:
        """Download a file. It appears whole or not at all."""
        query = {} if rows is None else {"rows": rows}
        try:
            with self._http.stream("GET", f"/v1/runs/{_segment(run)}/{name}", params=query) as response:
                _refuse_problem(response)
                with whole_file(to, PUBLIC) as file:
                    for chunk in response.iter_bytes(_CHUNK):
                        file.write(chunk)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def events(self, run: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events of a run until it ends. After a broken connection, resume where it broke."""
        failures = 0
        while True:
            try:
                for event in self._events_once(run, after):
                    yield event
                    after, failures = event["seq"], 0
                if self.run(run).get("state") in ENDS:
                    return
            except (httpx.HTTPError, CuratorUnreachable) as error:
                failures += 1
                if failures > _MOST_FAILURES:
                    raise error if isinstance(error, CuratorUnreachable) else self._unreachable(error) from error
            self._wait(min(_FIRST_PAUSE * 2**failures, _LONGEST_PAUSE))

    def _events_once(self, run: str, after: int) -> Iterator[dict[str, Any]]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        timeout = httpx.Timeout(30, read=_EVENT_SILENCE)
        with self._http.stream("GET", f"/v1/runs/{_segment(run)}/events", headers=headers, timeout=timeout) as response:
            _refuse_problem(response)
            for line in response.iter_lines():
                if line.startswith("data:"):
                    yield self._event(line.removeprefix("data:"))

    def _event(self, text: str) -> dict[str, Any]:
        try:
            found = read_json(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "seq" not in found:
            raise self._no_curator("no event came back")
        return found

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        query: dict[str, Any] = {"limit": 100}
        while True:
            page = self._object("GET", path, params=query)
            try:
                items, following = list(page["items"]), page["next"]
            except (KeyError, TypeError):
                raise self._no_curator("no list came back") from None
            yield from items
            if following is None:
                return
            query["after"] = following

    def _patiently(self, ask: Callable[[], dict[str, Any]], tries: int = 4) -> dict[str, Any]:
        for attempt in range(tries - 1):
            try:
                return ask()
            except CuratorUnreachable:
                self._wait(_FIRST_PAUSE * 2**attempt)
        return ask()

    def _object(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        _refuse_problem(response)
        if response.status_code == httpx.codes.NO_CONTENT:
            return {}
        found = _json_object(response)
        if found is None:
            raise self._no_curator("no JSON object came back")
        return found

    def _no_curator(self, what: str) -> CuratorUnreachable:
        return CuratorUnreachable(f"{self._url} does not answer like a curator: {what}")

    def _unreachable(self, error: httpx.HTTPError) -> CuratorUnreachable:
        distrusted = distrust(self._url, error)
        if distrusted is not None:
            return CuratorUnreachable(distrusted)
        if isinstance(error, httpx.ProxyError):
            return CuratorUnreachable(no_answer(self._url, error))
        hint = hung_up(self._url) if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else ""
        return CuratorUnreachable(f"no curator answers at {self._url}: {error or type(error).__name__}{hint}")


def _refuse_problem(response: httpx.Response) -> None:
    if response.is_success:
        return
    response.read()
    problem = _json_object(response)
    if problem is None:
        raise CuratorUnreachable(
            f"{response.url} answers {response.status_code}, but not like a curator: check the address"
        )
    if response.is_server_error:
        raise CuratorUnreachable(f"the curator answers {response.status_code}: {problem.get('detail')}")
    raise CuratorRefused(response.status_code, problem)


def _json_object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        found = read_json(response.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _segment(name: str) -> str:
    return quote(name, safe="")
