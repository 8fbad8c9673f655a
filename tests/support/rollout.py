"""Reading rollout files as a stranger would: JSON lines, nothing of ours imported."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Record:
    timestamp: str
    ordinal: int
    type: str
    payload: dict[str, Any]


def read_rollout(path: Path) -> list[Record]:
    """Every line of the file; each must be whole, and end with a newline."""
    text = path.read_text()
    assert text.endswith("\n"), "the last line is torn"
    lines = [json.loads(line) for line in text.splitlines()]
    return [Record(line["timestamp"], line["ordinal"], line["type"], line["payload"]) for line in lines]


def recorded_items(path: Path) -> list[dict[str, Any]]:
    """The history as it was written."""
    return [record.payload for record in read_rollout(path) if record.type == "response_item"]


def recorded_events(path: Path) -> list[str]:
    """The types of the `event_msg` lines, in order."""
    return [str(record.payload["type"]) for record in read_rollout(path) if record.type == "event_msg"]
