"""The gate before every route: a request that is not provably the page's own is refused.

Other pages in the same browser, other users of the machine and names that point to 127.0.0.1 are strangers. The gate
looks at the head of a request only, for every method and path, and adds the same headers to every answer.
"""

import hmac
import secrets
from collections.abc import Iterator
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
LOGIN, KNOCK = "/api/login", "/api/knock"  # the two calls of a page that has no session yet

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class Session:
    """The secrets of one server: a token that is good for one login, and the cookie that the login earns."""

    def __init__(self, port: int):
        self.cookie = f"lgf-app-{port}"  # cookies do not tell ports apart, so the name does
        self._secret = secrets.token_urlsafe(32)
        self._tokens: list[str] = []

    def new_token(self) -> str:
        """A fresh token; earlier ones that nobody used are void."""
        self._tokens = [secrets.token_urlsafe(32)]
        return self._tokens[0]

    def login(self, token: str) -> str | None:
        """The value of the cookie for a valid token, which is used up by this; None for any other text."""
        for valid in self._tokens:
            if hmac.compare_digest(valid.encode(), token.encode(errors="replace")):
                self._tokens.remove(valid)
                return self._secret
        return None

    def admits(self, cookies: str) -> bool:
        """Whether the Cookie header holds the secret."""
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and hmac.compare_digest(morsel.value.encode(), self._secret.encode())


class Gate:
    """An ASGI application that lets only the page's own requests through to another one."""

    def __init__(self, app: ASGIApp, session: Session, port: int):
        self._app, self._session = app, session
        self._host = f"127.0.0.1:{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request, or refuses it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        reason = next(self._objections(scope, headers), None)
        answer = self._app if reason is None else _refusal(*reason)
        await answer(scope, receive, _hardened(send))

    def _objections(self, scope: Scope, headers: Headers) -> Iterator[tuple[int, str]]:
        """(status, sentence) of every reason to refuse the request."""
        address = f"http://{self._host}"
        method, path = scope["method"], scope["path"]
        if headers.getlist("host") != [self._host]:
            yield 403, f"This server answers to {self._host} only; open {address}."
        # The browser sets Sec-Fetch-Site and no page can. `none` is an address that the user typed or clicked outside.
        allowed = ("same-origin", "none") if method == "GET" else ("same-origin",)
        if len(headers.getlist("sec-fetch-site")) != 1 or headers["sec-fetch-site"] not in allowed:
            yield 403, f"This request comes from another page, or from a browser made before 2023; open {address}."
        origins = headers.getlist("origin")
        if origins not in ([], [address]) or (method != "GET" and not origins):
            yield 403, f"This request comes from another page; open {address}."
        if method not in ("GET", "POST"):
            yield 405, "Only GET and POST are answered."
        free = not path.startswith(API) or path in (LOGIN, KNOCK)  # the page itself holds no data
        if not free and not self._session.admits(headers.get("cookie", "")):
            yield 401, "This page has no session with the server; open the address that the terminal shows."


def _refusal(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)


def _hardened(send: Send) -> Send:
    """`send` with the headers of the gate on every answer; a stricter policy of the answer's own is kept."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return hardened
