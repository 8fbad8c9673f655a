"""The command line: finds the subcommand, imports only its module, and turns errors into one line and a status."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final, NoReturn

from codex_py import __version__
from codex_py.errors import UsageError, UserError
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

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
# The terminal session, imported like a subcommand.
_TERMINAL: Final = "codex_py.cli.repl"
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
            return import_module("codex_py.cli.update").print_version()
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
    if name == "batch":
        # Its tasks are forked from a process that takes as long to load as the batch itself.
        import_module("codex_py.batch.worker").warm_up_for(rest)
    module, _, function = COMMANDS[name][0].partition(":")
    return getattr(import_module(module), function)(rest)


def _help_words(words: list[str]) -> list[str]:
    """The command line that `help WORDS` stands for."""
    known = (*command_names(), "help", "version")
    if words and ALIASES.get(words[0], words[0]) not in known:
        guess = did_you_mean(words[0], known)
        task = f"to give the model a task: `codex-py exec {' '.join(['help', *words])!r}`"
        raise UsageError(f"no command `{words[0]}`", hint=guess or task)
    return [*words, "--help"]


def command_names() -> tuple[str, ...]:
    """Every word that begins a command line."""
    return (*COMMANDS, *OF_SESSIONS, *OF_TERMINAL, "review")


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
                import_module(_TERMINAL).terminal_parser().read(arguments)
            hint = f"{guess} " if guess else ""
            task = arguments[arguments.index(name) :]
            hint += f"to give the model a task: `codex-py exec {' '.join(task)!r}`"
            return _complain(f"no command `{name}`", hint=hint, status=2)
    return import_module(_TERMINAL).run(arguments)


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
    message: str = import_module("codex_py.log").report_early_crash(os.environ, error)
    return _complain(message, hint=None, status=1)


if __name__ == "__main__":
    main()
