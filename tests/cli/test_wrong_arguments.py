"""Every command with arguments it does not take: one or two lines say what, where and the next step; status 2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from codex_py.cli.commands import COMMANDS, OF_SESSIONS, OF_TERMINAL
from tests.support.home import Place
from tests.support.process import run

_OPTION = re.compile(r" +((?:-\w, )?--[\w-]+(?:[,/] ?--?[\w-]+)*)(?: (\S+))?(?:  .*)?")
_MAX_LINES = 2


def leaves(place: Place, words: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """The command and all below it, each with its help."""
    text = run(place, *words, "--help").out
    yield list(words), text
    if len(words) == 1:
        for name in subcommands(text):
            yield from leaves(place, [*words, name])


def subcommands(text: str) -> list[str]:
    return re.findall(r"^  ([a-z][a-z-]+)(?:  |$)", text.partition("\nCommands:\n")[2], re.MULTILINE)


def options(text: str) -> Iterator[tuple[str, str]]:
    """The long name of each option, and what its value is called."""
    for line in text.splitlines():
        if (found := _OPTION.fullmatch(line)) and "--help" not in found[1]:
            yield next(name for name in re.findall(r"--[\w-]+", found[1])), found[2] or ""


def mistakes(words: Sequence[str], text: str) -> Iterator[tuple[list[str], str]]:
    """Arguments that are wrong, and what the line about them has to say."""
    whole = "codex-py"
    if words[0] not in OF_TERMINAL:
        words = ["exec"] if words[0] == "review" else ["sessions", *words] if words[0] in OF_SESSIONS else words
        whole = " ".join(["codex-py", *words])
    yield ["--zzz-nope"], f"unknown option `--zzz-nope`; see `{whole} --help`"
    flags = dict(options(text))
    for name in flags:
        typo = f"{name[:-2]}{name[-1]}"
        if len(name) > len("--abcde") and typo not in flags:
            yield [typo], f"unknown option `{typo}`; did you mean `--"
    if name := next((name for name, value in flags.items() if not value), None):
        yield [f"{name}=x"], f"`{name}` takes no value; write `{name}` alone"
    if name := next((name for name, value in flags.items() if value and "[" not in value), None):
        yield [name], f"`{name}` needs a value; see `{whole} --help`"
    needs_words = re.search(r"^Usage: .*\] [A-Z{]", text, re.MULTILINE)
    if not needs_words and (name := next((name for name, value in flags.items() if value == "N"), None)):
        yield [name, "zzz"], f"`{name}` needs a whole number, not `zzz`"
    if name := next((name for name, value in flags.items() if "|" in value), None):
        yield [name, "zzz"], f"`zzz` is not a value of `{name}`; allowed are `"
    if subcommands(text):
        near = next(name for name in subcommands(text) if len(name) > len("abc"))
        yield ["zzz"], f"no command `zzz` in `{whole}`; see `{whole} --help`"
        yield [f"{near}x"], f"no command `{near}x` in `{whole}`; did you mean `{near}`?"


@pytest.mark.parametrize("command", [*COMMANDS, *OF_SESSIONS, *OF_TERMINAL, "review"])
def test_whatever_is_wrong_in_the_arguments_is_named_with_the_next_step(place: Place, command: str) -> None:
    failures: list[str] = []
    for words, text in leaves(place, [command]):
        for wrong, expected in mistakes(words, text):
            ended = run(place, *words, *wrong)
            lines = ended.err.splitlines()
            fits = len(lines) in range(1, _MAX_LINES + 1) and expected in lines[0] and lines[0].startswith("error: ")
            if not fits or ended.status != 2 or ended.out or ended.has_traceback:
                failures.append(f"{' '.join([*words, *wrong])}: [{ended.status}] {ended.out}{ended.err}({expected})")
    assert not failures, "\n".join(failures)


# What each takes at most is its own; five words are too many for all of these.
TAKE_FEW = (
    "login",
    "logout",
    "models",
    "hooks list",
    "checkpoints prune",
    "skills list",
    "checkpoints verify",
    "doctor",
    "acp",
)


@pytest.mark.parametrize("command", TAKE_FEW)
def test_one_argument_too_many_is_named(place: Place, command: str) -> None:
    ended = run(place, *command.split(), *"abcde")
    assert ended.status == 2
    assert re.fullmatch(rf"error: unexpected argument `[ab]` after `codex-py {command}`; see `.* --help`\n", ended.err)


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("mcp add", "NAME"),
        ("mcp remove", "NAME"),
        ("plugin add", "DIRECTORY"),
        ("diff", "--turn"),
        ("config set", "KEY"),
        ("config get", "KEY"),
        ("sessions show", "SESSION"),
        ("rename", "SESSION"),
        ("archive", "SESSION"),
    ],
)
def test_an_argument_that_is_missing_is_named(place: Place, command: str, missing: str) -> None:
    ended = run(place, *command.split())
    assert ended.status == 2
    assert re.fullmatch(rf"error: `codex-py .*` needs `{missing}.*`; see `codex-py .* --help`\n", ended.err)
