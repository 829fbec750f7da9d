"""Every row of the table of threats: hostile requests by hand, over real sockets."""

import http.client
import re
import socket
import subprocess
import sys

import pytest

from lgf.app.gate import POLICY
from lgf.app.server import listen
from lgf.errors import LgfError

PATHS = (
    "/", "/app.css", "/api/login", "/api/knock", "/api/records", "/api/data", "/api/data/0123456789abcdef",
    "/api/data/0123456789abcdef/check", "/api/runs", "/api/runs/decay", "/api/runs/decay/stop",
    "/api/runs/decay/resume", "/api/runs/decay/again", "/api/runs/decay/curve", "/api/runs/decay/simulate",
    "/api/runs/decay/band", "/api/runs/decay/suggest", "/api/runs/decay/data.csv", "/api/runs/decay/files/report.html",
    "/api/events",
    "/nowhere", "/api/nowhere",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "PROPFIND")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost:{port}", "127.0.0.1", "[::1]:{port}"]
)
def test_a_name_that_points_here_is_refused_on_every_path_and_method(site, host):
    named = host.format(port=site.client.port)
    for path in PATHS:
        for method in METHODS:
            assert site.client.call(method, path, headers={"Host": named}).status == 403, (method, path)


def test_a_second_host_header_is_refused(site):
    own = f"127.0.0.1:{site.client.port}"
    assert site.client.get("/api/runs", headers={"Host": [own, "evil.example"]}).status in (400, 403)
    assert site.client.get("/api/runs", headers={"Host": None}).status in (400, 403)


@pytest.mark.parametrize("headers", [
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": None},
    {"Sec-Fetch-Site": ["same-origin", "cross-site"]}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ["http://127.0.0.1:{port}", "null"]},
])  # fmt: skip
def test_another_page_is_refused_even_with_the_cookie(site, headers):
    for path in PATHS:
        for method in ("GET", "POST", "DELETE"):
            assert site.client.call(method, path, headers=headers).status == 403, (method, path)


def test_a_post_needs_the_origin_of_the_page(site):
    assert site.client.post("/api/runs", headers={"Origin": None}).status == 403
    assert site.client.post("/api/runs", headers={"Sec-Fetch-Site": "none"}).status == 403
    assert site.client.get("/api/runs", headers={"Sec-Fetch-Site": "none"}).status == 200  # typed by the user


@pytest.mark.parametrize("cookie", ["", "lgf-app-{port}=", "lgf-app-{port}=x", "lgf-app-1=x", "\\", "a=b; =; ;;"])
def test_without_the_secret_no_call_is_answered(site, cookie):
    stranger = site.stranger()
    stranger.cookie = cookie.format(port=stranger.port)
    for path in PATHS:
        if not path.startswith("/api/") or path in ("/api/login", "/api/knock"):
            continue
        for method in ("GET", "POST"):
            assert stranger.call(method, path).status == 401, (method, path)


def test_only_get_and_post_are_answered(site):
    for path in PATHS:
        for method in METHODS[2:]:
            assert site.client.call(method, path).status in (403, 405), (method, path)


def test_a_token_is_good_for_one_login(site):
    token = site.session.new_token()
    first, second = site.stranger(), site.stranger()
    assert "HttpOnly" in first.login(token).headers["set-cookie"]
    assert second.post("/api/login", {"token": token}).status == 403
    assert second.post("/api/login", {"token": ""}).status == 403
    assert second.post("/api/login", {"token": "é" * 40}).status == 403
    assert second.get("/api/runs").status == 401
    unused = site.session.new_token()
    newest = site.session.new_token()
    assert second.post("/api/login", {"token": unused}).status == 403  # a newer address voids it
    assert second.login(newest).headers["set-cookie"].startswith(f"lgf-app-{site.client.port}=")
    assert "samesite=strict" in second.login(site.session.new_token()).headers["set-cookie"].lower()


def test_every_answer_carries_the_policy(site):
    answers = [site.client.get(path) for path in ("/", "/main.js", "/api/runs", "/nowhere")]
    answers += [site.stranger().get("/api/runs"), site.client.get("/", headers={"Host": "evil.example"})]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "frame-ancestors 'none'" in POLICY


def test_the_server_is_on_this_machine_only(site):
    with pytest.raises(OSError, match="refused"):  # reached if the socket listened on all addresses
        socket.create_connection(("127.0.0.2", site.client.port), timeout=5)
    with pytest.raises(LgfError, match=r"^port .* cannot be used"):
        listen(site.client.port)
    with pytest.raises(LgfError, match=r"^port 70000 cannot be used"):
        listen(70000)


def test_web_sockets_are_refused(site):
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x" * 22 + "==",
               "Sec-WebSocket-Version": "13"}  # fmt: skip
    assert site.client.get("/api/events-socket", headers=headers).status in (400, 404)


def test_the_path_of_a_call_is_never_a_path_of_the_disk(site):
    (site.folder / "secret.txt").write_text("secret")
    for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//etc/passwd", "/static/../gate.py",
                 "/%2e%2e/gate.py", "/vendor/../../gate.py", "/.%00./gate.py", "/app.css/..", "/%"):  # fmt: skip
        answer = site.client.get(path)
        assert answer.status == 404, path
        assert b"secret" not in answer.body


def test_the_terminal_shows_the_address_and_the_log_no_secret(tmp_path):
    command = [sys.executable, "-P", "-m", "lgf.cli", "app", "--no-browser", "--port", "0", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        port, token = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", "".join(lines)).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        headers = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{port}"}
        connection.request("POST", "/api/login", f'{{"token": "{token}"}}', headers)
        answer = connection.getresponse()
        secret = answer.headers["set-cookie"].split("=")[1].split(";")[0]
        answer.read()
        connection.request("GET", "/api/runs", headers={"Sec-Fetch-Site": "same-origin"})
        assert connection.getresponse().status == 401
        connection.close()
    finally:
        process.send_signal(2)
        rest = process.communicate(timeout=60)[0]
    assert process.returncode in (0, 130)
    assert token not in rest
    assert secret not in rest
    assert "Traceback" not in rest
