"""Who may talk to the studio."""

import pytest

from modurob import StateError, WriteError
from modurob.checks import is_loopback
from modurob.studio import guard as guards
from modurob.studio.guard import LARGEST_BODY, Guard, check_host, open_door, policy


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


async def _ask(guard, headers=(), kind="http", query=b"", chunks=(b"",), client="127.0.0.1"):
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
    scope["client"] = (client, 5000)
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
    text = dict(ask(LOCAL, [HERE])[0]["headers"])[b"content-security-policy"].decode()
    rules = {rule.split()[0]: rule.split()[1:] for rule in text.split(";")}
    assert rules["default-src"] == ["'self'"]
    assert rules["connect-src"] == ["'self'", "ws://127.0.0.1:8350", "wss://127.0.0.1:8350"]
    assert rules["frame-ancestors"] == rules["object-src"] == ["'none'"]
    assert policy("a; script-src *").endswith(policy("").split(b"connect-src", 1)[1])


def test_a_browser_leaves_the_address_with_the_token(ask):
    guard = Guard(app, 8350, token="correct horse")
    page = [HERE, ("accept", "text/html,*/*")]
    sent = ask(guard, page, query=b"token=correct%20horse")
    headers = dict(sent[0]["headers"])
    assert status(sent) == 200
    assert b"location.replace(location.pathname)" in sent[1]["body"]
    assert b"correct" not in sent[1]["body"]
    assert headers[b"cache-control"] == b"no-store"
    held = ("cookie", headers[b"set-cookie"].decode().partition(";")[0])
    assert ask(guard, [*page, held])[1]["body"] == b"inside"


def test_guesses_of_the_token_are_limited_and_those_inside_are_not_disturbed(ask, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guards.time, "monotonic", lambda: now[0])
    guard = Guard(app, 8350, token="correct horse")
    right, wrong = b"token=correct%20horse", b"token=guess"
    cookie = dict(ask(guard, [HERE], query=right)[0]["headers"])[b"set-cookie"].decode()
    found = [status(ask(guard, [HERE], query=wrong)) for _ in range(guards.TRIES + 2)]
    assert found == [*[401] * guards.TRIES, 429, 429]
    assert status(ask(guard, [HERE], query=right)) == 429  # else the next guess could be right
    assert status(ask(guard, [HERE, ("cookie", cookie.partition(";")[0])])) == 200
    assert status(ask(guard, [HERE])) == 401  # one without any token guesses nothing
    assert status(ask(guard, [HERE], query=right, client="10.0.0.2")) == 200
    now[0] = guards.TRIES_S + 1
    assert status(ask(guard, [HERE], query=right)) == 200
    # another studio with the same token has another cookie: a token cannot be tried as a cookie
    other = Guard(app, 8350, token="correct horse")
    assert status(ask(other, [HERE, ("cookie", cookie.partition(";")[0])])) == 401

    # memory stays bounded, however many addresses guess
    monkeypatch.setattr(guards, "MOST_ADDRESSES", 5)
    for k in range(9):
        ask(guard, [HERE], query=wrong, client=f"10.0.1.{k}")
    assert len(guard._wrong) <= 6
    now[0] *= 3
    assert status(ask(guard, [HERE], query=right)) == 200


@pytest.mark.parametrize(
    ("host", "here", "others"),
    [
        ("127.0.0.1", "http://127.0.0.1:80", None),
        ("::1", "http://[::1]:80", None),
        ("0.0.0.0", "http://127.0.0.1:80", "http://10.0.0.9:80"),
        ("::", "http://[::1]:80", "http://10.0.0.9:80"),
        ("192.168.0.7", "http://192.168.0.7:80", "http://192.168.0.7:80"),
    ],
)
def test_addresses_are_those_that_can_be_opened(monkeypatch, host, here, others):
    monkeypatch.setattr(guards, "_own_address", lambda: "10.0.0.9")
    assert guards.addresses(host, 80) == (here, others)


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


# -- the error path --------------------------------------------------------------------------------


def broken(error, leaves=False):
    """An app that fails; before, it may hear that the browser has gone."""

    async def run(scope, receive, send):
        if leaves:
            while (await receive())["type"] != "http.disconnect":
                pass
        raise error

    return Guard(run, 8350)


async def _left(guard):
    """Asks a guard, and goes away after the request."""
    waiting = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError(f"nobody is there for {message}")

    scope = {"type": "http", "headers": [(b"host", HERE[1].encode())], "query_string": b""}
    await guard(scope, receive, send)


