"""Pictures the user attaches: content parts read from files."""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.context.markup import quoted, value
from codex_py.errors import CodexError, UserError
from codex_py.text.files import FileRefused, read_trusted

MAX_IMAGE_BYTES: Final = 20 * 1024 * 1024
# All of a message together; no provider takes half of it.
MAX_IMAGES_BYTES: Final = 100 * 1024 * 1024
_IN_ADDRESS: Final = r"(?i)data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=_-]+"
_ADDRESS: Final = r"(?i)https?://[^\s<>\"]{1,8000}"


def data_url(raw: bytes) -> str:
    """The address of a picture as it is."""
    return f"data:{image_type(raw)};base64,{binascii.b2a_base64(raw, newline=False).decode()}"


def image_content(
    images: Sequence[Path | str], *, cwd: Path, fit: Callable[[bytes], str] = data_url
) -> list[dict[str, Any]]:
    """Three parts a picture (name tag, `input_image`, closing tag), numbered from 1; relative paths start at `cwd`.

    A text is an address: of a picture on the web, which the provider fetches, or one that holds it (`data:`). `fit`
    makes the address of a picture that a model can take, or raises `CodexError`.

    Raises `UserError` for a file that is missing, unreadable, damaged, over 20 MiB or not a PNG, JPEG, GIF or WebP, for
    an address of another kind, and for more than 100 MiB in all. Reads files: call it in a thread.
    """
    content: list[dict[str, Any]] = []
    left = MAX_IMAGES_BYTES
    for number, image in enumerate(images, 1):
        if isinstance(image, str):
            address, label, size = _fitted_address(_checked(image), fit), "", len(image)
        else:
            path = cwd / image
            raw = _picture(path)
            label, size = f' path="{value(str(path))}"', len(raw)
            try:
                address = fit(raw)
            except CodexError as refusal:
                raise UserError(f"cannot attach image {quoted(str(path))}: {refusal}", status=2) from refusal
        left -= size
        if left < 0:
            raise UserError(
                f"cannot attach {len(images)} images: together over {MAX_IMAGES_BYTES // 2**20} MiB",
                hint="attach fewer or smaller ones",
            )
        content += [
            {"type": "input_text", "text": f"<image name=[Image #{number}]{label}>"},
            {"type": "input_image", "image_url": address},
            {"type": "input_text", "text": "</image>"},
        ]
    return content


def image_type(raw: bytes) -> str | None:
    """The media type of a PNG, JPEG, GIF or WebP picture by its first bytes; None for anything else."""
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return "image/webp"
    return None


def _fitted_address(address: str, fit: Callable[[bytes], str]) -> str:
    if address[:5].lower() != "data:":
        return address
    try:
        return fit(urlsafe_b64decode(address.partition(",")[2].replace("+", "-").replace("/", "_")))
    except (CodexError, ValueError) as refusal:
        raise UserError(f"cannot attach an image from its address: {refusal}") from refusal


def _checked(address: str) -> str:
    if len(address) > MAX_IMAGE_BYTES * 4 // 3 + 64:
        raise UserError(f"cannot attach an image from its address: over {MAX_IMAGE_BYTES // 2**20} MiB")
    if not re.fullmatch(_IN_ADDRESS if address[:5].lower() == "data:" else _ADDRESS, address):
        raise UserError(
            f"cannot attach the image {quoted(address[:80])}: neither an `https:` address nor a `data:` address with a"
            " PNG, JPEG, GIF or WebP picture in base64"
        )
    return address


def _picture(path: Path) -> bytes:
    try:
        head = read_trusted(path, MAX_IMAGE_BYTES + 1)
    except FileRefused as refusal:
        raise UserError(f"cannot attach image {quoted(str(path))}: {refusal}", status=2) from refusal
    if head is None:
        raise UserError(f"cannot attach image {quoted(str(path))}: no such file", status=2)
    if head.size > MAX_IMAGE_BYTES:
        raise UserError(f"cannot attach image {quoted(str(path))}: over {MAX_IMAGE_BYTES // 2**20} MiB", status=2)
    if image_type(head.raw) is None:
        raise UserError(f"cannot attach image {quoted(str(path))}: not a PNG, JPEG, GIF or WebP picture", status=2)
    return head.raw
