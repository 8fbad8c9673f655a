"""The layers hooks come from, and which of them count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.errors import UserError
from codex_py.hooks.sources import FoundHooks, find_hooks
from tests.support.home import Place

STOP = '[[hooks.Stop]]\ncommand = "{}"\n'


def load(place: Place, system: Path) -> LoadedConfig:
    return load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env, system=system))


def found(place: Place, system: Path) -> FoundHooks:
    return find_hooks(load(place, system), home=place.codex_home, cwd=place.repo)


def commands(hooks: FoundHooks) -> list[tuple[str, str]]:
    return [(hook.origin.layer, str(hook.command)) for hook in hooks.hooks]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    directory = tmp_path / "etc"
    directory.mkdir()
    return directory


def test_an_administrators_hooks_come_first_and_cannot_be_replaced(place: Place, system: Path) -> None:
    (system / "requirements.toml").write_text(STOP.format("required"))
    (system / "managed_config.toml").write_text(STOP.format("managed"))
    (system / "config.toml").write_text(STOP.format("system"))
    (system / "hooks.json").write_text(json.dumps({"Stop": [{"command": "file"}]}))
    place.configure(STOP.format("mine"))
    assert commands(found(place, system)) == [
        ("managed", "required"),
        ("managed", "managed"),
        ("managed", "system"),
        ("managed", "file"),
        ("user", "mine"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [('{"hooks": {\n"Stop": [}', "not JSON: line 2 "), ("[]", "not a JSON object"), ("\udcff", "not UTF-8")],
)
def test_an_administrators_file_that_cannot_be_read_stops_the_start(
    place: Place, system: Path, text: str, reason: str
) -> None:
    broken = system / "hooks.json"
    broken.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=f"cannot read `{broken}`.*{reason}") as raised:
        found(place, system)
    assert "have the file corrected" in (raised.value.hint or "")
    (place.codex_home / "hooks.json").write_bytes(broken.read_bytes())
    broken.unlink()
    assert len(found(place, system).warnings) == 1


def test_an_administrators_file_that_others_can_write_stops_the_start(place: Place, system: Path) -> None:
    (system / "hooks.json").write_text("{}")
    (system / "hooks.json").chmod(0o666)
    with pytest.raises(UserError, match="chmod"):
        found(place, system)


def test_switching_hooks_off_leaves_an_administrators_on(place: Place, system: Path) -> None:
    (system / "hooks.json").write_text(json.dumps({"hooks": {"Stop": [{"command": "file"}]}}))
    place.configure("features.hooks = false\n" + STOP.format("mine"))
    assert commands(found(place, system)) == [("managed", "file")]


def test_an_administrator_can_be_the_only_one(place: Place, system: Path) -> None:
    (system / "requirements.toml").write_text("allow_managed_hooks_only = true\n" + STOP.format("required"))
    place.configure(STOP.format("mine"))
    assert commands(found(place, system)) == [("managed", "required")]


def test_where_there_are_no_hooks_there_is_nothing_to_run_or_say(place: Place, system: Path) -> None:
    place.write(".codex/config.toml", 'model = "x"\n')
    place.configure('model = "y"\n')
    hooks = found(place, system)
    assert not (hooks.hooks or hooks.untrusted or hooks.warnings or hooks.notices)


def test_a_link_out_of_the_project_is_not_followed(place: Place, system: Path) -> None:
    outside = place.home / "theirs.json"
    outside.write_text(json.dumps({"Stop": [{"command": "theirs"}]}))
    (place.repo / ".codex").mkdir()
    (place.repo / ".codex" / "hooks.json").symlink_to(outside)
    hooks = found(place, system)
    assert (hooks.hooks, hooks.untrusted) == ((), ())
    assert hooks.warnings == (
        f"`{place.repo}/.codex/hooks.json` is ignored: it is a link that leads out of the project",
    )


def test_hooks_of_directories_in_the_project_add_up(place: Place, system: Path) -> None:
    for directory in (".", "sub"):
        place.write(f"{directory}/.codex/hooks.json", json.dumps({"Stop": [{"command": directory}]}))
    loaded = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo / "sub", env=place.env, system=system))
    hooks = find_hooks(loaded, home=place.codex_home, cwd=place.repo / "sub")
    assert [hook.command for hook in hooks.untrusted] == [".", "sub"]
    [warning] = hooks.warnings
    assert warning.startswith("2 hooks in ")
