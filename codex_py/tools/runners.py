"""Programs that run a command, or a script, given in their arguments: which they are, and what they are to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from codex_py.skills.words import Word, unwrapped

# Programs that run the command in their arguments, with their options that take a word.
RUNNERS: Final[Mapping[str, frozenset[str]]] = {
    "busybox": frozenset(),
    "doas": frozenset(("-u", "-C")),
    "ionice": frozenset(("-c", "-n")),
    "nsenter": frozenset(("-t",)),
    "parallel": frozenset(("-j", "-n", "-N", "-I", "-a", "--jobs")),
    "setsid": frozenset(),
    "toybox": frozenset(),
    "unshare": frozenset(),
    "xargs": frozenset(
        "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file --max-chars --process-slot-var".split()
    ),
}
# Programs that run a command somewhere in their arguments, with too many options of their own to know them all.
WRAPPERS: Final = frozenset(
    "alacritty arch asdf aws-vault bundle bwrap caffeinate catchsegv chronic chroot chrt conda coproc cpulimit "
    "dbus-run-session direnv distrobox docker dotenv eatmydata entr expect faketime fakeroot firejail flatpak-spawn "
    "flock foot gdb genv gnice gnohup gnome-terminal gosu gtime gtimeout hatch incus kitty konsole kubectl lerna "
    "ltrace lxc machinectl mamba mise mosh nerdctl nix nodemon npx numactl nx oc op pdm perf pipenv pixi pkexec podman "
    "poetry prlimit proot proxychains proxychains4 pyenv rbenv runuser rye screen script sem setarch setpriv sg ssh "
    "start-stop-daemon strace su su-exec systemd-run taskset toolbox torsocks unbuffer uv valgrind watch watchexec "
    "xterm xvfb-run".split()
)
# Programs whose arguments hold whole scripts.
SCRIPT_TAKERS: Final = frozenset(
    "alias ansible concurrently entr flock hyperfine nodemon parallel screen script sem sg ssh su tmux trap vagrant "
    "watch watchexec xterm".split()
)
# Programs that look for files, with their options that run a command on what was found.
FINDERS: Final[Mapping[str, frozenset[str]]] = {
    "fd": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "fdfind": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
}


_MOST_GIVEN: Final = 64
# What GNU's tools are called next to a system's own, without the `g`.
_GNU: Final = frozenset("chgrp chmod chown cp dd find install mv rm sed shred tar tee truncate unlink xargs".split())


def program(words: Sequence[Word]) -> str:
    """The name of what runs, without its folder; empty when it is not known."""
    name = (words[0].text or "").rpartition("/")[2].lower() if words else ""
    return name[1:] if name[:1] == "g" and name[1:] in _GNU else name


def command_of_runner(words: Sequence[Word]) -> list[Word]:
    """What a command of `RUNNERS` is to run, without its own options and what else runs it."""
    return unwrapped(behind_options(list(words[1:]), RUNNERS[program(words)]))


def commands_carried(words: Sequence[Word]) -> Iterator[list[Word]]:
    """The commands that `xargs`, `find -exec` and their like would run with what they are given."""
    name = program(words)
    if name in RUNNERS:
        inner = command_of_runner(words)
        yield inner
        yield from _with_each(inner) if name == "parallel" else ()
    for place, word in enumerate(words):
        if word.text in FINDERS.get(name, ()):
            yield unwrapped(list(words[place + 1 :]))


def _with_each(words: list[Word]) -> Iterator[list[Word]]:
    """The commands of `parallel COMMAND ::: WORD...`."""
    at = next((place for place, word in enumerate(words) if (word.text or "").startswith(":::")), len(words))
    for word in words[at + 1 : at + 1 + _MOST_GIVEN]:
        given = [Word(part) for part in (word.text or "").split()]
        yield [*words[:at], *given]


def behind_options(words: list[Word], takes_word: frozenset[str]) -> list[Word]:
    """The command behind a runner's options; numbers, as of `-n 1` written apart, are none."""
    while words:
        text = words[0].text or ""
        if text in takes_word:
            words = words[2:]
        elif text.startswith("-") or text.isdigit():
            words = words[1:]
        else:
            break
    return words
