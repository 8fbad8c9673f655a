"""Small pieces of an answer, and what the rules say about themselves."""

from __future__ import annotations

from typing import Final

NOTICE: Final = "(offline model: fixed rules, no AI)"
CONNECT: Final = (
    "To connect a model: run `codex-py login`, or set `OPENAI_API_KEY`, or describe a provider under "
    "`[model_providers.x]` in `$CODEX_HOME/config.toml`, or run a local model with `--oss` and Ollama. Then leave out "
    "`--offline`."
)
ABILITIES: Final = """\
- `what is this repository?`: its purpose, languages, tests and how to run it
- ``find `retry_delay` ``: every place, as `file:line`
- `run the tests`: which tests fail, with file and line
- ``run `git status` ``: the exit code and the output of a command
- ``replace `old` with `new` in app.py``: a patch (needs `-s workspace-write`)
- `use $some-skill`: the shell blocks of a skill, in their order"""
GREETING: Final = f"Hello. I am the offline model of codex-py. I can do this:\n\n{ABILITIES}"
ABOUT: Final = (
    "This is codex-py, a terminal coding agent. I am its built-in offline model: fixed rules, not an AI. I need no key "
    "and no network, and nothing leaves this machine. My commands run in the real sandbox. I understand:\n\n"
    f"{ABILITIES}\n\nEverything else needs a real model. {CONNECT}"
)


def needs_model(prompt: str) -> str:
    """The answer to a prompt that no rule covers."""
    subject = f"“{clip(prompt, 100)}”" if prompt else "An empty message"
    return (
        f"{subject} needs judgement, and I am fixed rules without any. Nothing was run and nothing was changed.\n\n"
        f"I can do this:\n\n{ABILITIES}\n\nEverything else needs a real model. {CONNECT}"
    )


def clip(text: str, limit: int = 200) -> str:
    """The text on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def code(text: str) -> str:
    """The text in backticks, which it may contain itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def excerpt(text: str, *, head: int = 40, tail: int = 20) -> str:
    """The first and last lines of an output, each cut, in a fence that they cannot close; empty for no output."""
    lines = [line.rstrip("\r")[:400] for line in text.strip("\n").split("\n")]
    if lines == [""]:
        return ""
    if len(lines) > head + tail + 1:
        lines = [*lines[:head], f"… {len(lines) - head - tail} lines left out …", *lines[-tail:]]
    body, fence = "\n".join(lines), "```"
    while fence in body:
        fence += "`"
    return f"{fence}\n{body}\n{fence}"
