"""The flags of a session, a parser that reports mistakes in one line, and the configuration that the flags ask for."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, cast

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.errors import UsageError, UserError
from codex_py.paths import is_directory, is_file, is_there, real_path
from codex_py.protocol.usage import BudgetLimits
from codex_py.text.files import os_reason
from codex_py.text.nearest import did_you_mean

SANDBOX_MODES: Final = ("read-only", "workspace-write", "danger-full-access")


# Flags of other agents, and what they are called here.
_OF_OTHER_AGENTS: Final = {
    "--print": '`codex-py exec "PROMPT"`',
    "--prompt": '`codex-py exec "PROMPT"`',
    "--continue": "`codex-py resume --last`",
    "--resume": "`codex-py resume`",
    "-r": "`codex-py resume`",
    "--dangerously-skip-permissions": "`--dangerously-bypass-approvals-and-sandbox`",
    "--output-format": "`--json`",
    "--search": '`-c web_search="live"`',
    "--ask-for-approval": "`-s` to say what commands may change: `exec` never asks",
    "-a": "`-s` to say what commands may change: `exec` never asks",
    "--permission-mode": "`-s` to say what commands may change",
    "--system-prompt": "`-c developer_instructions=TEXT`",
    "--effort": "`-c model_reasoning_effort=high`",
    "--reasoning-effort": "`-c model_reasoning_effort=high`",
    "--provider": "`-c model_provider=NAME`",
    "--api-key": "`codex-py login --with-api-key`",
    "--version": "`codex-py --version`",
}
# The dashes that word processors make of two hyphens.
_LONG_DASH: Final = "[\u2013\u2014\u2212]{1,2}([a-z][a-z-]+)"


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Flags as `-m, --model MODEL`: shorter, and the same with every Python version."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
        return f"{', '.join(action.option_strings)} {value}"


def _columns() -> int:
    """The width of the terminal. argparse would ask for it once for each flag, and load `shutil` for that."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size().columns) or 80
    except (ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` instead of printing a usage text and ending the process."""

    def __init__(self, prog: str, *, description: str, epilog: str = "") -> None:
        form = partial(_HelpFormatter, width=_columns() - 2)
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False, formatter_class=form)
        self._arguments: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        """Every flag that the help lists."""
        return [name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings]

    def long_options(self) -> dict[str, Literal["flag", "value", "list"]]:
        """Every long option that the help lists, without its dashes; a `list` may be repeated."""
        return {
            name.removeprefix("--"): "flag" if action.nargs == 0 else "list" if action.default == [] else "value"
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
            if name.startswith("--")
        }

    def hide(self, *names: str) -> None:
        """Leave these flags out of the help."""
        for action in self._actions:
            if action.dest in names:
                action.help = argparse.SUPPRESS

    def written(self, parsed: argparse.Namespace) -> list[str]:
        """The flags of this parser that `parsed` has values for, as arguments in one word each."""
        words: list[str] = []
        for action in self._actions:
            name = next((name for name in action.option_strings if name.startswith("--")), None)
            value: object = getattr(parsed, action.dest, action.default)
            if name is None or value == action.default:
                continue
            values = cast("list[object]", value) if isinstance(value, list) else [value]
            words += [name] if action.nargs == 0 else [f"{name}={part}" for part in values]
        return words

    def read(self, arguments: Sequence[str], *, words_first: bool = False) -> argparse.Namespace:
        """The values of a command line, flags and words in any order; raise `UsageError` for what is wrong in it.

        With `words_first` the flags end at the first word.
        """
        strange = (word for word in arguments if not word.isascii())
        if long_dash := next((word for word in strange if re.fullmatch(_LONG_DASH, word)), None):
            plain = re.sub(_LONG_DASH, r"--\1", long_dash)
            raise UsageError(f"unknown option `{long_dash}`: its dash is not a hyphen", hint=f"write `{plain}`")
        self._arguments = tuple(arguments)
        parse = self.parse_known_args if words_first else self.parse_known_intermixed_args
        parsed, unknown = parse(list(arguments))
        if unknown:
            raise self._unknown_flag(unknown[0].partition("=")[0])
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raise a mistake that argparse has found as `UsageError`, in our words."""
        match = re.match(r"argument (?P<flags>\S+?): (?P<reason>.*)", message)
        names, reason = (match["flags"].split("/"), match["reason"]) if match else ([""], message)
        written = {argument.partition("=")[0] for argument in self._arguments}
        flag = next((name for name in names if name in written), names[0])
        if reason.startswith("expected one argument"):
            raise UsageError(f"`{flag}` needs a value", hint=f"see `{self.prog} --help`")
        if reason.startswith("ignored explicit argument"):
            raise UsageError(f"`{flag}` takes no value", hint=f"write `{flag}` alone")
        if reason.startswith("needs "):
            raise UsageError(f"`{flag}` {reason}", hint=f"see `{self.prog} --help`")
        if reason.startswith("invalid int value: "):
            number = reason.partition(": ")[2][1:-1]
            raise UsageError(f"`{flag}` needs a whole number, not `{number}`", hint=f"see `{self.prog} --help`")
        raise UsageError(message, hint=f"see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        words = [str(word) for word in action.choices]
        allowed = ", ".join(f"`{word}`" for word in words)
        guess = did_you_mean(str(value), words)
        hint = f"{guess} allowed are {allowed}" if guess else f"allowed are {allowed}"
        raise UsageError(f"`{value}` is not a value of `{action.option_strings[-1]}`", hint=hint)

    def _unknown_flag(self, flag: str) -> UsageError:
        if not flag.startswith("-"):
            return UsageError(f"unexpected argument `{flag}` after `{self.prog}`", hint=f"see `{self.prog} --help`")
        meant = _OF_OTHER_AGENTS.get(flag)
        guess = f"use {meant}" if meant else did_you_mean(flag, self.flags()) or f"see `{self.prog} --help`"
        return UsageError(f"unknown option `{flag}`", hint=guess)


def add_config_flags(parser: Parser) -> None:
    """Add the flags that change settings."""
    group = parser.add_argument_group("settings")
    group.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a configuration key; the value is TOML, else text",
    )
    group.add_argument(
        "-p", "--profile", metavar="NAME", help="add the settings of $CODEX_HOME/NAME.config.toml to the user's"
    )
    group.add_argument("--strict-config", action="store_true", help="stop at an unknown configuration key")
    group.add_argument("--ignore-user-config", action="store_true", help="leave $CODEX_HOME/config.toml out")
    group.add_argument(
        "--enable", action="append", default=[], metavar="FEATURE", help="same as -c features.FEATURE=true"
    )
    group.add_argument(
        "--disable", action="append", default=[], metavar="FEATURE", help="same as -c features.FEATURE=false"
    )


def add_model_flags(parser: Parser) -> None:
    """Who answers."""
    group = parser.add_argument_group("model")
    group.add_argument("-m", "--model", metavar="MODEL", help="the model to ask, or PROVIDER/MODEL")
    group.add_argument("--oss", action="store_true", help="use a model served on this machine (Ollama, LM Studio)")
    group.add_argument(
        "--local-provider", choices=("ollama", "lmstudio"), help="which local server --oss talks to (default: ollama)"
    )
    group.add_argument(
        "--offline", action="store_true", help="use the built-in rules instead of a model: no key, no network, no AI"
    )


def add_budget_flags(parser: Parser) -> None:
    """Add the flags that limit what this run may spend."""
    group = parser.add_argument_group("budget of this run, agents included")
    spend = "end the turn before it costs more than this many US dollars"
    group.add_argument("--max-usd", metavar="USD", type=amount, help=spend)
    group.add_argument("--max-tokens", metavar="N", type=count, help="or takes more tokens, of input and output")
    group.add_argument("--max-requests", metavar="N", type=count, help="or makes more requests, retries included")
    group.add_argument("--max-seconds", metavar="N", type=amount, help="or takes longer")


def read_limits(options: argparse.Namespace) -> BudgetLimits:
    """The values of `add_budget_flags`."""
    return BudgetLimits(
        usd=options.max_usd,
        tokens=options.max_tokens,
        requests=options.max_requests,
        seconds=options.max_seconds,
    )


def amount(text: str) -> float:
    """A number above 0, for `type` of a flag."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a number, not `{text}`") from None
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"needs a number above 0, not `{text}`")
    return value


def count(text: str) -> int:
    """A whole number above 0, for `type` of a flag."""
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise argparse.ArgumentTypeError(f"needs a whole number, not `{text}`")
    if int(text) <= 0:
        raise argparse.ArgumentTypeError(f"needs a whole number above 0, not `{text}`")
    return int(text)


def add_permission_flags(parser: Parser) -> None:
    """Where the work is done and what it may change."""
    group = parser.add_argument_group("place and permissions")
    group.add_argument("-C", "--cd", metavar="DIR", help="work in this directory")
    group.add_argument(
        "-s",
        "--sandbox",
        choices=SANDBOX_MODES,
        help="what commands may change (default: read-only; workspace-write in a trusted project); "
        "they can commit with `-c sandbox_workspace_write.git=true`",
    )
    group.add_argument(
        "--add-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="also writable with workspace-write; may be given again",
    )
    group.add_argument(
        "--allow-skills",
        action="store_true",
        help="with workspace-write: also let commands write this project's .agents/skills",
    )
    group.add_argument("--skip-git-repo-check", action="store_true", help="work outside a git repository too")
    group.add_argument("--trust", action="store_true", help="trust this project from now on, and remember it")
    group.add_argument(
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
        dest="bypass",
        action="store_true",
        help="no sandbox and no questions; only where the machine itself is the sandbox",
    )
    group.add_argument("--ignore-rules", action="store_true", help="leave the .rules files for commands out")
    group.add_argument(
        "--dangerously-bypass-hook-trust",
        dest="trusts_hooks",
        action="store_true",
        help="run project hooks without asking; only for repositories you have reviewed",
    )
    group.add_argument(
        "--install-dependencies",
        action="store_true",
        help="add the MCP servers that named skills need to $CODEX_HOME/config.toml, without a question",
    )
    group.add_argument("--full-auto", action="store_true", help=argparse.SUPPRESS)


def add_session_flags(parser: Parser) -> None:
    """The flags that choose a stored session, and whether this one is stored."""
    session = parser.add_argument_group("session")
    session.add_argument("--ephemeral", action="store_true", help="keep no session file")
    session.add_argument("--last", action="store_true", help="resume, fork: the newest session of this directory")
    session.add_argument("--all", action="store_true", help="with --last: of any directory")
    session.add_argument("--turn", type=int, metavar="N", help="fork: leave the session at the end of its turn N")


def split_at_dashes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before a `--`, among which are the flags, and those after it."""
    words = list(arguments)
    index = words.index("--") if "--" in words else len(words)
    return words[:index], words[index + 1 :]


def writable_directories(arguments: argparse.Namespace, project: Path) -> tuple[Path, ...]:
    """The directories of `--add-dir`, and with `--allow-skills` the skills of `project`, made if they are missing."""
    directories = find_directories(arguments.add_dir)
    if not arguments.allow_skills:
        return directories
    skills = project / ".agents" / "skills"
    if real_path(skills) != f"{real_path(project).rstrip('/')}/.agents/skills":
        raise UserError(f"cannot allow skills: `{skills}` leads elsewhere through a link")
    try:
        skills.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create `{skills}`: {os_reason(error)}") from error
    return (*directories, skills)


def find_directories(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The directories of `--add-dir` as absolute paths."""
    directories = tuple(Path(path).absolute() for path in arguments)
    for path, directory in zip(arguments, directories, strict=True):
        if not is_directory(directory):
            reason = "it is not a directory" if is_file(directory) else "there is no such directory"
            raise UsageError(f"cannot add `{path}`: {reason}", hint="name a directory with `--add-dir`")
    return directories


_OFFLINE: Final = "offline"
_OTHER_DIRECTORY: Final = "name another directory with `-C`"


def working_directory(chosen: str | Path | None) -> Path:
    """The real path of the directory to work in."""
    shown = f"cannot work in `{chosen or '.'}`"
    try:
        cwd = Path(chosen or ".").resolve(strict=True)
    except FileNotFoundError as error:
        raise UsageError(f"{shown}: there is no such directory", hint=_OTHER_DIRECTORY) from error
    except (OSError, RuntimeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "too many links"
        raise UsageError(f"{shown}: {reason}", hint=_OTHER_DIRECTORY) from error
    if not is_directory(cwd):
        raise UsageError(f"{shown}: it is not a directory", hint=_OTHER_DIRECTORY)
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise UsageError(f"{shown}: you are not allowed to read it", hint=_OTHER_DIRECTORY)
    return cwd


def load_settings(options: argparse.Namespace, home: Path, cwd: Path) -> LoadedConfig:
    """The configuration in force. `--oss` alone means the local server that the configuration names."""
    if options.offline and (options.oss or options.local_provider):
        raise UsageError(
            "`--offline` and `--oss` exclude each other", hint="`--offline` uses no model, `--oss` a local one"
        )
    loaded = load_config(config_request(options, home, cwd))
    preferred = loaded.config.oss_provider
    if options.oss and not options.local_provider and preferred:
        options.local_provider = preferred
        return load_config(config_request(options, home, cwd))
    return loaded


def config_request(options: argparse.Namespace, home: Path, cwd: Path) -> ConfigRequest:
    """The configuration request for the flags of a session."""
    sandbox = (
        "danger-full-access"
        if options.bypass
        else options.sandbox or ("workspace-write" if options.full_auto else None)
    )
    provider = options.local_provider or ("ollama" if options.oss else None)
    chosen = {
        "model": options.model,
        "sandbox_mode": sandbox,
        # Only the terminal session has a flag for it; `exec` never asks.
        "approval_policy": "never" if options.bypass else getattr(options, "approval", None),
        "model_provider": _OFFLINE if options.offline else provider,
    }
    return request_for(options, home, cwd, chosen=chosen)


def request_for(options: argparse.Namespace, home: Path, cwd: Path, *, chosen: Mapping[str, Any]) -> ConfigRequest:
    """The configuration request for the flags of `add_config_flags`; `chosen` are keys that other flags set."""
    flags: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for flag, names, value in (("--enable", options.enable, True), ("--disable", options.disable, False)):
        for name in names:
            flags[f"features.{name}"], texts[f"features.{name}"] = value, f"{flag} {name}"
    return ConfigRequest(
        home=home,
        cwd=cwd,
        env=os.environ,
        overrides=tuple(options.config),
        flags=flags | {key: value for key, value in chosen.items() if value is not None},
        flag_texts=texts,
        profile=options.profile,
        strict=options.strict_config,
        ignore_user=options.ignore_user_config,
        names_provider=True,
    )


def find_images(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The pictures as absolute paths. One flag may name several, split at commas, unless a file has that very name."""
    names: list[str] = []
    for value in arguments:
        names += [value] if is_there(Path(value)) else value.split(",")
    return tuple(Path(name).absolute() for name in names if name)
