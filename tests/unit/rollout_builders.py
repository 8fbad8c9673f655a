"""Sessions on disk for the rollout tests, written the way this program and Codex CLI write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.protocol.encoding import encode_json, timestamp, uuid7
from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout.format import SessionMeta, encode_line, rollout_path
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder

STAMP = "2026-11-21T22:02:11.207Z"


def meta(thread_id: str = "", *, cwd: str = "/work", **fields: Any) -> SessionMeta:
    return SessionMeta(
        id=thread_id or uuid7(),
        timestamp=STAMP,
        cwd=cwd,
        originator="codex_exec",
        cli_version="0.1.0",
        source=fields.pop("source", "exec"),
        model_provider="fake",
        base_instructions="Be careful.",
        **fields,
    )


def no_warning(text: str) -> None:
    raise AssertionError(text)


def conversation(count: int = 4) -> list[ResponseItem]:
    """`count` items of mixed types, every one different."""
    items: list[ResponseItem] = []
    for number in range(0, count, 4):
        call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": f"c{number}"}
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": 'a "quoted" näme {}}\n\\'}
        answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"a {number}"}]}
        items += [message("user", f"q {number}"), *map(ResponseItem.from_wire, (call, output, answer))]
    return items[:count]


def stored(home: Path, items: list[ResponseItem], header: SessionMeta | None = None) -> Path:
    """A session written by the recorder."""
    recorder = RolloutRecorder.create(home, header or meta(), warn=no_warning)
    for item in items:
        recorder.record("response_item", item.encoded)
    recorder.close()
    return recorder.path


def append(path: Path, *items: ResponseItem) -> None:
    """What a resumed session does."""
    recorder = RolloutRecorder.resume(load_session(path), warn=no_warning)
    for item in items:
        recorder.record("response_item", item.encoded)
    recorder.close()


def raw_line(kind: str, payload: dict[str, Any], *, ordinal: int = 0, stamp: str = "") -> bytes:
    return encode_line(ordinal, kind, encode_json(payload), timestamp=stamp or timestamp())


def written(home: Path, lines: list[bytes], header: SessionMeta | None = None) -> Path:
    """A session file of raw lines below a header."""
    header = header or meta()
    path = rollout_path(home, header.id, when=header.timestamp)
    path.parent.mkdir(parents=True, exist_ok=True)
    ordinal = header.forked_from_ordinal_exclusive or 0
    path.write_bytes(b"".join([raw_line("session_meta", header.to_payload(), ordinal=ordinal, stamp=STAMP), *lines]))
    return path
