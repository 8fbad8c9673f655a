"""Takes a session from a file: an export of `session_export`, or a rollout of this program's or of Codex CLI.

It becomes a session of its own, with a new id. What it was allowed is not taken over: neither the approval and sandbox
policies of its turns nor its instructions count here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json, timestamp, uuid7
from codex_py.rollout.files import home_of
from codex_py.rollout.format import encode_line, rollout_path
from codex_py.rollout.records import MAX_ORDINAL, all_records, any_file_of
from codex_py.services.session_cleaning import path_pattern, replace_texts
from codex_py.text.compression import COMPRESSION_ERRORS, open_packed
from codex_py.text.files import os_reason, read_lines
from codex_py.text.sanitize import sanitize_line

_MAX_LINE: Final = 64 << 20
_MAX_DOCUMENT: Final = 256 << 20
_MAX_FILE: Final = 2 << 30
_PARENT: Final = "forked_from_id"
_PARENT_END: Final = "forked_from_ordinal_exclusive"
_LEFT_OUT: Final = ("base_instructions", "instructions", _PARENT, _PARENT_END)
_POLICIES: Final = (
    "approval_policy",
    "approvals_reviewer",
    "sandbox_policy",
    "permission_profile",
    "user_instructions",
    "developer_instructions",
    "collaboration_mode",
)
# An agent's session would be hidden as one of a parent that is not here.
_OF_AGENTS: Final = ("source", "parent_thread_id", "thread_source", "agent_nickname", "agent_role")
# What is in force, policies among it, as Codex CLI notes it.
_SETTINGS_EVENT: Final = "thread_settings_applied"
_STAMP: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:Z+-]{0,20}")
_SKIPPED: Final = b" ,\t\r"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class ImportedSession(NamedTuple):
    """A session that was taken from a file, under its new id."""

    id: str
    path: Path
    records: int
    damaged: int
    """Lines that were left out because they are no records."""
    is_cut: bool = False
    """Whether the end of an exported document is missing."""


def import_session(home: Path, source: Path, *, cwd: Path | None, user_home: str) -> ImportedSession:
    """Read a file as a new session; with `cwd` it works there from now on. Raises `UserError`."""
    try:
        with _opened(source) as stream:
            return _Import(home, source, cwd, user_home).take(stream)
    except OSError as error:
        raise _refused(source, os_reason(error)) from error
    except COMPRESSION_ERRORS as error:
        raise _refused(source, "its compression is damaged") from error


def _refused(source: Path, reason: str, hint: str | None = None) -> UserError:
    return UserError(f"cannot import `{sanitize_line(str(source))}`: {reason}", hint=hint)


@contextmanager
def _opened(source: Path) -> Generator[BinaryIO]:
    """The file, unpacked if it is compressed, as Codex CLI leaves old sessions."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refused(source, "it is not a regular file")
        if file.peek(len(_ZSTD_MAGIC))[: len(_ZSTD_MAGIC)] != _ZSTD_MAGIC:
            yield file
            return
        with open_packed(file) as unpacked:
            yield unpacked


