"""What all pages of the curator share: who looks at them, forms that nobody else can send, errors as pages, templates.

It does not know what a page shows.
"""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Form, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from crypto.errors import CryptoError
from curator.accounts.sessions import Session
from curator.errors import Forbidden, NotAuthenticated
from curator.http.dependencies import COOKIE, service_of
from curator.http.problems import kind_of
from curator.rendering.templating import render
from protocol.errors import SubnError

# Everything comes from here and nothing is written into the page: what somebody else's text slips in does not run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# With no referrer at all a browser would not say either where a form comes from.
_HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def page(template: str, session: Session | None = None, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, session=session, **values), status, headers=_HEADERS)


class PageRoute(APIRoute):
    """A route whose errors are pages: who is not signed in may do so, and comes back."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except NotAuthenticated:
                return to_sign_in(request)
            except RequestValidationError:
                return _problem(HTTPStatus.NOT_FOUND, "There is no such page", "the address cannot be understood")
            except (SubnError, CryptoError, OSError) as error:
                kind = kind_of(error)
                return _problem(kind.status, kind.title, str(error))

        return handled


def to_sign_in(request: Request) -> Response:
    back = request.url.path if request.method == "GET" and request.url.path != "/" else "/runs"
    target = f"/sign-in?then={quote(back, safe='/')}"
    if "HX-Request" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": target})
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)


def _problem(status: int, title: str, detail: str) -> Response:
    return page("problem.html", status=status, title=title, detail=detail)


async def signed_in(request: Request) -> Session:
    """The operator's session, by the cookie."""
    return await run_in_threadpool(service_of(request).sessions.find, request.cookies.get(COOKIE, ""))


SignedIn = Annotated[Session, Depends(signed_in)]


async def sending(request: Request, session: SignedIn, form_token: Annotated[str, Form()] = "") -> Session:
    """The session of somebody who sends one of our own forms.

    Three locks, each enough alone: the cookie is not sent along from elsewhere (SameSite), the browser names the
    page's origin, and the form carries a token that only our pages hold.
    """
    refuse_other_origins(request)
    if form_token != session.form_token:
        raise Forbidden("this form is not from your present session: go back, load the page again and repeat it")
    return session


Sending = Annotated[Session, Depends(sending)]


def refuse_other_origins(request: Request) -> None:
    origin, own = request.headers.get("Origin"), f"{request.url.scheme}://{request.headers.get('Host', '')}"
    if origin not in (None, own):
        raise Forbidden(
            f"this form was sent from another site than {own}: nothing was done (a proxy in front has to pass on the "
            "Host header as the browser sends it)"
        )


def see_other(path: str) -> RedirectResponse:
    """After a form: the page that shows what it did, which may be loaded again."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)


def with_cookie(response: Response, request: Request, token: str, seconds: int) -> Response:
    response.set_cookie(
        COOKIE,
        token,
        max_age=seconds,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def form_values(pairs: Mapping[str, str]) -> dict[str, str]:
    """What was filled in: a field left empty says nothing."""
    return {name: value.strip() for name, value in pairs.items() if value.strip()}
