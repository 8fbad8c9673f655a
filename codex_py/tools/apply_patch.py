"""The tools that write files, `apply_patch`, or `edit_file` and `write_file`: what the model is shown, and its calls.

The work is in `tools.patching`, which is imported at the first patch: most sessions begin with reading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from codex_py.errors import ToolError
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.items import ToolCall
from codex_py.protocol.readable import EDIT_FIELDS, arguments_of, patch_of
from codex_py.tools.spec import EditedFile, PatchText, Tool, ToolContext, ToolOutput, WantedChange

IMPLICIT_PATCH: Final = (
    "apply_patch verification failed: patch detected without explicit call to apply_patch. "
    'Rerun as ["apply_patch", "<patch>"]'
)


class ApplyPatch(Tool):
    """`freeform` chooses the form shown to the model: a custom tool with a grammar, or a function with one string.

    Calls of both forms are understood either way.
    """

    name = "apply_patch"
    type = "writes"
    hook_view = PatchText()

    def __init__(self, *, freeform: bool = True) -> None:
        self._freeform = freeform

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model."""
        function = super().spec()
        if not self._freeform:
            return function
        grammar = (self.spec_directory / "apply_patch.lark").read_text()
        return {
            "type": "custom",
            "name": self.name,
            "description": f"{function['description']}\n\nThe input is the patch itself: no JSON, no quotes around it.",
            "format": {"type": "grammar", "syntax": "lark", "definition": grammar},
        }

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Apply the patch in a custom call's text, or in a function call's `input` (or `patch`)."""
        return await apply_patch_text(_patch_of(call), context, workdir=context.cwd)


class EditFile(Tool):
    """Replaces text in a file, for models that fail at patches; judged, planned and written like a patch."""

    name = "edit_file"
    type = "writes"
    aliases = tuple((other, name) for name, names in EDIT_FIELDS.items() for other in names[1:])
    hook_view = EditedFile("Edit")

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Make the edit; a `command` is the patch that a hook has put in its place."""
        command = arguments_of(call).get("command")
        if isinstance(command, str):
            return await apply_patch_text(command, context, workdir=context.cwd)
        return await _change_files(WantedChange(patch_of(call), self.name, self.read(call)), context, context.cwd)


class WriteFile(EditFile):
    """Makes a file, or replaces it whole."""

    name = "write_file"
    hook_view = EditedFile("Write")


async def apply_patch_text(text: str, context: ToolContext, *, workdir: Path) -> ToolOutput:
    """Apply a patch under the session's policy; paths in it are relative to `workdir`.

    Emits `PatchStarted` and `PatchFinished`. A patch that cannot be applied, or may not, gives an output with `ok`
    false that says why; it raises only `CancelledError`, and then a patch under way is finished or undone.
    """
    return await _change_files(WantedChange(text, ApplyPatch.name), context, workdir)


async def _change_files(wanted: WantedChange, context: ToolContext, workdir: Path) -> ToolOutput:
    from codex_py.tools.patching import run_patch

    return await run_patch(wanted, context, workdir)


def _patch_of(call: ToolCall) -> str:
    # Either form is taken for the other's: an object begins with a brace, and a patch never does.
    if call.arguments.lstrip().startswith("{"):
        return _input_of(call.arguments)
    if call.custom or call.arguments.lstrip().startswith("***"):
        return call.arguments
    return _input_of(call.arguments)


def _input_of(text: str) -> str:
    try:
        arguments = as_object(decode_json(text))
    except ValueError as error:
        raise ToolError(f"failed to parse function arguments: {error}") from error
    for key in ("input", "patch"):
        if isinstance(arguments.get(key), str):
            return arguments[key]
    found = "is not a string" if "input" in arguments else "is missing"
    raise ToolError(f"failed to parse function arguments: `input` {found}")
