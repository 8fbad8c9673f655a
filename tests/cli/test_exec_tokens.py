"""Access tokens that others renew: one expired login of many processes, and a file with a token."""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.fake_issuer import FakeIssuer, make_tokens
from tests.support.fake_responses import FakeResponses, Request, Stream, api_error, call, fake_model, repeat, say
from tests.support.home import Place
from tests.support.logins import read_login, save_login, stored_login
from tests.support.process import run

PROCESSES = 50


def bearer(request: Request) -> str:
    return request.headers["authorization"].removeprefix("Bearer ")


def test_fifty_processes_with_one_expired_login_renew_it_once(place: Place) -> None:
    with FakeIssuer() as issuer:
        save_login(place, stored_login({**make_tokens(1, end=time.time() - 60), **_refresh_of(issuer)}))
        place = place.with_env(CODEX_REFRESH_TOKEN_URL_OVERRIDE=issuer.token_url)

        def answer(request: Request) -> Stream:
            is_new = bearer(request) == issuer.issued_tokens[-1]["access_token"] and len(issuer.issued_tokens) == 2
            return [say("done")] if is_new else [api_error(401, "expired")]

        with fake_model(place, repeat(answer), excuse={"threads"}, requires_openai_auth=True) as model:
            with ThreadPoolExecutor(PROCESSES) as threads:
                ends = list(threads.map(lambda n: run(place, "exec", "--session-id", f"s{n}", "go"), range(PROCESSES)))
            assert len(model.requests) == PROCESSES
    assert [end.status for end in ends] == [0] * PROCESSES, [end.err for end in ends if end.status][:1]
    assert [path for path, _ in issuer.requests] == ["/oauth/token"]
    assert read_login(place)["tokens"]["refresh_token"] == issuer.issued_tokens[-1]["refresh_token"]


def _refresh_of(issuer: FakeIssuer) -> dict[str, str]:
    return {"refresh_token": issuer.give()["refresh_token"]}


def test_a_token_comes_from_a_file_that_another_program_renews(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token-0001\n")

    def renew(text: str) -> None:
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").replace(file)

    def first(request: Request) -> Stream:
        renew("second-token-0002\n")
        return [call("c1", "exec_command", {"cmd": "true"})]

    with fake_model(place, first, [say("done")], auth={"file": str(file)}) as model:
        ended = run(place, "exec", "go")
    assert (ended.status, [bearer(request) for request in model.requests]) == (
        0,
        ["first-token-0001", "second-token-0002"],
    )


def test_a_refused_token_is_read_again_and_a_refused_new_one_is_auth(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old-token-0001")

    def refuse(request: Request) -> Stream:
        file.write_text("new-token-0002")
        return [api_error(401, "expired")]

    with fake_model(place, refuse, [say("done")], auth={"file": str(file)}) as model:
        assert run(place, "exec", "go").status == 0
        assert bearer(model.requests[1]) == "new-token-0002"
    with fake_model(place, [api_error(401, "no")], auth={"file": str(file)}) as model:
        ended = run(place, "exec", "--json", "go")
    assert (ended.status, ended.events[-1]["error"]["code"]) == (77, "auth")


def test_a_file_without_a_token_is_auth(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("absent", "no such file"), ("empty", "it is empty"), ("pipe", "not a regular file")):
        place.use_model("http://127.0.0.1:9", auth={"file": str(tmp_path / name)})
        ended = run(place, "exec", "--json", "go")
        assert (ended.status, ended.events[-1]["error"]["code"]) == (77, "auth"), name
        assert reason in ended.err
        assert json.loads(ended.out.splitlines()[-1])["type"] == "turn.failed"


def test_commands_cannot_read_the_token_file(place: Place) -> None:
    with TemporaryDirectory(dir="/var/tmp") as directory:
        file = Path(directory) / "token"
        file.write_text("sesame-token-0001")
        with FakeResponses([call("c1", "exec_command", {"cmd": f"base64 {file}"})], [say("done")]) as model:
            place.use_model(model.base_url, auth={"file": str(file)})
            assert run(place, "exec", "go").status == 0
        assert b64encode(b"sesame").decode()[:-2] not in model.requests[1].output_of("c1")
