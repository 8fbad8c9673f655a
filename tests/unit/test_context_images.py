from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from codex_py.context.images import MAX_IMAGE_BYTES, MAX_IMAGES_BYTES, image_content, image_type
from codex_py.errors import UserError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_pictures_are_three_parts_each_and_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b").write_bytes(b"\xff\xd8\xff\xe0jpeg")
    assert image_content([Path("a.png"), tmp_path / "b"], cwd=tmp_path) == [
        {"type": "input_text", "text": f'<image name=[Image #1] path="{tmp_path}/a.png">'},
        {"type": "input_image", "image_url": "data:image/png;base64," + base64.b64encode(PNG).decode()},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": f'<image name=[Image #2] path="{tmp_path}/b">'},
        {
            "type": "input_image",
            "image_url": "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8\xff\xe0jpeg").decode(),
        },
        {"type": "input_text", "text": "</image>"},
    ]
    assert image_content([], cwd=tmp_path) == []


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xdb", "image/jpeg"),
        (b"GIF87a..", "image/gif"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVE", None),
        (b"<svg xmlns='x'/>", None),
        (b"BM....", None),
        (b"", None),
    ],
)
def test_the_bytes_say_what_a_picture_is(raw: bytes, expected: str | None) -> None:
    assert image_type(raw) == expected


def test_a_name_cannot_leave_its_tag(tmp_path: Path) -> None:
    name = 'a">\n<b.png'
    (tmp_path / name).write_bytes(PNG)
    parts = image_content([Path(name)], cwd=tmp_path)
    assert parts[0]["text"] == f'<image name=[Image #1] path="{tmp_path}/a&quot;&gt;␊&lt;b.png">'


def test_too_much_in_all_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE_BYTES)
    many = [Path("a.png")] * (MAX_IMAGES_BYTES // MAX_IMAGE_BYTES + 1)
    with pytest.raises(UserError, match="cannot attach 6 images: together over 100 MiB"):
        image_content(many, cwd=tmp_path)


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        image_content([path], cwd=path.parent)
    assert "\n" not in str(caught.value)
    assert caught.value.status == 2
    return str(caught.value)


def test_files_that_cannot_be_sent(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "dir.png").mkdir()
    os.mkfifo(tmp_path / "fifo.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "loop.png").symlink_to("loop.png")
    with (tmp_path / "big.png").open("wb") as big:
        big.write(PNG)
        big.truncate(MAX_IMAGE_BYTES + 1)
    reasons = {
        "missing.png": f"cannot attach image `{tmp_path}/missing.png`: no such file",
        "text.png": f"cannot attach image `{tmp_path}/text.png`: not a PNG, JPEG, GIF or WebP picture",
        "empty.png": f"cannot attach image `{tmp_path}/empty.png`: not a PNG, JPEG, GIF or WebP picture",
        "dir.png": f"cannot attach image `{tmp_path}/dir.png`: not a regular file",
        "fifo.png": f"cannot attach image `{tmp_path}/fifo.png`: not a regular file",
        "zero.png": f"cannot attach image `{tmp_path}/zero.png`: not a regular file",
        "loop.png": f"cannot attach image `{tmp_path}/loop.png`: Too many levels of symbolic links",
        "text.png/x": f"cannot attach image `{tmp_path}/text.png/x`: no such file",
        "big.png": f"cannot attach image `{tmp_path}/big.png`: over 20 MiB",
    }
    assert {name: refused(tmp_path / name) for name in reasons} == reasons


def test_a_path_that_is_none_is_one_line_too(tmp_path: Path) -> None:
    assert refused(tmp_path / "a\0b\n") == f"cannot attach image `{tmp_path}/a␀b␊`: no such file"


def test_the_largest_picture_is_read(tmp_path: Path) -> None:
    with (tmp_path / "big.png").open("wb") as big:
        big.write(PNG)
        big.truncate(MAX_IMAGE_BYTES)
    url = image_content([Path("big.png")], cwd=tmp_path)[1]["image_url"]
    assert len(url) == len("data:image/png;base64,") + (MAX_IMAGE_BYTES + 2) // 3 * 4


def test_an_address_goes_to_the_provider_as_it_is(tmp_path: Path) -> None:
    held, web = "data:image/png;base64,iVBORw0KGgo=", "https://x.example/a.png?b=c"
    parts = image_content([held, web], cwd=tmp_path)

    assert [part["image_url"] for part in parts if part["type"] == "input_image"] == [held, web]
    assert [part["text"] for part in parts if "text" in part][0::2] == [
        "<image name=[Image #1]>",
        "<image name=[Image #2]>",
    ]


@pytest.mark.parametrize(
    "address",
    ["", "file:///etc/passwd", "data:text/html;base64,PGI+", "data:image/png,raw", "https://x y", "ftp://x/a.png"],
)
def test_an_address_of_another_kind_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UserError, match="cannot attach the image"):
        image_content([address], cwd=tmp_path)
