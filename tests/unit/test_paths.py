"""Real paths of what others have put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.paths import real_path


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="Linux only")
def test_a_link_that_may_not_be_followed_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "near").symlink_to("directory/../far")
    (tmp_path / "far").symlink_to("/proc/1/root")
    try:
        expected = str(Path("/proc/1/root").readlink()).rstrip("/")
    except PermissionError:
        expected = "/proc/1/root"
    assert real_path(tmp_path / "near" / "x") == f"{expected}/x"


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="Linux only")
def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "far").symlink_to(f"/proc/1/root/../../..{tmp_path}/a")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert Path(real_path(tmp_path / "far")).parent == tmp_path
