"""`codex-py exec`: its command line, and everything that is settled before the first request."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py import __version__
from codex_py.cli.options import Parser, add_config_flags, add_model_flags, add_place_flags
from codex_py.config.edit import trust_project
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.core.build import OFFLINE_PROVIDER, ResumeTarget, SessionRequest, open_session
from codex_py.core.session import Session
from codex_py.errors import UsageError, UserError
from codex_py.exec.run import ExecRequest, run_exec
from codex_py.exec.stdin import read_prompt
from codex_py.paths import codex_home
from codex_py.protocol.encoding import as_object, decode_json

_ORIGINATOR: Final = "codex_exec"
_DESCRIPTION: Final = """Do one task without asking anything, and exit.

The answer goes to stdout, the work as it goes to stderr. Commands run in a sandbox and change nothing unless -s
says otherwise, or the project is one you trust.
"""
_EPILOG: Final = """examples:
  codex-py exec "why does the login test fail?"
  codex-py exec -s workspace-write "fix it"
  git diff | codex-py exec "write a commit message for this" -o message.txt
  codex-py exec resume --last "now the documentation"
"""


class Errand(NamedTuple):
    """What is asked: a prompt (None: on stdin), in a new session or in an earlier one."""

    prompt: str | None
    resume: ResumeTarget | None


def run(arguments: Sequence[str]) -> int:
    """Settle everything that can be wrong before anything runs, then run; give back the exit status."""
    parser = _parser()
    flags, behind = _split_at_dashes(arguments)
    if "-h" in flags or "--help" in flags:
        print(parser.format_help().rstrip())
        return 0
    given = parser.parse_intermixed_args(flags)
    literal = bool(behind) and not given.words
    given.words += behind
    errand = read_errand(given, literal=literal)
    cwd = working_directory(given.cd)
    home = codex_home(os.environ)
    if given.trust:
        trust_project(home, cwd)
    loaded = load_settings(given, home, cwd)
    check_place(given, loaded, cwd)
    request = ExecRequest(
        prompt=read_prompt(errand.prompt),
        version=__version__,
        images=find_images(given.image),
        output_schema=read_schema(given.output_schema),
        last_message_file=find_message_file(given.output_last_message),
        json_lines=given.json,
        color=given.color,
        hide_reasoning=loaded.config.hide_agent_reasoning,
    )
    session = SessionRequest(
        loaded=loaded,
        home=home,
        cwd=cwd,
        env=os.environ,
        originator=os.environ.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or _ORIGINATOR,
        approval="never",
        ephemeral=given.ephemeral,
        resume=errand.resume,
        ignore_rules=given.ignore_rules,
        extra_roots=find_folders(given.add_dir),
    )
    return asyncio.run(_run(session, request))


async def _run(session: SessionRequest, request: ExecRequest) -> int:
    if session.loaded.config.model_provider != OFFLINE_PROVIDER:
        async with open_session(session) as opened:
            return await _run_opened(opened, request)
    # The rules are a program of their own: only who asks for them pays for loading them.
    from codex_py.offline.server import OfflineModel

    async with OfflineModel() as model, open_session(session, offline_url=model.base_url) as opened:
        return await _run_opened(opened, request)


async def _run_opened(session: Session, request: ExecRequest) -> int:
    # From here on a session may last for hours.
    gc.freeze()
    gc.enable()
    return await run_exec(session, request)


def _parser() -> Parser:
    parser = Parser("codex-py exec", description=_DESCRIPTION, epilog=_EPILOG)
    parser.usage = "codex-py exec [OPTIONS] [PROMPT]\n       codex-py exec resume [OPTIONS] (SESSION | --last) [PROMPT]"
    parser.add_argument("words", nargs="*", metavar="PROMPT", help="what to do; `-` or nothing reads it from stdin")
    parser.add_argument("-i", "--image", action="append", default=[], metavar="FILE", help="attach a picture")
    add_place_flags(parser)
    add_model_flags(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", "--experimental-json", action="store_true", help="print events as JSON lines on stdout"
    )
    output.add_argument("-o", "--output-last-message", metavar="FILE", help="write the last message to this file")
    output.add_argument("--output-schema", metavar="FILE", help="JSON schema the last message must satisfy")
    output.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours on stderr")
    session = parser.add_argument_group("session")
    session.add_argument("--ephemeral", action="store_true", help="keep no session file")
    session.add_argument("--last", action="store_true", help="resume: the newest session of this directory")
    session.add_argument("--all", action="store_true", help="resume --last: of any directory")
    add_config_flags(parser)
    # Sent by SDK clients; they change nothing here.
    for flag in ("--thread-source", "--cyber-access-program"):
        parser.add_argument(flag, help=argparse.SUPPRESS)
    return parser


def _split_at_dashes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What may be flags, and what stands behind a `--` and is words, whatever it looks like."""
    words = list(arguments)
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1 :]


