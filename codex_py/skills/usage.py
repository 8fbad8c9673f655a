"""The ledger of used skills: one line of JSON a use in a file of the user's own; nothing of it leaves the machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias, get_args

from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import as_object, decode_json, encode_json, timestamp
from codex_py.protocol.events import (
    CommandFinished,
    CommandStarted,
    Event,
    SessionStarted,
    SkillSuggested,
    SkillUsed,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    TurnStarted,
)
from codex_py.protocol.ops import SkillScope
from codex_py.protocol.value import Value
from codex_py.skills.budget import Preference
from codex_py.skills.model import Skill
from codex_py.text.files import read_lines
from codex_py.text.tokens import estimate_tokens

LEDGER: Final = "skills-usage.jsonl"
# What was in the ledger before it had reached its size; the one before that is gone.
OLDER_LEDGER: Final = "skills-usage.1.jsonl"

_USES: Final = ("explicit", "read", "script")
_NEAREST: Final[tuple[SkillScope, ...]] = ("repo", "user", "admin", "system")
# Two files of this size are less than 5 MB.
_MAX_BYTES: Final = 2_400_000
# The ranking of skills looks no further back.
_RECENT_BYTES: Final = 1024 * 1024
# How a message begins that says the answer before it was wrong, and how others begin that only look like it.
_NO: Final = frozenset(("no", "nope", "wrong", "incorrect", "undo", "revert", "nein", "falsch", "non"))
_WRONG: Final = (
    *("that's wrong", "that is wrong", "this is wrong", "that's not", "that is not", "this is not what", "not what i"),
    *("that was wrong", "that was not", "that wasn't", "i didn't ask", "i did not ask", "don't do that", "roll back"),
    *("roll that back", "take that back", "take it back", "please undo", "please revert", "go back to"),
)
_AGREES: Final = ("no problem", "no worries", "no need", "no thanks", "no more", "no, thanks", "no issues", "no rush")
_DISCARDS: Final = frozenset(("revert", "restore", "stash"))
_DISCARDS_ALL: Final = (["reset", "--hard"], ["checkout", "--"], ["checkout", "."])

_MAX_LINE: Final = 16 * 1024
_WRITE: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# Written as `$name`, picked in a front end, named in words, chosen after a suggestion, chosen by the model unasked.
UseWay: TypeAlias = Literal["named", "picked", "natural", "suggested", "model"]
WAYS: Final[tuple[UseWay, ...]] = get_args(UseWay)


# The last two are said after the turn has ended: the next message corrects it, or its changes are undone.
TurnOutcome: TypeAlias = Literal["completed", "failed", "interrupted", "corrected", "undone"]


class SkillUsage(Value):
    """How often the skill at a path was mentioned or picked, and how often a command read it or ran its scripts.

    `name`, `scope` and `last_used`, a UTC time stamp, are those of the last use.
    """

    path: str
    name: str
    scope: str
    explicit: int
    implicit: int
    last_used: str


class UseDetails(Value):
    """How a use came about, in which turn, and the tokens it put into the context; 0 where they come with a command."""

    session: str = ""
    turn: str = ""
    way: UseWay = "model"
    tokens: int = 0


def record_use(
    home: Path,
    use: SkillUsed,
    *,
    project: str = "",
    suggested: bool = False,
    details: UseDetails | None = None,
    now: float | None = None,
) -> bool:
    """Append a use to the ledger of a `CODEX_HOME`; False when it could not be, which is never an error.

    The file is readable by the user alone. At 2.4 MB it is set aside and a new one begun. `project` is where it was
    used, `suggested` says that the model had been pointed to the skill. `now` is in seconds since the epoch.
    """
    entry: dict[str, Any] = {"name": use.name, "scope": use.scope, "path": str(use.path), "kind": use.kind}
    entry |= ({"project": project} if project else {}) | ({"suggested": True} if suggested else {})
    if details is not None:
        entry |= {name: value for name, value in vars(details).items() if value}
    return append_entry(home, entry, now=now)


def record_suggestion(home: Path, skill: SkillSuggested, *, project: str = "", now: float | None = None) -> bool:
    """Append to the ledger that a skill was suggested; False when it could not be."""
    entry = {"name": skill.name, "scope": skill.scope, "path": str(skill.path), "kind": "suggested"}
    return append_entry(home, entry | ({"project": project} if project else {}), now=now)


def append_entry(home: Path, entry: Mapping[str, Any], *, now: float | None = None) -> bool:
    """Append a line to the ledger with the time; False when it could not be."""
    line = encode_json({"at": timestamp(now), **entry}) + b"\n"
    if len(line) > _MAX_LINE:
        return False
    try:
        make_private_dir(home)
        with _ledger(home, len(line)) as descriptor:
            return os.write(descriptor, line) == len(line)
    except OSError:
        return False


class TurnLedger:
    """Records the uses of one session, and how the turns with uses ended. Only appends: the ledger is not read."""

    def __init__(self, home: Path, *, is_on: bool) -> None:
        self._home = home
        self._is_on = is_on
        self._session = self._turn = ""
        # The turn that has just ended, when skills were used in it.
        self._last = ""
        self._has_uses = False
        self._tokens: dict[str, int] = {}
        self._exits: dict[str, list[int]] = {}
        # The skills that a running command uses, by its call: the path, and whether a script of it runs.
        self._calls: dict[str, list[tuple[Path, bool]]] = {}

    def resume(self, last_turn: object) -> None:
        """The session goes on after a turn of an earlier run."""
        self._last = last_turn if isinstance(last_turn, str) else ""

    def note_event(self, event: Event) -> None:
        """Follow the session: its turns, how they end, and its commands."""
        match event:
            case SessionStarted(thread_id):
                self._session = thread_id
            case TurnStarted(turn_id, messages):
                self._begin_turn(turn_id, messages)
            case CommandStarted(_, command, _, True):
                self._note_users_command(command)
            case CommandFinished(call_id, _, _, output, exit_code) if self._calls:
                self._note_end(call_id, exit_code, len(output))
            case TurnCompleted():
                self._end_turn("completed")
            case TurnFailed():
                self._end_turn("failed")
            case TurnInterrupted():
                self._end_turn("interrupted")
            case _:
                pass

    def note_use(self, use: SkillUsed, way: UseWay, tokens: int, *, project: str, suggested: bool) -> None:
        """Record a use in the running turn."""
        if not self._is_on:
            return
        self._has_uses = True
        details = UseDetails(self._session, self._turn, way, tokens)
        record_use(self._home, use, project=project, suggested=suggested, details=details)

    def note_failure(self, name: str, scope: SkillScope, path: Path, way: UseWay, *, project: str) -> None:
        """Record that a skill which the user named in the running turn could not be loaded or read."""
        if self._is_on:
            entry = {"name": name, "scope": scope, "path": str(path), "kind": "failed", "project": project}
            append_entry(self._home, entry | {"session": self._session, "turn": self._turn, "way": way})

    def note_call(self, call_id: str, path: Path, *, is_script: bool) -> None:
        """A command begins that reads a skill, or runs one of its scripts."""
        if self._is_on:
            self._has_uses = True
            self._calls.setdefault(call_id, []).append((path, is_script))

    def _begin_turn(self, turn: str, messages: Sequence[str]) -> None:
        self._turn = turn
        self._clear()
        if self._last and messages and is_correction(messages[0]):
            self._note_outcome(self._last, "corrected")

    def _note_users_command(self, command: str) -> None:
        if self._last and _discards_changes(command):
            self._note_outcome(self._last, "undone")
            self._last = ""

    def _note_end(self, call_id: str, exit_code: int | None, output_bytes: int) -> None:
        for path, is_script in self._calls.pop(call_id, ()):
            if is_script:
                self._exits.setdefault(str(path), []).extend(() if exit_code is None else (exit_code,))
            else:
                tokens = estimate_tokens(min(output_bytes, _size(path)))
                self._tokens[str(path)] = self._tokens.get(str(path), 0) + tokens

    def _end_turn(self, outcome: TurnOutcome) -> None:
        if self._has_uses:
            paths = dict.fromkeys((*self._tokens, *self._exits))
            skills = [
                {"path": path, "tokens": self._tokens.get(path, 0), "exits": self._exits.get(path, [])}
                for path in paths
            ]
            self._note_outcome(self._turn, outcome, skills)
        self._last = self._turn if self._has_uses else ""
        self._clear()

    def _clear(self) -> None:
        self._has_uses = False
        self._tokens, self._exits, self._calls = {}, {}, {}

    def _note_outcome(self, turn: str, outcome: TurnOutcome, skills: Sequence[Mapping[str, Any]] = ()) -> None:
        if self._is_on:
            record_outcome(self._home, self._session, turn, outcome, skills)


def record_outcome(
    home: Path, session: str, turn: str, outcome: TurnOutcome, skills: Sequence[Mapping[str, Any]] = ()
) -> bool:
    """Append how a turn ended, with the tokens that commands read of skills and the exit codes of their scripts."""
    entry = {"kind": "turn", "session": session, "turn": turn, "outcome": outcome}
    return append_entry(home, entry | ({"skills": list(skills)} if skills else {}))


def is_correction(message: str) -> bool:
    """Whether a message of the user begins by saying that what was done is wrong."""
    words = " ".join(message[:200].lower().replace("\u2019", "'").split())
    if words.startswith(_AGREES):
        return False
    first = words.split(" ", 1)[0].rstrip(".,;:!?-\u2013\u2014")
    return first in _NO or words.startswith(_WRONG)


def _discards_changes(command: str) -> bool:
    """Whether a command line makes git revert, restore or set aside what was changed."""
    words = command.split()[:50]
    after_git = [words[at + 1 : at + 3] for at, word in enumerate(words) if word == "git"]
    return any(after[:1] and (after[0] in _DISCARDS or after in _DISCARDS_ALL) for after in after_git)


def read_usage(home: Path) -> tuple[SkillUsage, ...]:
    """The uses on record, by skill, the last used first. Lines that make no sense are skipped; no file, no uses."""
    found: dict[str, SkillUsage] = {}
    for name in (OLDER_LEDGER, LEDGER):
        for entry in _entries(home / name, 2 * _MAX_BYTES):
            path, use_type, at = entry.get("path"), entry.get("kind"), entry.get("at")
            if not (isinstance(path, str) and isinstance(at, str) and use_type in _USES):
                continue
            before = found.get(path)
            explicit, implicit = (before.explicit, before.implicit) if before else (0, 0)
            found[path] = SkillUsage(
                path,
                str(entry.get("name", "")),
                str(entry.get("scope", "")),
                explicit + (use_type == "explicit"),
                implicit + (use_type != "explicit"),
                max(at, before.last_used) if before else at,
            )
    return tuple(sorted(found.values(), key=lambda usage: (usage.last_used, usage.path), reverse=True))


def count_uses(home: Path) -> Counter[str]:
    """The uses on record by path, of the newest 1 MiB of lines."""
    counts: Counter[str] = Counter()
    sizes = {name: _size(home / name) for name in (OLDER_LEDGER, LEDGER)}
    older = max(0, _RECENT_BYTES - sizes[LEDGER])
    for name, most in ((OLDER_LEDGER, older), (LEDGER, _RECENT_BYTES)):
        for entry in _entries(home / name, most, skip=max(0, sizes[name] - most)) if most else ():
            path = entry.get("path")
            if isinstance(path, str) and entry.get("kind") in _USES:
                counts[path] += 1
    return counts


def used_first(skills: Sequence[Skill], home: Path) -> Preference:
    """The order in which skills keep their place in a list that is too long: by use, then the nearest scope first."""
    uses = count_uses(home)
    counts = [uses[str(skill.canonical_path)] for skill in skills]
    order = sorted(range(len(skills)), key=lambda at: (-counts[at], _NEAREST.index(skills[at].scope), at))
    return Preference(tuple(order), sum(map(bool, counts)))


def read_entries(home: Path) -> Iterator[dict[str, Any]]:
    """Every line of the ledger that is an object, the oldest first."""
    for name in (OLDER_LEDGER, LEDGER):
        yield from _entries(home / name, 2 * _MAX_BYTES)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextlib.contextmanager
def _ledger(home: Path, wanted: int) -> Generator[int]:
    """The ledger open for appending, a full one set aside before; raises `OSError`."""
    path = home / LEDGER
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_size + wanted > _MAX_BYTES:
            _set_aside(descriptor, path)
            full, descriptor = descriptor, _open(path)
            os.close(full)
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    descriptor = open_private(path, _WRITE)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"not a regular file: `{path}`")


def _set_aside(descriptor: int, path: Path) -> None:
    """Rename the full ledger, unless another process does or has just done so; raises `OSError`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    except OSError:
        # A file system without locks: at worst two processes rename, and some old uses are forgotten.
        pass
    if os.path.samestat(os.fstat(descriptor), path.stat()):
        path.replace(path.with_name(OLDER_LEDGER))


def _entries(path: Path, most: int, *, skip: int = 0) -> Iterator[dict[str, Any]]:
    """The objects on the lines of a ledger: at most `most` bytes after the first `skip`; an unreadable file ends it."""
    left = most
    with contextlib.suppress(OSError), _reading(path) as stream:
        if skip:
            # The rest of the line before, whose beginning is left out.
            stream.seek(skip - 1)
            stream.readline(_MAX_LINE)
        for line in read_lines(stream, limit=_MAX_LINE):
            left -= len(line)
            if left < 0:
                return
            with contextlib.suppress(ValueError):
                yield as_object(decode_json(line))


def _reading(path: Path) -> BinaryIO:
    descriptor = os.open(path, _READ)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(f"not a regular file: `{path}`")
