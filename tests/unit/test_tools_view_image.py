"""`view_image`: which files become pictures, how large, and what is said of the others."""

from __future__ import annotations

import base64
import os
import random
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import DangerFullAccess, ReadOnly
from codex_py.sandbox.command import Sandbox
from codex_py.tools.picture import MAX_PIXELS, MAX_SENT_BYTES, MAX_SIDE, EncodedPicture, PictureRefused, fit_picture
from codex_py.tools.view_image import MAX_FILE_BYTES, ViewImage
from tests.unit.command_builders import Session

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def drawn(form: str, size: tuple[int, int] = (40, 30)) -> bytes:
    return encoded(Image.new("RGB", size, (200, 30, 30)), form)


def moving(form: str) -> bytes:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "green", "blue")]
    return encoded(frames[0], form, save_all=True, append_images=frames[1:])


def opened(picture: EncodedPicture) -> Image.Image:
    return Image.open(BytesIO(picture.raw))


async def viewed(session: Session, path: str) -> str:
    """The data URL, or the error."""
    try:
        output = await ViewImage().run(ToolCall("c", "view_image", f'{{"path": "{path}"}}'), session.context("c"))
    except ToolError as error:
        return str(error)
    [part] = output.parts
    assert (part["type"], part["detail"], output.ok) == ("input_image", "high", True)
    return part["image_url"]


@pytest.mark.parametrize("form", FORMATS)
async def test_a_picture_goes_to_the_model_as_it_is(tmp_path: Path, form: str) -> None:
    raw = drawn(form)
    # What it is called does not matter.
    (tmp_path / "picture.txt").write_bytes(raw)
    url = await viewed(Session(tmp_path), "picture.txt")
    assert url == f"data:{FORMATS[form]};base64,{base64.b64encode(raw).decode()}"
    assert await viewed(Session(Path("/")), str(tmp_path / "picture.txt")) == url


async def test_what_is_no_picture_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.png").write_text("not a picture")
    (tmp_path / "empty.png").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "svg.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "cut.png").write_bytes(drawn("PNG", (300, 300))[:-60])
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge.png").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    session = Session(tmp_path)
    refused = "not a PNG, JPEG, GIF or WebP picture"
    assert {name: await viewed(session, name) for name in ("missing.png", "directory", "fifo", "/dev/zero")} == {
        "missing.png": f"unable to locate image at `{tmp_path}/missing.png`: No such file or directory (os error 2)",
        "directory": f"image path `{tmp_path}/directory` is not a file",
        "fifo": f"image path `{tmp_path}/fifo` is not a file",
        "/dev/zero": "image path `/dev/zero` is not a file",
    }
    for name in ("notes.png", "empty.png", "svg.svg"):
        assert await viewed(session, name) == f"unable to process image at `{tmp_path}/{name}`: {refused}"
    assert await viewed(session, "huge.png") == f"unable to process image at `{tmp_path}/huge.png`: over 20 MiB"
    cut = await viewed(session, "cut.png")
    assert cut.startswith(f"unable to process image at `{tmp_path}/cut.png`: the picture is damaged: ")
    assert "Too many levels of symbolic links" in await viewed(session, "loop")


async def test_what_the_sandbox_hides_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/a.png").write_bytes(drawn("PNG"))
    (tmp_path / "link.png").symlink_to("secret/a.png")
    session = Session(tmp_path, ReadOnly())
    session.sandbox = Sandbox({}, deny_read=[str(tmp_path / "secret")])
    for path in ("secret/a.png", "link.png", "secret/../link.png"):
        said = await viewed(session, path)
        assert said == f"unable to read image at `{tmp_path / path}`: the sandbox does not let this be read"
    session.policy = DangerFullAccess()
    assert (await viewed(session, "link.png")).startswith("data:image/png")


async def test_a_path_no_file_can_have_is_an_error_in_one_line(tmp_path: Path) -> None:
    for path in ("a\\u0000b", "a\\ud800b", "", "x" * 5000):
        said = await viewed(Session(tmp_path), path)
        assert "\n" not in said
        assert not said.startswith("data:")


@pytest.mark.parametrize(("form", "kept"), [("PNG", "PNG"), ("JPEG", "JPEG"), ("GIF", "PNG"), ("WEBP", "PNG")])
def test_a_large_picture_is_scaled_down_in_proportion(form: str, kept: str) -> None:
    small = opened(fit_picture(drawn(form, (4000, 1000))))
    assert (small.format, small.size) == (kept, (MAX_SIDE, MAX_SIDE // 4))


def test_a_picture_of_the_largest_size_is_left_alone() -> None:
    raw = drawn("PNG", (MAX_SIDE, 10))
    assert fit_picture(raw) == EncodedPicture("image/png", raw)


def test_a_heavy_picture_gets_lighter() -> None:
    noise = Image.frombytes("RGB", (1800, 1800), random.Random(1).randbytes(3 * 1800 * 1800))
    raw = encoded(noise, "PNG", compress_level=1)
    assert len(raw) > MAX_SENT_BYTES
    fitted = fit_picture(raw)
    assert fitted.media_type == "image/jpeg"
    assert len(fitted.raw) <= MAX_SENT_BYTES
    assert opened(fitted).size == (1800, 1800)


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
def test_of_a_moving_picture_the_first_frame_is_shown(form: str) -> None:
    still = opened(fit_picture(moving(form)))
    assert (still.format, getattr(still, "n_frames", 1)) == ("PNG", 1)
    red, green, blue = still.convert("RGB").tobytes()[:3]
    assert red > 200 > 60 > max(green, blue)


def test_scaling_keeps_what_is_seen_through_grey_in_depth_and_upright() -> None:
    clear = opened(fit_picture(encoded(Image.new("RGBA", (3000, 10), (0, 0, 0, 0)), "PNG")))
    assert clear.mode == "RGBA"
    grey = Image.frombytes("I;16", (3000, 10), (0x8000).to_bytes(2, "little") * 30000)
    assert opened(fit_picture(encoded(grey, "PNG"))).convert("L").getpixel((5, 5)) == 0x80
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    turned = opened(fit_picture(encoded(Image.new("RGB", (3000, 1000)), "JPEG", exif=exif)))
    assert turned.height == MAX_SIDE


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_small_picture_that_lies_on_its_side_is_turned(form: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    turned = opened(fit_picture(encoded(Image.new("RGB", (40, 30)), form, exif=exif)))
    assert (turned.size, turned.getexif().get(0x0112)) == ((30, 40), None)


def test_what_is_said_of_a_picture_may_be_damaged() -> None:
    raw = encoded(Image.new("RGB", (40, 30)), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff\x01")
    assert fit_picture(raw) == EncodedPicture("image/jpeg", raw)


def test_the_colours_of_a_printer_become_those_of_a_screen() -> None:
    picture = opened(fit_picture(encoded(Image.new("CMYK", (40, 30), (0, 255, 255, 0)), "JPEG")))
    red, green, blue = picture.convert("RGB").tobytes()[:3]
    assert (picture.mode, red > 200 > 60 > max(green, blue)) == ("RGB", True)


@pytest.mark.parametrize("size", [(MAX_PIXELS // 1000 + 1, 1000), (30_000, 30_000)])
def test_a_bomb_is_refused_before_it_is_unpacked(size: tuple[int, int]) -> None:
    bomb = bytearray(drawn("PNG"))
    bomb[16:24] = size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
    bomb[29:33] = zlib.crc32(bomb[12:29]).to_bytes(4, "big")
    with pytest.raises(PictureRefused, match="over 50 megapixels"):
        fit_picture(bytes(bomb))
