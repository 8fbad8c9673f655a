"""AGENTS.md: which files are read, how much of them, and the wrapper the model sees."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from codex_py.context.markup import quoted
from codex_py.protocol.value import Value
from codex_py.text.files import FileHead, FileRefused, read_inside, read_trusted
from codex_py.text.sanitize import sanitize_line

_NAMES: Final = ("AGENTS.override.md", "AGENTS.md")
_BETWEEN_GLOBAL_AND_PROJECT: Final = "\n\n--- project-doc ---\n\n"
_GLOBAL_MAX_BYTES: Final = 32768
_REPLACES: Final = "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
_WITHDRAWN: Final = "No AGENTS.md applies any more; leave the earlier ones aside."
_OPENING: Final = "\n\n<INSTRUCTIONS>\n"


def _anything(_: Path) -> bool:
    return True


class _Reader(Value):
    """The check of which files may be read, and the warnings for the user."""

    may_read: Callable[[Path], bool]
    warnings: list[str]

    def check(self, path: Path) -> None:
        """Raise `FileRefused` for a file that exists and is denied."""
        if os.path.lexists(path) and not self.may_read(path):
            raise FileRefused("`sandbox.deny_read` denies reading it")


class AgentsMd(Value):
    """The rendered part of the user message ("" when there is nothing to say), and what the user should know."""

    text: str
    warnings: tuple[str, ...] = ()


def load_agents_md(
    home: Path,
    cwd: Path,
    *,
    project_root_markers: Sequence[str] = (".git",),
    max_bytes: int = 32768,
    fallback_filenames: Sequence[str] = (),
    may_read: Callable[[Path], bool] = _anything,
) -> AgentsMd:
    """The global file of `home` (CODEX_HOME) and the project's chain from its root down to `cwd`; never raises.

    `max_bytes` bounds all project files together and 0 leaves them out; the global file has a bound of its own, the
    larger of `max_bytes` and 32 KiB. A file that `may_read` denies is left out with a warning.
    """
    warnings: list[str] = []
    reader = _Reader(may_read, warnings)
    shared = _global_text(home, max(max_bytes, _GLOBAL_MAX_BYTES), reader)
    texts: list[str] = []
    if max_bytes > 0:
        names = (*_NAMES, *_plain_names(fallback_filenames, warnings))
        texts = _project_texts(
            Path(os.path.realpath(cwd)), project_root_markers, names=names, max_bytes=max_bytes, reader=reader
        )
    title = f"# AGENTS.md instructions for {sanitize_line(str(cwd))}" if texts else "# AGENTS.md instructions"
    sections = [section for section in (shared, "\n\n".join(texts)) if section]
    if not sections:
        return AgentsMd("", tuple(warnings))
    body = _BETWEEN_GLOBAL_AND_PROJECT.join(sections)
    return AgentsMd(f"{title}{_OPENING}{body}\n</INSTRUCTIONS>", tuple(warnings))


def replacement(text: str) -> str:
    """The block that takes the place of one the model has read; an empty `text` takes it back."""
    if not text:
        return f"# AGENTS.md instructions{_OPENING}{_WITHDRAWN}\n</INSTRUCTIONS>"
    return text.replace(_OPENING, _OPENING + _REPLACES, 1)


def find_project_root(cwd: Path, markers: Sequence[str]) -> Path | None:
    """The nearest directory from `cwd` up that holds one of `markers`, or None. Links are not followed."""
    names = [name for name in markers if name and "/" not in name]
    for directory in (cwd, *cwd.parents):
        if any(os.path.lexists(directory / name) for name in names):
            return directory
    return None


def _global_text(home: Path, max_bytes: int, reader: _Reader) -> str:
    """The first of the user's own files with anything in it, without the blank lines around it."""
    warnings = reader.warnings
    for path in (home / name for name in _NAMES):
        try:
            reader.check(path)
            head = read_trusted(path, max_bytes)
        except FileRefused as refusal:
            warnings.append(f"ignored {quoted(str(path))}: {refusal}")
            continue
        text = _decode(path, head, warnings).strip() if head else ""
        if head and text:
            if head.size > max_bytes:
                warnings.append(
                    f"read only {max_bytes} of {head.size} bytes of {quoted(str(path))}: the rest is too long"
                )
            return text
    return ""


def _project_texts(
    cwd: Path, markers: Sequence[str], *, names: Sequence[str], max_bytes: int, reader: _Reader
) -> list[str]:
    """One text a directory from the root down, within `max_bytes` together; blank files are left out."""
    root = find_project_root(cwd, markers) or cwd
    warnings = reader.warnings
    texts: list[str] = []
    left = max_bytes
    for directory in (*(parent for parent in reversed(cwd.parents) if parent.is_relative_to(root)), cwd):
        path, head = _first_file(root, directory, names=names, max_bytes=left, reader=reader)
        if head is None or not head.size:
            continue
        if head.size > left:
            warnings.append(_over_budget(path, head, left=left, max_bytes=max_bytes))
        text = _decode(path, head, warnings)
        if text.strip():
            texts.append(text)
            left -= len(head.raw)
    return texts


def _first_file(
    root: Path, directory: Path, *, names: Sequence[str], max_bytes: int, reader: _Reader
) -> tuple[Path, FileHead | None]:
    """The instructions file of a directory: the first name that exists and may be read, even if it is blank."""
    for path in (directory / name for name in names):
        try:
            reader.check(path)
            head = read_inside(root, path, max_bytes)
        except FileRefused as refusal:
            reader.warnings.append(f"ignored {quoted(str(path))}: {refusal}")
            continue
        if head is not None:
            return path, head
    return directory, None


def _over_budget(path: Path, head: FileHead, *, left: int, max_bytes: int) -> str:
    budget = f"`project_doc_max_bytes` allows {max_bytes} bytes for all project instructions together"
    if left:
        return f"read only {left} of {head.size} bytes of {quoted(str(path))}: {budget}"
    return f"skipped {quoted(str(path))}: {budget}, and they are used up"


def _decode(path: Path, head: FileHead, warnings: list[str]) -> str:
    """The text of a file; a character cut in two at the end of what was read is dropped."""
    whole = len(head.raw) >= head.size
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head.raw, whole)
    except UnicodeDecodeError:
        warnings.append(f"{quoted(str(path))} is not UTF-8: what cannot be read is shown as \N{REPLACEMENT CHARACTER}")
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(head.raw, whole)
    return text.removeprefix("\ufeff")


def _plain_names(names: Sequence[str], warnings: list[str]) -> list[str]:
    plain = [name for name in names if name not in ("", ".", "..") and "/" not in name and "\0" not in name]
    warnings.extend(
        f"ignored {quoted(name)} in `project_doc_fallback_filenames`: not a plain file name"
        for name in names
        if name not in plain
    )
    return plain