def read_errand(given: argparse.Namespace, *, literal: bool = False) -> Errand:
    """Tell a prompt from `resume …`, unless it is `literal`; raises `UsageError` for words that make no sense."""
    words: list[str] = list(given.words)
    target = None
    if words and words[0] == "resume" and not literal:
        words.pop(0)
        target = _resume_target(given, words)
    elif given.last or given.all:
        raise UsageError("`--last` and `--all` go with `resume`", hint="try `codex-py exec resume --last`")
    if len(words) > 1:
        raise UsageError(f"more than one prompt: `{words[1]}`", hint="quote the prompt")
    return Errand(words[0] if words else None, target)


def _resume_target(given: argparse.Namespace, words: list[str]) -> ResumeTarget:
    if given.last:
        return ResumeTarget(any_directory=given.all)
    if not words:
        raise UsageError("no session to resume", hint="give its id, or `--last`")
    return ResumeTarget(thread_id=words.pop(0))


def working_directory(chosen: str | None) -> Path:
    """The real path of the directory to work in."""
    try:
        cwd = Path(chosen or ".").resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "too many links"
        raise UserError(f"cannot work in `{chosen or '.'}`: {reason}", hint="name a directory with -C") from error
    if not cwd.is_dir():
        raise UserError(f"cannot work in `{chosen}`: not a directory")
    return cwd


def load_settings(given: argparse.Namespace, home: Path, cwd: Path) -> LoadedConfig:
    """The configuration in force. `--oss` alone means the local server that the configuration names."""
    if given.offline and (given.oss or given.local_provider):
        raise UsageError(
            "`--offline` and `--oss` exclude each other", hint="the first asks no model, the second a local one"
        )
    loaded = load_config(config_request(given, home, cwd))
    preferred = loaded.config.oss_provider
    if given.oss and not given.local_provider and preferred:
        given.local_provider = preferred
        return load_config(config_request(given, home, cwd))
    return loaded


def config_request(given: argparse.Namespace, home: Path, cwd: Path) -> ConfigRequest:
    """The configuration that the flags ask for."""
    flags: dict[str, Any] = {f"features.{feature}": True for feature in given.enable}
    flags |= {f"features.{feature}": False for feature in given.disable}
    sandbox = (
        "danger-full-access" if given.bypass else given.sandbox or ("workspace-write" if given.full_auto else None)
    )
    chosen = {"model": given.model, "sandbox_mode": sandbox}
    flags |= {key: value for key, value in chosen.items() if value is not None}
    if given.offline:
        flags |= {"model_provider": OFFLINE_PROVIDER}
    elif given.oss or given.local_provider:
        flags |= {"model_provider": given.local_provider or "ollama"}
    return ConfigRequest(
        home=home,
        cwd=cwd,
        env=os.environ,
        overrides=tuple(given.config),
        flags=flags,
        profile=given.profile,
        strict=given.strict_config,
        ignore_user=given.ignore_user_config,
    )


def check_place(given: argparse.Namespace, loaded: LoadedConfig, cwd: Path) -> None:
    """Refuse a folder that is neither a repository nor trusted, where a mistake could not be undone."""
    if given.skip_git_repo_check or given.bypass or loaded.trust == "trusted":
        return
    if not any(_is_repository(folder / ".git") for folder in (cwd, *cwd.parents)):
        raise UserError(
            f"not inside a git repository or a trusted directory: `{cwd}`",
            hint="pass --skip-git-repo-check to work here all the same, or --trust to trust it from now on",
        )


def _is_repository(mark: Path) -> bool:
    # An empty folder is none: sandboxes leave such ones for a moment where they keep commands from making one.
    return mark.is_file() or (mark.is_dir() and any(mark.iterdir()))


def find_images(given: Sequence[str]) -> tuple[Path, ...]:
    """The pictures as absolute paths. One flag may name several, split at commas, unless a file has that very name."""
    names: list[str] = []
    for value in given:
        names += [value] if Path(value).exists() else value.split(",")
    return tuple(Path(name).absolute() for name in names if name)


def find_message_file(path: str | None) -> Path | None:
    """Where the last message goes; what can never be written is told before the work and not after it."""
    if not path:
        return None
    file = Path(path)
    if file.is_dir():
        raise UserError(f"cannot write `{path}`: it is a folder")
    if not file.absolute().parent.is_dir():
        raise UserError(f"cannot write `{path}`: there is no folder `{file.parent}`")
    return file


def find_folders(given: Sequence[str]) -> tuple[Path, ...]:
    """The folders of `--add-dir` as absolute paths."""
    folders = tuple(Path(path).absolute() for path in given)
    for path, folder in zip(given, folders, strict=True):
        if not folder.is_dir():
            raise UserError(f"cannot add `{path}`: no such folder")
    return folders


def read_schema(path: str | None) -> dict[str, Any] | None:
    """The JSON schema of the last message."""
    if path is None:
        return None
    try:
        schema: object = decode_json(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"cannot read the output schema `{path}`: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"the output schema `{path}` is not JSON: {error}") from error
    fields = as_object(schema)
    if not fields:
        raise UserError(f"the output schema `{path}` is not a JSON object that says anything")
    return fields
