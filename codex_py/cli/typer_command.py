"""Runs typer commands, with their shared flags; a wrong command line becomes a `UsageError` in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer.main import get_command

from codex_py.cli.commands import TAKE_VALUE
from codex_py.errors import UsageError
from codex_py.text.nearest import did_you_mean, nearest

# Other programs' names for these commands.
_SYNONYMS: Final = {
    **dict.fromkeys(("install", "create", "new", "add-json"), "add"),
    **dict.fromkeys(("uninstall", "rm", "delete"), "remove"),
    **dict.fromkeys(("info", "view", "get"), "show"),
    "ls": "list",
}
# Flags of settings in front of a command, and the parameters of functions that take them.
_SETTINGS: Final = {"-c": "overrides", "--config": "overrides", "-p": "profile", "--profile": "profile"}
_UNITS: Final = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "m": timedelta(days=30),
    "y": timedelta(days=365),
}
_HELP: Final = {"help_option_names": ["-h", "--help"]}


def run_command(function: Callable[..., Any], arguments: Sequence[str], *, name: str) -> int:
    """Parse `arguments` for `function` and call it; its return value is the exit status (None counts as 0).

    Raises `UsageError` for what typer refuses.
    """
    app = _new_app()
    app.command(context_settings=_HELP)(function)
    return _run(app, _with_known_settings(arguments, function), name=name)


def run_commands(
    functions: Mapping[str, Callable[..., Any]], arguments: Sequence[str], *, name: str, about: str
) -> int:
    """The same for a command with subcommands of its own; without one, its help is printed and the status is 2."""
    arguments = _with_known_settings(command_first(arguments, functions), _nothing)
    app = _new_app()
    # A callback makes it a command with subcommands even if there is only one.
    app.callback(help=about, context_settings=_HELP)(_nothing)
    # Typer builds each command it knows of, 2 ms each; the one that is named needs no other.
    named = {word: function for word, function in functions.items() if word in arguments[:1]}
    for word, function in (named or functions).items():
        app.command(word, short_help=_first_sentence(function), context_settings=_HELP)(function)
    if not arguments:
        _run(app, ["--help"], name=name)
        return 2
    function = functions.get(arguments[0])
    arguments = [*arguments[:1], *_with_known_settings(arguments[1:], function)] if function else arguments
    return _run(app, arguments, name=name)


def _with_known_settings(arguments: Sequence[str], function: Callable[..., Any]) -> Sequence[str]:
    """The arguments without leading settings that the function has no use for: an alias may put them in front."""
    known: list[str] = []
    left = list(arguments)
    while left and (parameter := _SETTINGS.get(left[0].partition("=")[0])):
        size = 1 if "=" in left[0] else 2
        known += left[:size] if parameter in signature(function).parameters else []
        del left[:size]
    return known + left


def command_first(arguments: Sequence[str], names: Mapping[str, Any]) -> Sequence[str]:
    """The command line with the options behind the subcommand, also in `codex-py -c KEY=VALUE mcp list`."""
    at = 0
    while arguments[at : at + 1] and arguments[at].startswith("-"):
        at += 2 if arguments[at] in TAKE_VALUE else 1
    if at == 0 or not any(word in names for word in arguments[at : at + 1]):
        return arguments
    return [arguments[at], *arguments[:at], *arguments[at + 1 :]]


def _first_sentence(function: Callable[..., Any]) -> str:
    """The first sentence of a command's docstring; typer would cut it at the end of the line."""
    text = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."


def _new_app() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _run(app: typer.Typer, arguments: Sequence[str], *, name: str) -> int:
    try:
        status = app(args=list(arguments), prog_name=f"codex-py {name}", standalone_mode=False)
    except typer.TyperException as error:
        raise _mistake(error.format_message(), app, arguments, name=name) from error
    return status if isinstance(status, int) else 0


