"""`codex-py login`: signing in with a browser or with a code, at an issuer on the loopback."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest

from tests.support.fake_issuer import FakeIssuer
from tests.support.home import Place
from tests.support.logins import auth_file, mode, read_login
from tests.support.process import Running, run, start


def visit(url: str) -> tuple[int, str]:
    """What a browser would be shown, redirects followed."""
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def sign_in_page(running: Running) -> str:
    """The address that `login` prints."""
    running.wait_until(lambda one: b"state=" in one.stderr and b"\n" in one.stderr.partition(b"state=")[2])
    found = re.search(rb"https?://\S+/oauth/authorize\S+", running.stderr)
    assert found is not None
    return found[0].decode()


def callback(page: str, **changes: str) -> str:
    """Where the issuer would send the browser back to, with some of the query changed."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
    return f"{query['redirect_uri']}?{urlencode({'code': 'code-1', 'state': query['state'], **changes})}"


def browser_login(place: Place, issuer: FakeIssuer, *flags: str) -> Running:
    return start(place, "login", "--issuer", issuer.url, "--port", "0", "--no-browser", *flags)


def test_signing_in_with_a_browser(place: Place) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        page = sign_in_page(running)
        question = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        status, shown = visit(page)
        ended = running.wait()

    assert (status, "Signed in" in shown) == (200, True)
    assert (ended.status, ended.stdout) == (0, b"")
    assert ended.err.splitlines()[-1] == "signed in with ChatGPT as ada@example.com"
    assert {name: question[name] for name in ("response_type", "client_id", "code_challenge_method", "originator")} == {
        "response_type": "code",
        "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
        "code_challenge_method": "S256",
        "originator": "codex_cli_rs",
    }
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/auth/callback", question["redirect_uri"])
    login = read_login(place)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", login.pop("last_refresh"))
    assert login == {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": {
            **issuer.issued_tokens[0],
            "account_id": "acc-1",
            "oauth_provenance": {"issuer": issuer.url, "client_id": "app_EMoamEEZ73f0CkXaXp7hrann"},
        },
    }
    assert mode(auth_file(place)) == 0o600
    assert not any(value in ended.err for value in issuer.issued_tokens[0].values())


def test_over_ssh_no_browser_is_opened(place: Place) -> None:
    browser = place.write("browser.sh", '#!/bin/sh\necho "$1" > opened\n')
    browser.chmod(0o755)
    there = place.with_env(BROWSER=str(browser), SSH_CONNECTION="192.0.2.1 50000 192.0.2.2 22")
    with FakeIssuer() as issuer, start(there, "login", "--issuer", issuer.url, "--port", "0") as running:
        running.wait_until(lambda one: b"over ssh no browser is opened: `codex-py login --device-auth`" in one.stderr)
        visit(sign_in_page(running))
        ended = running.wait()

    assert (ended.status, (place.repo / "opened").exists()) == (0, False)


def test_a_page_with_the_wrong_state_is_sent_away_and_the_sign_in_goes_on(place: Place) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        page = sign_in_page(running)
        wrong = [
            visit(callback(page, state="forged")),
            visit(callback(page, state="forged", error="access_denied")),
            visit(callback(page).partition("?")[0]),
            visit(callback(page).replace("/auth/callback", "/favicon.ico")),
        ]
        right, _ = visit(page)
        ended = running.wait()

    assert [status for status, _ in wrong] == [400, 400, 400, 404]
    assert (right, ended.status) == (200, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"code": "", "error": "access_denied", "error_description": "no\x1b[31m thanks"},
            "error: the sign-in was refused: no [31m thanks",
        ),
        ({"code": "", "error": "access_denied"}, "error: the sign-in was refused: access_denied"),
        (
            {"code": "made-up"},
            "error: the sign-in was refused: 400 the code does not belong to this sign-in",
        ),
    ],
)
def test_a_sign_in_that_is_refused_says_why(place: Place, changes: dict[str, str], message: str) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        visit(callback(sign_in_page(running), **changes))
        ended = running.wait()

    assert (ended.status, ended.err.splitlines()[-1]) == (1, message)
    assert not auth_file(place).exists()


