"""Setting one value: comments stay, the file is replaced whole, and only the user can read it."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codex_py.config.edit import set_value, trust_project
from codex_py.config.entries import put_mcp_server
from codex_py.errors import UserError
from tests.unit.config_builders import Machine, write

KEYS = ("projects", "/a b", "trust_level")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[projects."/a b"]\ntrust_level = "trusted"\n'),
        ('model = "x" # why\n', 'model = "x" # why\n\n[projects."/a b"]\ntrust_level = "trusted"\n'),
        ('[projects."/a b"]\ntrust_level = "untrusted" # why\n', '[projects."/a b"]\ntrust_level = "trusted" # why\n'),
        ("projects = {}\n", 'projects = {"/a b" = {trust_level = "trusted"}}\n'),
        (
            "[tui] # colours\na = 1\n\n# the end\n",
            '[tui] # colours\na = 1\n\n# the end\n\n[projects."/a b"]\ntrust_level = "trusted"\n',
        ),
    ],
)
def test_a_value_is_set_and_all_else_stays(tmp_path: Path, before: str, after: str) -> None:
    path = write(tmp_path / "config.toml", before)
    path.chmod(0o644)
    set_value(path, KEYS, "trusted")

    assert path.read_text() == after
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "before",
    [
        '[projects."/b"]\ntrust_level = "trusted"\n[tui]\na = 1\n[projects."/c"]\ntrust_level = "untrusted"\n',
        'projects."/b".trust_level = "trusted"\n',
        '[projects]\n"/b" = { trust_level = "trusted" }\n',
        "[a]\r\nb = 1\r\n",
        'last = "line without an end"',
    ],
)
def test_other_settings_read_the_same_afterwards(tmp_path: Path, before: str) -> None:
    path = write(tmp_path / "config.toml", before)
    set_value(path, KEYS, "trusted")

    tree = tomllib.loads(path.read_text())
    assert tree["projects"].pop("/a b") == {"trust_level": "trusted"}
    expected = tomllib.loads(before)
    assert {"projects": {}, **expected} == {"projects": {}, **tree}


@pytest.mark.parametrize("before", ["projects = 5\n", "[[projects]]\na = 1\n", "broken = \n", "\0"])
def test_a_file_that_cannot_be_edited_is_left_alone(tmp_path: Path, before: str) -> None:
    path = write(tmp_path / "config.toml", before)
    with pytest.raises(UserError, match=str(path)):
        set_value(path, KEYS, "trusted")
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_edits_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    def add(number: int) -> None:
        set_value(path, ("mcp_servers", f"s{number}", "command"), "true")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert sorted(tomllib.loads(path.read_text())["mcp_servers"]) == [f"s{number}" for number in range(8)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_server_is_put_into_a_table_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "config.toml", 'mcp_servers = { one = { command = "a" } } # mine\n')
    entry = {"command": "b", "args": ["x"], "env": {"K": "v"}}
    put_mcp_server(path, "two", entry)

    assert tomllib.loads(path.read_text())["mcp_servers"] == {"one": {"command": "a"}, "two": entry}
    assert path.read_text().endswith(" # mine\n")


def test_a_link_is_followed(tmp_path: Path) -> None:
    target = write(tmp_path / "dotfiles" / "codex.toml", "# mine\n")
    link = tmp_path / "config.toml"
    link.symlink_to(target)
    set_value(link, ("model",), "m")

    assert link.is_symlink()
    assert target.read_text() == '# mine\nmodel = "m"\n'


def test_a_directory_in_the_way_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(UserError, match="it is a directory"):
        set_value(tmp_path / "config.toml", ("model",), "m")
    write(tmp_path / "file", "")
    with pytest.raises(UserError, match="cannot write"):
        set_value(tmp_path / "file" / "config.toml", ("model",), "m")


def test_trusting_a_directory_trusts_its_repository(machine: Machine) -> None:
    inner = machine.repo / "a" / "b"
    inner.mkdir(parents=True)
    machine.project('model = "x"\n')

    assert trust_project(machine.home, inner) == machine.repo
    loaded = machine.load(cwd=inner)
    assert (loaded.trust, loaded.config.model) == ("trusted", "x")


def test_trusting_creates_a_private_home(tmp_path: Path) -> None:
    place = tmp_path.resolve() / "place"
    place.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place)

    assert trust_project(tmp_path / "new" / ".codex", link) == place
    assert (tmp_path / "new" / ".codex").stat().st_mode & 0o777 == 0o700
    assert (
        tmp_path / "new" / ".codex" / "config.toml"
    ).read_text() == f'[projects."{place}"]\ntrust_level = "trusted"\n'
