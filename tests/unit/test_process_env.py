"""The environment tool processes get."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from codex_py.config.sections import ShellEnvironmentPolicy
from codex_py.process.env import (
    find_executable,
    matches_glob,
    tool_environment,
    withheld_by_value,
)

USER = {
    "HOME": "/home/u",
    "PATH": "/nowhere",
    "EDITOR": "vi",
    "AWS_SECRET_ACCESS": "1",
    "my_api_key": "2",
    "GH_TOKEN": "3",
    "DB_PASSWORD": "4",
    "LANG": "de_DE.UTF-8",
    "PAGER": "less",
}
FORCED = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "COLORTERM": "",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "CODEX_CI": "1",
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS": "1",
}


def _of_user(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if FORCED.get(name) != value and name != "PATH"}


def test_secrets_stay_out_by_default_and_output_is_kept_plain() -> None:
    env = tool_environment(USER, ShellEnvironmentPolicy(), extra={"CODEX_THREAD_ID": "t"})
    assert _of_user(env) == {"HOME": "/home/u", "EDITOR": "vi", "CODEX_THREAD_ID": "t"}
    assert FORCED.items() <= env.items()


def test_secrets_pass_when_asked_for_but_never_the_named_ones() -> None:
    env = tool_environment(USER, ShellEnvironmentPolicy(ignore_default_excludes=True), secrets={"my_api_key"})
    assert "my_api_key" not in env
    assert env["GH_TOKEN"] == "3"


def test_an_explicit_value_wins_over_the_excludes() -> None:
    rules = ShellEnvironmentPolicy(set={"GH_TOKEN": "mine"}, exclude=("GH_*",))
    assert tool_environment(USER, rules, secrets={"GH_TOKEN"})["GH_TOKEN"] == "mine"


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (ShellEnvironmentPolicy(inherit="none"), {}),
        (ShellEnvironmentPolicy(inherit="core"), {"HOME": "/home/u"}),
        (ShellEnvironmentPolicy(exclude=("edit*",)), {"HOME": "/home/u"}),
        (ShellEnvironmentPolicy(include_only=("E?ITOR",)), {"EDITOR": "vi"}),
        (ShellEnvironmentPolicy(inherit="none", set={"A": "1", "B": "2"}, include_only=("a",)), {"A": "1"}),
    ],
)
def test_rules_apply_in_order(rules: ShellEnvironmentPolicy, kept: dict[str, str]) -> None:
    assert _of_user(tool_environment(USER, rules)) == kept


def test_a_value_with_a_credential_stays_out_whatever_its_name_is() -> None:
    user = {"HOME": "/home/u", "DATABASE_URL": "postgres://app:hunter2@db/app", "SITE": "https://example.com/"}
    assert _of_user(tool_environment(user, ShellEnvironmentPolicy())) == {
        "HOME": "/home/u",
        "SITE": "https://example.com/",
    }
    assert withheld_by_value(user, ShellEnvironmentPolicy()) == ("DATABASE_URL",)
    for rules in (ShellEnvironmentPolicy(allow=("database_*",)), ShellEnvironmentPolicy(ignore_default_excludes=True)):
        assert _of_user(tool_environment(user, rules)) == user
        assert withheld_by_value(user, rules) == ()


@pytest.mark.parametrize("name", ["SENTRY_DSN", "MYSQL_PWD", "SESSION_COOKIE", "GH_PAT", "NPM_AUTH", "SSH_PASSPHRASE"])
def test_names_of_secrets_stay_out_unless_they_are_allowed(name: str) -> None:
    assert _of_user(tool_environment({name: "x", "PWD": "/a", "OLDPWD": "/b"}, ShellEnvironmentPolicy())) == {
        "PWD": "/a",
        "OLDPWD": "/b",
    }
    assert _of_user(tool_environment({name: "x"}, ShellEnvironmentPolicy(allow=(name,)))) == {name: "x"}


def test_what_is_excluded_by_name_is_not_allowed_by_another_rule() -> None:
    rules = ShellEnvironmentPolicy(allow=("*",), exclude=("A_TOKEN",))
    assert _of_user(tool_environment({"A_TOKEN": "1", "B_TOKEN": "2"}, rules)) == {"B_TOKEN": "2"}


@pytest.mark.parametrize(
    "glob", "* ** *? *KEY* *KEY *KEY** KEY* KEY *K?Y* *[JK]EY* *[KEY *] ?KEY *_*_* *a* \n*".split(" ")
)
def test_globs_match_as_those_of_a_shell_do(glob: str) -> None:
    for name in (
        "",
        "KEY",
        "key",
        "A_KEY",
        "KEY_A",
        "A_KEY_A",
        "A_KEY\n",
        "A_KE",
        "A_KxY",
        "[KEY",
        "_A_",
        "*",
        "**",
        "]",
    ):
        assert matches_glob(name, (glob,)) == fnmatchcase(name.upper(), glob.upper()), (name, glob)


def test_no_path_is_made_up_when_nothing_is_inherited() -> None:
    assert "PATH" not in tool_environment(USER, ShellEnvironmentPolicy(inherit="none"))


def test_the_bundled_rg_is_found_last(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to("/of/another/installation")
    for _ in range(2):
        path = tool_environment({"PATH": "/nowhere"}, ShellEnvironmentPolicy(), home=tmp_path)["PATH"]
        assert path == f"/nowhere:{tmp_path}/bin"
        assert find_executable("rg", path) == f"{tmp_path}/bin/rg"


def test_a_path_that_has_rg_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rg").touch(0o755)
    assert tool_environment({"PATH": str(tmp_path)}, ShellEnvironmentPolicy(), home=tmp_path)["PATH"] == str(tmp_path)
    assert not (tmp_path / "bin").exists()


def test_a_home_that_cannot_be_written_costs_only_the_bundled_rg(tmp_path: Path) -> None:
    (tmp_path / "bin").touch()
    assert tool_environment({"PATH": "/nowhere"}, ShellEnvironmentPolicy(), home=tmp_path)["PATH"] == "/nowhere"


def test_relative_directories_and_directories_are_not_executables(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    assert find_executable("tool", f"{tmp_path}{os.pathsep}.") is None