class _Import:
    def __init__(self, home: Path, source: Path, cwd: Path | None, user_home: str) -> None:
        self._home = home
        self._source = source
        self._cwd = cwd
        self._user_home = user_home
        self._id = str(uuid7())
        self._from = ""
        self._moved: re.Pattern[str] | None = None
        self._damaged = 0
        # A document begins in its first line, and ends with a mark of its own.
        self._is_document = self._has_ended = False

    def take(self, stream: BinaryIO) -> ImportedSession:
        records = self._records(stream)
        head = next(records, None)
        if head is None and self._source.stat().st_size <= _MAX_DOCUMENT:
            # Another program may have laid the document out in its own way.
            records = self._document()
            head = next(records, None)
        if head is None or head["type"] != "session_meta":
            hint = "`codex-py sessions export --format json` writes one, and so does Codex CLI"
            raise _refused(self._source, "it is no session", hint)
        meta = as_object(head["payload"])
        self._set_directory(meta.get("cwd"))
        path = rollout_path(self._home, self._id, when=_stamp(meta.get("timestamp")))
        make_private_dir(path.parent)
        draft = path.with_name(f".{path.name}.part")
        try:
            count = self._write(draft, meta, chain(self._inherited(meta), records))
            if not count:
                raise _refused(self._source, "there is nothing in it but the first line")
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)
        return ImportedSession(self._id, path, count, self._damaged, self._is_document and not self._has_ended)

    def _set_directory(self, cwd: object) -> None:
        self._from = cwd if isinstance(cwd, str) else ""
        if self._cwd is None and not os.path.isabs(self._mapped_directory(self._from)):  # noqa: PTH117
            raise _refused(self._source, "it does not say where it worked", "name a directory by `--cwd DIR`")
        # `/` and `~` mean too much elsewhere in a text.
        if self._cwd is not None and self._from not in ("", "/", "~", str(self._cwd)):
            self._moved = path_pattern(self._from)

    def _inherited(self, meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The records that a fork continues, which are in another file."""
        parent, end = meta.get(_PARENT), meta.get(_PARENT_END)
        if not isinstance(parent, str) or not isinstance(end, int):
            return
        homes = (home_of(self._source), self._home)
        path = next((found for home in homes if (found := any_file_of(home, parent)) is not None), None)
        if path is None:
            reason = f"it goes on from session `{sanitize_line(parent[:80])}`, which is not there"
            raise _refused(self._source, reason, "import it where both are, or import an export of it")
        for record in all_records(path):
            if record.ordinal < end:
                found = {"timestamp": record.timestamp, "ordinal": record.ordinal, "type": record.record_type}
                yield {**found, "payload": record.payload, "metadata": record.metadata}

    def _write(self, draft: Path, meta: dict[str, Any], records: Iterator[dict[str, Any]]) -> int:
        own = {key: value for key, value in meta.items() if key not in (*_LEFT_OUT, *_OF_AGENTS)}
        own = {**self._mapped(own), "id": self._id, "session_id": self._id, "cwd": self._mapped_directory(self._from)}
        own = {**own, "source": "cli", "base_instructions": {"text": ""}}
        count = last = 0
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
            file.write(encode_line(0, "session_meta", encode_json(own), timestamp=_stamp(meta.get("timestamp"))))
            for record in records:
                if record["type"] == "session_meta" or record["payload"].get("type") == _SETTINGS_EVENT:
                    continue
                ordinal = record.get("ordinal")
                last = ordinal if type(ordinal) is int and last < ordinal < MAX_ORDINAL else last + 1
                payload = encode_json(self._payload(record["type"], record["payload"]))
                if isinstance(record.get("metadata"), dict):
                    # Codex CLI has it behind the payload.
                    payload += b',"metadata":' + encode_json(self._mapped(record["metadata"]))
                file.write(encode_line(last, record["type"], payload, timestamp=_stamp(record.get("timestamp"))))
                count += 1
        return count

    def _payload(self, record_type: str, payload: dict[str, Any]) -> dict[str, Any]:
        if record_type != "turn_context":
            return self._mapped(payload)
        remaining = self._mapped({key: value for key, value in payload.items() if key not in _POLICIES})
        return (
            {**remaining, "cwd": self._mapped_directory(str(payload.get("cwd") or ""))}
            if "cwd" in payload
            else remaining
        )

    def _mapped(self, value: dict[str, Any]) -> dict[str, Any]:
        """With the paths below the directory of the session as they are below the new one."""
        pattern, directory = self._moved, str(self._cwd)
        if pattern is None or self._from.encode() not in encode_json(value):
            return value
        return as_object(replace_texts(value, lambda text: pattern.sub(lambda _: directory, text)))

    def _mapped_directory(self, directory: str) -> str:
        """Where a directory of the session lies here."""
        if self._cwd is not None:
            inside = directory.removeprefix(self._from) if directory.startswith(f"{self._from}/") else ""
            mapped = os.path.normpath(f"{self._cwd}{inside}")
            return mapped if mapped.startswith(f"{str(self._cwd).rstrip('/')}/") else str(self._cwd)
        if directory == "~" or directory.startswith("~/"):
            return f"{self._user_home}{directory[1:]}"
        return directory

    def _document(self) -> Iterator[dict[str, Any]]:
        try:
            document = as_object(decode_json(self._source.read_bytes()))
        except (ValueError, RecursionError):
            return
        self._damaged, self._is_document = 0, False
        for value in as_list(document.get("records")):
            record = _checked(as_object(value))
            self._damaged += record is None
            if record is not None:
                yield record

    def _records(self, stream: BinaryIO) -> Iterator[dict[str, Any]]:
        size = 0
        for raw in read_lines(stream, limit=_MAX_LINE):
            size += len(raw)
            if size > _MAX_FILE:
                raise _refused(self._source, f"it is larger than {_MAX_FILE >> 20} MiB")
            line = raw.strip()
            if line.startswith(b'{"format":'):
                self._is_document = True
                line = line.partition(b'"records":[')[2]
            self._has_ended = self._has_ended or line == b"]}"
            line = line.strip(_SKIPPED)
            if line in (b"", b"]", b"]}"):
                continue
            record = _record(line)
            if record is None:
                self._damaged += 1
            else:
                yield record


def _record(line: bytes) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError):
        return _checked(as_object(decode_json(line)))
    return None


def _checked(record: dict[str, Any]) -> dict[str, Any] | None:
    is_whole = isinstance(record.get("type"), str) and isinstance(record.get("payload"), dict)
    return record if is_whole and re.fullmatch(r"[a-z_]{1,40}", record["type"]) else None


def _stamp(value: object) -> str:
    """A time stamp that may become part of a path and of a line; that of now for anything else."""
    return value if isinstance(value, str) and _STAMP.fullmatch(value) else timestamp()
