"""Run one typer command our way: a wrong command line is one line on stderr and status 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from codex_py.errors import UsageError


def run_command(function: Callable[..., Any], arguments: Sequence[str], *, name: str) -> int:
    """Parse `arguments` for `function` and call it; its return value is the exit status (None counts as 0).

    Raises `UsageError` for what typer refuses.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(function)
    try:
        status = app(args=list(arguments), prog_name=f"codex-py {name}", standalone_mode=False)
    except typer.TyperException as error:
        raise UsageError(_one_line(error.format_message()), hint=f"see `codex-py {name} --help`") from error
    return status if isinstance(status, int) else 0


def _one_line(message: str) -> str:
    message = " ".join(message.split()).rstrip(".")
    return message[:1].lower() + message[1:]
