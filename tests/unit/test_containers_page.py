"""The page on containers agrees with the messages of the program, and with itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from codex_py.sandbox.linux import missing_sandbox

ROOT = Path(__file__).parents[2]
NAME = "docs/guides/containers.md"
PAGE = (ROOT / NAME).read_text()
OPTIONS = {"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_message_names_the_page_and_the_page_the_steps_of_the_message() -> None:
    message = missing_sandbox(["bubblewrap: operation not permitted"], partial=True)
    assert NAME in message
    steps = [step for step in re.findall(r"`(-.*?)`", message) if step.startswith("-")]
    assert steps == ["-c sandbox.allow_partial=true", "-s danger-full-access"]
    assert [step for step in steps if f"| `{step}`" not in PAGE] == []


def test_every_example_is_valid_and_names_the_same_options() -> None:
    steps, job, pod = (yaml.safe_load(text) for text in blocks("yaml"))
    [runner] = (tomllib.loads(text) for text in blocks("toml"))
    [docker] = [text for text in blocks("sh") if text.startswith("docker run")]
    assert [set(step) for step in steps] == [{"run"}, {"run"}]
    assert set(re.findall(r"--security-opt (\S+)", docker)) == OPTIONS
    assert set(re.findall(r"--security-opt (\S+)", job["container"]["options"])) == OPTIONS
    # The runner speaks to Docker's API, and `systempaths` is known to the command line only.
    assert runner == {"runners": {"docker": {"privileged": True}}}
    assert set(re.findall(r"^\| `(\w+=unconfined)`", PAGE, re.MULTILINE)) == OPTIONS
    assert pod["spec"]["hostUsers"] is False
    assert pod["spec"]["containers"][0]["securityContext"]["procMount"] == "Unmasked"


def test_the_profile_is_loaded_from_where_it_was_put() -> None:
    [ubuntu] = [text for text in blocks("sh") if "apparmor_parser" in text]
    put = re.search(r"install -m 0644 (\S+) (\S+)/$", ubuntu, re.MULTILINE)
    loaded = re.search(r"apparmor_parser -r (\S+)$", ubuntu, re.MULTILINE)
    assert put is not None
    assert loaded is not None
    assert loaded[1] == f"{put[2]}/{Path(put[1]).name}"
