"""Run one typer command our way: a wrong command line is one line on stderr and status 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import typer

from codex_py.errors import UsageError

_HELP: Final = {"help_option_names": ["-h", "--help"]}


def run_command(function: Callable[..., Any], arguments: Sequence[str], *, name: str) -> int:
    """Parse `arguments` for `function` and call it; its return value is the exit status (None counts as 0).

    Raises `UsageError` for what typer refuses.
    """
    app = _new_app()
    app.command(context_settings=_HELP)(function)
    return _run(app, arguments, name=name)


def run_commands(
    functions: Mapping[str, Callable[..., Any]], arguments: Sequence[str], *, name: str, about: str
) -> int:
    """The same for a command with subcommands of its own; without one, its help is printed and the status is 2."""
    app = _new_app()
    # Says that there are subcommands, even where there is but one.
    app.callback(help=about, context_settings=_HELP)(_nothing)
    for word, function in functions.items():
        app.command(word, short_help=_first_sentence(function), context_settings=_HELP)(function)
    if not arguments:
        _run(app, ["--help"], name=name)
        return 2
    return _run(app, arguments, name=name)


def _first_sentence(function: Callable[..., Any]) -> str:
    """What a command does, in whole: typer would cut it where the line ends."""
    text = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."


def _new_app() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _run(app: typer.Typer, arguments: Sequence[str], *, name: str) -> int:
    try:
        status = app(args=list(arguments), prog_name=f"codex-py {name}", standalone_mode=False)
    except typer.TyperException as error:
        raise UsageError(_one_line(error.format_message()), hint=f"see `codex-py {name} --help`") from error
    return status if isinstance(status, int) else 0


def _nothing() -> None:
    pass


def _one_line(message: str) -> str:
    message = " ".join(message.split()).rstrip(".")
    return message[:1].lower() + message[1:]
