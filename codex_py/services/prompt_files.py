"""The user's own slash commands: Markdown files in `~/.codex/prompts`, and in `.codex/prompts` and `.claude/commands`
of a project that is trusted.

The body is sent as a message. `$ARGUMENTS` stands for all words behind the command, `$1` to `$9` for one of them,
`$NAME` for the value of a word `NAME=value`, and `$$` for a dollar sign.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.errors import UserError
from codex_py.text.files import FileRefused, read_inside, read_trusted
from codex_py.text.frontmatter import split_frontmatter
from codex_py.text.placeholders import PlaceholderValues, fill_placeholders, split_words
from codex_py.text.sanitize import sanitize_line

_MAX_FILES: Final = 200
_MAX_BYTES: Final = 64 * 1024
_MAX_LINE: Final = 200
_NAME: Final = re.compile(r"[\w.-]{1,64}")
_FIELD: Final = re.compile(r"^(description|argument-hint)[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ASSIGNED: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)


class PromptFile(NamedTuple):
    """A command of the user's own. `also` is a second name that no other command takes; `root` is the project of one
    that came with a project.
    """

    name: str
    also: str
    path: Path
    root: Path | None
    description: str
    hint: str


def find_prompts(loaded: LoadedConfig, *, home: Path, cwd: Path, may_read: Callable[[Path], bool]) -> list[PromptFile]:
    """Every command there is, the user's before the project's; of one name the first counts. `home` is CODEX_HOME."""
    sources: list[tuple[Path, Path | None]] = [(home / "prompts", None)]
    if loaded.trust == "trusted":
        root = loaded.project_root or cwd
        for directory in dict.fromkeys((cwd, root)):
            sources += [(directory / ".codex" / "prompts", root), (directory / ".claude" / "commands", root)]
    found: dict[str, PromptFile] = {}
    for directory, root in sources:
        for prompt in _prompts_in(directory, root, may_read):
            found.setdefault(prompt.name, prompt)
    return list(found.values())


def read_prompt(prompt: PromptFile) -> str:
    """The text of a command, without its front matter. Raises `UserError`."""
    try:
        text = _read(prompt.path, prompt.root)
    except FileRefused as error:
        raise UserError(f"cannot read the command `{prompt.path}`: {error}") from error
    if text is None:
        raise UserError(f"the command `{prompt.path}` is gone")
    front = split_frontmatter(text)
    return text[front.body_start :].strip() if front else text.strip()


def fill_prompt(body: str, words: str) -> str:
    """The message of a command: its text with the words behind it, which follow it where it has no place for them."""
    arguments = split_words(words)
    named = {found[1]: found[2] for word in arguments if (found := _ASSIGNED.fullmatch(word))}
    plain = [word for word in arguments if not _ASSIGNED.fullmatch(word)]
    # A name without a value is a variable of the shell, in an example.
    filled = fill_placeholders(body, PlaceholderValues(words, plain, named, escapes=True))
    return filled.text if filled.has_placeholder or not words else f"{filled.text}\n\n{words}"


def _prompts_in(directory: Path, root: Path | None, may_read: Callable[[Path], bool]) -> Iterator[PromptFile]:
    """Those of a directory, sorted by name; below `.claude/commands` a directory is the first part of the name."""
    try:
        paths = sorted(directory.glob("*.md")) + (sorted(directory.glob("*/*.md")) if root else [])
    except OSError:
        return
    for path in paths[:_MAX_FILES]:
        parts = path.relative_to(directory).with_suffix("").parts
        if not all(map(_NAME.fullmatch, parts)) or not may_read(path):
            continue
        try:
            text = _read(path, root)
        except FileRefused:
            continue
        if text is not None:
            name, fields = ":".join(parts), _fields(text)
            about = fields.get("description") or _first_line(text)
            yield PromptFile(name, f"prompts:{name}", path, root, about, fields.get("argument-hint", ""))


def _read(path: Path, root: Path | None) -> str | None:
    top = Path(os.path.realpath(root)) if root else None
    head = read_inside(top, path, _MAX_BYTES) if top else read_trusted(path, _MAX_BYTES)
    return head.raw.decode("utf-8-sig", "replace") if head else None


def _fields(text: str) -> Mapping[str, str]:
    front = split_frontmatter(text)
    found = _FIELD.findall(front.yaml) if front else ()
    return {name: sanitize_line(value.strip("'\""))[:_MAX_LINE] for name, value in found}


def _first_line(text: str) -> str:
    front = split_frontmatter(text)
    body = text[front.body_start :] if front else text
    line = next((line for line in body.splitlines() if line.strip()), "")
    return sanitize_line(line.strip("# \t"))[:_MAX_LINE]