def _mistake(message: str, app: typer.Typer, arguments: Sequence[str], *, name: str) -> UsageError:
    """An error of typer in our words, with the nearest name as a hint."""
    command = get_command(app)
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    chosen = next((word for word in arguments if word in subcommands), "")
    whole = f"{name} {chosen}".strip()
    help_hint = f"see `codex-py {whole} --help`"
    if found := re.match(r"No such command '(.*?)'", message):
        word = found[1]
        own = {also: subcommand for also, subcommand in _SYNONYMS.items() if subcommand in subcommands} | {
            subcommand: subcommand for subcommand in subcommands
        }
        near = nearest(word, own)
        guess = f"did you mean `{own[near]}`?" if near else help_hint
        return UsageError(f"no command `{word}` in `codex-py {name}`", hint=guess)
    if found := re.match(r"No such option: (\S+)", message):
        options = _options(subcommands.get(chosen, command))
        guess = "use `--url URL`" if found[1] == "--transport" else did_you_mean(found[1], options)
        return UsageError(f"unknown option `{found[1]}`", hint=guess or help_hint)
    if found := re.match(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", message):
        return UsageError(f"unexpected argument `{found[1].split()[0]}` after `codex-py {whole}`", hint=help_hint)
    if found := re.match(r"Missing argument '(.*)'|Missing option '(\S+)'", message):
        return UsageError(f"`codex-py {whole}` needs `{found[1] or found[2]}`", hint=help_hint)
    if found := re.match(r"Option '(\S+?)' does not take a value", message):
        return UsageError(f"`{found[1]}` takes no value", hint=f"write `{found[1]}` alone")
    if found := re.match(r"Option '(\S+?)' requires an argument", message):
        return UsageError(f"`{found[1]}` needs a value", hint=help_hint)
    if found := re.match(r"Invalid value for '(\S+?)'.* valid int", message):
        return UsageError(f"`{found[1]}` needs a whole number, not `{_value_of(found[1], arguments)}`", hint=help_hint)
    if found := re.match(r"Invalid value for '(\S+?)': '(.*)' is not one of (.+)\.", message):
        allowed = ", ".join(f"`{word}`" for word in re.findall("'(.+?)'", found[3]))
        return UsageError(f"`{found[2]}` is not a value of `{found[1]}`", hint=f"allowed are {allowed}")
    return UsageError(_one_line(message), hint=help_hint)


def _value_of(option: str, arguments: Sequence[str]) -> str:
    """The last value that the arguments give an option."""
    value = ""
    for word, next_word in pairwise([*arguments, ""]):
        if word == option:
            value = next_word
        elif word.startswith(f"{option}="):
            value = word.removeprefix(f"{option}=")
    return value


def _options(command: Any) -> list[str]:
    """Every option of a command, by all its names."""
    return [
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    ]


def _nothing() -> None:
    pass


def _one_line(message: str) -> str:
    message = " ".join(message.split()).rstrip(".").replace("'", "`")
    return message[:1].lower() + message[1:]


Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="Set a configuration key; the value is TOML, else text."),
]
Since: TypeAlias = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only since then: 30d, 12h, 2w, today, or 2026-11-01.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")]
StrictConfig: TypeAlias = Annotated[bool, typer.Option("--strict-config", help="Stop at an unknown configuration key.")]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option("-p", "--profile", metavar="NAME", help="Add the settings of $CODEX_HOME/NAME.config.toml."),
]
WorkingDirectory: TypeAlias = Annotated[
    Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in this directory.")
]
IgnoreUserConfig: TypeAlias = Annotated[
    bool, typer.Option("--ignore-user-config", help="Leave $CODEX_HOME/config.toml out.")
]


def read_since(text: str | None) -> datetime | None:
    """The moment that `--since` names, None without one. Raises `UsageError` for what is none."""
    if text is None:
        return None
    now, word = datetime.now().astimezone(), text.strip()
    if word == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if found := re.fullmatch(r"(\d{1,6})([hdwmy])", word, re.ASCII):
            return now - int(found[1]) * _UNITS[found[2]]
        when = datetime.fromisoformat(word)
        return when if when.tzinfo else when.astimezone()
    except (ValueError, OverflowError) as error:
        hint = "write `30d`, `12h`, `2w`, `6m`, `1y`, `today`, or a day such as `2026-11-01`"
        raise UsageError(f"`--since` needs a time, not `{text[:40]}`", hint=hint) from error
