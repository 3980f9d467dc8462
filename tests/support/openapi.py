"""Requests that Schemathesis makes from an interface's own OpenAPI document, sent over a real socket.

It does not know which interface: the test says how a caller introduces itself, and what a request may not ask for.
"""

from collections.abc import Callable
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.support.effort import examples

EXAMPLES = examples(50)  # of each operation

Introduce = Callable[[requests.PreparedRequest], None]
Bound = Callable[[Any, bool], None]


def explored(url: str, introduce: Introduce, bound: Bound) -> set[str]:
    """All status codes seen. One half of the requests is introduced; the other half is sent as Schemathesis makes it.

    `bound` changes a request before it is sent. It is told whether to name what really exists, so that more is reached.
    """
    session, seen = requests.Session(), set[str]()
    for result in schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations():
        _explore(url, session, result.ok(), introduce, bound, seen)
    return seen


def _explore(
    url: str, session: requests.Session, operation: Any, introduce: Introduce, bound: Bound, seen: set[str]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(case=operation.as_strategy(), known=st.booleans(), real=st.booleans())
    def explore(case: Any, known: bool, real: bool) -> None:
        bound(case, real)
        kwargs = case.as_transport_kwargs(base_url=url)
        request = session.prepare_request(requests.Request(**_requested(kwargs)))
        if known:
            introduce(request)
        answer = session.send(request, timeout=20)
        seen.add(str(answer.status_code))
        case.validate_response(
            answer, checks=[not_a_server_error, content_type_conformance, response_schema_conformance]
        )

    explore()


def _requested(kwargs: dict[str, Any]) -> dict[str, Any]:
    known = ("method", "url", "headers", "files", "data", "params", "auth", "cookies", "json")
    return {name: value for name, value in kwargs.items() if name in known}
