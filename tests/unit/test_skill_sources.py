"""Where skills may come from: addresses and archives that are refused before anything is fetched or written."""

from __future__ import annotations

import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import UsageError, UserError
from codex_py.services.plugin_fetch import MAX_FILE_BYTES
from codex_py.services.skill_archive import unpack
from codex_py.services.skill_source import parse_source


@pytest.mark.parametrize(
    "source",
    [
        "ext::sh -c touch% mark",
        "--upload-pack=touch mark",
        "-u./x",
        "ssh://-oProxyCommand=touch mark/x",
        "http://example.com/x.git",
        "git://example.com/x.git",
        "https://example.com/x.git#--upload-pack=x",
        "https://example.com/x.git#main:../up",
        "https://example.com/x.git#main:-x",
        "https://example.com/x.git//.git/hooks",
        "",
        "a\x1b[31m",
        "no/such/path/here/at-all!",
    ],
)
def test_an_unsafe_address_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError):
        parse_source(source, cwd=tmp_path)


@pytest.mark.parametrize(
    ("source", "understood"),
    [
        ("https://h.example/o/r.git", ("git", "https://h.example/o/r.git", None, "")),
        ("https://h.example/o/r.git#v1:a/b", ("git", "https://h.example/o/r.git", "v1", "a/b")),
        ("https://h.example/o/r.git//a/b#v1", ("git", "https://h.example/o/r.git", "v1", "a/b")),
        ("https://github.com/o/r/tree/main/skills/x", ("git", "https://github.com/o/r", "main", "skills/x")),
        ("git@h.example:o/r.git#v1", ("git", "git@h.example:o/r.git", "v1", "")),
        ("o/r", ("git", "https://github.com/o/r.git", None, "")),
        ("o/r/skills/x#v1", ("git", "https://github.com/o/r.git", "v1", "skills/x")),
    ],
)
def test_an_address_names_a_version_and_a_directory(
    tmp_path: Path, source: str, understood: tuple[str, str, str | None, str]
) -> None:
    found = parse_source(source, cwd=tmp_path)
    assert (found.kind, found.address, found.ref, found.path) == understood


def tar_with(archive: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        for member in members:
            tar.addfile(member, BytesIO(b"x" * member.size))
    return archive


def member(name: str, size: int = 1, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    for field, value in fields.items():
        setattr(info, field, value)
    return info


ARCHIVES: dict[str, list[tarfile.TarInfo]] = {
    "above": [member("../SKILL.md")],
    "absolute": [member("/tmp/SKILL.md")],
    "inside": [member("a/../../SKILL.md")],
    "link inside": [member("a/in", 0, type=tarfile.SYMTYPE, linkname="SKILL.md"), member("a/SKILL.md")],
    "link": [member("a/out", 0, type=tarfile.SYMTYPE, linkname="../../x")],
    "through": [member("a", 0, type=tarfile.SYMTYPE, linkname="b"), member("b/x"), member("a/SKILL.md")],
    "hard": [member("a/out", 0, type=tarfile.LNKTYPE, linkname="/etc/passwd")],
    "device": [member("a/zero", 0, type=tarfile.CHRTYPE)],
    "case": [member("a/SKILL.md"), member("A/SKILL.md")],
    "twice": [member("a/SKILL.md"), member("a/SKILL.md")],
    "option": [member("a/-rf")],
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_malicious_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"^the archive is refused: [^\n]*$"):
        unpack(tar_with(tmp_path / "a.tgz", *ARCHIVES[name]), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "out"]


def zip_with(archive: Path, name: str, *, mode: int = 0, size: int = 1, how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(archive, "w", how) as out:
        info = zipfile.ZipInfo(name)
        info.external_attr, info.compress_type = mode << 16, how
        out.writestr(info, b"x" * size)
    return archive


ZIPS: dict[str, dict[str, Any]] = {
    "above": {"name": "../SKILL.md"},
    "absolute": {"name": "/tmp/SKILL.md"},
    "drive": {"name": "C:/SKILL.md"},
    "link": {"name": "a/out", "mode": 0o120777},
    "device": {"name": "a/zero", "mode": 0o020666},
    "option": {"name": "a/-rf"},
    "bomb": {"name": "a/big", "size": MAX_FILE_BYTES + 1},
    "no limit": {"name": "a/SKILL.md", "how": zipfile.ZIP_BZIP2},
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_malicious_zip_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"^the archive is refused: [^\n]*$"):
        unpack(zip_with(tmp_path / "a.zip", **ZIPS[name]), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(UserError, match="cannot unpack"):
        unpack(tmp_path / "a.tgz", tmp_path / "out")
