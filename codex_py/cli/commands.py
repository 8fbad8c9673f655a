"""The table of subcommands, and what has to be known to find the one of a command line. Cheap to import."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

# The function that runs each subcommand, as `module:function`, called with its arguments for an exit status. Its module
# is imported when it is asked for: start-up pays for one, not for all.
COMMANDS: Final = {
    "exec": ("codex_py.cli.exec:run", "do one task and exit: for scripts, CI and one-liners"),
    "batch": (
        "codex_py.cli.batch:run",
        "do many tasks, each in a clean copy of its repository, and collect the results",
    ),
    "login": ("codex_py.cli.login:run", "sign in with ChatGPT, or keep an API key"),
    "logout": ("codex_py.cli.login:run_logout", "forget the login of this machine"),
    "models": ("codex_py.cli.models:run", "list the models that a provider offers"),
    "cost": ("codex_py.cli.cost:run", "add up what the stored sessions have cost"),
    "sessions": ("codex_py.cli.sessions:run", "list, search, show, rename, rewind, export, archive, delete sessions"),
    "diff": ("codex_py.cli.checkpoints:run_diff", "show what a turn has changed in the files"),
    "checkpoints": ("codex_py.cli.checkpoints:run", "list, prune and verify the states that a rewind goes back to"),
    "mcp": ("codex_py.cli.mcp:run", "list, add, remove and try MCP servers, and sign in at them"),
    "plugin": ("codex_py.cli.plugin:run", "list, add and remove plugins: bundles of skills, MCP servers and hooks"),
    "hooks": ("codex_py.cli.hooks:run", "list, trust and try the commands that run at points of a session"),
    "skills": ("codex_py.cli.skills:run", "list, show, check and switch skills"),
    "config": ("codex_py.cli.config:run", "show every setting in force and where it comes from, or change one"),
    "app-server": ("codex_py.cli.app_server:run", "serve an SDK or an editor that speaks the app-server protocol"),
    "acp": ("codex_py.cli.acp:run", "serve an editor that speaks the Agent Client Protocol"),
    "apply-patch": ("codex_py.cli.apply_patch:run", "apply a patch in the format models write"),
    "sandbox": ("codex_py.cli.sandbox:run", "run a command in the sandbox of the model's commands"),
    "completions": ("codex_py.cli.completions:run", "print what a shell needs to complete commands and skill names"),
    "doctor": ("codex_py.cli.doctor:run", "check this machine, settings, login and sandbox"),
    "update": ("codex_py.cli.update:run", "ask the package index for a newer version"),
}
# Functions that few command lines need, found in the same way.
PARTS: Final = {
    "terminal": "codex_py.cli.repl:run",
    "terminal_parser": "codex_py.cli.repl:terminal_parser",
    "note_expired_sessions": "codex_py.cli.console:note_expired_sessions",
    "run_collected": "codex_py.cli.exec_runs:run_collected",
    "review_prompt": "codex_py.cli.review:review_prompt",
    "print_version": "codex_py.cli.update:print_version",
    "report_early_crash": "codex_py.log:report_early_crash",
}
# Commands of `sessions` that stand on their own too.
OF_SESSIONS: Final = ("archive", "unarchive", "delete", "rename")
# Words that the terminal session handles itself; any other word that is not a command is a prompt.
OF_TERMINAL: Final = ("resume", "fork")
ALIASES: Final = {"e": "exec", "plugins": "plugin", "apply_patch": "apply-patch", "completion": "completions"}
# Flags before the subcommand are the subcommand's own; these take a value.
TAKE_VALUE: Final = (
    *("-c", "--config", "--enable", "--disable", "-p", "--profile", "-C", "--cd", "-m", "--model", "-i", "--image"),
    *("--base", "--commit", "--title", "--turn", "-a", "--ask-for-approval"),
    *("--max-usd", "--max-tokens", "--max-requests", "--max-seconds"),
    *("--session-id", "--artifacts", "--session-dir", "--cwd-map", "--thread-source", "--cyber-access-program"),
    *("--local-provider", "-s", "--sandbox", "--add-dir", "--output-schema", "--color", "-o", "--output-last-message"),
)


def command_names() -> tuple[str, ...]:
    """Every word that begins a command line."""
    return (*COMMANDS, *OF_SESSIONS, *OF_TERMINAL, "review")


def load(name: str) -> Any:
    """The function of a subcommand or of a part; its module is imported now."""
    module, _, function = (COMMANDS[name][0] if name in COMMANDS else PARTS[name]).partition(":")
    return getattr(import_module(module), function)
