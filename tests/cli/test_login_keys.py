"""`codex-py login --with-api-key`, `login status` and `logout`, and the login that a request then carries."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.fake_issuer import FakeIssuer, make_jwt, make_tokens
from tests.support.fake_messages import FakeMessages, answer, says
from tests.support.fake_responses import FakeResponses, say
from tests.support.home import Place
from tests.support.logins import auth_file, mode, read_login, save_login, stored_login
from tests.support.process import COMMAND, Running, run

KEY = "sk-abc12-0123456789-0123456789-56789"


def test_an_api_key_comes_from_stdin(place: Place) -> None:
    save_login(place, stored_login(make_tokens(1)))
    ended = run(place, "login", "--with-api-key", stdin=f"{KEY}\n".encode())
    status = run(place, "login", "status")

    assert (ended.status, ended.stdout) == (0, b"")
    assert KEY not in ended.err
    assert read_login(place) == {"auth_mode": "apikey", "OPENAI_API_KEY": KEY}
    assert mode(auth_file(place)) == 0o600
    assert (status.status, status.out) == (0, f"API key configured: sk-abc12***56789 (in `{auth_file(place)}`)\n")


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (b"", "no API key on stdin"),
        (b" \n", "no API key on stdin"),
        (b"sk-one sk-two", "the key in stdin contains invalid characters"),
        (b"\xff\xfe", "the key on stdin is not text"),
        (b"k" * 70_000, "the key in stdin is larger than 64 KiB"),
    ],
)
def test_what_is_no_key_is_refused(place: Place, stdin: bytes, message: str) -> None:
    ended = run(place, "login", "--with-api-key", stdin=stdin)

    assert ended.status == 2
    assert message in ended.err
    assert not auth_file(place).exists()


def test_the_stored_key_is_the_one_that_is_sent(place: Place) -> None:
    run(place, "login", "--with-api-key", stdin=KEY.encode())
    with FakeResponses([say("done")]) as model:
        place.configure(f'openai_base_url = "{model.base_url}"\n')
        ended = run(place, "exec", "go")

    assert ended.status == 0
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"


def access_token(end: float) -> str:
    auth = {"chatgpt_account_id": "acc-7", "chatgpt_plan_type": "plus"}
    profile = {"email": "ada@example.com"}
    return make_jwt({"exp": int(end), "https://api.openai.com/auth": auth, "https://api.openai.com/profile": profile})


def test_an_access_token_comes_from_stdin_and_is_sent_with_its_account(place: Place) -> None:
    token = access_token(4_000_000_000)
    ended = run(place, "login", "--with-access-token", stdin=f"{token}\n".encode())
    status = run(place, "login", "status")
    with FakeResponses([say("done")]) as model:
        place.configure(f'chatgpt_base_url = "{model.base_url}/backend-api"\n')
        sent = run(place, "exec", "go")

    assert (ended.status, ended.stdout) == (0, b"")
    assert ended.err == (
        "signed in with ChatGPT as ada@example.com\n"
        "the access token is used until 2096-10-02 07:06 UTC; it cannot be renewed\n"
    )
    login = read_login(place)
    assert (login["auth_mode"], login["tokens"]["access_token"], login["tokens"]["account_id"]) == (
        "chatgpt",
        token,
        "acc-7",
    )
    assert mode(auth_file(place)) == 0o600
    assert status.out == f"signed in with ChatGPT as ada@example.com, plan plus (in `{auth_file(place)}`)\n"
    assert sent.status == 0
    assert model.requests[0].headers["authorization"] == f"Bearer {token}"
    assert model.requests[0].headers["chatgpt-account-id"] == "acc-7"


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("", "no access token on stdin"),
        ("one two", "the key in stdin contains invalid characters"),
        (access_token(1_000_000_000), "the access token on stdin has run out"),
    ],
    ids=["nothing", "two words", "run out"],
)
def test_what_is_no_access_token_is_refused(place: Place, stdin: str, message: str) -> None:
    ended = run(place, "login", "--with-access-token", stdin=stdin.encode())

    assert (ended.status, message in ended.err) == (2, True)
    assert not auth_file(place).exists()


@pytest.mark.parametrize("flag", ["--with-api-key", "--device-auth", "--no-browser"])
def test_an_access_token_is_taken_from_stdin_alone(place: Place, flag: str) -> None:
    ended = run(place, "login", "--with-access-token", flag, stdin=access_token(4_000_000_000).encode())

    assert ended.status == 2
    assert not auth_file(place).exists()


def test_a_chatgpt_login_goes_to_its_back_end_with_its_account_and_compressed(place: Place) -> None:
    save_login(place, stored_login(make_tokens(1)))
    with FakeResponses([say("done")]) as model:
        place.configure(f'chatgpt_base_url = "{model.base_url}/backend-api"\n')
        ended = run(place, "exec", "go")

    [request] = model.requests
    assert ended.status == 0
    assert {name: request.headers.get(name) for name in ("chatgpt-account-id", "content-encoding")} == {
        "chatgpt-account-id": "acc-1",
        "content-encoding": "zstd",
    }
    assert request.path == "/v1/backend-api/codex/responses"
    assert request.body["model"] == "gpt-5.5"


def test_a_renewed_login_that_cannot_be_saved_is_used_and_reported(place: Place) -> None:
    with FakeIssuer(lifetime=60) as issuer, FakeResponses([say("done")]) as model:
        save_login(place, stored_login(issuer.give()))
        place.configure(f'chatgpt_base_url = "{model.base_url}"\n')
        env = {**place.env, "CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.token_url}
        # No file can grow, as on a disk that is full.
        argv = ["/bin/sh", "-c", 'ulimit -f 0; exec "$0" exec --ephemeral go', COMMAND]
        with Running(argv, env=env, cwd=place.repo) as running:
            ended = running.wait()

    assert (ended.status, ended.out) == (0, "done\n")
    assert model.requests[0].headers["authorization"] == f"Bearer {issuer.issued_tokens[1]['access_token']}"
    assert f"warning: cannot save the login in `{auth_file(place)}`" in ended.err
    assert read_login(place)["tokens"]["refresh_token"] == "refresh-token-1"


def test_status_tells_how_one_is_signed_in(place: Place) -> None:
    nobody = [run(place, "login", "status"), run(place, "login", "status", "--json")]
    save_login(place, stored_login(make_tokens(1)))
    someone = [run(place, "login", "status"), run(place, "login", "status", "--json")]

    assert [one.status for one in (*nobody, *someone)] == [1, 1, 0, 0]
    assert nobody[0].out.startswith("not signed in")
    assert json.loads(nobody[1].out) == {"method": None}
    assert someone[0].out == f"signed in with ChatGPT as ada@example.com, plan plus (in `{auth_file(place)}`)\n"
    assert json.loads(someone[1].out) == {
        "method": "chatgpt",
        "email": "ada@example.com",
        "plan": "plus",
        "workspace": "acc-1",
        "store": "auth.json",
    }


def test_a_key_in_the_environment_is_named_because_it_comes_first(place: Place) -> None:
    save_login(place, stored_login(make_tokens(1)))
    ended = run(place.with_env(OPENAI_API_KEY=KEY), "login", "status")

    assert "`OPENAI_API_KEY` is set" in ended.err


def test_logout_revokes_and_forgets(place: Place) -> None:
    save_login(place, stored_login(make_tokens(1)))
    with FakeIssuer() as issuer:
        place = place.with_env(CODEX_REVOKE_TOKEN_URL_OVERRIDE=f"{issuer.url}/oauth/revoke")
        ended = [run(place, "logout"), run(place, "logout")]

    assert [one.status for one in ended] == [0, 0]
    assert [one.err.splitlines()[-1] for one in ended] == [
        f"signed out: the login in `{auth_file(place)}` is gone",
        "not signed in",
    ]
    assert issuer.requests == [
        (
            "/oauth/revoke",
            {
                "token": "refresh-token-1",
                "token_type_hint": "refresh_token",
                "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
            },
        )
    ]
    assert not auth_file(place).exists()


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"tokens": 7}', b'{"OPENAI_API_KEY": "sk-x"}'])
def test_logout_removes_whatever_is_there_and_asks_nobody_about_a_key(place: Place, content: bytes) -> None:
    auth_file(place).write_bytes(content)
    ended = run(place, "logout")

    assert ended.status == 0
    assert not auth_file(place).exists()


def test_logout_forgets_even_when_the_issuer_is_out_of_reach(place: Place) -> None:
    save_login(place, stored_login(make_tokens(1)))
    with FakeIssuer(refuse={"/oauth/revoke": (500, {})}) as issuer:
        place = place.with_env(CODEX_REVOKE_TOKEN_URL_OVERRIDE=f"{issuer.url}/oauth/revoke")
        ended = run(place, "logout")

    assert ended.status == 0
    assert "warning: the issuer did not revoke the login: 500" in ended.err
    assert not auth_file(place).exists()


@pytest.mark.parametrize(
    ("config", "arguments", "message"),
    [
        ('forced_login_method = "api"', ["login"], "only an API key may be used here"),
        ('forced_login_method = "chatgpt"', ["login", "--with-api-key"], "only a ChatGPT login may be used here"),
        ('cli_auth_credentials_store = "ephemeral"', ["login", "--with-api-key"], "would be forgotten at once"),
        ("", ["login", "--with-api-key", "--device-auth"], "`--with-api-key` takes a key from stdin"),
        (
            "",
            ["login", "--issuer", "http://issuer.example"],
            "would send a login to `issuer.example` without encryption",
        ),
        ("", ["login", "--issuer", "nonsense"], "not an http or https URL"),
        ("", ["login", "nonsense"], "nonsense"),
    ],
)
def test_what_is_not_allowed_is_refused_before_anything_happens(
    place: Place, config: str, arguments: list[str], message: str
) -> None:
    place.configure(config + "\n")
    ended = run(place, *arguments, stdin=KEY.encode())

    assert ended.status in (1, 2)
    assert message in ended.err
    assert not auth_file(place).exists()


def test_a_keyring_keeps_the_login_where_it_is_asked_to(place: Place, tmp_path: Path) -> None:
    place.configure('cli_auth_credentials_store = "keyring"\n')
    root = Path(__file__).parents[2]
    env = {
        "PYTHON_KEYRING_BACKEND": "tests.support.file_keyring.FileKeyring",
        "PYTHONPATH": str(root),
        "FILE_KEYRING": str(tmp_path / "keyring.json"),
    }
    place = place.with_env(**env)
    kept = run(place, "login", "--with-api-key", stdin=KEY.encode())
    with FakeResponses([say("done")]) as model:
        used = run(place, "exec", "-c", f'openai_base_url="{model.base_url}"', "go")
    entries = json.loads((tmp_path / "keyring.json").read_text())
    forgotten = run(place, "logout")

    assert [kept.status, used.status, forgotten.status] == [0, 0, 0]
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
    [(name, login)] = entries.items()
    assert re.fullmatch(r"Codex Auth/cli\|[0-9a-f]{16}", name)
    assert json.loads(login) == {"auth_mode": "apikey", "OPENAI_API_KEY": KEY}
    assert json.loads((tmp_path / "keyring.json").read_text()) == {}
    assert not auth_file(place).exists()


@pytest.mark.parametrize(("store", "status"), [("keyring", 1), ("auto", 0)])
def test_without_a_working_keyring_only_auto_falls_back_to_the_file(place: Place, store: str, status: int) -> None:
    place.configure(f'cli_auth_credentials_store = "{store}"\n')
    place = place.with_env(PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    ended = run(place, "login", "--with-api-key", stdin=KEY.encode())

    assert ended.status == status
    assert auth_file(place).exists() == (status == 0)


def test_a_key_of_another_provider_is_stored_beside_the_login_and_used(place: Place) -> None:
    run(place, "login", "--with-api-key", stdin=KEY.encode())
    stored = run(place, "login", "--with-api-key", "--provider", "anthropic", stdin=b"sk-ant-0123456789abcdef\n")
    shown = run(place, "login", "status")
    with FakeMessages(answer(says("done")), key="sk-ant-0123456789abcdef") as model:
        place.configure(f'model_provider = "anthropic"\n[model_providers.anthropic]\nbase_url = "{model.base_url}"\n')
        ended = run(place, "exec", "go")
    gone = run(place, "logout")

    path = place.codex_home / "provider-keys.json"
    assert (stored.status, stored.err) == (
        0,
        f"kept the API key sk-ant-0***bcdef for Anthropic in `{path}`\n",
    )
    assert "note: a key is stored for `ANTHROPIC_API_KEY`: sk-ant-0***bcdef\n" in shown.err
    assert (ended.status, ended.out) == (0, "done\n")
    assert "sk-ant" not in ended.err
    assert not path.exists() and "are gone" in gone.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--with-api-key", "--provider", "antropic"), "did you mean `anthropic`?"),
        (("--with-api-key", "--provider", "ollama"), "no key can be stored for the provider `ollama`"),
        (("--provider", "anthropic"), "`--provider` goes with `--with-api-key`"),
    ],
)
def test_a_key_has_a_provider_that_takes_keys(place: Place, arguments: tuple[str, ...], message: str) -> None:
    ended = run(place, "login", *arguments, stdin=b"sk-ant-0123456789")

    assert (ended.status, message in ended.err) == (2, True)
    assert not (place.codex_home / "provider-keys.json").exists()


def test_without_its_key_a_hosted_provider_says_how_to_store_one(place: Place) -> None:
    place.configure('model_provider = "anthropic"\n')
    ended = run(place, "exec", "go")

    assert "`codex-py login --with-api-key --provider anthropic`" in ended.err
