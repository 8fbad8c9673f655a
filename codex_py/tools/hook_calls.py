"""A tool call as hooks see it: under the names and with the fields that other tools have for the same work.

Hooks are written for `Bash`, `Edit` and `Write`, with a `command` or a `file_path`. So that they run unchanged, our
tools answer to those names too, and a hook's changes are carried back into the call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ToolError
from codex_py.patch.grammar import AddFile, DeleteFile, UpdateFile, parse_patch
from codex_py.process.shells import join_words
from codex_py.protocol.encoding import as_list, encode_json
from codex_py.protocol.items import ToolCall
from codex_py.protocol.readable import EDIT_FIELDS, arguments_of, patch_of
from codex_py.protocol.value import Value
from codex_py.shell.runners import SHELLS
from codex_py.tools.apply_patch import ApplyPatch
from codex_py.tools.exec_command import ExecCommand
from codex_py.tools.patch_in_command import find_patch_in_argv, find_patch_in_command
from codex_py.tools.spec import CommandField, EditedFile, HookView, OtherFields, PatchText, Tool, TypedText

# The names that hooks for commands are written for, here and in other programs.
_COMMAND_NAMES: Final = ("exec_command", "shell_command", "shell", "local_shell", "unified_exec")
# What a tool for commands may be given beside the command; each takes those of them that it knows.
_BESIDE: Final = (
    *("workdir", "shell", "login", "tty", "timeout_ms", "yield_time_ms", "max_output_tokens"),
    *("sandbox_permissions", "justification", "prefix_rule"),
)
_SHELL: Final = "Bash"
_EDITS: Final = ("Edit", "Write", "MultiEdit")
_MAX_COPIED: Final = 4 * 1024 * 1024


class HookToolCall(Value):
    """One thing a call does. `name` is what hooks see, `aliases` are what they may be written for.

    `tool_input` is the input for hooks of that name. `files` are inputs for hooks of an alias, each with the alias that
    fits it best: one a file. `is_command` says that `tool_input` has a command line that a shell reads, `is_typed` that
    a running command reads it, and `is_patch` that its `command` is a patch.
    """

    name: str
    tool_input: Mapping[str, Any]
    aliases: tuple[str, ...] = ()
    files: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    is_command: bool = False
    is_typed: bool = False
    is_patch: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def inputs_for(
        self, fits: Callable[[str], bool], *, prefer_alias: bool = False
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The names and inputs that a hook is run with, whose matcher `fits` is: none when it is not for this.

        Of several names that fit, one of the other tools' counts first with `prefer_alias`.
        """
        by_alias = prefer_alias and not self.is_command
        first = next((name for name in (*self.aliases * by_alias, *self.names) if fits(name)), None)
        if first is None:
            return
        if not (self.files and any(map(fits, self.aliases))):
            yield first, self.tool_input
            return
        for alias, tool_input in self.files:
            is_own = fits(self.name) and not by_alias
            yield self.name if is_own else alias if fits(alias) else first, tool_input


def hook_calls_of(call: ToolCall, view: HookView, cwd: Path, typed_before: str = "") -> list[HookToolCall]:
    """The calls that hooks see for one call, itself first; a patch in a command is a call of its own.

    `typed_before` is the line that was typed into a running command and not ended.
    """
    arguments = arguments_of(call)
    name = call.name if not call.namespace else f"{call.namespace.rstrip('_')}__{call.name}"
    match view:
        case CommandField(field):
            return list(_command_calls(name, field, arguments, cwd))
        case PatchText():
            return [_patch_call(name, _patch_text(call, arguments), cwd)]
        case TypedText(field):
            return [_typed_call(name, field, arguments, typed_before)]
        case EditedFile(alias):
            return [_edit_call(call, alias, arguments, cwd)]
        case OtherFields(aliases, fields):
            more = {other: arguments[own] for other, own in fields if own in arguments}
            return [HookToolCall(name, {**arguments, **more}, aliases)]


def sample_call(name: str, tools: Iterable[type[Tool]], *, command: str, file: str) -> tuple[ToolCall, HookView]:
    """A call of the tool that a hook for this name is about: of a command, with a new file, or without arguments."""
    if name in (_SHELL, *_COMMAND_NAMES):
        return ToolCall("test", ExecCommand.name, encode_json({"cmd": command}).decode()), ExecCommand.hook_view
    if name in (ApplyPatch.name, *_EDITS):
        patch = f"*** Begin Patch\n*** Add File: {file}\n+hello\n*** End Patch\n"
        return ToolCall("test", ApplyPatch.name, patch, custom=True), ApplyPatch.hook_view
    view = next((tool.hook_view for tool in tools if tool.name == name), OtherFields())
    return ToolCall("test", name, "{}"), view


def rewritten(call: ToolCall, view: HookView, updated: Mapping[str, Any]) -> ToolCall:
    """The call with a hook's fields in place of its own; those not named stay."""
    arguments, changes = dict(arguments_of(call)), dict(updated)
    match view:
        case PatchText():
            return _with_patch(call, updated)
        case CommandField(field):
            command = changes.pop("command", None)
            # What other tools have beside a command means nothing here.
            changes = {key: value for key, value in changes.items() if key in arguments or key in _BESIDE}
            if "command" in updated:
                is_argv = isinstance(arguments.get(field), list)
                changes[field] = _argv_for(arguments, command) if is_argv and isinstance(command, str) else command
        case TypedText(field) if "command" in changes:
            command = changes.pop("command")
            changes[field] = f"{command}\n" if isinstance(command, str) else command
        case TypedText():
            pass
        case EditedFile():
            if changes.get("command") == patch_of(call):
                del changes["command"]
            # The names of other programs; of two names for a field the hook's own one counts.
            for own, (_, *others) in EDIT_FIELDS.items():
                for other in (other for other in others if other in changes):
                    changes.setdefault(own, changes.pop(other))
        case OtherFields(_, fields):
            for other, own in fields:
                if other in changes:
                    changes[own] = changes.pop(other)
    return call.replace(arguments=encode_json({**arguments, **changes}).decode())


