"""What a hook says, read as Claude Code and Codex CLI do, and what several hooks say together."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.hooks.command import HookResult
from codex_py.hooks.schema import HOOK_EVENTS, Hook
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.value import Value

Permission: TypeAlias = Literal["allow", "ask", "deny"]

_BLOCK: Final = 2
_NO_REASON: Final = "it gave no reason"
_MAX_CONTEXT: Final = 16 * 1024
_MAX_REASON: Final = 4 * 1024
# Of what a failed hook says, as much as a line to the user holds.
_MAX_COMPLAINT: Final = 200
# What tells an answer from other JSON.
_ANSWERS: Final = frozenset({"continue", "decision", "hookSpecificOutput", "stopReason", "systemMessage"})
_OTHER_OUTPUTS: Final = ("updatedMCPToolOutput", "updatedToolOutput")
_CONTROL: Final = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")


class HookAnswer(Value):
    """The answer of one hook.

    `permission` is for a tool call, `blocks` with its `reason` for everything else. `context` is for the model, `stop`
    why all work is to end, `message` for the user, `updated` the fields of a tool's input to use in place of its own.
    A `warning` says what was wrong with the hook itself.
    """

    permission: Permission | None = None
    blocks: bool = False
    reason: str = ""
    context: str = ""
    stop: str | None = None
    message: str = ""
    updated: Mapping[str, Any] | None = None
    warning: str = ""


def read_answer(event: str, ran: HookResult) -> HookAnswer:
    """The answer in how a hook's command ended; what cannot be read costs a warning."""
    if ran.exit_code is None:
        return HookAnswer(warning=ran.error)
    if ran.exit_code == _BLOCK:
        message = _text(ran.stderr, _MAX_REASON).strip()
        if not HOOK_EVENTS[event].blocks:
            return HookAnswer(message=message)
        return _no(event, message or _NO_REASON)
    if ran.exit_code:
        message = " ".join(_text(ran.stderr, _MAX_COMPLAINT).split())
        return HookAnswer(warning=f"failed with exit code {ran.exit_code}" + (f": {message}" if message else ""))
    return _read_stdout(event, ran.stdout)


def fail_closed_answer(event: str, ran: HookResult, answer: HookAnswer) -> HookAnswer:
    """The answer of a hook that is `fail_closed`: unless it has said no itself, its failure does.

    Text in place of JSON is a failure too, where text means nothing.
    """
    if answer.permission == "deny" or answer.blocks or answer.stop is not None:
        return answer
    failure = answer.warning
    stdout = ran.stdout.removeprefix(BOM_UTF8).strip()
    if (
        not failure
        and ran.exit_code == 0
        and stdout
        and not HOOK_EVENTS[event].takes_text
        and not stdout.startswith(b"{")
    ):
        failure = "wrote text that is no JSON"
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
        return HookAnswer(warning="wrote what is not UTF-8")
    document = _json_in(text)
    if isinstance(document, dict):
        return _read_object(event, as_object(cast("object", document)))
    if text.startswith("{"):
        return HookAnswer(warning="wrote what looks like JSON and is none")
    if isinstance(document, list):
        return HookAnswer(warning="wrote JSON that is no object")
    return _read_text(event, text)


def _read_text(event: str, text: str) -> HookAnswer:
    """Text is for the model where the moment takes it. An answer behind other text is not read, which is told."""
    if _CONTROL.search(text):
        return HookAnswer(warning="wrote what is no text")
    behind = re.search(r"^[ \t]*(?=\{)", text, re.MULTILINE)
    tails = (text[behind.end() :], text.rpartition("\n")[2].strip()) if behind else ()
    trailing = next((as_object(document) for document in map(_json_in, tails) if document is not None), None)
    warning = (
        "wrote other text before its JSON, which is not read then" if trailing and _ANSWERS & trailing.keys() else ""
    )
    return HookAnswer(context=_cut(text, _MAX_CONTEXT) if HOOK_EVENTS[event].takes_text else "", warning=warning)


