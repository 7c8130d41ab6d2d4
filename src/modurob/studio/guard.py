"""Access to the studio: for this machine's browser, or with the token."""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from modurob import StateError, WriteError
from modurob.checks import is_loopback

LARGEST_BODY = 16 * 1024 * 1024  # bytes of one request: a project of 10,000 modules is smaller
COOKIE = "modurob_token"
NEEDS_TOKEN = "This studio needs its token: open the address it printed when it started."
TRIES, TRIES_S = 10, 60.0  # wrong tokens of an address in so many seconds; then it has to wait
MOST_ADDRESSES = 1000  # whose wrong tokens are remembered
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
# Nothing is fetched from elsewhere, and no other page may show this one inside a frame.
# 'unsafe-eval': Vue compiles templates in the browser, and NiceGUI evaluates every call of a method
# that the server sends. Without it the page of a crab has 0 elements instead of 1365.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' {sockets}; object-src 'none'; base-uri 'self'; "
    "frame-ancestors 'none'; form-action 'self'"
)
HOST = re.compile(r"[\w.\-]+(:\d+)?|\[[0-9a-fA-F:]+\](:\d+)?")
# Leaves the address with the token, also in the history, for the same one without it.
ENTRANCE = (
    b"<!doctype html><title>modurob studio</title>"
    b"<script>location.replace(location.pathname)</script>"
)


def policy(host: str) -> bytes:
    """The content security policy of a page at a host."""
    sockets = f"ws://{host} wss://{host}" if HOST.fullmatch(host) else ""
    return POLICY.format(sockets=sockets).encode()


def check_host(host: str, token: str | None) -> None:
    """Refuse to be reached from elsewhere without a token."""
    if not is_loopback(host) and not token:
        raise StateError(
            f"--host {host} lets other machines in: set a secret with --token as well, "
            "or leave --host out"
        )
    if token is not None and len(token) < 8:
        raise StateError("--token needs at least 8 characters")


def addresses(host: str, port: int) -> tuple[str, str | None]:
    """The addresses of a studio: for this machine, and for others if they can reach it."""
    wild = host in ("0.0.0.0", "::")
    here = "127.0.0.1" if host == "0.0.0.0" else "::1" if wild else host
    others = None if is_loopback(host) else _own_address() if wild else host
    shown = [f"[{name}]" if ":" in name else name for name in (here, others or "")]
    return f"http://{shown[0]}:{port}", f"http://{shown[1]}:{port}" if others else None


def _own_address() -> str:
    """This machine's address in its network, else its name; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: only a route is chosen
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def open_door(host: str, port: int, token: str | None) -> socket.socket:
    """A socket to listen at, or an error that says what to do.

    Args:
        port: 0 for any that is free.
        token: What an address that others can reach needs.
    """
    check_host(host, token)
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
    except OSError as error:
        door.close()
        reason = error.strerror or str(error)
        raise WriteError(
            f"port {port} of {host} cannot be used ({reason}); choose another with --port, "
            "or --port 0 for any that is free"
        ) from None
    return door


class Guard:
    """ASGI middleware: checks Host, Origin, token and size before anything else sees a request.

    A page of another site that a browser has open can send requests here, but cannot fake the
    Host and Origin of ours.
    """

    def __init__(self, app: Any, port: int, token: str | None = None, local: bool = True) -> None:
        self._app, self._token, self._local = app, token, local
        self._mark = secrets.token_hex(32)  # the cookie: nothing can be guessed from it
        self._wrong: dict[str, list[float]] = {}  # times of wrong tokens, by address
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        why = self._objection(scope, headers)
        if why:
            await _refuse(scope, receive, send, *why)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        cookie = self._new_cookie(scope)
        extra = [*HEADERS, (b"content-security-policy", policy(headers.get("host", "")))]
        extra += [(b"set-cookie", cookie)] if cookie else []
        if cookie and "text/html" in headers.get("accept", ""):
            kind = (b"content-type", b"text/html; charset=utf-8")
            await _send(send, 200, ENTRANCE, [kind, (b"cache-control", b"no-store"), *extra])
            return

        async def answered(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        gate = _Gate(receive)
        try:
            await self._app(scope, gate, answered)
        except RuntimeError:
            if not gate.gone:  # a page that was left before it was there needs no answer
                raise

    def _objection(self, scope: Any, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._local and host not in self._hosts:
            return 403, f"This studio answers at http://{min(self._hosts)} only, not at '{host}'."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, f"A page of '{origin}' may not use this studio."
        if (
            headers.get("sec-fetch-site") == "cross-site"
            and headers.get("sec-fetch-mode") != "navigate"
        ):
            return 403, "A page of another site may not use this studio."
        if self._token and not self._has_cookie(headers):
            given = _query(scope).get("token")
            if given is None:
                return 401, NEEDS_TOKEN
            address = str((scope.get("client") or ("", 0))[0])
            if self._must_wait(address):
                return 429, f"Too many wrong tokens: wait for {TRIES_S:g} s, then try again."
            if not hmac.compare_digest(given[0].encode(), self._token.encode()):
                self._wrong.setdefault(address, []).append(time.monotonic())
                return 401, NEEDS_TOKEN
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return 413, too_large(int(length) if length.isdecimal() else None)
        return None

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            jar = SimpleCookie()
        held = jar[COOKIE].value if COOKIE in jar else ""
        return hmac.compare_digest(held.encode(), self._mark.encode())

    def _must_wait(self, address: str) -> bool:
        """True if an address has tried too often; forgets what is long ago."""
        begin = time.monotonic() - TRIES_S
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong = {a: times for a, times in self._wrong.items() if times[-1] > begin}
            if len(self._wrong) > MOST_ADDRESSES:
                return True  # guessed from everywhere: none is believed for a while
        recent = [t for t in self._wrong.get(address, ()) if t > begin]
        if recent:
            self._wrong[address] = recent
        return len(recent) >= TRIES

    def _new_cookie(self, scope: Any) -> bytes | None:
        if not self._token or "token" not in _query(scope):
            return None
        return f"{COOKIE}={self._mark}; HttpOnly; SameSite=Strict; Path=/".encode()


def too_large(size: int | None) -> str:
    """The message about a file that is too large."""
    given = "more than that" if size is None else f"{size / 2**20:.0f} MB"
    return f"At most {LARGEST_BODY // 2**20} MB can be uploaded, got {given}."


def _query(scope: Any) -> dict[str, list[str]]:
    return parse_qs(scope.get("query_string", b"").decode("latin-1"))


class _Gate:
    """Lets a request's body through; one without a stated length is cut off, too."""

    def __init__(self, receive: Any) -> None:
        self._receive, self._total = receive, 0
        self.gone = False  # True when the browser went away

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            self._total += len(message.get("body", b""))
            if self._total > LARGEST_BODY:
                message = {"type": "http.disconnect"}
        self.gone = message["type"] == "http.disconnect"
        return message


async def _refuse(scope: Any, receive: Any, send: Any, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": text[:100]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    strict = (b"content-security-policy", policy(""))
    await _send(send, status, text.encode(), [*headers, *HEADERS, strict])


async def _send(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
