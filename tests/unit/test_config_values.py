"""Wrong values, unknown keys and broken files: one line that names file, line, key, what was found, what is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.keys import toml_value
from codex_py.config.model_sections import ProviderConfig
from codex_py.config.schema import Config
from codex_py.config.sections import HistoryConfig
from codex_py.errors import UserError
from tests.support.work import within
from tests.unit.config_builders import Machine


def refusal(machine: Machine, *overrides: str, strict: bool = False) -> str:
    with pytest.raises(UserError) as caught:
        machine.load(*overrides, strict=strict)
    assert caught.value.status == 2
    return str(caught.value)


def test_a_wrong_word_names_file_line_key_and_the_allowed_ones(machine: Machine) -> None:
    machine.user('model = "m"\n\nsandbox_mode = "ful"\n')

    assert refusal(machine) == (
        f'cannot use `sandbox_mode = "ful"` in `{machine.user_file}` line 3: '
        "allowed are `read-only`, `workspace-write`, `danger-full-access`"
    )


def test_a_wrong_override_names_the_flag(machine: Machine) -> None:
    assert refusal(machine, "sandbox_mode=ful") == (
        'cannot use `sandbox_mode = "ful"` in `-c sandbox_mode=ful`: '
        "allowed are `read-only`, `workspace-write`, `danger-full-access`"
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("model = 5", '`model = 5` in F line 1: it must be text: write `"5"` in quotes'),
        ('model = "a\\nb"', '`model = "a\\nb"` in F line 1: it must be text on one line'),
        (
            'developer_instructions = "a\\u0000"',
            '`developer_instructions = "a\\u0000"` in F line 1: it holds characters that no text may have',
        ),
        ("model = true", '`model = true` in F line 1: it must be text: write `"true"` in quotes'),
        ("model = { a = 1 }", "`model = { a = 1 }` in F line 1: it must be text in quotes"),
        ("project_doc_max_bytes = -1", "`project_doc_max_bytes = -1` in F line 1: it must be a whole number from 0 up"),
        (
            "project_doc_max_bytes = 1.5",
            "`project_doc_max_bytes = 1.5` in F line 1: it must be a whole number from 0 up",
        ),
        (
            "project_doc_max_bytes = true",
            "`project_doc_max_bytes = true` in F line 1: it must be a whole number from 0 up",
        ),
        ("model_context_window = 0", "`model_context_window = 0` in F line 1: it must be a whole number from 1 up"),
        ("hide_agent_reasoning = 1", "`hide_agent_reasoning = 1` in F line 1: allowed are `true`, `false`"),
        ('notify = "x"', '`notify = "x"` in F line 1: it must be a list, as in `["x"]`'),
        ('notify = [\n"a",\n1]', '`notify[1] = 1` in F line 1: it must be text: write `"1"` in quotes'),
        ("history = 1", "`history = 1` in F line 1: it must be a table: a line `[history]` with its keys below"),
        (
            '[history]\n\npersistence = "some"',
            '`history.persistence = "some"` in F line 3: allowed are `save-all`, `none`',
        ),
        ("tui = []", "`tui = []` in F line 1: it must be a table: a line `[tui]` with its keys below"),
        (
            '[model_providers.x]\nwire_api = "grpc"',
            '`model_providers.x.wire_api = "grpc"` in F line 2: allowed are `responses`, `chat`, `messages`',
        ),
        (
            "[model_providers.x]\nrequest_max_retries = 101",
            "`model_providers.x.request_max_retries = 101` in F line 2: it must be a whole number from 0 to 100",
        ),
        (
            "[model_providers.x]\nconnect_retry_seconds = -0.5",
            "`model_providers.x.connect_retry_seconds = -0.5` in F line 2: it must be a number of seconds from 0 up",
        ),
        (
            "[model_providers.x]\nconnect_retry_seconds = nan",
            "`model_providers.x.connect_retry_seconds = nan` in F line 2: it must be a number of seconds from 0 up",
        ),
        (
            '[model_providers.x]\nbase_url = "ftp://h"',
            '`model_providers.x.base_url = "ftp://h"` in F line 2: it must be a URL that begins with `https://` or `http://`',
        ),
        (
            'openai_base_url = "http://"',
            '`openai_base_url = "http://"` in F line 1: it must be a URL that begins with `https://` or `http://`',
        ),
        (
            '[sandbox_workspace_write]\nnetwork_access = "local"',
            '`sandbox_workspace_write.network_access = "local"` in F line 2: allowed are `true`, `false`, `loopback`',
        ),
        ('log_dir = ""', '`log_dir = ""` in F line 1: it must be a path'),
        (
            "[projects]\n'/a'.trust_level = 'yes'",
            '`projects."/a".trust_level = "yes"` in F line 2: allowed are `trusted`, `untrusted`',
        ),
        (
            "[skills]\nmax_context_tokens = 0",
            "`skills.max_context_tokens = 0` in F line 2: it must be a whole number from 1 up",
        ),
        (
            '[[skills.config]]\nname = "a"\nenabled = true\n[[skills.config]]\nname = "b"',
            '`skills.config[1] = { name = "b" }` in F line 4: `enabled` is missing',
        ),
        (
            "[mcp_servers.x]\ncommand = ['a']",
            "`mcp_servers.x.command = …` in F line 2: it must be text in quotes, not a list",
        ),
        (
            "forced_chatgpt_workspace_id = 5",
            "`forced_chatgpt_workspace_id = 5` in F line 1: it must be text in quotes or a list of texts",
        ),
        (
            'approval_policy = "granular"',
            '`approval_policy = "granular"` in F line 1: '
            "it is a table: `{ granular = { sandbox_approval = true, … } }`",
        ),
        (
            'approval_policy = "ask"',
            '`approval_policy = "ask"` in F line 1: allowed are `untrusted`, `on-request`, `on-failure`, `never`, '
            "or a table `{ granular = { … } }`",
        ),
        (
            "approval_policy = { reject = {} }",
            "`approval_policy = { reject = {} }` in F line 1: a table here has `granular` and nothing else",
        ),
        (
            "[approval_policy.granular]\nsandbox_approval = true\nmcp_elicitations = true",
            "`approval_policy.granular = { sandbox_approval = true, mcp_elicitations = true }` in F line 1: "
            "`rules` is missing",
        ),
        (
            "approval_policy = { granular = { sandbox_approval = 1 } }",
            "`approval_policy.granular.sandbox_approval = 1` in F line 1: allowed are `true`, `false`",
        ),
        (
            'model_reasoning_effort = "huge"',
            '`model_reasoning_effort = "huge"` in F line 1: '
            "allowed are `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, `ultra`, `persistent`",
        ),
    ],
)
def test_every_wrong_value_is_reported_in_one_line(machine: Machine, text: str, result: str) -> None:
    machine.user(text + "\n")
    assert refusal(machine) == f"cannot use {result}".replace(" in F ", f" in `{machine.user_file}` ")


def test_a_long_value_is_shortened_and_a_secret_is_not_shown(machine: Machine) -> None:
    machine.user(f'web_search = "{"x" * 500}"\n')
    assert len(refusal(machine)) < 300
    machine.user("[model_providers.x]\nexperimental_bearer_token = 12345\n")
    assert "12345" not in refusal(machine)
    assert "12345" not in refusal(machine, "model_providers.y.experimental_bearer_token=12345")


@pytest.mark.parametrize("wire", ["responses", "chat", "messages"])
def test_each_api_can_be_configured(machine: Machine, wire: str) -> None:
    loaded = machine.load(f'model_providers.x.wire_api="{wire}"')
    assert loaded.config.model_providers["x"].wire_api == wire


@pytest.mark.parametrize("name", ["openai", "ollama", "lmstudio", "offline"])
def test_a_built_in_provider_cannot_be_redefined(machine: Machine, name: str) -> None:
    machine.user(f'model = "m"\n[model_providers.{name}]\nbase_url = "http://x"\n')
    assert refusal(machine) == f"cannot redefine the built-in provider `{name}` in `{machine.user_file}` line 2"


def test_an_unknown_provider_names_the_known_ones_and_the_nearest(machine: Machine) -> None:
    machine.user('model_provider = "opnai"\n[model_providers.mine]\nbase_url = "http://x"\n')
    assert refusal(machine) == (
        f"unknown provider `opnai` in `{machine.user_file}` line 1: did you mean `openai`? "
        "known are `openai`, `ollama`, `lmstudio`, `offline`, `anthropic`, `openrouter`, `deepseek`, "
        "`mistral`, `groq`, `gemini`, `vllm`, `llamacpp`, `mine`"
    )
    assert machine.load("model_provider=mine").config.model_provider == "mine"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("enabled = true", "set `command` to the program that starts it, or `url` to its address"),
        ('command = "a"\nurl = "http://x"', "it has both `command` and `url`; remove one"),
        ('command = "a"\nbearer_token_env_var = "T"', "`bearer_token_env_var` only goes with `url`; remove it"),
        ('url = "http://x"\nenv = { A = "b" }', "`env` only goes with `command`; remove it"),
    ],
)
def test_an_mcp_server_has_a_command_or_an_address(machine: Machine, text: str, reason: str) -> None:
    machine.user(f'model = "m"\n[mcp_servers."a b"]\n{text}\n')
    assert refusal(machine) == f'cannot use `mcp_servers."a b"` in `{machine.user_file}` line 2: {reason}'


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('modle = "x"', "`modle` in F line 1 is ignored; did you mean `model`?"),
        ("[history]\nmax_byte = 1", "`history.max_byte` in F line 2 is ignored; did you mean `history.max_bytes`?"),
        ("history = { max_byte = 1 }", "`history.max_byte` in F line 1 is ignored; did you mean `history.max_bytes`?"),
        (
            "[model_providers.x]\nbaseurl = 'x'",
            "`model_providers.x.baseurl` in F line 2 is ignored; did you mean `model_providers.x.base_url`?",
        ),
        (
            "[mcp_servers.x]\ncommand = 'x'\nargz = []",
            "`mcp_servers.x.argz` in F line 3 is ignored; did you mean `mcp_servers.x.args`?",
        ),
        (
            "[shel_environment_policy]\nset = {}",
            "`shel_environment_policy` in F line 1 is ignored; did you mean `shell_environment_policy`?",
        ),
        ("sandbox_moed = 1", "`sandbox_moed` in F line 1 is ignored; did you mean `sandbox_mode`?"),
        ("something_else_entirely = 1", "`something_else_entirely` in F line 1 is ignored"),
        ('"a\\u001b[31m" = 1', '`"a\\u001b[31m"` in F line 1 is ignored'),
    ],
)
def test_an_unknown_key_is_a_warning_or_an_error(machine: Machine, text: str, result: str) -> None:
    machine.user(text + "\n")
    file = f"`{machine.user_file}`"

    assert machine.load().warnings == (f"unknown key {result}".replace("F", file),)
    strict = result.replace("F", file).replace(" is ignored; ", ": ").removesuffix(" is ignored")
    assert refusal(machine, strict=True) == f"unknown key {strict}"


def test_an_unknown_key_of_an_override_names_the_flag(machine: Machine) -> None:
    assert machine.load("modle=x").warnings == (
        "unknown key `modle` in `-c modle=x` is ignored; did you mean `model`?",
    )


def test_free_tables_and_keys_of_other_programs_are_no_typing_errors(machine: Machine) -> None:
    machine.user(
        "notice = { seen = true }\n[tui]\nanything = 1\n[hooks]\ny = []\n"
        "[plugins.'a@b']\nenabled = false\n[agents.z]\ndescription = 'y'\n[tools]\nview_image = true\n"
        "[permissions.p]\nq = 1\n[otel]\nr = 1\n[analytics]\ns = 1\n"
    )
    assert machine.load(strict=True).warnings == ()


def broken(machine: Machine, content: bytes) -> str:
    machine.user_file.write_bytes(content)
    machine.user_file.chmod(0o600)
    return refusal(machine).replace(str(machine.user_file), "F")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'model = "m\n', "cannot read `F` line 1 column 11: illegal character '\\n' in `model = \"m`"),
        (b'a = 1\nmodel "m"\n', "cannot read `F` line 2 column 7: "),
        (b"a = 1\r\na = 2\r\n", "cannot read `F` line 2 column 6: cannot overwrite a value in `a`"),
        (b"a = [\n" + b"x" * 500, f"cannot read `F` line 2 column 1: invalid value in `{'x' * 120}…`"),
        (b'a = """x\ny\n', "cannot read `F` line 3 column 1: unterminated string in `a`"),
        (b"[t]\napi_key = k-1", "cannot read `F` line 2 column 11: invalid value in `t.api_key`"),
        (
            b'[t.env]\nA = 1\nB: "k-1"',
            "cannot read `F` line 3 column 2: expected '=' after a key in a key/value pair in `t.env.A`",
        ),
        (b'{"api_key": "k-1"}', "cannot read `F` line 1 column 1: invalid statement"),
        (b"base_url = https://u:p@h/", "cannot read `F` line 1 column 12: invalid value in `base_url`"),
        (b"a = [1,\n", "cannot read `F` line 2 column 1: "),
        (b"[a\n", "cannot read `F` line 1 column 3: "),
        (b"\x00", "cannot read `F` line 1 column 1: "),
        (b"a = " + b"9" * 5000, "cannot read `F`: "),
        (b'a = 1\nb = "\xff"\n', "cannot read `F`: line 2 is not UTF-8"),
        (b"a = " + b"[" * 50_000, "cannot read `F`: nested too deeply"),
        (b"a = " + b"[" * 100 + b"]" * 100, "cannot read `F`: nested too deeply"),
        (b"a." * 100 + b"a = 1", "cannot read `F`: nested too deeply"),
        (b"#" * 1_100_000, "cannot read `F`: it is larger than 1024 KiB"),
    ],
)
def test_a_broken_file_is_reported_in_one_line_with_its_place(machine: Machine, content: bytes, place: str) -> None:
    result = broken(machine, content)
    assert result.startswith(place)
    assert "\n" not in result