def _json_in(text: str) -> object:
    """The object or the list that a text is; None when it is neither."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return decode_json(text)
    except ValueError:
        return None


def _read_object(event: str, document: dict[str, Any]) -> HookAnswer:
    fields = _Fields(document)
    specific = _Fields(fields.table("hookSpecificOutput"))
    named = specific.text("hookEventName")
    if named and named != event:
        fields.odd.append(f"`hookSpecificOutput` is for `{named[:40]}`")
        specific = _Fields({})
    specific.odd += [f"`{name}` is not used: the output stays" for name in _OTHER_OUTPUTS if specific.has(name)]
    answer = _decided(event, fields, specific)
    stop = fields.text("stopReason") or _NO_REASON if fields.flag("continue") is False else None
    odd = [*fields.odd, *specific.odd]
    return answer.replace(
        context=_cut(specific.text("additionalContext") or fields.text("additionalContext"), _MAX_CONTEXT),
        stop=answer.stop if stop is None else _cut(stop, _MAX_REASON),
        message=_cut(fields.text("systemMessage"), _MAX_REASON),
        warning=f"answered with what is not understood: {', '.join(odd)}" if odd else "",
    )


def _decided(event: str, fields: _Fields, specific: _Fields) -> HookAnswer:
    """What an answer decides; the event's own form goes before the general one."""
    reason = _cut(fields.text("reason"), _MAX_REASON)
    match event:
        case "PreToolUse":
            word = specific.word("permissionDecision", ("allow", "ask", "deny", "defer"))
            if word is None:
                general = fields.word("decision", ("approve", "block", "allow", "deny", "ask"))
                word = {"approve": "allow", "block": "deny"}.get(general or "", general)
            reason = _cut(specific.text("permissionDecisionReason"), _MAX_REASON) or reason
            updated = specific.table("updatedInput") or None
            return HookAnswer(permission=_permission(word), reason=reason, updated=updated)
        case "PermissionRequest":
            decision = _Fields(specific.table("decision"))
            word = decision.word("behavior", ("allow", "deny"))
            if word is None:
                general = fields.word("decision", ("approve", "block", "allow", "deny"))
                word = {"approve": "allow", "block": "deny"}.get(general or "", general)
            if word == "allow" and decision.table("updatedInput"):
                decision.odd.append("`updatedInput` cannot be used here, only at `PreToolUse`")
                word = None
            if decision.has("updatedPermissions"):
                decision.odd.append("`updatedPermissions` is not kept: an answer is for one call")
            reason = _cut(decision.text("message"), _MAX_REASON) or reason
            interrupts = decision.flag("interrupt") and word == "deny"
            stop = (reason or _NO_REASON) if interrupts else None
            specific.odd += decision.odd
            return HookAnswer(permission=_permission(word), reason=reason, stop=stop)
        case _:
            blocks = fields.word("decision", ("block", "approve")) == "block"
            if not (blocks and HOOK_EVENTS[event].blocks):
                return HookAnswer()
            return HookAnswer(blocks=True, reason=reason or _NO_REASON)


def _no(event: str, reason: str) -> HookAnswer:
    if event in ("PreToolUse", "PermissionRequest"):
        return HookAnswer(permission="deny", reason=reason)
    return HookAnswer(blocks=True, reason=reason)


def _permission(word: str | None) -> Permission | None:
    # Nobody takes a call up again that was put off, so that it is for the user to say now.
    return "allow" if word == "allow" else "ask" if word in ("ask", "defer") else "deny" if word == "deny" else None


class _Fields:
    """The fields of a JSON object as the types they should have; `odd` names those that have another."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.odd: list[str] = []

    def has(self, name: str) -> bool:
        return bool(self._fields.get(name))

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            self.odd.append(f"`{name}` is no text")
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool | None:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            self.odd.append(f"`{name}` is neither true nor false")
        return value if isinstance(value, bool) else None

    def table(self, name: str) -> dict[str, Any]:
        value: object = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.odd.append(f"`{name}` is no object")
        return as_object(cast("object", value))

    def word(self, name: str, known: tuple[str, ...]) -> str | None:
        if isinstance(value := self._fields.get(name), dict | list):
            self.odd.append(f"`{name}` is no word")
            return None
        if value is not None and value not in known:
            self.odd.append(f"`{name}` is none of {', '.join(f'`{allowed_word}`' for allowed_word in known)}")
            return None
        return value


def _text(raw: bytes, most: int) -> str:
    return _cut(raw[: 2 * most].decode("utf-8", "replace"), most)


def _cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, or more than that by a mark that something is missing."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= most else f"{raw[:most].decode('utf-8', 'ignore')} [cut here]"


class HookVerdict(Value):
    """The answers of all hooks of one moment, in the order the hooks are configured.

    `permission` is the strictest one given and `blocks` whether any hook does; `reason` is of all that say the same.
    `updated` is of the first that has one. For the user are `messages`, from hooks, and `warnings`, about them.
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
    """One verdict of all answers."""
    hook_answers = [answer for _, answer in answers]
    words = {hook_answer.permission for hook_answer in hook_answers}
    permission: Permission | None = "deny" if "deny" in words else "ask" if "ask" in words else None
    permission = permission or ("allow" if "allow" in words else None)
    blocks = any(hook_answer.blocks for hook_answer in hook_answers)
    deciding = [
        hook_answer
        for hook_answer in hook_answers
        if (hook_answer.blocks if blocks else permission and hook_answer.permission == permission)
    ]
    updates = [(hook, hook_answer.updated) for hook, hook_answer in answers if hook_answer.updated]
    return HookVerdict(
        permission=permission,
        blocks=blocks,
        reason="\n".join(dict.fromkeys(hook_answer.reason for hook_answer in deciding if hook_answer.reason)),
        contexts=tuple(dict.fromkeys(hook_answer.context for hook_answer in hook_answers if hook_answer.context)),
        stop=next((hook_answer.stop for hook_answer in hook_answers if hook_answer.stop is not None), None),
        updated=updates[0][1] if updates else None,
        messages=tuple(
            f"{hook.event} hook: {hook_answer.message}" for hook, hook_answer in answers if hook_answer.message
        ),
        warnings=(
            *(
                f"the {hook.event} hook `{hook.label}` {hook_answer.warning}"
                for hook, hook_answer in answers
                if hook_answer.warning
            ),
            *(
                f"the PreToolUse hooks `{updates[0][0].label}` and `{hook.label}` both change the input of one call: "
                "the first one counts"
                for hook, hook_answer in updates[1:]
                if hook_answer != updates[0][1]
            ),
        ),
    )
