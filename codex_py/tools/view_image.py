"""The `view_image` tool: puts a picture file before the model."""

from __future__ import annotations

import asyncio
import binascii
import os
import stat
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import OtherFields, Tool, ToolContext, ToolOutput

MAX_FILE_BYTES: Final = 20 * 1024 * 1024

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK_BYTES: Final = 1024 * 1024


class ViewImage(Tool):
    name = "view_image"
    type = "reads"
    hook_view = OtherFields(("Read",), (("file_path", "path"),))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """One `input_image` part. Raises `ToolError` for a file that cannot be read, may not be, or shows nothing."""
        path = context.cwd / self.read(call)["path"]
        raw = await asyncio.to_thread(_read, path, context)
        try:
            url = await picture_url(raw)
        except ToolError as refusal:
            raise ToolError(f"unable to process image at `{path}`: {refusal}") from refusal
        return ToolOutput("", parts=({"type": "input_image", "image_url": url, "detail": "high"},))


async def picture_url(raw: bytes) -> str:
    """The same as `fitted_url`, made in a thread."""
    return await asyncio.to_thread(fitted_url, raw)


def fitted_url(raw: bytes) -> str:
    """A picture as the `data:` URL that a model can be sent, made smaller where it has to be. Raises `ToolError`."""
    from codex_py.tools.picture import fit_picture  # Pillow

    picture = fit_picture(raw)
    return f"data:{picture.media_type};base64,{binascii.b2a_base64(picture.raw, newline=False).decode()}"


def _read(path: Path, context: ToolContext) -> bytes:
    _require_permission(path, path, context)
    try:
        # Before opening, because opening some devices has effects; and again on what was opened.
        _require_file(path, path.stat())
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise ToolError(f"unable to locate image at `{path}`: {_reason(error)}") from error
    try:
        status = os.fstat(descriptor)
        _require_file(path, status)
        # Again, because a link may have been put in the way meanwhile.
        _require_permission(path, _opened_at(descriptor, path), context)
        if status.st_size > MAX_FILE_BYTES:
            raise ToolError(f"unable to process image at `{path}`: over {MAX_FILE_BYTES // 2**20} MiB")
        return _all_of(descriptor)
    except OSError as error:
        raise ToolError(f"unable to read image at `{path}`: {_reason(error)}") from error
    finally:
        os.close(descriptor)


def _require_permission(path: Path, real: Path, context: ToolContext) -> None:
    try:
        may_read = context.sandbox.may_read(real, context.sandbox_policy, context.cwd)
    except (OSError, ValueError):
        return  # not a path at all: opening it says why
    if not may_read:
        raise ToolError(f"unable to read image at `{path}`: the sandbox does not let this be read")


def _opened_at(descriptor: int, path: Path) -> Path:
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except OSError:
        return path


def _require_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"image path `{path}` is not a file")


def _all_of(descriptor: int) -> bytes:
    chunks: list[bytes] = []
    left = MAX_FILE_BYTES
    while left > 0 and (chunk := os.read(descriptor, min(left, _CHUNK_BYTES))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _reason(error: OSError | ValueError) -> str:
    """As the published form has it: what the system says, and its number."""
    return f"{error.strerror} (os error {error.errno})" if isinstance(error, OSError) else str(error)
