"""The first start: the question of trust, and the ways to a model."""

from __future__ import annotations

import pytest

from tests.support.fake_responses import FakeResponses, call, say
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
        terminal.wait_for("── API key")
        terminal.paste("sk-test-1234567890abcdef")
        terminal.wait_for("****")
        terminal.press("enter")
        terminal.wait_for_prompt()
        assert "sk-test" not in terminal.whole
    assert "sk-test-1234567890abcdef" in (place.codex_home / "auth.json").read_text()
