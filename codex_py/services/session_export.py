"""A stored session as a document: Markdown, one HTML page, or JSON that `session_import` takes back.

Turn by turn, so that a long session needs no more memory than a short one. All text passes a `TextCleaner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object, decode_or_none, encode_json
from codex_py.rollout.records import RolloutRecord, all_records, open_stored, read_meta
from codex_py.rollout.stored_turns import HostMessage, PastItem, PastUserMessage, past_items
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import (
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFailure,
    TranscriptItem,
    check_turn,
    iter_turns,
    read_turns,
)
from codex_py.services.session_cleaning import TextCleaner
from codex_py.text.sanitize import sanitize_json

ExportFormat: TypeAlias = Literal["md", "html", "json", "jsonl"]
FORMAT_NAME: Final = "codex-py session"
FORMAT_VERSION: Final = 1
_OMITTED: Final = "[left out]"
_MAX_OUTPUT: Final = 20_000
_MAX_TITLE: Final = 300
# All that a fork took over is in its export.
_FORK_KEYS: Final = ("forked_from_id", "forked_from_ordinal_exclusive")
_CALLS: Final = ("call", "output")
_MESSAGE_ITEMS: Final = ("UserMessage", "AgentMessage", "Reasoning", "Plan", "ContextCompaction")
_TOOL_EVENTS: Final = (
    *("apply_patch_", "collab_", "dynamic_tool_", "exec_", "mcp_tool_", "patch_apply_", "raw_response_item"),
    *("terminal_interaction", "turn_diff", "view_image_", "web_search_"),
)


class ExportChoice(NamedTuple):
    """What is exported: from turn `since` on, without calls of tools when not `tools`.

    `redacts_more` takes out what tools printed.
    """

    format: ExportFormat = "md"
    tools: bool = True
    since: int = 1
    redacts_more: bool = False


class ExportHead(NamedTuple):
    """The heading of a transcript."""

    title: str
    facts: tuple[tuple[str, str], ...]


class ExportedTurn(NamedTuple):
    """One turn; `number` is 0 for what stands before the first. The texts are clean."""

    number: int
    time: str
    parts: tuple[ExportedPart, ...]


class ExportedPart(NamedTuple):
    """A piece of a turn. `title` is what a folded one is called; `body` is Markdown for what a person or model said."""

    type: Literal["user", "assistant", "thinking", "command", "patch", "tool", "note", "error"]
    title: str
    body: str
    ok: bool = True


def export_json(path: Path, choice: ExportChoice, cleaner: TextCleaner, write: Callable[[bytes], object]) -> None:
    """Write the records of a session and of those it was forked from: a document, or its lines.

    Raises `UserError` for a session that cannot be read.
    """
    lines = map(sanitize_json, _records(path, choice, cleaner))
    if choice.format == "jsonl":
        for line in lines:
            write(line + b"\n")
        return
    write(b'{"format":%b,"version":%d,"records":[' % (encode_json(FORMAT_NAME), FORMAT_VERSION))
    for number, line in enumerate(lines):
        write((b",\n" if number else b"\n") + line)
    write(b"\n]}\n")


def _records(path: Path, choice: ExportChoice, cleaner: TextCleaner) -> Iterator[bytes]:
    with open_stored(path) as stream:
        first = stream.readline()
    read_meta(path, first)
    begins = begin_of(path, choice.since)
    head = as_object(decode_or_none(first))
    payload = as_object(head.get("payload"))
    yield cleaner.clean_record({**head, "payload": {key: payload[key] for key in payload if key not in _FORK_KEYS}})
    for record in all_records(path):
        if record.record_type == "session_meta" or record.ordinal < begins:
            continue
        if (payload := _chosen(record, choice)) is not None:
            found = {"timestamp": record.timestamp, "ordinal": record.ordinal, "type": record.record_type}
            more = {} if record.metadata is None else {"metadata": record.metadata}
            yield cleaner.clean_record({**found, "payload": payload, **more})


def begin_of(path: Path, since: int) -> int:
    """The ordinal of the record that turn `since` begins with. Raises `UsageError` where there is no such turn."""
    if since <= 1:
        return 0
    turns = read_turns(path)
    check_turn(path, turns, since)
    return turns[since - 1].begins


def _chosen(record: RolloutRecord, choice: ExportChoice) -> dict[str, Any] | None:
    payload = record.payload
    if choice.tools and not choice.redacts_more:
        return payload
    match record.record_type:
        case "response_item" | "early_output":
            return _chosen_item(payload, choice)
        case "compacted" if "replacement_history" in payload:
            items = [_chosen_item(as_object(item), choice) for item in as_list(payload["replacement_history"])]
            return {**payload, "replacement_history": [item for item in items if item is not None]}
        case "event_msg" if _is_of_tool(payload):
            # It repeats what the items say.
            return None
        case _:
            return payload


def _chosen_item(item: dict[str, Any], choice: ExportChoice) -> dict[str, Any] | None:
    if not choice.tools and any(word in str(item.get("type", "")) for word in _CALLS):
        return None
    return {**item, "output": _OMITTED} if choice.redacts_more and "output" in item else item


def _is_of_tool(event: dict[str, Any]) -> bool:
    """Whether an event, of Codex CLI for the most part, shows a call of a tool or its output."""
    event_type = str(event.get("type", ""))
    if event_type in ("item_started", "item_completed"):
        return as_object(event.get("item")).get("type") not in _MESSAGE_ITEMS
    return event_type.startswith(_TOOL_EVENTS)


def export_head(session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner) -> ExportHead:
    """Title and facts of a session. Nothing of what was said before the first exported turn is in them."""
    opening = session.first_prompt
    if choice.since > 1:
        turns = read_turns(session.path)
        check_turn(session.path, turns, choice.since)
        opening = turns[choice.since - 1].prompt
    # Cut after secrets are taken out: half of one would not be known.
    prompt = " ".join(cleaner.clean(opening).split())
    facts = {
        "session": session.id,
        "directory": cleaner.clean(session.cwd),
        "branch": session.branch,
        "created": session.created[:16].replace("T", " "),
        "model": " · ".join(filter(None, (session.model, session.provider))),
        "tokens": f"{session.tokens:,}" if session.tokens else "",
        "cost": session.cost.in_words() if session.requests else "",
        "forked from": session.forked_from,
    }
    title = cleaner.clean(session.name) or prompt[:80] or session.id
    return ExportHead(title, tuple((name, value) for name, value in facts.items() if value))


def exported_turns(session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner) -> Iterator[ExportedTurn]:
    """The turns of a session from `choice.since` on, with what is to be shown of them."""
    cwd = Path(session.cwd or "/")
    for number, entries in iter_turns(session.path):
        if number >= choice.since or (choice.since == 1 and not number):
            parts = tuple(part for part in _parts(entries, cwd, cleaner) if _is_shown(part, choice))
            if parts:
                yield ExportedTurn(number, entries[0].timestamp[:16].replace("T", " "), _without_output(parts, choice))


def _is_shown(part: ExportedPart, choice: ExportChoice) -> bool:
    return choice.tools or part.type not in ("command", "patch", "tool")


def _without_output(parts: tuple[ExportedPart, ...], choice: ExportChoice) -> tuple[ExportedPart, ...]:
    if not choice.redacts_more:
        return parts
    return tuple(part._replace(body=_OMITTED) if part.type in ("command", "tool") else part for part in parts)


def _parts(entries: Sequence[TranscriptEntry], cwd: Path, cleaner: TextCleaner) -> Iterator[ExportedPart]:
    happened = [_happened(entry) for entry in entries]
    found = list(filter(None, map(_part, past_items(list(chain.from_iterable(happened)), cwd))))
    texts = cleaner.clean_all([text for part in found for text in (part.title, part.body)])
    # Cut after secrets are taken out: half of one would not be known.
    for part, title, body in zip(found, texts[::2], texts[1::2], strict=True):
        shown = title[:_MAX_TITLE] if part.type == "tool" else title
        yield part._replace(title=shown, body=_shortened(body))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}\n… shortened"


def _happened(entry: TranscriptEntry) -> Sequence[dict[str, Any] | events.Event]:
    match entry:
        case TranscriptItem(value=value):
            return (value,)
        case TranscriptCompaction(message=message):
            return (events.ContextCompacted(0, 0, "local", "user_requested", message),)
        case TranscriptFailure(message=message):
            return (events.TurnFailed("", message),)


def _part(past: PastItem) -> ExportedPart | None:
    match past.happened:
        case PastUserMessage(text, pictures):
            return ExportedPart("user", "", text + "\n\n[picture]" * len(pictures))
        case HostMessage(text):
            return _host_part(text)
        case events.MessageDone(text):
            return ExportedPart("assistant", "", text) if text.strip() else None
        case events.ReasoningDone(text):
            return ExportedPart("thinking", "thinking", text)
        case events.CommandFinished() as ran:
            code = ran.exit_code
            outcome = "" if code == 0 else f" · exit {code}" if code is not None else f" · {ran.status}"
            return ExportedPart("command", f"$ {ran.command}{outcome}", ran.output, code == 0)
        case events.PatchFinished(_, changes, ok, output):
            diff = "\n".join(f"--- {change.path}\n{change.diff}".rstrip() for change in changes) or output
            names = ", ".join(str(change.path) for change in changes)
            return ExportedPart("patch", f"{'edit' if ok else 'failed edit'} {names}".strip(), diff, ok)
        case events.ToolCallFinished(_, tool, arguments, ok, _, output):
            return ExportedPart("tool", f"{tool} {arguments}", output, ok)
        case events.WebSearched(_, query):
            return ExportedPart("tool", f"web search: {query}", "")
        case events.PlanUpdated() as plan:
            steps = "\n".join(f"- [{'x' if step.status == 'completed' else ' '}] {step.text}" for step in plan.steps)
            return ExportedPart("note", "plan", steps)
        case events.ContextCompacted() as compacted:
            return ExportedPart("note", "compacted", compacted.summary)
        case events.TurnFailed(_, message):
            return ExportedPart("error", "", message, ok=False)
        case _:
            return None


def _host_part(text: str) -> ExportedPart | None:
    if text.startswith("<skill>"):
        return ExportedPart("note", f"skill: {text.partition('<name>')[2].partition('</name>')[0].strip()}", "")
    return ExportedPart("note", "interrupted", "") if text.startswith("<turn_aborted>") else None