def test_a_file_that_is_none_is_reported_in_one_line(machine: Machine) -> None:
    machine.user_file.mkdir()
    assert refusal(machine) == f"cannot read `{machine.user_file}`: it is a directory"
    machine.user_file.rmdir()
    os.mkfifo(machine.user_file)
    assert refusal(machine) == f"cannot read `{machine.user_file}`: it is not a regular file"
    machine.user_file.unlink()
    machine.user_file.symlink_to(machine.user_file)
    assert refusal(machine).startswith(f"cannot read `{machine.user_file}`: ")


def test_a_byte_order_mark_and_windows_line_ends_are_fine(machine: Machine) -> None:
    machine.user_file.write_bytes(b'\xef\xbb\xbfmodel = "m"\r\n[history]\r\nmax_bytes = 5\r\n')
    machine.user_file.chmod(0o600)
    config = machine.load().config

    assert (config.model, config.history) == ("m", HistoryConfig(max_bytes=5))


@pytest.mark.parametrize(
    "line",
    [
        b"a." * 30_000 + b"b = 1",
        b'"' * 60_000,
        b"." * 65 + b'"' + b'\\"' * 30_000,
        b"." * 65 + b'"""' + b'\\"""' * 15_000,
        b"x = { " + b"a." * 30_000 + b"b = 1 }",
        b"[" + b"a." * 30_000 + b"b]",
        b"[" * 60_000,
        b"a = [" + b"{}," * 20_000,
        b"a = " + b"'''" * 20_000,
        b"#" * 65_000,
        b"x = { " + b"a = 1, " * 8_000,
        b"modle = [" + b"1, " * 20_000 + b"]",
        b"\n" * 60_000 + b"modle = 1",
    ],
)
def test_a_hostile_project_file_is_read_in_bounded_time(machine: Machine, line: bytes) -> None:
    machine.trusted()
    machine.project("").write_bytes(line)
    try:
        within(50 * len(line) + 200_000, machine.load)
    except UserError as error:
        assert len(str(error)) < 1000