def test_an_error_of_the_app_is_not_swallowed_while_the_browser_waits(ask):
    with pytest.raises(RuntimeError, match="slip"):
        ask(broken(RuntimeError("slip")), [HERE])
    with pytest.raises(KeyError, match="slip"):
        ask(broken(KeyError("slip")), [HERE])


def test_a_page_that_was_left_needs_no_answer_but_other_errors_are_told(awaited):
    awaited(_left(broken(RuntimeError("no response returned"), leaves=True)))
    with pytest.raises(RuntimeError, match="slip"):
        awaited(_left(broken(RuntimeError("slip"))))  # it did not wait for the browser
    with pytest.raises(KeyError, match="slip"):
        awaited(_left(broken(KeyError("slip"), leaves=True)))


def test_a_body_that_is_cut_off_counts_as_a_browser_that_left(ask):
    half = b"x" * (LARGEST_BODY // 2)
    assert ask(broken(RuntimeError("gone"), leaves=True), [HERE], chunks=[half, half, b"x"]) == []


def test_what_is_no_request_passes_unseen(awaited):
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))

    awaited(Guard(app, 8350)({"type": "lifespan"}, "receive", "send"))
    assert seen == [({"type": "lifespan"}, "receive", "send")]


def test_refusals_say_why_in_plain_text_end_the_connection_and_are_as_strict(ask):
    sent = ask(LOCAL, [("host", "evil.example:8350")])
    headers = dict(sent[0]["headers"])
    body = sent[1]["body"]
    assert body.decode() == (
        "This studio answers at http://127.0.0.1:8350 only, not at 'evil.example:8350'."
    )
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"content-type"].startswith(b"text/plain")
    assert headers[b"connection"] == b"close"
    assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]
    refused = ask(LOCAL, [HERE, ("origin", "http://evil.example")], kind="websocket")
    assert refused == [
        {
            "type": "websocket.close",
            "code": 1008,
            "reason": "A page of 'http://evil.example' may not use this studio.",
        }
    ]


def test_a_cookie_is_given_only_to_who_brings_the_token_in_the_address(ask):
    def cookies(guard, *args, **options):
        return b"set-cookie" in dict(ask(guard, *args, **options)[0]["headers"])

    guard = Guard(app, 8350, token="correct horse")
    assert cookies(guard, [HERE], query=b"token=correct%20horse")
    mark = dict(ask(guard, [HERE], query=b"token=correct%20horse")[0]["headers"])[b"set-cookie"]
    held = ("cookie", mark.decode().partition(";")[0])
    assert not cookies(guard, [HERE, held])
    assert not cookies(LOCAL, [HERE], query=b"token=anything")
    assert "correct" not in held[1]  # the token itself is not kept by the browser
    assert status(ask(guard, [HERE, ("cookie", "modurob_token=correct horse")])) == 401
    assert status(ask(guard, [HERE, ("cookie", "bad[name]=1; ;;=")])) == 401
    assert status(ask(guard, [HERE, ("cookie", f"other=1; {held[1]}")])) == 200
    assert status(ask(guard, [HERE, held], query=b"token=wrong")) == 200


def test_port_80_needs_no_number_and_sizes_must_be_numbers(ask):
    assert status(ask(Guard(app, 80), [("host", "localhost")])) == 200
    assert status(ask(LOCAL, [("host", "localhost")])) == 403
    sent = ask(LOCAL, [HERE, ("content-length", "many")])
    assert status(sent) == 413
    assert sent[1]["body"] == b"At most 16 MB can be uploaded, got more than that."
    assert status(ask(LOCAL, [HERE, ("content-length", str(LARGEST_BODY))])) == 200
    scope = {"client": None}  # a digit that is no number, as a server may let through
    assert LOCAL._objection(scope, {"host": HERE[1], "content-length": "²"})[0] == 413


def test_a_port_that_is_taken_is_told_with_the_way_out():
    with open_door("127.0.0.1", 0, None) as door:
        door.listen()
        port = door.getsockname()[1]
        with pytest.raises(
            WriteError, match=rf"port {port} of 127.0.0.1 cannot be used .*--port 0"
        ):
            open_door("127.0.0.1", port, None)
    with pytest.raises(StateError, match="--token"):
        open_door("0.0.0.0", 0, None)


