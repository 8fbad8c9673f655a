"""What the offline model says about itself and about connecting a real one."""

from __future__ import annotations

from typing import Final

CONNECT: Final = (
    "To connect one: sign in with `codex-py login`, or set `OPENAI_API_KEY`; or describe a provider of your own under "
    '`[model_providers.x]` in `$CODEX_HOME/config.toml` and choose it with `model_provider = "x"`; or '
    "run a local model with "
    "`--oss` and Ollama. Then leave out `--offline`."
)
_ABILITIES: Final = """\
- `what is this repository?`: what it is for, languages, tests, entry points, how to run it
- ``find `retry_delay` ``: every place, as `file:line`
- `run the tests`: which fail, with file and line
- ``run `git status` ``: runs the command, shows exit code and output
- ``replace `old` with `new` in app.py``: a patch, checked afterwards (needs `-s workspace-write`)
- `use $some-skill`: runs the shell blocks of a skill in their order
- anything else: a plan, and which files it touches"""


def about() -> str:
    """What this is, what it can do, and how to get something better."""
    return (
        "This is codex-py, a terminal coding agent, and I am its built-in offline model: a set of fixed "
        "rules behind a server inside "
        "the program, not an AI. No key, no network, nothing leaves this machine. The tools I use are the "
        "real ones, in the real "
        f"sandbox. I understand:\n\n{_ABILITIES}\n\nFor writing and changing code by judgement you need a "
        f"real model. {CONNECT}"
    )


def greet() -> str:
    """A short welcome with examples."""
    return f"Hello. I am the offline model of codex-py, and these I can do:\n\n{_ABILITIES}"
