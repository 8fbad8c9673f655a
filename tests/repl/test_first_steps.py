"""The first start: the question of trust, and the ways to a model."""

from __future__ import annotations

import json

import pytest

from tests.support.fake_chat import FakeChat
from tests.support.fake_chat import answer as chat_answer
from tests.support.fake_messages import FakeMessages, says
from tests.support.fake_messages import answer as messages_answer
from tests.support.fake_responses import FakeResponses, call, say, status
from tests.support.home import Place
from tests.support.terminal import Terminal


def test_an_unknown_directory_is_asked_about_once(place: Place) -> None:
    place.write(".codex/config.toml", 'model_reasoning_effort = "low"\n')
    with Terminal(place, "--offline") as terminal:
        terminal.wait_for("Do you trust this directory?").wait_for(".codex/config.toml").wait_for("❯ n  No")
        terminal.press("enter")
        terminal.wait_for_prompt().wait_for("read-only")
    assert 'trust_level = "untrusted"' in (place.codex_home / "config.toml").read_text()
    with Terminal(place, "--offline") as terminal:
        terminal.wait_for_prompt()
        assert "Do you trust" not in terminal.whole


@pytest.mark.parametrize(
    "flags", [(), ("-s", "workspace-write"), ("-c", "sandbox_mode=danger-full-access"), ("--yolo",)]
)
def test_only_looking_around_wins_over_settings_and_flags(place: Place, flags: tuple[str, ...]) -> None:
    with FakeResponses([call("c1", "exec_command", {"cmd": "touch made"})], [say("tried")]) as model:
        place.use_model(model.base_url, 'sandbox_mode = "workspace-write"\n')
        with Terminal(place, *flags) as terminal:
            terminal.wait_for("Do you trust this directory?")
            terminal.type("n")
            terminal.wait_for_prompt().wait_for("read-only")
            terminal.type("make it")
            terminal.press("enter")
            terminal.wait_for("tried")
    assert "Read-only file system" in model.requests[1].output_of("c1")
    assert not (place.repo / "made").exists()


def test_leaving_at_the_question_of_trust_decides_nothing(place: Place) -> None:
    with Terminal(place, "--offline") as terminal:
        terminal.wait_for("Do you trust this directory?")
        terminal.press("escape")
        assert terminal.wait_for_end() == 0
    assert not (place.codex_home / "config.toml").exists()


def test_without_a_key_the_first_run_offers_a_choice(place: Place) -> None:
    with Terminal(place) as terminal:
        terminal.wait_for("Do you trust this directory?")
        terminal.type("y")
        terminal.wait_for("Welcome to codex-py").wait_for("Sign in with ChatGPT").wait_for("o  Look around offline")
        terminal.type("o")
        terminal.wait_for_prompt().wait_for("offline")


def test_an_api_key_is_pasted_unseen_and_kept(place: Place) -> None:
    place.configure(f'[projects."{place.repo}"]\ntrust_level = "trusted"\n')
    with Terminal(place) as terminal:
        terminal.wait_for("Welcome to codex-py")
        terminal.type("k")
        terminal.wait_for("── Whose key?")
        terminal.press("enter")
        terminal.wait_for("── API key of OpenAI")
        terminal.paste("sk-test-1234567890abcdef")
        terminal.wait_for("****")
        terminal.press("enter")
        terminal.wait_for_prompt()
        assert "sk-test" not in terminal.whole
    assert "sk-test-1234567890abcdef" in (place.codex_home / "auth.json").read_text()


