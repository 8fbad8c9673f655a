"""Takes a session from a file: an export of `session_export`, or a rollout of this program's or of Codex CLI.

It becomes a session of its own, with a new id. What it was allowed is not taken over: neither the approval and sandbox
policies of its turns nor its instructions count here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json, timestamp, uuid7
from codex_py.rollout.format import encode_line, rollout_path
from codex_py.rollout.records import MAX_ORDINAL
from codex_py.text.files import os_reason

_MAX_LINE: Final = 64 << 20
_LEFT_OUT: Final = ("base_instructions", "instructions", "forked_from_id", "forked_from_ordinal_exclusive")
_POLICIES: Final = ("approval_policy", "sandbox_policy", "permission_profile", "user_instructions")
_STAMP: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:Z+-]{0,20}")
_MAX_DOCUMENT: Final = 256 << 20
_SKIPPED: Final = b" ,\t\r"


class ImportedSession(NamedTuple):
    """What was taken: the new id, how many records, and how many lines were not whole."""

    id: str
    path: Path
    records: int
    damaged: int


def import_session(home: Path, source: Path, *, cwd: Path | None, user_home: str) -> ImportedSession:
    """Read a file as a new session; with `cwd` it works there from now on. Raises `UserError`."""
    try:
        with source.open("rb") as stream:
            return _Import(home, source, cwd, user_home).take(stream)
    except OSError as error:
        raise UserError(f"cannot import `{source}`: {os_reason(error)}") from error


class _Import:
    def __init__(self, home: Path, source: Path, cwd: Path | None, user_home: str) -> None:
        self._home = home
        self._source = source
        self._cwd = cwd
        self._user_home = user_home
        self._id = str(uuid7())
        self._from = ""
        self._damaged = 0

    def take(self, stream: Iterable[bytes]) -> ImportedSession:
        records = self._records(stream)
        head = next(records, None)
        if head is None and self._source.stat().st_size <= _MAX_DOCUMENT:
            # Another program may have laid the document out in its own way.
            records = self._document()
            head = next(records, None)
        if head is None or head["type"] != "session_meta":
            raise UserError(
                f"cannot import `{self._source}`: it is no session",
                hint="`codex-py sessions export --format json` writes one, and so does Codex CLI",
            )
        meta = as_object(head["payload"])
        self._from = str(meta.get("cwd") or "")
        path = rollout_path(self._home, self._id, when=_stamp(meta.get("timestamp")))
        make_private_dir(path.parent)
        draft = path.with_name(f".{path.name}.part")
        try:
            count = self._write(draft, meta, records)
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)
        return ImportedSession(self._id, path, count, self._damaged)

    def _write(self, draft: Path, meta: dict[str, Any], records: Iterator[dict[str, Any]]) -> int:
        remaining = {key: value for key, value in meta.items() if key not in _LEFT_OUT}
        own = {**remaining, "id": self._id, "session_id": self._id, "cwd": self._place(self._from)}
        # An agent's session would be hidden as one of a parent that is not here.
        for key in ("source", "parent_thread_id", "thread_source", "agent_nickname", "agent_role"):
            own.pop(key, None)
        own = {**own, "source": "cli", "base_instructions": {"text": ""}}
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
            file.write(encode_line(0, "session_meta", encode_json(own), timestamp=_stamp(meta.get("timestamp"))))
            last = 0
            for record in records:
                if record["type"] == "session_meta":
                    continue
                ordinal = record.get("ordinal")
                last = ordinal if isinstance(ordinal, int) and last < ordinal < MAX_ORDINAL else last + 1
                payload = encode_json(self._payload(record["type"], record["payload"]))
                file.write(encode_line(last, record["type"], payload, timestamp=_stamp(record.get("timestamp"))))
        return last

    def _payload(self, record_type: str, payload: dict[str, Any]) -> dict[str, Any]:
        if record_type != "turn_context":
            return payload
        remaining = {key: value for key, value in payload.items() if key not in _POLICIES}
        return {**remaining, "cwd": self._place(str(payload.get("cwd") or ""))} if "cwd" in payload else remaining

    def _place(self, directory: str) -> str:
        """Where a directory of the session lies here."""
        if self._cwd is not None:
            inside = directory.removeprefix(self._from) if directory.startswith(f"{self._from}/") else ""
            return f"{self._cwd}{inside}"
        if directory == "~" or directory.startswith("~/"):
            return f"{self._user_home}{directory[1:]}"
        return directory

    def _document(self) -> Iterator[dict[str, Any]]:
        try:
            document = as_object(decode_json(self._source.read_bytes()))
        except (ValueError, RecursionError):
            return
        self._damaged = 0
        for value in as_list(document.get("records")):
            record = _checked(as_object(value))
            self._damaged += record is None
            if record is not None:
                yield record

    def _records(self, stream: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for raw in stream:
            line = raw.strip()
            if len(line) > _MAX_LINE:
                self._damaged += 1
                continue
            if line.startswith(b'{"format":'):
                line = line.partition(b'"records":[')[2]
            line = line.strip(_SKIPPED)
            if line in (b"", b"]", b"]}"):
                continue
            record = _record(line)
            if record is None:
                self._damaged += 1
            else:
                yield record


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        return _checked(as_object(decode_json(line)))
    except (ValueError, RecursionError):
        return None


def _checked(record: dict[str, Any]) -> dict[str, Any] | None:
    is_whole = isinstance(record.get("type"), str) and isinstance(record.get("payload"), dict)
    return record if is_whole and re.fullmatch(r"[a-z_]{1,40}", record["type"]) else None


def _stamp(value: object) -> str:
    """A time stamp that may become part of a path and of a line; that of now for anything else."""
    return value if isinstance(value, str) and _STAMP.fullmatch(value) else timestamp()