def test_a_record_is_frozen_compared_by_value_and_can_be_replaced() -> None:
    config = Config(model="a", history=HistoryConfig(max_bytes=1))

    assert config.replace(model="b") == Config(model="b", history=HistoryConfig(max_bytes=1)) != config
    for name in ("model", "other"):
        with pytest.raises(AttributeError):
            setattr(config, name, "c")
        with pytest.raises(AttributeError):
            delattr(config, name)
    unknown: dict[str, Any] = {"modle": "a"}
    with pytest.raises(TypeError):
        Config(**unknown)


def test_a_record_does_not_show_its_secrets() -> None:
    provider = ProviderConfig(
        name="x",
        base_url="https://me:hunter2@host",
        experimental_bearer_token="hunter2",
        http_headers={"authorization": "hunter2"},
        query_params={"sig": "hunter2"},
    )
    servers = {"s": {"command": "x", "env": {"TOKEN": "hunter2"}}}
    config = Config(model_providers={"x": provider}, mcp_servers=servers, otel={"headers": "hunter2"})
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        (float("inf"), "inf"),
        ('a"b\\c\n\u202e\x1b', '"a\\"b\\\\c\\n\\u202e\\u001b"'),
        ("é😀", '"é😀"'),
        (Path("/a"), '"/a"'),
        ({"a b": [1, {"c": ()}]}, '{ "a b" = [1, { c = [] }] }'),
        ({}, "{}"),
    ],
)
def test_values_are_shown_as_toml(value: object, text: str) -> None:
    assert toml_value(value) == text
