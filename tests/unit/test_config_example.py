"""The example file and the schema say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codex_py.config.example import render_example
from codex_py.config.mcp_sections import MCP_SERVER
from codex_py.config.model_sections import ModelEntry, ProviderConfig
from codex_py.config.schema import Config
from codex_py.config.sections import ProjectTrustConfig, SkillRuleConfig
from codex_py.config.value_types import REQUIRED, ConfigRecord, RecordSection, settings_of
from tests.unit.config_builders import Machine

RECORDS = (Config, ProviderConfig, ModelEntry, ProjectTrustConfig, SkillRuleConfig)


def test_the_file_in_the_repository_is_up_to_date() -> None:
    assert (Path(__file__).parents[2] / "config.example.toml").read_text() == render_example()


def test_it_loads_without_a_warning_and_changes_nothing(machine: Machine) -> None:
    machine.user(render_example())
    loaded = machine.load(strict=True)

    assert (loaded.config, loaded.warnings) == (Config(), ())


def test_every_line_that_is_commented_out_would_load_too(machine: Machine) -> None:
    machine.user(re.sub(r"^#(?! |$)", "", render_example(), flags=re.MULTILINE))
    loaded = machine.load(strict=True)

    assert loaded.warnings == ()
    assert loaded.config.mcp_servers["local"]["args"] == ("--stdio",)
    assert loaded.config.model_providers["example"].connect_retry_seconds == 60.0


def every_key(record: type[ConfigRecord]) -> set[str]:
    keys: set[str] = set()
    for name, one in settings_of(record).items():
        keys |= every_key(one.value_type.record) if isinstance(one.value_type, RecordSection) else {name}
    return keys


def test_it_has_every_key() -> None:
    text = render_example()
    keys = {key for record in RECORDS for key in every_key(record)} | set(MCP_SERVER.value_types)
    named = set(re.findall(r"^#?(\w+) = ", text, re.MULTILINE)) | set(re.findall(r"[\[.](\w+)(?=[\].])", text))
    assert keys - named == set()


@pytest.mark.parametrize("record", RECORDS)
def test_every_key_says_what_it_is_for_and_has_a_default_or_a_sample(record: type[ConfigRecord]) -> None:
    for name, one in settings_of(record).items():
        assert one.doc, name
        assert one.doc[0].islower() or one.doc.startswith("MCP"), name
        assert not one.doc.endswith("."), name
        if one.default is None or one.default is REQUIRED:
            assert one.sample is not None, name
