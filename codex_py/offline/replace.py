"""Replacing a text by a patch: read, plan, apply, look again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator
from typing import Final, NamedTuple

from codex_py.offline.edit import Edit, Segment, plan_edit, split_lines
from codex_py.offline.pattern import Pattern
from codex_py.offline.replacement import Replace
from codex_py.offline.result import Result
from codex_py.offline.script import Patch, Request, Script, ask, look, look_at_all
from codex_py.offline.text import clip, count, excerpt, ticked

_MOST_FILES: Final = 50
_AROUND: Final = 3
_NUMBERED: Final = Pattern(r"(\d{1,9})[:-](.*)\Z", re.DOTALL)
_SUCCESS: Final = "Success. Updated the following files"
_READ_ONLY: Final = Pattern(r"read-only|blocked by|writing outside|rejected|not writable", re.IGNORECASE)


class _File(NamedTuple):
    """A file as read: `problem` is why it could not be, '' when it could."""

    name: str
    segments: tuple[Segment, ...]
    problem: str = ""


def replace(wish: Replace) -> Script:
    """Replace the text in the files named, or in the only file that has it, or everywhere when asked to."""
    names = wish.files
    if not names:
        names = yield from _files_with(wish.old)
        if not names:
            return f"{_shown(wish.old)} is nowhere in the files here, so there is nothing to replace."
        if (len(names) > 1 and not wish.everywhere) or len(names) > _MOST_FILES:
            return _too_many(wish, names)
    files = yield from _read_all(names, wish.old)
    edits = [(file, _edit(file, wish)) for file in files if not file.problem]
    changed = [(file, edit) for file, edit in edits if edit.occurrences]
    left_alone = _left_alone(wish, files, [file for file, edit in edits if not edit.occurrences])
    if not changed:
        return left_alone or f"{_shown(wish.old)} is nowhere here as a word of its own, so nothing was changed."
    patch = _patch(changed)
    result = yield from ask(Patch(patch))
    if _SUCCESS not in result.text:
        return "\n\n".join(part for part in (_refused(wish, changed, result, patch), left_alone) if part)
    again = yield from _read_all(tuple(file.name for file, _ in changed), wish.old)
    return "\n\n".join(part for part in (_report(wish, changed, again), left_alone) if part)


def _edit(file: _File, wish: Replace) -> Edit:
    return plan_edit(list(file.segments), wish.old, wish.new, whole_words=wish.whole_words)


def _first_line(text: str) -> str:
    return split_lines(text)[0] if text.strip("\r\n") else text


def _files_with(old: str) -> Generator[tuple[Request, ...], tuple[Result, ...], tuple[str, ...]]:
    text = shlex.quote(_first_line(old))
    found = yield from look(f"rg -l --color=never --hidden --glob '!.git' --fixed-strings -e {text} .")
    if found.exit_code == 127:
        found = yield from look(
            f"grep -rlI --exclude-dir=.git --exclude-dir=node_modules --exclude-dir=.venv -F -e {text} ."
        )
    return tuple(sorted(line.removeprefix("./") for line in found.lines)) if found.ok else ()


def _read_all(names: tuple[str, ...], old: str) -> Generator[tuple[Request, ...], tuple[Result, ...], list[_File]]:
    results = yield from look_at_all([f"cat -- {shlex.quote(name)}" for name in names])
    files: list[_File] = []
    for name, result in zip(names, results, strict=True):
        if result.ok and not result.cut:
            files.append(_File(name, (Segment(1, split_lines(result.text)),)))
        elif result.ok:
            files.append((yield from _read_around(name, old)))
        elif "No such file" in result.text and (elsewhere := (yield from _named(name))):
            files += yield from _read_all((elsewhere,), old)
        else:
            reason = clip(result.text.rpartition(":")[2], 120).lower() or "unreadable"
            files.append(_File(name, (), reason))
    return files


def _named(name: str) -> Generator[tuple[Request, ...], tuple[Result, ...], str]:
    """The one file elsewhere that has this name; '' when there is none or more than one."""
    if name.startswith(("/", ".", "~")):
        return ""
    found = yield from look(f"find . -name .git -prune -o -type f -path {shlex.quote(f'*/{name}')} -print | head -n 3")
    paths = [line.removeprefix("./") for line in found.lines]
    return paths[0] if len(paths) == 1 and paths[0] != name else ""


def _read_around(name: str, old: str) -> Generator[tuple[Request, ...], tuple[Result, ...], _File]:
    """A file too long to be shown: only the lines around what is looked for."""
    after = len(split_lines(old)) - 1 + _AROUND
    search = f"grep -anF -B {_AROUND} -A {after} -e {shlex.quote(_first_line(old))} -- {shlex.quote(name)}"
    result = yield from look(search)
    if result.cut:
        return _File(name, (), "too many places in a long file for these rules")
    segments: list[Segment] = []
    for line in result.text.removesuffix("\n").split("\n"):
        found = _NUMBERED.match(line)
        if found is None:
            continue
        number, text = int(found[1]), found[2].removesuffix("\r")
        if segments and segments[-1].first + len(segments[-1].lines) == number:
            segments[-1] = Segment(segments[-1].first, (*segments[-1].lines, text))
        else:
            segments.append(Segment(number, (text,)))
    return _File(name, tuple(segments))


def _patch(changed: list[tuple[_File, Edit]]) -> str:
    lines = ["*** Begin Patch"]
    for file, edit in changed:
        lines += [f"*** Update File: {file.name}", *edit.hunks]
    return "\n".join([*lines, "*** End Patch"])


def _left_alone(wish: Replace, files: list[_File], without: list[_File]) -> str:
    lines = [
        f"{ticked(file.name)} could not be read: {file.problem}. It was not changed." for file in files if file.problem
    ]
    for file in without:
        word = " as a word of its own" if wish.whole_words else ""
        done = ""
        if wish.new and any(wish.new in "\n".join(segment.lines) for segment in file.segments):
            done = f" ({_shown(wish.new)} is already there)"
        lines.append(f"{_shown(wish.old)} is not in {ticked(file.name)}{word}{done}, so it was not changed.")
    return "\n".join(lines)


def _too_many(wish: Replace, names: tuple[str, ...]) -> str:
    listed = "\n".join(f"- {ticked(name)}" for name in names[:20])
    more = f"\n- … and {len(names) - 20} more" if len(names) > 20 else ""
    way = "Say in which file" + (f", or “everywhere” for all {len(names)}." if len(names) <= _MOST_FILES else ".")
    return f"{_shown(wish.old)} is in {count(len(names), 'file')}, and nothing was changed:\n\n{listed}{more}\n\n{way}"


def _refused(wish: Replace, changed: list[tuple[_File, Edit]], result: Result, patch: str) -> str:
    files = ", ".join(ticked(file.name) for file, _ in changed)
    said = clip(result.text, 300)
    head = f"{files} was not changed: the patch was refused (`{said.replace('`', chr(39))}`)."
    if _READ_ONLY.search(result.text):
        head = (
            f"{files} was not changed: the sandbox does not allow writing there. Run again with `-s workspace-write`."
        )
    number = sum(edit.occurrences for _, edit in changed)
    return f"{head}\n\nIt would have replaced {count(number, 'occurrence')} of {_shown(wish.old)}:\n\n{excerpt(patch)}"


def _report(wish: Replace, changed: list[tuple[_File, Edit]], again: list[_File]) -> str:
    by_name = {file.name: file for file in again}
    lines: list[str] = []
    for file, edit in changed:
        read = by_name.get(file.name)
        as_planned = read is not None and not read.problem and _is_as_planned(wish, file, edit, read)
        checked = "read again and as planned" if as_planned else "but reading it again shows something else; look at it"
        places = ", ".join(map(str, edit.places[:12])) + (", …" if len(edit.places) > 12 else "")
        line = "line" if len(edit.places) == 1 else "lines"
        lines.append(f"- {ticked(file.name)}: {count(edit.occurrences, 'occurrence')} ({line} {places}), {checked}")
    action = f"Replaced {_shown(wish.old)} with {_shown(wish.new)}" if wish.new else f"Removed {_shown(wish.old)}"
    whole = " (whole words only)" if wish.whole_words else ""
    return "\n".join([f"{action}{whole}:", "", *lines])


def _is_as_planned(wish: Replace, before: _File, edit: Edit, now: _File) -> bool:
    whole = len(before.segments) == 1 and before.segments[0].first == 1 and len(now.segments) == 1
    if whole and now.segments[0].first == 1:
        return _comparable(now.segments[0].lines) == _comparable(edit.after[0])
    return wish.old in wish.new or _edit(now, wish).occurrences == 0


def _comparable(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line.removeprefix("\ufeff") for line in lines)


def _shown(text: str) -> str:
    lines = split_lines(text)
    return ticked(clip(text, 80)) if len(lines) < 2 else f"the {len(lines)} lines from {ticked(clip(lines[0], 60))}"
