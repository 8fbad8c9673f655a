"""The user's own message of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codex_py.context.images import image_content
from codex_py.protocol.input import ImageInput, ImageUrlInput, TextInput, UserInput
from codex_py.protocol.items import ResponseItem, message_of_content


def texts_of(inputs: Sequence[UserInput]) -> tuple[str, ...]:
    """The texts among what the user hands in."""
    return tuple(item.text for item in inputs if isinstance(item, TextInput))


async def build_user_message(inputs: Sequence[UserInput], *, cwd: Path) -> ResponseItem | None:
    """One message: the pictures in their order, then the texts; None when only skills were picked.

    Raises `UserError` for a picture it cannot read.
    """
    images = [
        item.url if isinstance(item, ImageUrlInput) else item.path
        for item in inputs
        if isinstance(item, ImageInput | ImageUrlInput)
    ]
    pictures = await asyncio.to_thread(image_content, images, cwd=cwd) if images else []
    texts = [{"type": "input_text", "text": text} for text in texts_of(inputs)]
    return message_of_content("user", [*pictures, *texts]) if pictures or texts else None
