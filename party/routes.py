"""The local JSON interface: the data owner's requests, decisions, account and audit log, and the way into the pages.

It does not know who may call: the application guards these routes.
"""

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from party.books import audit
from party.home.home import OpenHome
from party.pages.sessions import Door
from party.views import accounts, described, line_of, listed

_BY = "local interface"
_MOST_LINES = 10_000


class Reason(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(max_length=1000)] = ""


class LocalInterface:
    """The local interface to one open home; `door` issues sign-in tickets for the pages."""

    def __init__(self, opened: OpenHome, door: Door) -> None:
        self._opened, self._door = opened, door

    def router(self) -> APIRouter:
        router = APIRouter(prefix="/v1")
        router.get("/requests", summary="All requests")(self.requests)
        router.get("/requests/{run}", summary="One run")(self.request)
        router.post("/requests/{run}/accept", summary="Take part in a run that needs your decision")(self.accept)
        router.post("/requests/{run}/refuse", summary="Do not take part, for this reason")(self.refuse)
        router.get("/ledger", summary="What was spent, by data set, and every answer that cost it")(self.ledger)
        router.get("/audit", summary="The audit log, newest first")(self.log)
        router.post("/sign-in", summary="A path that opens the pages once, within ten minutes")(self.sign_in)
        return router

    def requests(self) -> list[dict[str, Any]]:
        return [listed(self._opened, request) for request in self._opened.ledger.requests()]

    def request(self, run: str) -> dict[str, Any]:
        return described(self._opened, self._opened.known(run))

    def accept(self, run: str) -> dict[str, Any]:
        return described(self._opened, self._opened.decide(run, True, "", _BY))

    def refuse(self, run: str, body: Reason | None = None) -> dict[str, Any]:
        return described(self._opened, self._opened.decide(run, False, body.reason if body else "", _BY))

    def ledger(self) -> dict[str, Any]:
        entries = [line_of(entry) for entry in self._opened.ledger.entries()]
        return {"accounts": accounts(self._opened), "entries": entries}

    def log(self, search: str = "", limit: Annotated[int, Query(ge=1, le=_MOST_LINES)] = 100) -> dict[str, Any]:
        path = self._opened.home.audit
        found = [entry for entry in audit.readable(path) if audit.holds(entry, search)]
        return {"problems": self._opened.audit_problems(), "entries": list(islice(reversed(found), limit))}

    def sign_in(self) -> dict[str, str]:
        return {"path": f"/sign-in?ticket={self._door.ticket()}"}
