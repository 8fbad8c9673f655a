"""Reads the answer of a hook as Claude Code and Codex CLI do, and combines the answers of several hooks."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.hooks.command import HookResult
from codex_py.hooks.schema import HOOK_EVENTS, Hook
from codex_py.protocol.encoding import as_object, decode_or_none
from codex_py.protocol.value import Value

Permission: TypeAlias = Literal["allow", "ask", "deny"]

NO_REASON: Final = "it gave no reason"
_BLOCK: Final = 2
_MAX_CONTEXT: Final = 16 * 1024
_MAX_REASON: Final = 4 * 1024
_MAX_ERROR: Final = 200
# An object with one of these keys is an answer.
_ANSWER_KEYS: Final = frozenset({"continue", "decision", "hookSpecificOutput", "stopReason", "systemMessage"})
_OTHER_OUTPUTS: Final = ("updatedMCPToolOutput", "updatedToolOutput")
_CONTROL: Final = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")


class HookAnswer(Value):
    """The answer of one hook.

    `permission` is for a tool call, `blocks` for everything else; both may have a `reason`. `context` is for the model,
    `message` for the user. `stop` says why all work must end. `updated` replaces fields of a tool's input. A `warning`
    says what was wrong with the hook itself.
    """

    permission: Permission | None = None
    blocks: bool = False
    reason: str = ""
    context: str = ""
    stop: str | None = None
    message: str = ""
    updated: Mapping[str, Any] | None = None
    warning: str = ""


def read_answer(event: str, result: HookResult) -> HookAnswer:
    """The answer that the result of a hook's command means; what cannot be read is a warning."""
    if result.exit_code is None:
        return HookAnswer(warning=result.error)
    if result.exit_code == _BLOCK:
        message = _text(result.stderr, _MAX_REASON).strip()
        if not HOOK_EVENTS[event].blocks:
            return HookAnswer(message=message)
        return _no(event, message or NO_REASON)
    if result.exit_code:
        message = " ".join(_text(result.stderr, _MAX_ERROR).split())
        return HookAnswer(warning=f"failed with exit code {result.exit_code}" + (f": {message}" if message else ""))
    return _read_stdout(event, result.stdout)


def fail_closed_answer(event: str, result: HookResult, answer: HookAnswer) -> HookAnswer:
    """The answer of a hook with `fail_closed`: its failure means no, unless it has said no itself.

    Text in place of JSON is a failure too, where text means nothing.
    """
    if answer.permission == "deny" or answer.blocks or answer.stop is not None:
        return answer
    failure = answer.warning
    stdout = result.stdout.removeprefix(BOM_UTF8).strip()
    is_text = bool(stdout) and not stdout.startswith(b"{")
    if not failure and result.exit_code == 0 and is_text and not HOOK_EVENTS[event].takes_text:
        failure = "wrote text that is not JSON"
    if not failure:
        return answer
    no = _no(event, f"a hook that must not fail (`fail_closed`) {failure}")
    return answer.replace(permission=no.permission, blocks=no.blocks, reason=no.reason, warning=failure, updated=None)


def _read_stdout(event: str, stdout: bytes) -> HookAnswer:
    raw = stdout.removeprefix(BOM_UTF8).strip()
    if not raw:
        return HookAnswer()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return HookAnswer(warning="wrote output that is not UTF-8")
    document = _json_in(text)
    if isinstance(document, dict):
        return _read_object(event, as_object(cast("object", document)))
    if text.startswith("{"):
        return HookAnswer(warning="wrote output that looks like JSON but is invalid")
    if isinstance(document, list):
        return HookAnswer(warning="wrote JSON that is not an object")
    return _read_text(event, text)


def _read_text(event: str, text: str) -> HookAnswer:
    """Text is context for the model where the event takes it. An answer after other text is not read: a warning."""
    if _CONTROL.search(text):
        return HookAnswer(warning="wrote output that is not text")
    behind = re.search(r"^[ \t]*(?=\{)", text, re.MULTILINE)
    tails = (text[behind.end() :], text.rpartition("\n")[2].strip()) if behind else ()
    trailing = next((as_object(document) for document in map(_json_in, tails) if document is not None), None)
    warning = (
        "wrote other text before its JSON, which is not read then"
        if trailing and _ANSWER_KEYS & trailing.keys()
        else ""
    )
    return HookAnswer(context=_cut(text, _MAX_CONTEXT) if HOOK_EVENTS[event].takes_text else "", warning=warning)


def _json_in(text: str) -> object:
    """The JSON object or list in a text; None when it is neither."""
    return decode_or_none(text) if text.startswith(("{", "[")) else None


def _read_object(event: str, document: dict[str, Any]) -> HookAnswer:
    fields = _Fields(document)
    specific = _Fields(fields.table("hookSpecificOutput"))
    named = specific.text("hookEventName")
    if named and named != event:
        fields.odd.append(f"`hookSpecificOutput` is for `{named[:40]}`")
        specific = _Fields({})
    specific.odd += [f"`{name}` is not used: the output stays" for name in _OTHER_OUTPUTS if specific.has(name)]
    answer = _decided(event, fields, specific)
    stop = fields.text("stopReason") or NO_REASON if fields.flag("continue") is False else None
    odd = [*fields.odd, *specific.odd]
    return answer.replace(
        context=_cut(specific.text("additionalContext") or fields.text("additionalContext"), _MAX_CONTEXT),
        stop=answer.stop if stop is None else _cut(stop, _MAX_REASON),
        message=_cut(fields.text("systemMessage"), _MAX_REASON),
        warning=f"answered with what is not understood: {', '.join(odd)}" if odd else "",
    )


