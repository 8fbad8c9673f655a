"""What is asked before there is a session: how to reach a model, and whether a folder is trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.config.load import LoadedConfig
from codex_py.config.project import project_files
from codex_py.paths import short_path
from codex_py.ui.repl.panels.forms import Form, FormAsker, Option, Sheet, TextLine, needs_text

FirstChoice: TypeAlias = Literal["browser", "code", "key", "local", "offline", "quit"]

_MAX_FILES: Final = 4

WELCOME: Final[Sheet[FirstChoice]] = Sheet(
    title="Welcome to codex-py",
    subject=(
        TextLine("A coding agent for your terminal. It needs a model to talk to, and there is no key or login yet."),
        TextLine("How do you want to begin?"),
    ),
    options=(
        Option("b", "Sign in with ChatGPT", "browser", "opens your browser"),
        Option("d", "Sign in with a code", "code", "for machines without a browser"),
        Option("k", "Paste an API key", "key", "kept on this machine, readable by you alone"),
        Option("l", "Use a local model", "local", "Ollama or LM Studio, on this machine"),
        Option("o", "Look around offline", "offline", "built-in rules, no AI, nothing leaves this machine"),
        Option("q", "Quit", "quit"),
    ),
    refusal="quit",
    escape="quit",
)

_FAR_BROWSER: Final[Option[FirstChoice]] = WELCOME.options[0]._replace(
    note="shows the address; its browser comes back to this machine"
)

KEY_FORM: Final = Form(
    "API key",
    (TextLine("From https://platform.openai.com/api-keys. It is not shown while you type."),),
    hidden=True,
    check=needs_text,
    enter="keep it",
)


def welcome_sheet(*, over_ssh: bool) -> Sheet[FirstChoice]:
    """The question how to begin. Over ssh the browser is on another machine, and a code works with it."""
    if not over_ssh:
        return WELCOME
    return WELCOME._replace(options=(_FAR_BROWSER, *WELCOME.options[1:]), default=1)


async def ask_for_trust(
    asker: FormAsker, loaded: LoadedConfig, *, cwd: Path, home: Path, user_home: str
) -> bool | None:
    """Whether the user trusts the folder; None when they want to leave. `home` is CODEX_HOME."""
    return await asker.choose(trust_sheet(loaded, cwd=cwd, home=home, user_home=user_home))


def trust_sheet(loaded: LoadedConfig, *, cwd: Path, home: Path, user_home: str) -> Sheet[bool | None]:
    """The question, with what a yes would allow here; Enter says no at first."""
    root = loaded.project_root or cwd
    return Sheet(
        title="Do you trust this folder?",
        subject=(TextLine(short_path(root, user_home), "strong"), *_what_it_allows(loaded, cwd, home)),
        facts=(TextLine("Say yes only if you know who wrote what is in it. Your answer is kept.", "menu.note"),),
        options=(
            Option("y", "Yes, trust it", True),
            Option("n", "No, only look around", False, "commands write nothing, its settings are ignored"),
            Option("q", "Quit", None),
        ),
        refusal=None,
        escape="quit",
        default=1,
    )


def _what_it_allows(loaded: LoadedConfig, cwd: Path, home: Path) -> tuple[TextLine, ...]:
    root = loaded.project_root
    top = root or cwd
    lines = ["A yes allows here:"]
    if loaded.config.sandbox_mode is None:
        lines.append("• commands write in this folder without asking, inside the sandbox and without network")
    files = [path.relative_to(top) for path in project_files(cwd, root, home) if path.is_relative_to(top)]
    if files:
        shown = ", ".join(map(str, files[:_MAX_FILES])) + (" and more" if len(files) > _MAX_FILES else "")
        lines.append(f"• its own settings count ({shown}): they choose models and make rules stricter, never looser")
    else:
        lines.append("• its own settings (.codex/config.toml) would count; it has none now")
    lines.append("• MCP servers and hooks that it brings are offered; each is asked about before it runs")
    return tuple(TextLine(line) for line in lines)
