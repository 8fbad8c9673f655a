"""Programs that run a command, or a script, that stands in their arguments: which they are, and what they run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import Final

from codex_py.shell.command_line import Word, program_name, texts_of

SHELLS: Final = frozenset(("ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"))
# Programs that run the command in their arguments, with the options of theirs that take a word.
PREFIXES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("builtin", "busybox", "command", "coproc", "nohup", "setsid", "toybox", "unshare"), frozenset()),
    "doas": frozenset(("-u", "-C")),
    "env": frozenset(("-u", "-C", "--unset", "--chdir")),
    "exec": frozenset(("-a",)),
    "ionice": frozenset(("-c", "-n")),
    "nice": frozenset(("-n", "--adjustment")),
    "nsenter": frozenset(("-t",)),
    "parallel": frozenset(("-j", "-n", "-N", "-I", "-a", "--jobs")),
    "stdbuf": frozenset(("-i", "-o", "-e", "--input", "--output", "--error")),
    "sudo": frozenset(("-u", "-g", "-C", "-D", "-p", "-h", "-R", "-T", "--user", "--group", "--chdir", "--prompt")),
    "time": frozenset(("-f", "-o", "--format", "--output")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
    "xargs": frozenset(
        "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file --max-chars --process-slot-var".split()
    ),
}
# Programs that look for files, with their options that run a command on what was found.
FINDERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("fd", "fdfind"), frozenset(("-x", "-X", "--exec", "--exec-batch"))),
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
}
# Programs that run a command somewhere in their arguments, with too many options of their own to know them all.
WRAPPERS: Final = frozenset(
    "alacritty arch asdf aws-vault bundle bwrap caffeinate catchsegv chronic chroot chrt conda cpulimit "
    "dbus-run-session direnv distrobox docker dotenv eatmydata entr expect faketime fakeroot firejail flatpak-spawn "
    "flock foot gdb hatch incus kitty konsole kubectl lerna ltrace lxc machinectl mamba mise mosh nerdctl nix nodemon "
    "npm npx numactl nx oc op pdm perf pipenv pixi pkexec pnpm podman poetry prlimit proot proxychains pyenv rbenv "
    "runuser rye screen script setarch setpriv sg ssh start-stop-daemon strace su su-exec systemd-run taskset toolbox "
    "torsocks unbuffer uv uvx valgrind watch watchexec xterm xvfb-run yarn".split()
)
# Of these the first word is a subcommand of their own: `docker rm` is not `rm`.
_WITH_SUBCOMMANDS: Final = frozenset(
    ("docker", "incus", "kubectl", "lxc", "nerdctl", "npm", "oc", "pnpm", "podman", "yarn")
)
# Programs that run a whole script in their arguments, with the option it stands behind; none for any argument.
_SCRIPT_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("flock", "runuser", "script", "sg", "su"), "-c"),
    **dict.fromkeys(("alias", "entr", "hyperfine", "nodemon", "parallel", "ssh", "tmux", "trap", "watch"), ""),
}
# Who allows one of these for good allows everything: they run what their arguments say.
RUNS_ARGUMENTS: Final = frozenset(
    {
        *(*SHELLS, *PREFIXES, *WRAPPERS, *FINDERS, *_SCRIPT_OPTIONS),
        *"python perl ruby node php lua osascript pypy py deno bun pwsh powershell git eval make awk sed tee".split(),
        *"ansible concurrently sem vagrant".split(),
    }
    # Their own subcommands are what most agreements are about.
    - {"npm", "pnpm", "yarn"}
)
_GIT_SCRIPTS: Final = frozenset(("-x", "--exec", "foreach"))
# Options of shells that take a word.
_SHELL_VALUES: Final = frozenset(("--init-file", "--rcfile", "-O", "-o", "+O", "+o"))
_OWN_INPUT: Final = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
_SPLIT_STRING: Final = re.compile(r"--split-string=?|-[0iv]*S")
_MAX_GUESSES: Final = 32


def commands_in_arguments(words: Sequence[Word]) -> Iterator[list[Word]]:
    """The commands that a command is known to run: those of `sudo …`, `env A=1 …`, `xargs …`, `find -exec … ;`."""
    name = program_name(words)
    if name in PREFIXES:
        inner = _behind_options(name, list(words[1:]))
        if inner:
            yield inner
    for position, word in enumerate(words):
        if name == "git" and word.text in ("foreach", "run"):
            yield from ([inner] if (inner := list(dropwhile(_is_option, words[position + 1 :]))) else [])
        if word.text in FINDERS.get(name, ()):
            rest = list(words[position + 1 :])
            end = next((at for at, word in enumerate(rest) if word.text in (";", "+")), len(rest))
            if rest[:end]:
                yield rest[:end]


def guess_commands(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """What may be the command that a wrapper runs, such as `docker exec -it x …`: all that its words could mean."""
    name = program_name(words)
    if name in WRAPPERS:
        first = 2 if name in _WITH_SUBCOMMANDS else 1
        for start in range(first, min(len(words), _MAX_GUESSES)):
            yield words[start:]


def scripts_in_arguments(words: Sequence[Word]) -> Iterator[Word]:
    """The scripts in the arguments of a command: of `bash -lc "…"`, `eval …`, `su -c "…"`, `trap '…' EXIT`."""
    name, rest = program_name(words), list(words[1:])
    if name in SHELLS or name in ("source", "."):
        yield from (word for word in rest if word.is_stream)
    elif name == "git":
        # `git rebase --exec 'make test'`, `git submodule foreach 'git status'`.
        yield from (word for option, word in pairwise(rest) if option.text in _GIT_SCRIPTS and " " in (word.text or ""))
    if name == "eval":
        if all(word.text is not None for word in rest):
            yield Word(" ".join(texts_of(rest)))
    elif name.removesuffix(".exe") in SHELLS:
        position = _script_position(rest)
        if position is not None and position < len(rest):
            yield rest[position]
    elif (option := _SCRIPT_OPTIONS.get(name)) is not None:
        behind = not option
        for word in rest:
            text = word.text or ""
            if behind and (" " in text or not option or text == ""):
                # The value of `alias x='…'`; a word alone is a name, or an option.
                script = text.partition("=")[2] if name == "alias" else text
                yield word.replace(text=script if word.text is not None else None)
            behind = not option or text == option
        if name in ("ssh", "watch") and len(rest) > 1:
            yield Word(" ".join(texts_of(rest[1:])))


def script_file(words: Sequence[Word]) -> str | None:
    """The file that a command reads as a script: of `bash FILE`, `. FILE`, or a program named by its path."""
    name = program_name(words)
    if name in ("source", ".") and len(words) > 1:
        return None if words[1].is_stream else words[1].text
    if name in SHELLS:
        return _operand(words[1:])
    text = words[0].text or "" if words else ""
    return text if "/" in text else None


def reads_script_from_input(words: Sequence[Word]) -> bool:
    """Whether a program is a shell that reads the script it runs from its standard input."""
    name, rest = program_name(words), texts_of(words[1:])
    if name in ("at", "batch"):
        return "-f" not in rest
    if name in ("source", "."):
        return not _OWN_INPUT.isdisjoint(rest[:1])
    if name in SHELLS:
        operand = _operand(words[1:])
        return "-s" in rest or operand is None or operand in _OWN_INPUT
    return False


def _is_option(word: Word) -> bool:
    return (word.text or "-")[0] == "-"


def _behind_options(name: str, words: list[Word]) -> list[Word]:
    """The command behind the options, and the assignments, of what runs it."""
    takes_word = PREFIXES[name]
    while words and (text := words[0].text) is not None:
        is_assignment = name in ("env", "sudo") and text.partition("=")[0].isidentifier() and "=" in text
        if name == "env" and (split := _split_string(words)) is not None:
            return split
        if not (text.startswith("-") or is_assignment or (name in ("xargs", "parallel") and text.isdigit())):
            break
        words = words[2 if text in takes_word else 1 :]
    return words[1:] if name == "timeout" else words


def _split_string(words: list[Word]) -> list[Word] | None:
    """The words of `env -S "NAME -a b" c`, when it is that."""
    text = words[0].text or ""
    option = _SPLIT_STRING.match(text)
    if option is None:
        return None
    glued = text[option.end() :]
    packed = glued or (words[1].text if len(words) > 1 else None)
    rest = words[1 if glued else 2 :]
    if packed is None:
        return rest
    try:
        return [*map(Word, shlex.split(packed)), *rest]
    except ValueError:
        return [*map(Word, packed.split()), *rest]


def _script_position(words: Sequence[Word]) -> int | None:
    """Where the script of `bash -c SCRIPT` stands among the words behind the shell; None without one."""
    position = 0
    while position < len(words) and (text := words[position].text) is not None and text[:1] in ("-", "+"):
        if text.startswith("-") and not text.startswith("--") and "c" in text[1:]:
            position += 1
            while position < len(words) and (words[position].text or "").startswith("-"):
                position += 1
            return position
        position += 2 if text in _SHELL_VALUES else 1
    return None


def _operand(words: Sequence[Word]) -> str | None:
    """The first word of a shell that is neither an option nor its value; None without one.

    Empty for `-c` and `-n`, which read no file to run it, and for a word that is not known.
    """
    waiting = iter(words)
    for word in waiting:
        text = word.text
        if text is None or word.is_stream:
            return ""
        if text in _SHELL_VALUES:
            next(waiting, None)
        elif text in ("-", "--"):
            following = next(waiting, None)
            return (following.text or "") if following else None
        elif not text.startswith(("-", "+")):
            return text
        elif not text.startswith("--") and ("c" in text or "n" in text):
            return ""
    return None