def _with_patch(call: ToolCall, updated: Mapping[str, Any]) -> ToolCall:
    key = next((key for key in ("command", "input", "patch") if key in updated), None)
    if key is None:
        return call
    # What is no text goes into the call too, which is refused then: never what the hook wanted otherwise.
    text = updated[key]
    patch = text if isinstance(text, str) else encode_json(text).decode()
    return call.replace(arguments=patch if call.custom else encode_json({"input": patch}).decode())


def _command_calls(name: str, field: str, arguments: Mapping[str, Any], cwd: Path) -> Iterator[HookToolCall]:
    argv = [word for word in as_list(arguments.get(field)) if isinstance(word, str)]
    raw = arguments.get(field)
    command = raw if isinstance(raw, str) else _script_of(argv)
    rest = {key: value for key, value in arguments.items() if key != field}
    aliases = tuple(dict.fromkeys([name, *_COMMAND_NAMES]))
    yield HookToolCall(_SHELL, {"command": command, **rest}, aliases, is_command=True)
    patch = find_patch_in_argv(argv) if argv else find_patch_in_command(command)
    if patch is not None:
        workdir = arguments.get("workdir")
        directory = cwd / (workdir if isinstance(workdir, str) else "") / (patch.workdir or "")
        yield _patch_call(ApplyPatch.name, patch.patch, directory)


def _script_of(argv: Sequence[str]) -> str:
    """The command line of an argument vector: the script itself where it is handed to a shell."""
    match list(argv):
        case [shell, ("-c" | "-lc"), script] if shell.rpartition("/")[2] in SHELLS:
            return script
        case words:
            return join_words(words)


def _argv_for(arguments: Mapping[str, Any], command: str) -> list[str]:
    match as_list(arguments.get("command")):
        case [str(shell), ("-c" | "-lc") as flag, _] if shell.rpartition("/")[2] in SHELLS:
            return [shell, flag, command]
        case _:
            return ["bash", "-c", command]


def _typed_call(name: str, field: str, arguments: Mapping[str, Any], typed_before: str) -> HookToolCall:
    chars = arguments.get(field)
    if not isinstance(chars, str) or not chars.strip("\x03\x04\r\n"):
        return HookToolCall(name, arguments, ("BashOutput",), is_typed=True)
    line = (typed_before + chars).rstrip("\r\n")
    return HookToolCall(_SHELL, {"command": line, **arguments}, (name,), is_command=True, is_typed=True)


def _patch_text(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    for key in ("input", "patch"):
        if isinstance(arguments.get(key), str):
            return arguments[key]
    return call.arguments


def _patch_call(name: str, text: str, directory: Path) -> HookToolCall:
    files = tuple(_file_inputs(text, directory))
    # A hook for both names wants the patch with each file, unless that comes to far more than the patch.
    if len(text) * len(files) <= _MAX_COPIED:
        files = tuple((alias, {**tool_input, "command": text}) for alias, tool_input in files)
    paths = list(dict.fromkeys(tool_input["file_path"] for _, tool_input in files))
    whole: dict[str, Any] = {"command": text, "file_path": paths[0] if paths else None, "file_paths": paths}
    return HookToolCall(name, whole, _EDITS, files, is_patch=True)


def _edit_call(call: ToolCall, alias: str, arguments: Mapping[str, Any], directory: Path) -> HookToolCall:
    """A plain edit, for hooks of `Edit` or `Write`, and for those of patches."""
    found = {own: arguments[name] for own, names in EDIT_FIELDS.items() for name in names if name in arguments}
    path = _absolute(directory, str(found.get("path", "")))
    text = patch_of(call)
    tool_input: dict[str, Any] = {"command": text, "file_path": path, "file_paths": [path]}
    if alias == "Write":
        tool_input["content"] = found.get("content", "")
    else:
        old, new = found.get("old_text", ""), found.get("new_text", "")
        tool_input |= {"old_string": old, "new_string": new, "replace_all": found.get("all", False)}
    return HookToolCall(call.name, tool_input, (ApplyPatch.name, *_EDITS), ((alias, tool_input),), is_patch=True)


def _file_inputs(text: str, directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """An input for each file that a patch names, the one it moves to included; none for what is no patch."""
    try:
        hunks = parse_patch(text).hunks
    except ToolError:
        return
    for hunk in hunks:
        path = _absolute(directory, hunk.path)
        match hunk:
            case AddFile(content=content):
                yield "Write", {"file_path": path, "content": content}
            case DeleteFile():
                yield "Edit", {"file_path": path, "old_string": "", "new_string": ""}
            case UpdateFile(move_to=destination):
                edits = [_edit(chunk.lines) for chunk in hunk.chunks]
                tool_input: dict[str, Any] = {"file_path": path, **(edits[0] if edits else {}), "edits": edits}
                yield "Edit", tool_input
                if destination is not None:
                    yield "Edit", {**tool_input, "file_path": _absolute(directory, destination)}


def _absolute(directory: Path, written: str) -> str:
    return os.path.normpath(directory / written)


def _edit(lines: Sequence[tuple[str, str]]) -> dict[str, str]:
    old = [line for sign, line in lines if sign != "+"]
    new = [line for sign, line in lines if sign != "-"]
    return {"old_string": "\n".join(old), "new_string": "\n".join(new)}
