"""Pictures made fit for a model: known to be whole, and neither larger nor heavier than it looks at.

Imports Pillow: loaded at the first picture.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from io import BytesIO
from typing import Final, NamedTuple

from PIL import ExifTags, Image, ImageOps

from codex_py.errors import ToolError

# Providers scale down what is longer, so that nothing is lost; the bytes go along with every later request.
MAX_SIDE: Final = 2048
MAX_SENT_BYTES: Final = 4 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000

_SMALLER_SIDES: Final = (MAX_SIDE, 1024, 512)
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_JPEG_QUALITY: Final = 85
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK_FRAME_BYTES: Final = 12
# The mark at the end of a whole file, and in how many of the last bytes it stands: cameras write more behind it.
_ENDS: Final = {"PNG": (b"IEND", 2048), "JPEG": (b"\xff\xd9", 2048), "GIF": (b";", 1), "WEBP": (b"", 1)}
_UPRIGHT: Final = 1
# Modes of colours as printers mix them, which many readers show inverted or not at all.
_PRINTED: Final = ("CMYK", "YCCK")
# Everything that Pillow's readers are known to answer broken files with.
_BROKEN: Final = (
    *(OSError, SyntaxError, ValueError, EOFError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(struct.error, zlib.error, Image.DecompressionBombError),
)


class PictureRefused(ToolError):
    """Not a picture a model could be shown; the message says why."""


class EncodedPicture(NamedTuple):
    """An encoded picture and its media type."""

    media_type: str
    raw: bytes


def fit_picture(raw: bytes) -> EncodedPicture:
    """The picture as it is when the model can take it so; else scaled down, upright, the first frame of a moving one.

    Decodes it once, since a provider that is sent a broken picture refuses the whole conversation from then on. Takes
    up to a second: call it in a thread, one at a time. Raises `PictureRefused`.
    """
    raw = _mended_png(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            opened = Image.open(BytesIO(raw), formats=_FORMATS)
        except Image.DecompressionBombError:
            raise PictureRefused(_too_many_pixels()) from None
        except _BROKEN:
            raise PictureRefused("not a PNG, JPEG, GIF or WebP picture") from None
        with opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise PictureRefused(_too_many_pixels())
            try:
                return _fitted(opened, raw)
            except _BROKEN as error:
                raise PictureRefused(f"the picture is damaged: {' '.join(str(error).split())}") from error


def _too_many_pixels() -> str:
    return f"over {MAX_PIXELS // 1_000_000} megapixels; make a smaller copy and view that"


def _fitted(opened: Image.Image, raw: bytes) -> EncodedPicture:
    moving = bool(getattr(opened, "is_animated", False))
    lossy = opened.format not in ("PNG", "GIF", "WEBP")
    # Pillow reads pictures that lack their last bytes, which providers refuse.
    mark, within = _ENDS[str(opened.format)]
    is_whole = mark in raw[-within:]
    fits = is_whole and max(opened.size) <= MAX_SIDE and len(raw) <= MAX_SENT_BYTES
    turned = _is_turned(opened)
    if fits and not moving and not turned and opened.mode not in _PRINTED:
        opened.load()
        return EncodedPicture("image/jpeg" if lossy else f"image/{str(opened.format).lower()}", raw)
    small = _in_plain_colours(opened)
    for side in _SMALLER_SIDES:
        # In place: a copy of the whole would be as large again.
        small.thumbnail((side, side))
        upright = ImageOps.exif_transpose(small) if turned else small
        picture = _as_jpeg(upright) if lossy else _as_png(upright)
        if len(picture.raw) > MAX_SENT_BYTES:
            picture = _as_jpeg(upright)
        if len(picture.raw) <= MAX_SENT_BYTES:
            return picture
    raise PictureRefused("it does not get small enough")


def _mended_png(raw: bytes) -> bytes:
    """A PNG without the optional chunks whose checksum is wrong; any other file as it is."""
    if not raw.startswith(_SIGNATURE):
        return raw
    chunks = [_SIGNATURE]
    position = len(_SIGNATURE)
    while position + _CHUNK_FRAME_BYTES <= len(raw):
        (size,) = struct.unpack_from(">I", raw, position)
        chunk = raw[position : position + _CHUNK_FRAME_BYTES + size]
        position += _CHUNK_FRAME_BYTES + size
        # A lower-case first letter marks a chunk that a reader may skip.
        is_extra = chunk[4:5].islower()
        if not is_extra or zlib.crc32(chunk[4:-4]) == int.from_bytes(chunk[-4:]):
            chunks.append(chunk)
    return b"".join(chunks)


def _is_turned(image: Image.Image) -> bool:
    """Whether it is to be turned before it is looked at, which not every reader does."""
    try:
        return image.getexif().get(ExifTags.Base.Orientation, _UPRIGHT) != _UPRIGHT
    except _BROKEN:
        return False  # what is said about a picture may be damaged when the picture is not


def _in_plain_colours(image: Image.Image) -> Image.Image:
    if image.mode == "I;16":
        # 16 bits of grey: converting them as such turns nearly all white, so the high byte of each is taken.
        return Image.frombytes("L", image.size, image.tobytes()[1::2]).convert("RGB")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    return image if image.mode in (mode, "L") else image.convert(mode)


def _as_png(image: Image.Image) -> EncodedPicture:
    out = BytesIO()
    image.save(out, "PNG")
    return EncodedPicture("image/png", out.getvalue())


def _as_jpeg(image: Image.Image) -> EncodedPicture:
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        image = white
    out = BytesIO()
    image.save(out, "JPEG", quality=_JPEG_QUALITY)
    return EncodedPicture("image/jpeg", out.getvalue())