def test_a_token_has_eight_characters_or_more():
    check_host("0.0.0.0", "12345678")
    check_host("127.0.0.1", "12345678")
    for host in ("0.0.0.0", "127.0.0.1"):
        with pytest.raises(StateError, match="at least 8"):
            check_host(host, "1234567")


def test_a_sender_without_an_address_may_guess_as_often_as_others(awaited, monkeypatch):
    monkeypatch.setattr(guards.time, "monotonic", lambda: 0.0)
    guard, found = Guard(app, 8350, token="correct horse"), []

    async def send(message):
        found.extend([message["status"]] if "status" in message else [])

    scope = {"type": "http", "headers": [(b"host", b"127.0.0.1:8350")], "client": None}
    for _ in range(guards.TRIES + 1):
        awaited(guard({**scope, "query_string": b"token=guess"}, None, send))
    assert found == [401] * guards.TRIES + [429]
    awaited(guard(scope, None, send))  # no query at all
    assert found[-1] == 401


def test_guesses_that_are_long_ago_are_forgotten_one_by_one(ask, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guards.time, "monotonic", lambda: now[0])
    guard, wrong = Guard(app, 8350, token="correct horse"), b"token=guess"
    for k in range(guards.TRIES):
        now[0] = 2.0 * k
        assert status(ask(guard, [HERE], query=wrong)) == 401
    assert status(ask(guard, [HERE], query=wrong)) == 429
    now[0] = guards.TRIES_S + 0.5  # only the first guess is a minute old
    assert status(ask(guard, [HERE], query=wrong)) == 401
    assert status(ask(guard, [HERE], query=wrong)) == 429


def test_a_guess_is_forgotten_after_a_minute_and_few_addresses_are_no_attack(ask, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guards.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(guards, "MOST_ADDRESSES", 2)
    monkeypatch.setattr(guards, "TRIES", 1)
    guard = Guard(app, 8350, token="correct horse")

    def guess(client):
        return status(ask(guard, [HERE], query=b"token=guess", client=client))

    assert [guess("10.0.0.1"), guess("10.0.0.1")] == [401, 429]
    now[0] = guards.TRIES_S  # as the message says
    assert guess("10.0.0.1") == 401
    now[0] += 1.0
    assert [guess("10.0.0.2"), guess("10.0.0.3"), guess("10.0.0.4")] == [401, 401, 429]
    now[0] = 2 * guards.TRIES_S  # the first address is forgotten: two are left
    assert guess("10.0.0.4") == 401


def test_reasons_for_a_socket_are_short_enough_for_its_protocol(ask):
    origin = ("origin", "http://" + "evil." * 60 + "example")
    (closed,) = ask(LOCAL, [HERE, origin], kind="websocket")
    assert len(closed["reason"].encode()) <= 123
    assert closed["reason"].startswith("A page of 'http://evil.")


class Probe:
    """A socket that remembers its family, and has no route if it must not."""

    families: tuple[object, ...] = ()
    route = True

    def __init__(self, family, kind):
        Probe.families = (*Probe.families, family)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def connect(self, address):
        if not self.route:
            raise OSError(101, "Network is unreachable")

    def getsockname(self):
        return ("10.0.0.9", 40000)

    def setsockopt(self, level, option, value):
        assert (option, bool(value)) == (guards.socket.SO_REUSEADDR, True)

    def bind(self, address):
        self.address = address


def test_the_address_for_others_is_that_of_the_route_else_the_name(monkeypatch):
    monkeypatch.setattr(guards.socket, "socket", Probe)
    monkeypatch.setattr(guards.socket, "gethostname", lambda: "desk")
    monkeypatch.setattr(Probe, "families", ())
    assert guards.addresses("0.0.0.0", 8350)[1] == "http://10.0.0.9:8350"
    monkeypatch.setattr(Probe, "route", False)
    assert guards.addresses("::", 8350) == ("http://[::1]:8350", "http://desk:8350")
    assert guards.addresses("localhost", 8350) == ("http://localhost:8350", None)


@pytest.mark.parametrize(("host", "family"), [("::1", "AF_INET6"), ("127.0.0.1", "AF_INET")])
def test_a_door_has_the_family_of_its_address(monkeypatch, host, family):
    monkeypatch.setattr(guards.socket, "socket", Probe)
    monkeypatch.setattr(Probe, "families", ())
    assert open_door(host, 8350, None).address == (host, 8350)
    assert Probe.families == (getattr(guards.socket, family),)
