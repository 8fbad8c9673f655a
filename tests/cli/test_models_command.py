"""`codex-py models`, and which model of a local server is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_issuer import FakeIssuer
from tests.support.fake_responses import FakeResponses, completed, fake_model, say, status, tokens
from tests.support.home import Place
from tests.support.logins import save_login, stored_login
from tests.support.process import run

OPENAI_LIST = {"object": "list", "data": [{"id": "gpt-5.5", "object": "model"}, {"id": "secret-lab-1"}]}
CHATGPT_LIST = {
    "models": [
        {"slug": "gpt-5.5", "context_window": 272000, "description": "For\x1b[31m hard work", "visibility": "list"},
        {"slug": "gpt-inner", "visibility": "hide"},
    ]
}
OLLAMA_TAGS = {
    "models": [
        {"name": "nomic-embed-text:latest", "model": "nomic-embed-text:latest", "size": 274302450},
        {
            "name": "qwen3:8b",
            "model": "qwen3:8b",
            "size": 5225388164,
            "details": {"parameter_size": "8.2B", "quantization_level": "Q4_K_M"},
        },
    ]
}


def test_the_models_of_a_provider_with_the_configured_one_marked(place: Place) -> None:
    with FakeResponses(get={"/v1/models": status(200, OPENAI_LIST)}) as model:
        place.configure(f'openai_base_url = "{model.base_url}"\n')
        place = place.with_env(OPENAI_API_KEY="sk-0123456789")
        shown = run(place, "models")
        listed = run(place, "models", "--json", "-c", "model=secret-lab-1")

    assert (shown.status, shown.out.splitlines()) == (0, ["* gpt-5.5         272,000", "? secret-lab-1"])
    assert model.gets == ["/v1/models"] * 2
    assert json.loads(listed.out) == {
        "provider": "openai",
        "models": [
            {"id": "gpt-5.5", "configured": False, "known": True, "context_window": 272000, "description": ""},
            {"id": "secret-lab-1", "configured": True, "known": False, "context_window": None, "description": ""},
        ],
    }


def test_the_models_of_a_chatgpt_login_after_it_was_renewed(place: Place) -> None:
    with FakeIssuer(lifetime=60) as issuer, FakeResponses(get={"/v1/codex/models": status(200, CHATGPT_LIST)}) as model:
        save_login(place, stored_login(issuer.give()))
        place.configure(f'chatgpt_base_url = "{model.base_url}"\n')
        ended = run(place.with_env(CODEX_REFRESH_TOKEN_URL_OVERRIDE=issuer.token_url), "models")

    assert (ended.status, ended.out) == (0, "* gpt-5.5    272,000  For [31m hard work\n")
    assert model.gets == ["/v1/codex/models?client_version=0.169.0"]
    assert issuer.paths == ["/oauth/token"]


def test_ollama_tells_more_in_its_own_words(place: Place) -> None:
    with FakeResponses(get={"/api/tags": status(200, OLLAMA_TAGS)}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        shown = run(place, "models", "--oss", "-c", "model=qwen3:8b")
        named = run(place, "models", "--provider", "ollama")

    assert shown.out.splitlines() == [
        "? nomic-embed-text:latest             0.3 GB",
        "* qwen3:8b                            8.2B, Q4_K_M, 5.2 GB",
    ]
    assert "`gpt-oss:20b`, which would be asked now, is not among them" in named.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--provider", "nonsense"], "unknown provider `nonsense`"),
        (["--local-provider", "nonsense"], "no local provider `nonsense`"),
        (["--provider", "fake"], "cannot list the models of `fake`: 404 Not Found"),
        (["--provider", "openai"], "no API key for the model provider `openai`"),
    ],
)
def test_models_that_cannot_be_listed_are_one_line(place: Place, arguments: list[str], message: str) -> None:
    with fake_model(place):
        ended = run(place, "models", *arguments)

    assert ended.status in (1, 2)
    assert (message in ended.err, len(ended.err.splitlines()), ended.out) == (True, 1, "")


@pytest.mark.parametrize(
    "content",
    ["[]", '{"data": null}', '{"data": 7}', '{"data": [7, {}, {"id": 3}, {"id": ""}]}', '{"models": {"a": 1}}'],
)
def test_a_list_without_models_is_an_empty_one(place: Place, content: str) -> None:
    with fake_model(place, get={"/v1/models": status(200, content)}):
        ended = run(place, "models")

    assert (ended.status, ended.out) == (0, "")
    assert ended.err == "the provider `fake` offers no models\n"


@pytest.mark.parametrize("content", ["", "{}", "<html>a router</html>", '"models"'])
def test_an_answer_that_is_no_list_is_distinguished_from_an_empty_one(place: Place, content: str) -> None:
    page = status(200, content)
    with fake_model(place, [say("fine")], get={"/v1/models": page, "/api/tags": page}) as model:
        listed = run(place, "models")
        question = run(place.with_env(CODEX_OSS_BASE_URL=model.base_url), "exec", "--oss", "hi")

    assert (listed.status, listed.out) == (1, "")
    assert "answered with something else than a list of models" in listed.err
    # It may serve the model all the same, and says what it is when it does not.
    assert (question.status, question.out) == (0, "fine\n")


def test_the_offline_rules_are_a_model_too(place: Place) -> None:
    ended = run(place, "models", "--provider", "offline")
    assert ended.out == "* offline-rules             fixed rules, no AI\n"


def test_a_token_command_is_asked_and_its_token_not_shown(place: Place) -> None:
    with FakeResponses(get={"/v1/models": status(403, {"error": {"message": "not with token-0123456789"}})}) as model:
        place.use_model(model.base_url, auth={"command": "echo", "args": ["token-0123456789"]})
        ended = run(place, "models")

    assert ended.status == 1
    assert "403 Forbidden: not with [redacted]" in ended.err


def test_a_local_server_that_is_not_there_is_one_clear_line(place: Place) -> None:
    place = place.with_env(CODEX_OSS_BASE_URL="http://127.0.0.1:9")
    ended = run(place, "exec", "--oss", "go")

    [line] = ended.err.splitlines()
    assert ended.status == 1
    assert line.startswith("error: no Ollama server answers at `http://127.0.0.1:9`; start it with `ollama serve`")


def test_a_model_that_the_local_server_lacks_is_named_with_those_it_has(place: Place) -> None:
    with FakeResponses(get={"/api/tags": status(200, OLLAMA_TAGS)}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        ended = run(place, "exec", "--oss", "-m", "llama9", "go")

    [line] = ended.err.splitlines()
    assert ended.status == 1
    assert line == (
        "error: Ollama does not have the model `llama9`: it has `nomic-embed-text:latest`, `qwen3:8b`; "
        "`ollama pull llama9` fetches it"
    )


def test_without_the_default_model_another_one_is_asked_and_reported(place: Place) -> None:
    with FakeResponses([say("done")], get={"/api/tags": status(200, OLLAMA_TAGS)}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        ended = run(place, "exec", "--oss", "go")

    assert ended.status == 0
    assert model.requests[0].body["model"] == "qwen3:8b"
    assert "Ollama does not have `gpt-oss:20b`: `qwen3:8b` is asked" in ended.err


def test_oss_does_not_ask_for_the_model_of_another_provider(place: Place) -> None:
    place.configure('model = "gpt-5.5"\n')
    with FakeResponses([say("done")], get={"/api/tags": status(200, OLLAMA_TAGS)}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        ended = run(place, "exec", "--oss", "go")

    assert (ended.status, model.requests[0].body["model"]) == (0, "qwen3:8b")


def test_a_local_server_without_any_model_says_how_to_get_one(place: Place) -> None:
    with FakeResponses(get={"/v1/models": status(200, {"object": "list", "data": []})}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        ended = run(place, "exec", "--oss", "--local-provider", "lmstudio", "go")

    assert ended.status == 1
    assert ended.err == "error: LM Studio has no model at all; `lms get openai/gpt-oss-20b` fetches it\n"


@pytest.mark.parametrize(
    ("name", "settings", "window"),
    [
        ("tiny", "", 2048),
        ("gpt-oss-20b", "", 2048),
        ("devstral-small", "[models.devstral-small]\ninput_usd = 0\noutput_usd = 0\n", 2048),
        ("tiny", "[models.tiny]\ncontext_window = 4000\n", 4000),
    ],
    ids=["unknown", "in the table", "with a price", "with a window"],
)
def test_the_window_that_a_local_server_tells_counts_unless_the_user_sets_one(
    name: str, settings: str, window: int, place: Place
) -> None:
    models = {"data": [{"id": name, "max_context_length": 4096, "loaded_context_length": 2048}]}
    place.configure(settings)
    with FakeResponses([say("done")], get={"/v1/models": status(200, models)}) as model:
        place = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        run(place, "exec", "--oss", "--local-provider", "lmstudio", "-m", name, "go")

    [rollout] = place.rollouts()
    lines = [json.loads(line) for line in rollout.read_text().splitlines()]
    windows = {line["payload"].get("model_context_window") for line in lines if line["type"] == "event_msg"}
    assert window in windows


def price_list(usd: float) -> list[dict[str, Any]]:
    """A list in the format of genai-prices, with one model."""
    prices = {"input_mtok": usd, "output_mtok": 8}
    model = {"id": "brand-new", "match": {"starts_with": "brand-new"}, "prices": prices}
    maker = {"id": "maker", "name": "Maker", "api_pattern": "https://api\\.maker\\.example"}
    return [{**maker, "model_match": {"starts_with": "brand"}, "models": [model]}]


def test_newer_prices_are_fetched_and_used_and_a_bad_answer_changes_nothing(place: Place) -> None:
    answers = {
        "/good": status(200, json.dumps(price_list(2.0))),
        "/html": status(200, "<html>sign in</html>"),
        "/empty": status(200, "[]"),
        "/other": status(200, {"models": 5}),
        "/error": status(500, "sorry"),
    }
    usage = completed(tokens(1000, 100))
    with fake_model(place, [say("done"), usage], get=answers) as model:
        address = model.base_url.removesuffix("/v1")
        updated = run(place, "models", "--update", "--from", f"{address}/good")
        table = (place.codex_home / "prices.jsonl").read_bytes()
        refused = [run(place, "models", "--update", "--from", f"{address}/{name}") for name in list(answers)[1:]]
        refused.append(run(place, "models", "--update", "--from", "http://127.0.0.1:9/x"))
        refused.append(run(place, "models", "--update", "--from", "not a url"))
        spent = run(place, "exec", "-m", "brand-new-2", "go")
    assert (updated.status, updated.out) == (0, "")
    assert "the prices of 1 models" in updated.err
    assert [(ended.status, len(ended.err.splitlines())) for ended in refused] == [(1, 1)] * 6, [e.err for e in refused]
    assert (place.codex_home / "prices.jsonl").read_bytes() == table
    assert (place.codex_home / "prices.jsonl").stat().st_mode & 0o777 == 0o600
    # 1,000 of input at 2 dollars a million, 100 of output at 8.
    assert "cost: $0.0028" in spent.err


def test_a_catalogue_file_makes_a_model_known(place: Place) -> None:
    entry = {"slug": "House-Model", "context_window": 50_000, "default_reasoning_level": "high"}
    catalog = place.write("models.json", json.dumps({"models": [entry]}))
    with FakeResponses([say("one")], [say("two")], excuse={"threads"}) as model:
        place.use_model(model.base_url, f'model_catalog_json = "{catalog}"')
        known = run(place, "exec", "-m", "house-model", "go")
        unknown = run(place, "exec", "-m", "other-model", "go")

    assert model.requests[0].body["reasoning"] == {"effort": "high"}
    notice = "unknown model"
    assert [known.err.count(notice), unknown.err.count(notice)] == [0, 1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "no models in it"),
        ('{"models": []}', "no models in it"),
        ('{"models": [{"id": "x"}]}', "`models[0]` has no `slug`"),
        (
            '{"models": [{"slug": "x", "context_window": "many"}]}',
            "`context_window` of `models[0]` (`x`) is not a whole number above 0",
        ),
    ],
)
def test_a_catalogue_that_is_none_is_refused(place: Place, content: str, reason: str) -> None:
    catalog = place.write("models.json", content)
    with fake_model(place, top=f'model_catalog_json = "{catalog}"'):
        ended = run(place, "exec", "go")

    assert ended.status == 2
    assert f"cannot use the model catalogue `{catalog}`: {reason}" in ended.err


def test_doctor_names_the_server_that_a_chatgpt_login_uses(place: Place) -> None:
    with FakeIssuer() as issuer:
        save_login(place, stored_login(issuer.give()))
    ended = run(place, "doctor")
    [line] = [line for line in ended.out.splitlines() if "`openai` at" in line]
    assert "`openai` at https://chatgpt.com/backend-api/codex: key from" in line
