"""What a script sees of the Chat Completions API: what is named on stderr and in events, and what a start loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.fake_chat import FakeChat, answer, chunk, done
from tests.support.fake_responses import repeat
from tests.support.home import Place
from tests.support.process import run


def configure(place: Place, model: FakeChat, provider: str = "fake") -> None:
    place.configure(
        f'model = "some-model"\nmodel_provider = "{provider}"\n[model_providers.{provider}]\n'
        f'base_url = "{model.base_url}"\nwire_api = "chat"\nrequest_max_retries = 1\nstream_max_retries = 1\n'
    )


def test_the_answer_is_on_stdout_and_the_counts_are_in_the_event(place: Place) -> None:
    with FakeChat(repeat(answer("hello there", prompt_tokens=1200))) as model:
        configure(place, model)
        plain = run(place, "exec", "go")
        events = run(place, "exec", "--json", "go").events
    assert (plain.status, plain.stdout) == (0, b"hello there\n")
    assert (events[-1]["type"], events[-1]["usage"]["input_tokens"]) == ("turn.completed", 1200)


@pytest.mark.parametrize(
    ("finish", "words", "status"),
    [
        ("length", "reached the limit of 32,768 output tokens", 65),
        ("content_filter", "`content_filter`", 76),
        ("refusal", "the model has refused to answer", 76),
    ],
)
def test_an_answer_that_is_not_whole_is_named(place: Place, finish: str, words: str, status: int) -> None:
    half = [chunk({"content": "half"}), chunk(finish=finish), *done()]
    with FakeChat(repeat(half)) as model:
        configure(place, model)
        plain = run(place, "exec", "go")
    with FakeChat(repeat(half)) as model:
        configure(place, model)
        events = run(place, "exec", "--json", "go").events
    assert plain.status == status
    assert words in plain.stderr.decode()
    assert (events[-1]["type"], words in events[-1]["error"]["message"]) == ("turn.failed", True)


def test_a_built_in_server_without_its_key_or_a_model_says_so(place: Place) -> None:
    place.configure('model_provider = "deepseek"\n')
    keyless = run(place, "exec", "-m", "deepseek-chat", "go")
    assert "`DEEPSEEK_API_KEY`" in keyless.stderr.decode()
    modelless = run(place.with_env(DEEPSEEK_API_KEY="sk-test-123456"), "exec", "go")
    assert (modelless.status, "no model is chosen" in modelless.stderr.decode()) == (2, True)


def test_nothing_of_a_wire_is_loaded_for_another() -> None:
    look = (
        "import sys\nimport codex_py.core.build\nfrom codex_py.model.providers import Provider\n"
        "from codex_py.model.wires import open_wire\nopen_wire(Provider('x', 'x', 'http://x/v1', wire_api={!r}))\n"
        "print([name for name in sys.modules if name.startswith('codex_py.model') and ('chat' in name "
        "or 'messages' in name or 'history' in name or 'wires.responses' in name)])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", look.format("responses")], capture_output=True, text=True, check=True
    ).stdout
    assert shown == "['codex_py.model.wires.responses']\n"
    shown = subprocess.run(
        [sys.executable, "-c", look.format("chat")], capture_output=True, text=True, check=True
    ).stdout
    assert "chat" in shown
    assert "messages" not in shown
    assert "responses" not in shown
