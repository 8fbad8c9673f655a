"""Stored sessions for the tests of lists: quick to write, each with a first prompt, a directory, tokens and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.protocol.items import message
from codex_py.protocol.usage import TokenUsage
from codex_py.rollout import format as records
from tests.unit.rollout_builders import meta, raw_line, written


def turn_lines(
    prompt: str, answer: str, *, ordinal: int, cwd: str = "/work", stamp: str = "", tokens: int = 110
) -> list[bytes]:
    """The records of one turn, as this program writes them; eight of them."""
    context = {"cwd": cwd, "model": "gpt-5.2"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}
    usage = TokenUsage(tokens - 10, 0, 10, 0, tokens)
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("event_msg", records.task_started_payload(f"t{ordinal}", window=None)),
        ("turn_context", context),
        ("response_item", message("user", prompt).decode()),
        ("event_msg", records.user_message_payload(prompt)),
        ("response_item", said),
        ("event_msg", records.agent_message_payload(answer)),
        ("event_msg", records.token_count_payload(usage, usage, window=None)),
        ("event_msg", records.task_complete_payload(f"t{ordinal}", answer, duration_ms=5)),
    ]
    return [
        raw_line(kind, payload, ordinal=ordinal + place, stamp=stamp) for place, (kind, payload) in enumerate(payloads)
    ]


def session(home: Path, *prompts: str, cwd: str = "/work", stamp: str = "", **header: Any) -> Path:
    """A session with a turn for each prompt."""
    lines: list[bytes] = []
    for prompt in prompts:
        lines += turn_lines(
            prompt, f"did {prompt}", ordinal=1 + len(lines), cwd=cwd, stamp=stamp, tokens=110 + 14 * len(lines)
        )
    return written(home, lines, meta(cwd=cwd, **header))
