"""The user's own message of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codex_py.context.images import image_parts
from codex_py.protocol.input import ImageInput, ImageUrlInput, TextInput, UserInput
from codex_py.protocol.items import ResponseItem, message_of_parts


def said(inputs: Sequence[UserInput]) -> tuple[str, ...]:
    """The texts among what the user hands in."""
    return tuple(given.text for given in inputs if isinstance(given, TextInput))


async def user_message(inputs: Sequence[UserInput], *, cwd: Path) -> ResponseItem | None:
    """One message: the pictures in their order, then the texts; None when only skills were picked.

    Raises `UserError` for a picture it cannot read.
    """
    images = [
        given.url if isinstance(given, ImageUrlInput) else given.path
        for given in inputs
        if isinstance(given, ImageInput | ImageUrlInput)
    ]
    parts = await asyncio.to_thread(image_parts, images, cwd=cwd) if images else []
    texts = [{"type": "input_text", "text": text} for text in said(inputs)]
    return message_of_parts("user", [*parts, *texts]) if parts or texts else None
