"""Telling a shell command from other quoted text."""

from __future__ import annotations

from typing import Final

from codex_py.offline.pattern import Pattern

_PROGRAMS: Final = """
alias ansible apt apt-cache apt-get awk basename bash bat bazel bc brew bun bundle bunx bzip2 cal cargo cat cd
chmod chown clang cloc cmake cmp codex codex-py column comm composer conda cp cpio curl cut date dd deno df diff
dig dir dirname docker docker-compose dotnet du echo elixir emacs env erl eslint exit expr factor false fd file
find flake8 fmt fold free gcc gem getent gh git go gofmt gradle grep groups gunzip gzip hatch head hexdump hg
hostname htop iconv id ifconfig ip java javac jest jq julia just kill killall kubectl ldd ln locale ls
lsb_release lscpu lsof lua make md5sum meson mkdir mkfs mktemp mocha mount mv mvn mypy nano nc netstat nice
ninja nl node nox npm npx nproc ocaml od openssl paste patch perl php phpunit pip pip3 pipx pnpm podman poetry
pre-commit printenv printf prettier ps pwd pyright pytest python python3 rake readlink realpath reboot rev rg rm
rmdir rspec rsync ruby ruff rustc rustup scala sed seq sh sha1sum sha256sum shellcheck shred shuf shutdown sleep
sort split sqlite3 ss ssh stat strings sudo svn swift sync tac tail tar tee terraform test time timeout top
touch tox tr tree true truncate tsc tty type ulimit uname uniq unzip uptime uv uvx vi vim vitest wc wget whereis
which who whoami xargs xxd yarn yes zcat zig zip zsh
"""
_KNOWN: Final = frozenset(_PROGRAMS.split())
_CHANGING_PROGRAMS: Final = (
    "rm rmdir mv dd mkfs shred truncate shutdown reboot kill killall chmod chown sudo curl wget ssh"
)
_CHANGING: Final = frozenset(_CHANGING_PROGRAMS.split())
_CHANGING_GIT: Final = Pattern(r"\bgit\s+(?:push|reset|clean|checkout|restore|rebase|commit|merge|stash|branch\s+-D)\b")
_ASSIGNMENT: Final = Pattern(r"[A-Za-z_]\w*=\S*")
_PROGRAM: Final = Pattern(r"(?:(?:~|\.{0,2})/)?(?:[\w.+-]+/)*[\w.+-]+")


def looks_like_command(text: str) -> bool:
    """Whether a quoted text reads as something to type into a shell."""
    words = _words(text)
    if not words:
        return False
    program = words[0]
    if program in _KNOWN or program.startswith(("./", "../", "~/")) or program.endswith(".sh"):
        return _PROGRAM.fullmatch(program) is not None
    takes_options = any(word.startswith("-") and len(word) > 1 for word in words[1:])
    return takes_options and _PROGRAM.fullmatch(program) is not None


def is_known_program(word: str) -> bool:
    """Whether a bare word is the name of a program people type often, or a path to one."""
    return word in _KNOWN or word.startswith("./")


def changes_things(text: str) -> bool:
    """Whether a command is of the kind nobody should run only because it was mentioned."""
    return any(word in _CHANGING for word in text.split()) or _CHANGING_GIT.search(text) is not None or ">" in text


def _words(text: str) -> list[str]:
    words = text.removeprefix("$ ").split()
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    return words
