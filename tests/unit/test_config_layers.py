"""Which layer wins, what is remembered about where a value came from, and what `-c` means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.config.layers import Layer
from codex_py.config.schema import Config
from codex_py.errors import UsageError, UserError
from codex_py.protocol.policy import GranularApproval
from tests.unit.config_builders import Machine, write


def test_without_any_file_everything_is_a_default(machine: Machine) -> None:
    loaded = machine.load()

    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {Layer("defaults")}
    assert loaded.layers == (Layer("defaults"),)
    assert (loaded.warnings, loaded.trust, loaded.project_root) == ((), "unknown", machine.repo)


def test_the_provider_in_the_name_of_a_model_gives_way_to_a_managed_one(machine: Machine) -> None:
    flags = {"flags": {"model": "groq/some-model"}, "names_provider": True}
    config = machine.load(**flags).config
    assert (config.model_provider, config.model) == ("groq", "some-model")
    assert machine.load("model_provider=mistral", **flags).config.model_provider == "groq"
    machine.machine("managed_config.toml", 'model_provider = "openrouter"\n')
    config = machine.load(**flags).config
    assert (config.model_provider, config.model) == ("openrouter", "groq/some-model")


def test_each_layer_beats_the_one_below(machine: Machine) -> None:
    files = {
        "system": machine.machine("config.toml", 'model = "system"\n'),
        "user": machine.user(f'model = "user"\n[projects."{machine.repo}"]\ntrust_level = "trusted"\n'),
        "profile": write(machine.home / "work.config.toml", 'model = "profile"\n'),
        "project": machine.project('model = "project"\n'),
        "managed": machine.machine("managed_config.toml", 'model = "managed"\n'),
    }
    highest = [("managed", Layer("managed", files["managed"])), ("flag", Layer("flags")), ("override", Layer("flags"))]
    seen: list[tuple[str | None, Layer]] = []
    request: dict[str, Any] = {"profile": "work", "flags": {"model": "flag"}}
    overrides = ["model=override"]

    def note() -> None:
        loaded = machine.load(*overrides, **request)
        seen.append((loaded.config.model, loaded.origins["model"]))

    note()
    files["managed"].unlink()
    note()
    request["flags"] = {}
    note()
    overrides.clear()
    note()
    files["project"].unlink()
    note()
    request["profile"] = None
    note()
    files["user"].unlink()
    note()
    files["system"].unlink()
    note()

    assert seen == [
        *highest,
        *((name, Layer(name, files[name])) for name in ("project", "profile", "user", "system")),
        (None, Layer("defaults")),
    ]


def test_tables_are_merged_key_by_key_and_lists_are_replaced(machine: Machine) -> None:
    machine.machine("config.toml", 'project_root_markers = [".hg", ".git"]\n[history]\nmax_bytes = 5\n[otel]\na = 1\n')
    user = machine.user('project_root_markers = [".git"]\n[history]\npersistence = "none"\n[otel.deep]\nb = 2\n')
    loaded = machine.load("otel.deep.c=[1]")

    assert (loaded.config.history.persistence, loaded.config.history.max_bytes) == ("none", 5)
    assert loaded.config.project_root_markers == (".git",)
    assert loaded.config.otel == {"a": 1, "deep": {"b": 2, "c": [1]}}
    assert [loaded.origins[key].layer_type for key in ("history.max_bytes", "otel.deep.b", "otel.deep.c")] == [
        *("system", "user", "flags")
    ]
    assert loaded.layers == (
        *(Layer("flags"), Layer("user", user), Layer("system", machine.system / "config.toml"), Layer("defaults")),
    )


def test_a_table_in_place_of_a_value_and_the_other_way_round(machine: Machine) -> None:
    machine.user("[otel]\na = 1\nb = { c = 2 }\n")
    loaded = machine.load("otel.a={x=1}", "otel.b=false")

    assert loaded.config.otel == {"a": {"x": 1}, "b": False}
    assert {key for key in loaded.origins if key.startswith("otel")} == {"otel.a.x", "otel.b"}


def test_a_flag_beats_an_override_and_the_later_override_wins(machine: Machine) -> None:
    loaded = machine.load("model=one", "model=two", "model_verbosity=low", flags={"model_verbosity": "high"})

    assert (loaded.config.model, loaded.config.model_verbosity) == ("two", "high")


def test_flags_may_be_paths_and_tuples(machine: Machine) -> None:
    flags = {"sandbox_workspace_write.writable_roots": (Path("/a"), Path("b"))}

    roots = machine.load(flags=flags).config.sandbox_workspace_write.writable_roots

    assert roots == (Path("/a"), machine.repo / "b")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("model=gpt-5.5", "model", "gpt-5.5"),
        ('model="gpt 5"', "model", "gpt 5"),
        ("model='it\"s'", "model", 'it"s'),
        ("model= spaced name ", "model", "spaced name"),
        ('model="open', "model", "open"),
        ("model=a=b", "model", "a=b"),
        (" model =x", "model", "x"),
        ("model=", "model", ""),
        ("hide_agent_reasoning=true", "hide_agent_reasoning", True),
        ("project_doc_max_bytes=1_000", "project_doc_max_bytes", 1000),
        ("notify=['a', \"b\"]", "notify", ("a", "b")),
        ("otel={a={b=1}}", "otel", {"a": {"b": 1}}),
        ('otel."a.b".c=1', "otel", {"a.b": {"c": 1}}),
        ("otel.'a=b'=1", "otel", {"a=b": 1}),
        ('otel."q\\"q"=1', "otel", {'q"q': 1}),
        ("otel.x=2026-11-21x", "otel", {"x": "2026-11-21x"}),
        ("otel.x=1\ny=2", "otel", {"x": "1\ny=2"}),
        ("otel.x=[1,\n2]", "otel", {"x": [1, 2]}),
        ("developer_instructions=a\nb", "developer_instructions", "a\nb"),
    ],
)
def test_an_override_is_toml_or_else_text(machine: Machine, text: str, key: str, value: object) -> None:
    assert getattr(machine.load(text).config, key) == value


@pytest.mark.parametrize(
    "text", ["", "model", "=x", ".=1", "a..b=1", "a.=1", '"open=1', 'a"b"=1', '"a"b=1', "a." * 40 + "b=1"]
)
def test_what_is_no_assignment_is_a_wrong_command_line(machine: Machine, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        machine.load(text)
    assert caught.value.status == 2


def test_an_endlessly_nested_override_is_refused(machine: Machine) -> None:
    for value in ("[" * 100_000, "[" * 200 + "]" * 200, "{a=" * 5_000):
        with pytest.raises(UsageError, match="nested too deeply"):
            machine.load(f"otel.x={value}")


def test_trust_may_come_from_an_override(machine: Machine) -> None:
    machine.project('model = "project"\n')
    loaded = machine.load(f'projects."{machine.repo}".trust_level="trusted"')

    assert (loaded.trust, loaded.config.model) == ("trusted", "project")


def test_the_user_file_can_be_left_out(machine: Machine) -> None:
    machine.user('model = "user"\n')
    write(machine.home / "p.config.toml", 'model_verbosity = "low"\n')
    config = machine.load(ignore_user=True, profile="p").config

    assert (config.model, config.model_verbosity) == (None, "low")


def test_a_missing_profile_names_the_file_it_looked_for(machine: Machine) -> None:
    with pytest.raises(UserError) as caught:
        machine.load(profile="absent")
    assert str(caught.value) == f"no profile `absent`: `{machine.home}/absent.config.toml` does not exist"
    assert caught.value.status == 2


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0b"])
def test_a_profile_name_is_no_path(machine: Machine, name: str) -> None:
    with pytest.raises(UserError, match="not the name of a profile"):
        machine.load(profile=name)


def test_an_old_profile_table_is_an_error_with_the_way_to_move_it(machine: Machine) -> None:
    machine.user('[profiles.work]\nmodel = "x"\n')
    with pytest.raises(UserError) as caught:
        machine.load(profile="work")
    assert "[profiles.work]" in str(caught.value)
    assert str(machine.home / "work.config.toml") in str(caught.value.hint)

    [warning] = machine.load().warnings
    assert warning.startswith(f"`profiles` in `{machine.user_file}` line 1 is ignored: a profile is a file of its own")


def test_paths_start_at_the_directory_of_their_file_or_at_the_working_directory(machine: Machine) -> None:
    machine.user('log_dir = "logs"\nsqlite_home = "~/db"\nmodel_instructions_file = "/abs/x.md"\n')
    machine.machine("config.toml", '[sandbox_workspace_write]\nwritable_roots = ["data", "~"]\n')
    config = machine.load("model_catalog_json=models.json").config

    assert config.log_dir == machine.home / "logs"
    assert config.sqlite_home == machine.root / "user" / "db"
    assert config.model_instructions_file == Path("/abs/x.md")
    assert config.sandbox_workspace_write.writable_roots == (machine.system / "data", machine.root / "user")
    assert config.model_catalog_json == machine.repo / "models.json"


def test_an_administrator_s_requirements_beat_everything(machine: Machine) -> None:
    rules = machine.machine(
        "requirements.toml",
        'allowed_approval_policies = ["on-request", "untrusted"]\nallowed_sandbox_modes = ["read-only"]\n',
    )
    machine.machine("managed_config.toml", 'approval_policy = "never"\n')
    loaded = machine.load(flags={"sandbox_mode": "danger-full-access"})

    assert (loaded.config.approval_policy, loaded.config.sandbox_mode) == ("untrusted", "read-only")
    assert loaded.origins["sandbox_mode"] == Layer("managed", rules)
    assert loaded.warnings == (
        f'`approval_policy = "never"` is not allowed by `{rules}`: using `untrusted`',
        f'`sandbox_mode = "danger-full-access"` is not allowed by `{rules}`: using `read-only`',
    )


def test_a_requirement_that_is_not_known_stops_the_start(machine: Machine) -> None:
    rules = machine.machine(
        "requirements.toml", 'allow_managed_hooks_only = true\nallowed_sandbox_mode = ["read-only"]\n'
    )
    with pytest.raises(UserError) as caught:
        machine.load()
    assert str(caught.value) == (
        f"cannot enforce a requirement: unknown key `allowed_sandbox_mode` in `{rules}` line 2: "
        "did you mean `allowed_sandbox_modes`?"
    )
    assert caught.value.hint is not None and "`allow_managed_hooks_only`" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[sandbox]\ndeny_raed = ["**/.env"]\n', "line 2: did you mean `sandbox.deny_read`?"),
        ("[sandbox_workspace_write]\nexclude_tmp = true\n", "unknown key `sandbox_workspace_write.exclude_tmp`"),
        ('[sandbox]\ndeny_read = "~/.ssh"\n', "cannot use `sandbox.deny_read"),
    ],
)
def test_a_restriction_that_cannot_be_read_stops_the_start(machine: Machine, text: str, message: str) -> None:
    machine.user(text)
    with pytest.raises(UserError) as caught:
        machine.load()
    assert message in str(caught.value)


def test_a_granular_policy_is_allowed_where_asking_on_request_is(machine: Machine) -> None:
    flags = ("approval_policy={granular={sandbox_approval=true,rules=false,mcp_elicitations=true}}",)
    rules = machine.machine("requirements.toml", 'allowed_approval_policies = ["on-request"]\n')
    assert machine.load(*flags).config.approval_policy == GranularApproval(True, False, True)
    rules.write_text('allowed_approval_policies = ["untrusted"]\n')
    loaded = machine.load(*flags)
    assert loaded.config.approval_policy == "untrusted"
    assert loaded.warnings == (
        "`approval_policy = { granular = { sandbox_approval = true, rules = false, mcp_elicitations = true, "
        f"skill_approval = false, request_permissions = false }} }}` is not allowed by `{rules}`: using `untrusted`",
    )


def test_a_higher_layer_replaces_a_granular_policy_whole(machine: Machine) -> None:
    machine.user(
        "[approval_policy.granular]\nsandbox_approval = true\nrules = true\nmcp_elicitations = true\n"
        "request_permissions = true\n"
    )
    assert machine.load().config.approval_policy == GranularApproval(True, True, True, request_permissions=True)
    table = "approval_policy.granular={sandbox_approval=false,rules=false,mcp_elicitations=false}"
    assert machine.load(table).config.approval_policy == GranularApproval(False, False, False)
    assert machine.load("approval_policy=never").config.approval_policy == "never"


@pytest.mark.parametrize(
    ("allowed", "mode"),
    [
        ('["read-only"]', "read-only"),
        ('["workspace-write", "read-only"]', None),
        ('["danger-full-access"]', "danger-full-access"),
    ],
)
def test_a_sandbox_mode_nobody_chose_keeps_to_the_requirements_too(
    machine: Machine, allowed: str, mode: str | None
) -> None:
    machine.machine("requirements.toml", f"allowed_sandbox_modes = {allowed}\n")
    loaded = machine.load()

    assert (loaded.config.sandbox_mode, loaded.warnings) == (mode, ())


@pytest.mark.parametrize(
    "text", ["allowed_sandbox_modes = []", 'allowed_sandbox_modes = ["ful"]', "allowed_sandbox_modes", "\0"]
)
def test_requirements_that_cannot_be_read_stop_the_program(machine: Machine, text: str) -> None:
    path = machine.machine("requirements.toml", text)
    with pytest.raises(UserError, match=str(path)):
        machine.load()
