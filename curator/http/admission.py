"""Routes that know their caller before they read a byte of the body, and how large the body may be.

It does not know how callers are recognised (`curator.http.dependencies`).
"""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from curator.http.bodies import LARGE, SMALL, TINY, received
from curator.http.dependencies import admit_operator, admit_party
from protocol.outside_json import MOST_KEYS

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class AdmittingRoute(APIRoute):
    """A route that admits its caller first. Routes that anybody may call have nobody to admit, and tiny bodies."""

    largest: ClassVar[int | None] = TINY  # bytes; None where the endpoint finds it out, and reads the body itself
    most_keys: ClassVar[int] = 100  # in JSON: every unknown key is a complaint, made on the event loop

    async def admit(self, request: Request) -> None:
        """Refuse a caller who may not call this route, by the head of the request alone."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def admitted(request: Request) -> Response:
            await self.admit(request)
            limited = request if self.largest is None else received(request, self.largest, self.most_keys)
            return await handle(limited)

        return admitted


class PartyRoute(AdmittingRoute):
    async def admit(self, request: Request) -> None:
        await admit_party(request)


class AnswerRoute(PartyRoute):
    largest = None


class OfferRoute(PartyRoute):
    largest = LARGE  # the schema is text: its keys are counted where it is read


class OperatorRoute(AdmittingRoute):
    largest = SMALL

    async def admit(self, request: Request) -> None:
        await admit_operator(request)


class SchemaRoute(OperatorRoute):
    largest, most_keys = LARGE, MOST_KEYS
