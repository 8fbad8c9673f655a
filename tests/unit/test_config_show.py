"""`codex-py config`: every key, its value, where it came from, and no secret."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest

from codex_py.cli.config import show_config
from codex_py.config.effective import effective_values
from codex_py.config.load import LoadedConfig
from codex_py.config.secret_values import secret_values
from tests.unit.config_builders import Machine

SECRET = "hunter2"


def shown(loaded: LoadedConfig, *, as_json: bool = False, everything: bool = True) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show_config(loaded, as_json=as_json, everything=everything)
    return out.getvalue()


def test_a_granular_policy_is_shown_as_it_is_written(machine: Machine) -> None:
    machine.user(
        "approval_policy = { granular = { sandbox_approval = true, rules = false, mcp_elicitations = true } }\n"
    )
    [line] = shown(machine.load(), everything=False).splitlines()
    assert line.split("  ")[1].startswith("{ granular = { sandbox_approval = true, rules = false, mcp_elicit")
    [value] = [one.value for one in effective_values(machine.load()) if one.key == "approval_policy"]
    assert value == {
        "granular": {
            "sandbox_approval": True,
            "rules": False,
            "mcp_elicitations": True,
            "skill_approval": False,
            "request_permissions": False,
        }
    }


def test_what_was_set_comes_first_with_its_layer(machine: Machine) -> None:
    machine.user('model = "m"\n[history]\nmax_bytes = 5\n')
    text = shown(machine.load("notify=['a', 'b']"))
    head, tail = text.split("\n\n")

    assert [line.split() for line in head.splitlines()] == [
        ["model", '"m"', "user", str(machine.user_file)],
        ["notify", '["a",', '"b"]', "flags"],
        ["history.max_bytes", "5", "user", str(machine.user_file)],
    ]
    assert "\nproject_doc_max_bytes " in tail
    assert "\nsandbox_mode " in tail
    assert {line.split()[-1] for line in tail.splitlines()} == {"defaults"}
    # A value that is wider than the column pushes its own layer aside.
    narrow = [line for line in tail.splitlines() if not line.startswith("sandbox.protected ")]
    assert len({line.rindex("defaults") for line in narrow}) == 1


def test_only_what_was_set_can_be_asked_for(machine: Machine) -> None:
    assert shown(machine.load("model=m"), everything=False) == 'model  "m"  flags\n'
    assert shown(machine.load(), everything=False) == ""


def test_json_has_values_layers_and_trust(machine: Machine) -> None:
    machine.trusted('log_dir = "x"\n[otel]\nratio = nan\nday = 2026-11-21\n')
    result = json.loads(shown(machine.load("modle=1"), as_json=True), parse_constant=pytest.fail)

    file = str(machine.user_file)
    assert result["trust"] == "trusted"
    assert result["project_root"] == str(machine.repo)
    assert result["layers"] == [
        {"layer": "flags", "file": None},
        {"layer": "user", "file": file},
        {"layer": "defaults", "file": None},
    ]
    assert result["warnings"] == ["unknown key `modle` in `-c modle=1` is ignored; did you mean `model`?"]
    settings = result["settings"]
    assert settings["log_dir"] == {"value": str(machine.home / "x"), "layer": "user", "file": file}
    assert settings["project_root_markers"] == {"value": [".git"], "layer": "defaults", "file": None}
    assert settings["mcp_servers"] == {"value": {}, "layer": "defaults", "file": None}
    assert settings["otel.day"]["value"] == "2026-11-21"
    assert settings[f'projects."{machine.repo}".trust_level']["value"] == "trusted"


def test_secrets_are_masked_everywhere(machine: Machine) -> None:
    machine.user(
        f"""
        notify = ["tell", "--token", "{SECRET}"]
        [model_providers.p]
        base_url = "https://user:{SECRET}@h.example/v1?key={SECRET}"
        experimental_bearer_token = "{SECRET}"
        http_headers = {{ authorization = "{SECRET}" }}
        query_params = {{ "api-key" = "{SECRET}", "api-version" = "2026" }}
        env_key = "P_KEY"
        env_http_headers = {{ x-api-key = "P_HEADER" }}
        [shell_environment_policy.set]
        A = "{SECRET}"
        [mcp_servers.s]
        command = "serve"
        args = ["--token", "{SECRET}", "--api-key={SECRET}", "-H", "Authorization: {SECRET}"]
        env = {{ TOKEN = "{SECRET}", PLAIN = "{SECRET}" }}
        [mcp_servers.r]
        url = "https://u:{SECRET}@h.example/mcp?token={SECRET}"
        http_headers = {{ x = "{SECRET}" }}
        [otel.exporter.otlp-http]
        headers = {{ x = "{SECRET}" }}
        [otel]
        some_password = "{SECRET}"
        list = [{{ api_token = "{SECRET}", fine = 1 }}]
        address = "postgres://u:{SECRET}@h/db"
        """
    )
    loaded = machine.load()
    out = shown(loaded, as_json=True)

    assert SECRET not in out + shown(loaded) + repr(loaded.config.model_providers)
    values = {one.key: one.value for one in effective_values(loaded)}
    assert values["model_providers.p.base_url"] == "https://***@h.example/v1?***"
    assert values["model_providers.p.query_params.api-version"] == "2026"
    assert values["model_providers.p.env_key"] == "P_KEY"
    assert values["model_providers.p.env_http_headers.x-api-key"] == "P_HEADER"
    assert values["mcp_servers.s.command"] == "serve"
    assert values["otel.list"] == [{"api_token": "***", "fine": 1}]


def test_the_secrets_of_a_configuration_are_known(machine: Machine) -> None:
    machine.user(
        """
        [model_providers.p]
        base_url = "https://user:secret-01@h.example/v1"
        experimental_bearer_token = "secret-02"
        http_headers = { authorization = "Bearer secret-03", x-team = "core" }
        query_params = { "api-key" = "secret-04", "api-version" = "2026-01-01" }
        env_http_headers = { x-org = "ORG" }
        [model_providers.p.auth]
        command = "print-it"
        args = ["--password", "secret-05"]
        [shell_environment_policy.set]
        A_TOKEN = "secret-06"
        CI = "1"
        [mcp_servers.s]
        command = "serve"
        args = ["--token", "secret-07", "--stdio"]
        env = { TOKEN = "secret-08", NODE_ENV = "production", ID = "a1b2c3d4e5f6" }
        [mcp_servers.off]
        enabled = false
        url = "https://h.example/mcp?token=secret-09"
        http_headers = { X-Api-Key = "secret-10" }
        bearer_token_env_var = "MINE"
        [otel]
        some_password = "secret-11"
        """
    )
    env = {"ORG": "secret-12", "MINE": "secret-13", "OTHER": "secret-14"}
    found = secret_values(machine.load().config, env)
    assert sorted(found) == sorted(["Bearer secret-03", "a1b2c3d4e5f6", *(f"secret-{n:02}" for n in range(1, 14))])


def test_nothing_steers_the_terminal(machine: Machine) -> None:
    machine.user('model = "m"\n[otel]\n"a\\u001b]0;x\\u0007" = "\\u001b[2J\\u202e\\n"\n')
    text = shown(machine.load())

    assert [line for line in text.splitlines() if line.startswith("otel")]
    assert all(letter == "\n" or letter.isprintable() for letter in text)


def test_every_key_that_has_a_layer_is_shown(machine: Machine) -> None:
    machine.user("[model_providers.p]\nname = 'x'\nquery_params = { a = 'b' }\n[tui]\nx = { y = 1 }\n")
    loaded = machine.load()
    assert set(loaded.origins) - {one.key for one in effective_values(loaded)} == set()