def test_a_sign_in_can_be_cancelled_and_its_port_taken_over(place: Place) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as first:
        port = urlsplit(callback(sign_in_page(first))).port
        with start(place, "login", "--issuer", issuer.url, "--port", str(port), "--no-browser") as second:
            gone = first.wait()
            visit(sign_in_page(second))
            ended = second.wait()

    assert (gone.status, gone.err.splitlines()[-1]) == (1, "error: the sign-in was cancelled")
    assert ended.status == 0


@pytest.mark.parametrize("path", ["/cancel", "/cancel?state=", "/cancel?state=forged", "/cancel?state=x&state=x"])
def test_only_who_knows_the_secret_cancels_a_sign_in(place: Place, path: str) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        page = sign_in_page(running)
        sign_in_state = parse_qs(urlsplit(page).query)["state"][0]
        refused = [visit(urljoin(callback(page), one))[0] for one in (path, f"/cancel?state={sign_in_state}")]
        visit(page)
        ended = running.wait()

    assert (refused, ended.status) == ([404, 404], 0)
    assert not list(place.codex_home.glob(".auth-*"))


def test_a_callback_under_another_name_of_this_machine_counts_for_nothing(place: Place) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        page = sign_in_page(running)
        statuses: list[int] = []
        for host in ("attacker.example", "127.0.0.1.attacker.example:80", "localhost@attacker.example"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(callback(page), headers={"Host": host}), timeout=10)
            refused.value.close()
            statuses.append(refused.value.code)
        visit(page)
        ended = running.wait()

    assert (statuses, ended.status) == ([400] * 3, 0)


def test_a_program_that_holds_the_port_and_says_nothing_is_asked_once(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        # What a sign-in has left that was killed.
        place.codex_home.mkdir(exist_ok=True)
        (place.codex_home / f".auth-sign-in-{port}").write_text("secret")
        ended = run(place, "login", "--no-browser", "--port", str(port))
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert ended.status == 1
    assert ended.err.startswith(f"error: cannot wait for the browser on port {port}: ")


def test_nonsense_on_the_callback_port_disturbs_nothing(place: Place) -> None:
    with FakeIssuer() as issuer, browser_login(place, issuer) as running:
        page = sign_in_page(running)
        port = urlsplit(callback(page)).port
        assert port is not None
        for junk in (b"", b"\x16\x03\x01\x02\x00\r\n\r\n", b"POST /auth/callback HTTP/1.1\r\n\r\n", b"x" * 200_000):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                try:
                    connection.sendall(junk)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
                except OSError:
                    continue
        visit(page)
        ended = running.wait()

    assert ended.status == 0


def test_signing_in_with_a_code(place: Place) -> None:
    with FakeIssuer(waits=2) as issuer:
        ended = run(place, "login", "--device-auth", "--issuer", issuer.url)

    assert ended.status == 0
    assert f"{issuer.url}/codex/device" in ended.err
    assert "ABCD-1234" in ended.err
    assert issuer.paths == [
        "/api/accounts/deviceauth/usercode",
        *["/api/accounts/deviceauth/token"] * 3,
        "/oauth/token",
    ]
    assert read_login(place)["tokens"]["refresh_token"] == "refresh-token-1"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/accounts/deviceauth/usercode", 404, "the issuer does not offer sign-in with a device code"),
        ("/api/accounts/deviceauth/usercode", 429, "the issuer gave no device code: 429 slow down"),
        ("/api/accounts/deviceauth/token", 400, "the sign-in was refused: 400 slow down"),
        ("/oauth/token", 400, "the sign-in was refused: 400 slow down"),
    ],
)
def test_a_code_that_leads_nowhere_is_one_error(place: Place, path: str, status: int, message: str) -> None:
    with FakeIssuer(refuse={path: (status, {"error": {"message": "slow down"}})}) as issuer:
        ended = run(place, "login", "--device-auth", "--issuer", issuer.url)

    assert ended.status == 1
    assert message in ended.err.splitlines()[-1]


def test_a_login_to_another_workspace_is_not_kept(place: Place) -> None:
    place.configure('forced_chatgpt_workspace_id = "acc-9"\n')
    with FakeIssuer() as issuer:
        ended = run(place, "login", "--device-auth", "--issuer", issuer.url)

    assert ended.status == 1
    assert "belongs to the workspace `acc-1`, and only `acc-9` may be used" in ended.err
    assert not auth_file(place).exists()
