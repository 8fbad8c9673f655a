"""The command line: finds the subcommand, imports only its module, and turns errors into one line and a status."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

from codex_py import __version__
from codex_py.cli.commands import ALIASES, COMMANDS, OF_SESSIONS, OF_TERMINAL, TAKE_VALUE, command_names, load
from codex_py.errors import UsageError, UserError
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def main() -> NoReturn:
    """The console script. Ends the process itself."""
    # Start-up creates objects that stay, so collecting garbage is wasted time. A session enables it again.
    gc.disable()
    _open_missing_streams()
    status = run(sys.argv[1:])
    # The work is done, and its status must not be lost in the last millisecond.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = _flush(status)
    # Everything is closed and flushed; taking the interpreter apart object by object would only cost time.
    os._exit(status)


def _flush(status: int) -> int:
    """Flush stdout and stderr; a script must learn that its output was lost."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader is gone
        pass
    except OSError as error:
        status = status or _report_os_error(error)
    with suppress(OSError):
        sys.stderr.flush()
    return status


def _open_missing_streams() -> None:
    """Open stdin, stdout and stderr that the caller has closed: the next file opened would get their descriptors."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            # Child processes must not find it closed either.
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; give back its exit status. Never raises."""
    try:
        return _dispatch(list(arguments))
    except UserError as error:
        return _complain(str(error), hint=error.hint, status=error.status)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        return _report_bug(error)


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in ("-V", "--version", "version"):
        if "--verbose" in arguments or "-v" in arguments:
            return load("print_version")()
        print(f"codex-py {__version__}")
        return 0
    if arguments[:1] == ["help"]:
        arguments = _help_words(arguments[1:])
    name, rest = _split(arguments)
    if name is None and ("-h" in rest or "--help" in rest):
        print(_help())
        return 0
    if name is None or name in OF_TERMINAL or name not in command_names():
        return _open_terminal(name, arguments)
    if name == "review":
        name, rest = "exec", [name, *rest]
    if name in OF_SESSIONS:
        name, rest = "sessions", [name, *rest]
    if name != "exec" and callable(signal.getsignal(signal.SIGINT)):
        # These clean up after an interrupt; `exec` has nothing to clean up before it handles signals itself.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return load(name)(rest)


def _help_words(words: list[str]) -> list[str]:
    """The command line that `help WORDS` stands for."""
    known = (*command_names(), "help", "version")
    if words and ALIASES.get(words[0], words[0]) not in known:
        guess = did_you_mean(words[0], known)
        task = f"to give the model a task: `codex-py exec {' '.join(['help', *words])!r}`"
        raise UsageError(f"no command `{words[0]}`", hint=guess or task)
    return [*words, "--help"]


def _open_terminal(name: str | None, arguments: list[str]) -> int:
    """Open the terminal session. A word that is nearly a command is an error and not a prompt."""
    if name is None and not arguments and not sys.stdin.isatty():
        if not sys.stdout.isatty():
            print(_help(), flush=True)
        hint = "over ssh use `ssh -t HOST codex-py`; in scripts use `codex-py exec`"
        return _complain("stdin is not a terminal", hint=hint, status=2)
    if name is not None and name not in OF_TERMINAL and name.isascii() and name.replace("-", "").isalpha():
        guess = did_you_mean(name, command_names())
        # In a script a single word is a mistake.
        if "--" not in arguments and (guess or not sys.stdin.isatty()):
            if arguments[0] != name:
                # The word may be the value of a wrong flag.
                load("terminal_parser")().read(arguments)
            hint = f"{guess} " if guess else ""
            task = arguments[arguments.index(name) :]
            hint += f"to give the model a task: `codex-py exec {' '.join(task)!r}`"
            return _complain(f"no command `{name}`", hint=hint, status=2)
    return load("terminal")(arguments)


def _split(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The subcommand, and everything else in its order."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument == "--":
            break
        if not argument.startswith("-") or argument == "-":
            return ALIASES.get(argument, argument), arguments[:index] + arguments[index + 1 :]
        index += 2 if argument in TAKE_VALUE else 1
    return None, arguments


def _help() -> str:
    width = max(map(len, COMMANDS))
    short = ", ".join(f"`{name}`" for name in OF_SESSIONS)
    commands = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return f"""codex-py {__version__}: a coding agent for the terminal

usage: codex-py [OPTIONS] [PROMPT]
       codex-py resume|fork [OPTIONS] [SESSION | --last] [PROMPT]
       codex-py COMMAND [OPTIONS]

Without a command it opens in this terminal: `codex-py resume --help` lists the options.

commands:
{commands}

shorter: {short} for `sessions …`, `review` for `exec review`

options:
  -V, --version  print the version; with --verbose, paths too
  -h, --help     print this; `codex-py help COMMAND` explains one command

first steps:
  codex-py exec --offline "what is this repository?"   no key, no network
  codex-py exec "fix the failing test" -s workspace-write"""


def _complain(message: str, *, hint: str | None, status: int) -> int:
    line = f"error: {message}" + (f"; {hint}" if hint else "")
    # Without a stderr the exit status still reports it.
    with suppress(OSError):
        # The text may quote a file or a server.
        print(sanitize_line(line), file=sys.stderr)
    return status


def _report_os_error(error: OSError) -> int:
    """Report what is not a bug: a full or read-only disk, or a current directory that was deleted."""
    if error.errno in _CANNOT_WRITE:
        where = f"`{error.filename}`" if error.filename else "the output"
        return _complain(f"cannot write {where}: {(error.strerror or str(error)).lower()}", hint=None, status=1)
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return _complain("the current directory was deleted", hint="`cd` to one that exists", status=2)
    return _report_bug(error)


def _report_bug(error: Exception) -> int:
    # Loaded here, because pathlib and traceback are a third of the time of `--version`.
    message: str = load("report_early_crash")(os.environ, error)
    return _complain(message, hint=None, status=1)


if __name__ == "__main__":
    main()