KEY = "sk-ant-1234567890"
MODELS = {"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "nomic-embed-text"}, {"id": "gemma3"}]}


def trusted(place: Place, more: str = "") -> None:
    place.configure(f'{more}\n[projects."{place.repo}"]\ntrust_level = "trusted"\n')


def enter_key(terminal: Terminal) -> None:
    """Answer the first question with a key of Anthropic."""
    terminal.wait_for("Welcome to codex-py")
    terminal.type("k")
    terminal.wait_for("── Whose key?")
    terminal.type("anthropic_api")
    terminal.wait_for(lambda now: "OpenRouter" not in now.text)
    terminal.press("enter")
    terminal.wait_for("── API key of Anthropic")
    terminal.paste(KEY)
    terminal.wait_for("****")
    terminal.press("enter")
    terminal.wait_for_prompt()


def test_a_key_of_another_provider_is_entered_by_its_name_and_used(place: Place) -> None:
    with FakeMessages(messages_answer(says("hello from the other one")), key=KEY) as model:
        trusted(place, f'[model_providers.anthropic]\nbase_url = "{model.base_url}"')
        with Terminal(place) as terminal:
            enter_key(terminal)
            terminal.type("hi\r")
            terminal.wait_for("● hello from the other one")
            assert "sk-ant" not in terminal.whole
        with Terminal(place) as terminal:
            terminal.wait_for_prompt()
            assert "Welcome" not in terminal.whole
    stored = place.codex_home / "provider-keys.json"
    assert json.loads(stored.read_text()) == {"ANTHROPIC_API_KEY": KEY}
    assert stored.stat().st_mode & 0o777 == 0o600
    assert 'model_provider = "anthropic"' in (place.codex_home / "config.toml").read_text()


def test_no_module_of_the_project_is_loaded_while_a_key_is_stored(place: Place) -> None:
    trusted(place)
    canary = place.repo.parent / "canary"
    for name in ("codex_py/__init__.py", "asyncio.py", "argparse.py", "runpy.py", "sitecustomize.py"):
        place.write(name, f"open({str(canary)!r}, 'a').write({name!r})\n")
    with Terminal(place) as terminal:
        enter_key(terminal)
    assert not canary.exists()
    stored = place.codex_home / "provider-keys.json"
    assert json.loads(stored.read_text()) == {"ANTHROPIC_API_KEY": KEY}


def test_a_key_in_the_environment_is_offered_first(place: Place) -> None:
    trusted(place)
    with Terminal(place.with_env(ANTHROPIC_API_KEY="sk-ant-from-env")) as terminal:
        terminal.wait_for("❯ 1  Use ANTHROPIC_API_KEY")
        terminal.press("enter")
        terminal.wait_for("claude-").wait_for_prompt()
        assert "sk-ant" not in terminal.whole
    assert not (place.codex_home / "provider-keys.json").exists()


def test_a_local_server_that_answers_is_offered_with_its_models(place: Place) -> None:
    with FakeChat(chat_answer("from this machine"), get={"/v1/models": status(200, MODELS)}) as model:
        trusted(place, f'[model_providers.llamacpp]\nbase_url = "{model.base_url}"')
        with Terminal(place) as terminal:
            terminal.wait_for("❯ 1  Use llama.cpp").wait_for("2 models at")
            terminal.press("enter")
            terminal.wait_for("── Which model of llama.cpp?")
            terminal.type("gem")
            terminal.wait_for(lambda now: "qwen3" not in now.text)
            terminal.press("enter")
            terminal.wait_for_prompt()
            terminal.type("hi\r")
            terminal.wait_for("● from this machine")
    settings = (place.codex_home / "config.toml").read_text()
    assert 'model_provider = "llamacpp"' in settings and 'model = "gemma3"' in settings


def test_without_a_local_server_it_says_how_to_start_one(place: Place) -> None:
    trusted(place)
    with Terminal(place) as terminal:
        terminal.wait_for("Welcome to codex-py")
        terminal.type("l")
        terminal.wait_for("── No local server answers").wait_for("llama-server")
        terminal.type("b")
        terminal.wait_for("Welcome to codex-py")
        terminal.type("q")
        assert terminal.wait_for_end() == 0


def test_only_allowed_logins_are_offered(place: Place) -> None:
    trusted(place, 'forced_login_method = "api"')
    with Terminal(place) as terminal:
        terminal.wait_for("Paste an API key")
        assert "Sign in" not in terminal.text


@pytest.mark.parametrize("key", ["", "sk ant", "schlüssel"])
def test_what_is_no_key_is_refused_in_its_form(place: Place, key: str) -> None:
    trusted(place)
    with Terminal(place) as terminal:
        terminal.wait_for("Welcome to codex-py")
        terminal.type("k")
        terminal.wait_for("── Whose key?")
        terminal.press("enter")
        terminal.wait_for("── API key of OpenAI")
        terminal.type(f"{key}\r")
        terminal.wait_for("one line of visible ASCII" if key else "type something")
    assert not (place.codex_home / "auth.json").exists()


def test_the_first_run_offers_the_choice_in_plain_lines_too(place: Place) -> None:
    with Terminal(place, TERM="dumb", width=100) as terminal:
        terminal.wait_for("Do you trust this directory?").type("y\r")
        terminal.wait_for("Welcome to codex-py").wait_for("Sign in with ChatGPT").wait_for("Look around offline")
        terminal.type("nonsense\r")
        terminal.wait_for("there is no such answer").type("o\r")
        terminal.wait_for(lambda shown: shown.text.endswith("\n>")).wait_for("offline")
        assert b"\x1b" not in terminal.raw
