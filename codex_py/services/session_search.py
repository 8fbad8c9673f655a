"""Words in all stored sessions: what users and models said, which commands ran and which files were changed.

ripgrep finds the files in which every word stands, the newest are read until enough turns are found. There is no index
to keep, and none that may be out of date.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.core.session_file import git_directories
from codex_py.errors import UsageError, UserError
from codex_py.process.env import find_executable
from codex_py.programs import bundled_ripgrep
from codex_py.protocol import events
from codex_py.rollout.listing import SessionQuery, list_sessions, newest_first
from codex_py.rollout.stored_turns import PastUserMessage, past_items
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import TranscriptEntry, TranscriptItem, iter_turns

_SHOWN: Final = 90
_SECONDS: Final = 20.0
_WHOLE_READ: Final = 16 << 20
_BATCH: Final = 200


class SearchHit(NamedTuple):
    """A turn in which all words stand; `where` says in what the excerpt was found."""

    session: SessionSummary
    turn: int
    time: str
    where: str
    excerpt: str


class SearchRequest(NamedTuple):
    """`repo` is a directory of the repository that sessions must have worked in, `since` the first day, as ISO.

    `per_session` is how many turns of one session are found at most, the newest ones; None for all of them.
    """

    words: str
    repo: Path | None = None
    since: str = ""
    limit: int = 20
    per_session: int | None = None


def search_sessions(home: Path, request: SearchRequest, env: Mapping[str, str]) -> list[SearchHit]:
    """The newest turns that fit, archived sessions among them. Raises `UsageError` for no words."""
    words = [word.casefold() for word in request.words.split()]
    if not words:
        raise UsageError("what should be searched for?", hint='`codex-py sessions search "words"`')
    offered = [*list_sessions(home, SessionQuery()), *list_sessions(home, SessionQuery(archived=True))]
    wanted = [session for session in newest_first(offered) if session.updated >= request.since]
    if request.repo is not None:
        top = _repository(request.repo)
        directories = {cwd: _repository(Path(cwd)) for cwd in {session.cwd for session in wanted} if cwd}
        wanted = [session for session in wanted if directories.get(session.cwd) == top]
    hits: list[SearchHit] = []
    for session in _with_words(words, home, wanted, env):
        hits += list(_hits(session, words))[::-1][: request.per_session]
        if len(hits) >= request.limit:
            break
    return hits[: request.limit]


def _repository(directory: Path) -> str:
    found = git_directories(directory)
    return os.path.realpath(found.common if found else directory)


def _with_words(
    words: Sequence[str], home: Path, sessions: Sequence[SessionSummary], env: Mapping[str, str]
) -> Iterator[SessionSummary]:
    """The sessions in whose files every word stands somewhere, in any case; they keep their order."""
    ripgrep = find_executable("rg", env.get("PATH", "")) or bundled_ripgrep()
    # The longest word stands in the fewest files.
    longest, *others = sorted(set(words), key=len, reverse=True)
    tops = [str(top) for top in (home / "sessions", home / "archived_sessions") if top.is_dir()]
    files = [session.file for session in sessions]
    found = _files_with(longest, tops if ripgrep else files, ripgrep)
    candidates = [session for session in sessions if session.file in found]
    # Mostly enough is found in the first of them.
    for start in range(0, len(candidates), _BATCH):
        batch = candidates[start : start + _BATCH]
        found = {session.file for session in batch}
        for word in others:
            found = _files_with(word, sorted(found), ripgrep) if found else found
        yield from (session for session in batch if session.file in found)


def _files_with(word: str, paths: Sequence[str], ripgrep: str | None) -> set[str]:
    if not paths:
        return set()
    # As it may be spelled in JSON; ripgrep does not know that `ß` is `ss`.
    forms = {json.dumps(form, ensure_ascii=False)[1:-1] for form in (word, word.replace("ss", "ß"))}
    return {path for path in paths if _has(path, forms)} if ripgrep is None else _ripgrep(ripgrep, forms, paths)


def _ripgrep(ripgrep: str, forms: Iterable[str], paths: Sequence[str]) -> set[str]:
    """The files in which one of the forms of a word stands."""
    options = ["--no-config", "-l", "-0", "-i", "-F", "--no-ignore", "--no-messages", "-g", "*.jsonl"]
    options += [option for form in forms for option in ("-e", form)]
    argv = [ripgrep, *options, "--", *paths]
    try:
        ended = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"cannot search: {error}") from error
    return {os.fsdecode(path) for path in ended.stdout.split(b"\0") if path}


def _has(path: str, forms: Iterable[str]) -> bool:
    words = {form.casefold() for form in forms}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            pieces = iter(lambda: file.read(_WHOLE_READ), "")
            return any(word in folded for folded in map(str.casefold, pieces) for word in words)
    except OSError:
        return False


def _hits(session: SessionSummary, words: Sequence[str]) -> Iterator[SearchHit]:
    for number, entries in iter_turns(session.path):
        texts = list(_texts(entries, Path(session.cwd or "/")))
        together = "\n".join(text for _, text in texts).casefold()
        if all(word in together for word in words):
            where, text = max(texts, key=lambda found: sum(word in found[1].casefold() for word in words))
            yield SearchHit(session, number, entries[0].timestamp, where, excerpt_around(text, words))


def _texts(entries: Sequence[TranscriptEntry], cwd: Path) -> Iterator[tuple[str, str]]:
    for past in past_items([entry.value for entry in entries if isinstance(entry, TranscriptItem)], cwd):
        match past.happened:
            case PastUserMessage(text):
                yield "prompt", text
            case events.MessageDone(text):
                yield "answer", text
            case events.CommandFinished() as ran:
                yield "command", ran.command
            case events.PatchFinished(_, changes):
                yield "file", "\n".join(str(change.path) for change in changes)
            case _:
                pass


def excerpt_around(text: str, words: Sequence[str], *, before: int = _SHOWN // 3) -> str:
    """The surroundings of the first word found, in one line, with at most this many characters before it."""
    line = " ".join(text.split())
    found = re.search("|".join(map(re.escape, words)), line, re.IGNORECASE)
    start = max(0, (found.start() if found else 0) - before)
    cut = line[start : start + _SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(line) else ''}"