def _decided(event: str, fields: _Fields, specific: _Fields) -> HookAnswer:
    """The decision in an answer; the form of the event goes before the general form."""
    reason = _cut(fields.text("reason"), _MAX_REASON)
    match event:
        case "PreToolUse":
            word = specific.word("permissionDecision", ("allow", "ask", "deny", "defer"))
            word = word or _general_word(fields, ("approve", "block", "allow", "deny", "ask"))
            reason = _cut(specific.text("permissionDecisionReason"), _MAX_REASON) or reason
            updated = specific.table("updatedInput") or None
            return HookAnswer(permission=_permission(word), reason=reason, updated=updated)
        case "PermissionRequest":
            decision = _Fields(specific.table("decision"))
            word = decision.word("behavior", ("allow", "deny"))
            word = word or _general_word(fields, ("approve", "block", "allow", "deny"))
            if word == "allow" and decision.table("updatedInput"):
                decision.odd.append("`updatedInput` cannot be used here, only at `PreToolUse`")
                word = None
            if decision.has("updatedPermissions"):
                decision.odd.append("`updatedPermissions` is not kept: an answer is for one call")
            reason = _cut(decision.text("message"), _MAX_REASON) or reason
            interrupts = decision.flag("interrupt") and word == "deny"
            stop = (reason or NO_REASON) if interrupts else None
            specific.odd += decision.odd
            return HookAnswer(permission=_permission(word), reason=reason, stop=stop)
        case _:
            blocks = fields.word("decision", ("block", "approve")) == "block"
            if not (blocks and HOOK_EVENTS[event].blocks):
                return HookAnswer()
            return HookAnswer(blocks=True, reason=reason or NO_REASON)


def _general_word(fields: _Fields, known: tuple[str, ...]) -> str | None:
    word = fields.word("decision", known)
    return {"approve": "allow", "block": "deny"}.get(word or "", word)


def _no(event: str, reason: str) -> HookAnswer:
    if event in ("PreToolUse", "PermissionRequest"):
        return HookAnswer(permission="deny", reason=reason)
    return HookAnswer(blocks=True, reason=reason)


def _permission(word: str | None) -> Permission | None:
    # A deferred call would never be resumed, so the user decides now.
    return "allow" if word == "allow" else "ask" if word in ("ask", "defer") else "deny" if word == "deny" else None


class _Fields:
    """The fields of a JSON object, read as the types they should have; `odd` has a remark for each other one."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.odd: list[str] = []

    def has(self, name: str) -> bool:
        return bool(self._fields.get(name))

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            self.odd.append(f"`{name}` is not a string")
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool | None:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            self.odd.append(f"`{name}` is neither true nor false")
        return value if isinstance(value, bool) else None

    def table(self, name: str) -> dict[str, Any]:
        value: object = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.odd.append(f"`{name}` is not an object")
        return as_object(cast("object", value))

    def word(self, name: str, known: tuple[str, ...]) -> str | None:
        if isinstance(value := self._fields.get(name), dict | list):
            self.odd.append(f"`{name}` is not a string")
            return None
        if value is not None and value not in known:
            self.odd.append(f"`{name}` is none of {', '.join(f'`{allowed_word}`' for allowed_word in known)}")
            return None
        return value


def _text(raw: bytes, limit: int) -> str:
    return _cut(raw[: 2 * limit].decode("utf-8", "replace"), limit)


def _cut(text: str, limit: int) -> str:
    """Shorten to `limit` bytes of UTF-8, with a mark at the cut."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else f"{raw[:limit].decode('utf-8', 'ignore')} [cut here]"


class HookVerdict(Value):
    """The answers of all hooks of one event, in the order the hooks are configured.

    `permission` is the strictest answer, and `blocks` is true when any hook blocks; `reason` has the reasons of all
    hooks that agree with that. `updated` is the first there is. The user gets `messages` from hooks and `warnings`
    about them.
    """

    permission: Permission | None = None
    blocks: bool = False
    reason: str = ""
    contexts: tuple[str, ...] = ()
    stop: str | None = None
    updated: Mapping[str, Any] | None = None
    messages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def combine_answers(answers: Sequence[tuple[Hook, HookAnswer]]) -> HookVerdict:
    """The verdict of all answers."""
    words = {answer.permission for _, answer in answers}
    # The strictest of them.
    permission = "deny" if "deny" in words else "ask" if "ask" in words else "allow" if "allow" in words else None
    blocks = any(answer.blocks for _, answer in answers)
    reasons = [
        answer.reason
        for _, answer in answers
        if answer.reason and (answer.blocks if blocks else permission and answer.permission == permission)
    ]
    changes = [(hook, answer.updated) for hook, answer in answers if answer.updated]
    warnings = [f"the {hook.event} hook `{hook.label}` {answer.warning}" for hook, answer in answers if answer.warning]
    warnings += [
        f"the PreToolUse hooks `{changes[0][0].label}` and `{hook.label}` both change the input of one call: "
        "the first one counts"
        for hook, updated in changes[1:]
        if updated != changes[0][1]
    ]
    return HookVerdict(
        permission=permission,
        blocks=blocks,
        reason="\n".join(dict.fromkeys(reasons)),
        contexts=tuple(dict.fromkeys(answer.context for _, answer in answers if answer.context)),
        stop=next((answer.stop for _, answer in answers if answer.stop is not None), None),
        updated=changes[0][1] if changes else None,
        messages=tuple(f"{hook.event} hook: {answer.message}" for hook, answer in answers if answer.message),
        warnings=tuple(warnings),
    )
