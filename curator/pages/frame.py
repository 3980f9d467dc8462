"""Common frame of the curator's pages: the session, protection of forms, errors shown as pages, and templates.

It does not know what a page shows.
"""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from fastapi import Depends, Form, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from crypto.errors import CryptoError
from curator.accounts.sessions import Session
from curator.errors import Forbidden, NotAuthenticated
from curator.http.bodies import SMALL, TINY, received
from curator.http.dependencies import COOKIE, service_of
from curator.http.problems import kind_of
from curator.rendering.templating import render
from protocol.errors import SubnError

# Scripts and styles come from this server only, in files of their own, so code injected into a page does not run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Without any referrer, a browser would also not tell the origin of a form.
_HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def page(template: str, session: Session | None = None, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, session=session, **values), status, headers=_HEADERS)


class PageRoute(APIRoute):
    """A route that renders errors as pages and sends anonymous visitors to sign in and back."""

    largest: ClassVar[int] = SMALL

    async def admit(self, request: Request) -> None:
        """Refuse a form of a visitor who is not signed in, or of another site, before its body is read."""
        await signed_in(request)
        refuse_other_origins(request)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                if request.method == "POST":
                    await self.admit(request)
                    request = received(request, self.largest)
                return await handle(request)
            except NotAuthenticated:
                return to_sign_in(request)
            except RequestValidationError:
                return _problem(
                    HTTPStatus.NOT_FOUND,
                    "Page not found",
                    "there is no page at this address: start from the list of runs",
                )
            except (SubnError, CryptoError, OSError) as error:
                kind = kind_of(error)
                return _problem(kind.status, kind.title, str(error))

        return handled


class SignInRoute(PageRoute):
    """A route for visitors who are not signed in yet."""

    largest = TINY

    async def admit(self, request: Request) -> None:
        refuse_other_origins(request)


def to_sign_in(request: Request) -> Response:
    back = request.url.path if request.method == "GET" and request.url.path != "/" else "/runs"
    target = f"/sign-in?then={quote(back, safe='/')}"
    if "HX-Request" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": target})
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)


def _problem(status: int, title: str, detail: str) -> Response:
    return page("problem.html", status=status, title=title, detail=detail)


async def signed_in(request: Request) -> Session:
    """Return the operator's session, found by the cookie."""
    found: Session = await run_in_threadpool(service_of(request).sessions.find, request.cookies.get(COOKIE, ""))
    request.state.operator = found.label
    return found


SignedIn = Annotated[Session, Depends(signed_in)]


async def sending(session: SignedIn, form_token: Annotated[str, Form()] = "") -> Session:
    """Return the session of an operator who sends one of this server's own forms.

    Three checks protect a form, and each would be enough alone: browsers do not send the cookie from other sites
    (SameSite), the browser names the page's origin (`PageRoute.admit`), and the form carries a token that only this
    server's pages hold.
    """
    if form_token != session.form_token:
        raise Forbidden(
            "this form does not belong to your present session: go back, reload the page and send the form again"
        )
    return session


Sending = Annotated[Session, Depends(sending)]


def refuse_other_origins(request: Request) -> None:
    origin, own = request.headers.get("Origin"), f"{request.url.scheme}://{request.headers.get('Host', '')}"
    if origin not in (None, own):
        raise Forbidden(
            f"this form was sent from another site than {own}: nothing was changed. Use the form on this page "
            "(a proxy in front has to pass on the Host header as the browser sends it)"
        )


def see_other(path: str) -> RedirectResponse:
    """Redirect from a form to a page that shows the result and can be reloaded safely."""
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
    """Return the fields that were filled in."""
    return {name: value.strip() for name, value in pairs.items() if value.strip()}
