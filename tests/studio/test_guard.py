"""Who may talk to the studio."""

import pytest

from modurob import StateError
from modurob.checks import is_loopback
from modurob.studio.guard import LARGEST_BODY, Guard, check_host


async def app(scope, receive, send):
    """Reads the body and answers; a websocket is accepted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    gone = message["type"] == "http.disconnect"
    await send({"type": "http.response.start", "status": 400 if gone else 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


@pytest.fixture
def ask(awaited):
    """Asks a guard; gives the messages of its answer."""
    return lambda *args, **options: awaited(_ask(*args, **options))


async def _ask(guard, headers=(), kind="http", query=b"", chunks=(b"",)):
    sent, waiting = [], [*chunks]

    async def receive():
        if kind == "websocket":
            return {"type": "websocket.connect"}
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    lines = [(key.encode(), value.encode()) for key, value in headers]
    scope = {"type": kind, "headers": lines, "query_string": query, "path": "/", "method": "GET"}
    await guard(scope, receive, send)
    return sent


HERE = ("host", "127.0.0.1:8350")
LOCAL = Guard(app, 8350)


def status(sent):
    return sent[0]["status"]


@pytest.mark.parametrize("host", ["127.0.0.1:8350", "localhost:8350", "[::1]:8350"])
def test_this_machine_gets_an_answer(ask, host):
    assert status(ask(LOCAL, [("host", host)])) == 200
    assert status(ask(LOCAL, [("host", host), ("origin", f"http://{host}")])) == 200


@pytest.mark.parametrize(
    "headers",
    [
        [("host", "evil.example:8350")],
        [("host", "127.0.0.1:80")],
        [],
        [HERE, ("origin", "http://evil.example")],
        [HERE, ("origin", "null")],
        [HERE, ("origin", "http://127.0.0.1:9999")],
        [HERE, ("origin", "http://127.0.0.1:8350.evil.example")],
    ],
)
def test_forged_hosts_and_origins_are_refused_on_http_and_websocket(ask, headers):
    sent = ask(LOCAL, headers)
    assert status(sent) == 403
    assert sent[1]["body"] != b"inside"
    refused = ask(LOCAL, headers, kind="websocket")
    assert refused[0]["type"] == "websocket.close"


def test_pages_of_other_sites_may_link_here_and_do_nothing_else(ask):
    foreign = ("sec-fetch-site", "cross-site")
    assert status(ask(LOCAL, [HERE, foreign, ("sec-fetch-mode", "no-cors")])) == 403
    assert status(ask(LOCAL, [HERE, foreign, ("sec-fetch-mode", "navigate")])) == 200
    ours = ("sec-fetch-site", "same-origin")
    assert status(ask(LOCAL, [HERE, ours, ("sec-fetch-mode", "no-cors")])) == 200


def test_a_websocket_of_our_own_page_is_let_in(ask):
    sent = ask(LOCAL, [HERE, ("origin", "http://127.0.0.1:8350")], kind="websocket")
    assert sent == [{"type": "websocket.accept"}]


def test_bodies_that_are_too_large_are_refused_whether_they_say_so_or_not(ask):
    sent = ask(LOCAL, [HERE, ("content-length", str(50 * 2**20))])
    assert status(sent) == 413
    assert b"At most 16 MB can be uploaded, got 50 MB" in sent[1]["body"]
    half = b"x" * (LARGEST_BODY // 2)
    assert status(ask(LOCAL, [HERE], chunks=[half, half])) == 200
    assert status(ask(LOCAL, [HERE], chunks=[half, half, b"x"])) == 400
    assert status(ask(LOCAL, [HERE, ("content-length", "-5")])) == 413


def test_a_token_opens_the_door_and_stays_as_a_cookie(ask):
    guard = Guard(app, 8350, token="correct horse", local=False)
    there = ("host", "192.168.0.7:8350")
    assert status(ask(guard, [there])) == 401
    assert status(ask(guard, [there], query=b"token=wrong")) == 401
    assert ask(guard, [there], kind="websocket")[0]["type"] == "websocket.close"
    sent = ask(guard, [there], query=b"token=correct%20horse")
    assert status(sent) == 200
    cookie = dict(sent[0]["headers"])[b"set-cookie"].decode()
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    held = ("cookie", cookie.partition(";")[0])
    assert status(ask(guard, [there, held])) == 200
    assert ask(guard, [there, held], kind="websocket")[0]["type"] == "websocket.accept"
    assert status(ask(guard, [there, held, ("origin", "http://evil.example")])) == 403


def test_pages_may_load_nothing_from_elsewhere(ask):
    headers = dict(ask(LOCAL, [HERE])[0]["headers"])
    assert b"default-src 'self'" in headers[b"content-security-policy"]
    assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]


def test_other_machines_need_a_token():
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    check_host("127.0.0.1", None)
    check_host("0.0.0.0", "long enough")
    with pytest.raises(StateError, match="--token"):
        check_host("0.0.0.0", None)
    with pytest.raises(StateError, match="at least 8"):
        check_host("0.0.0.0", "short")
