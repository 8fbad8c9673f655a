"""What a skill can do beyond its words: scripts, servers, variables, addresses, hooks, tools; and what has been added.

Found by reading, for people who decide; nothing is run. Text is matched by pattern, so it can name too much or too
little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.skills.model import ToolDependency
from codex_py.skills.parse import read_record
from codex_py.skills.record import FoundFile
from codex_py.skills.tree import TreeFile, TreeRefused, list_tree, read_file
from codex_py.text.frontmatter import YamlRefused, parse_yaml, repair_yaml, split_frontmatter

_SCRIPT_SUFFIXES: Final = (
    *(".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"),
    *(".ps1", ".bat", ".cmd", ".exe", ".so", ".dll", ".jar", ".wasm", ".pyc"),
)
_ADDRESS: Final = (
    r"(?i)\b(?:https?|wss?|ftps?|ssh|git|tcp|udp)://(?:[^\s/@\"'<>]{1,200}@)?"
    r"(\[[0-9a-fA-F:.]+\]|[\w-]+(?:\.[\w-]+)*)(:\d{1,5})?"
)
_CALLING: Final = r"\b(?:curl|wget|nc|ncat|netcat|ssh|scp|sftp|rsync|telnet|ftp)\s"
_HOST: Final = (
    r"(?<![\w./@-])(?:[\w.-]{1,64}@)?"
    r"((?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}|\d{1,3}(?:\.\d{1,3}){3})(?![\w.(-])"
)
_COMMAND: Final = r"[^\n|;&]+"
_MAX_BEFORE_HOST: Final = 200
# Names that look like a host and are a file of the command.
_FILE_NAME: Final = r"\.(?:sh|py|js|ts|json|md|txt|ya?ml|toml|tar|gz|tgz|zip|html?|log|csv|xml|pem|key|conf|cfg)$"
_FENCE: Final = r"(?ms)^[ \t>]*(`{3,}|~{3,})[ \t]*(\w*)[^`\n]*\n(.*?)(?:^[ \t>]*\1|\Z)"
# What stands outside of a fenced block and may be a command: a code span, a line after a prompt, an indented line.
_UNFENCED: Final = r"(?m)(?<!`)`([^`\n]{3,300})`(?!`)|^[ \t>]*\$ ([^\n]+)|^(?: {4}|\t)[ \t]*([^\n]+)"
_PROGRAMS: Final = (
    "apt apt-get apk aws az bash brew bun bunx bundle cargo chmod chown composer cp curl deno dnf docker dotnet gcloud"
    " gem gh git go gradle helm kubectl kill make mv mvn nc node npm npx openssl perl php pip pip3 pipx pnpm podman"
    " poetry psql python python3 rm rsync ruby ruff rustup scp sed sh ssh sudo systemctl tar terraform uv uvx wget yarn"
).split()
# A program that is known, or a path of one, with an argument; or any word with a flag or a pipe behind it.
_LOOKS_RUN: Final = (
    rf"(?:(?:{'|'.join(map(re.escape, _PROGRAMS))})\s+\S"
    r"|(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+\.(?:sh|py|js|rb|pl)\s+\S"
    r"|[a-z][\w.-]*\s(?:.*\s)?(?:-[a-zA-Z]\b|--[a-z]|[|]|&&))"
)
_SHELLS: Final = frozenset({"", "sh", "bash", "zsh", "shell", "console", "terminal", "fish", "powershell"})
_CALL: Final = r"\b(?:os\.system|subprocess\.\w+|child_process|execSync|exec|spawn|system|popen)\s*\("
_MAX_NAMES: Final = 500
_MAX_COMMANDS: Final = 200
_MAX_CHARS: Final = 160


class Capabilities(Value):
    """The capabilities of a skill, sorted. `allowed_tools` is empty when the skill does not limit its tools."""

    scripts: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    env_vars: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As it is written to `skills.lock`."""
        return {name: list(getattr(self, name)) for name in self.__match_args__}

    def added_to(self, earlier: Capabilities) -> list[str]:
        """One line for each capability that the earlier ones do not have; empty when none has been added."""
        lines = [
            f"{noun} `{value}`"
            for noun, field in _NOUNS
            for value in getattr(self, field)
            if value not in getattr(earlier, field)
        ]
        lines += [f"allowed tool `{tool}`" for tool in self.allowed_tools if tool not in earlier.allowed_tools]
        return lines


_NOUNS: Final = (
    ("script", "scripts"),
    ("server", "servers"),
    ("variable", "env_vars"),
    ("address", "addresses"),
    ("hook", "hooks"),
)


def capabilities_from(value: object) -> Capabilities:
    """Read the JSON of `skills.lock`; what is not text is left out, so that it counts as added."""
    written = as_object(value)
    return Capabilities(
        **{
            name: tuple(sorted(text for text in as_list(written.get(name)) if isinstance(text, str)))
            for name in Capabilities.__match_args__
        }
    )


def read_capabilities(directory: Path, files: Sequence[TreeFile] | None = None) -> Capabilities:
    """The capabilities of a skill. Raises `TreeRefused` and `OSError`."""
    files = list_tree(directory) if files is None else files
    path = str(directory / "SKILL.md")
    record = read_record(FoundFile(path, path, None, True), None)
    scripts: list[str] = []
    addresses: set[str] = set()
    for file in files:
        content = read_file(directory, file)
        if is_script(file, content):
            scripts.append(file.path)
        if b"\0" not in content[:8192]:
            addresses |= set(find_addresses(content.decode("utf-8", "replace")))
    hooks = (*_front_matter_hooks(directory),)
    return Capabilities(
        tuple(sorted(scripts)),
        tuple(sorted({_server(need) for need in record.dependencies if need.type.strip().lower() == "mcp"})),
        tuple(sorted({need.value for need in record.dependencies if need.type.strip().lower() == "env_var"})),
        tuple(sorted(addresses)[:_MAX_NAMES]),
        tuple(sorted(set(hooks))[:_MAX_NAMES]),
        tuple(sorted(set(record.allowed_tools))),
    )


def is_script(file: TreeFile, content: bytes) -> bool:
    """Whether a file is there to be run: by its mode, its first bytes, its name, or because it is in `scripts`."""
    return (
        file.mode == "100755"
        or content[:2] == b"#!"
        or content[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")
        or content[:2] == b"MZ"
        or file.path.lower().endswith(_SCRIPT_SUFFIXES)
        or file.path.startswith("scripts/")
    )


def find_addresses(text: str) -> Iterator[str]:
    """The hosts that a text names in addresses and in commands that connect, in lower case."""
    for found in re.finditer(_ADDRESS, text):
        yield f"{found[1]}{found[2] or ''}".lower()
    if re.search(_CALLING, text):
        yield from (host for part in re.finditer(_COMMAND, text) for host in _called_hosts(part[0]))


def _called_hosts(command: str) -> Iterator[str]:
    """The first host behind each program that connects. Each character is looked at once, so that no text stalls."""
    hosts = re.finditer(_HOST, command)
    host = next(hosts, None)
    for program in re.finditer(_CALLING, command):
        while host is not None and host.start() < program.end():
            host = next(hosts, None)
        if host is None:
            return
        if host.start() <= program.end() + _MAX_BEFORE_HOST and not re.search(_FILE_NAME, host[1]):
            yield host[1].lower()


def find_commands(directory: Path, files: Sequence[TreeFile]) -> list[str]:
    """Shell commands in the text and calls of programs in the scripts, each with its file, up to 200."""
    found: dict[str, None] = {}
    for file in files:
        content = read_file(directory, file)
        if b"\0" in content[:8192]:
            continue
        text = content.decode("utf-8", "replace")
        for line in _commands_in(file, text):
            found[f"{file.path}: {' '.join(line.split())[:_MAX_CHARS]}"] = None
            if len(found) >= _MAX_COMMANDS:
                return list(found)
    return list(found)


def _commands_in(file: TreeFile, text: str) -> Iterator[str]:
    lower = file.path.lower()
    if lower.endswith((".md", ".markdown", ".txt")):
        blocks = [block[3] for block in re.finditer(_FENCE, text) if block[2].lower() in _SHELLS]
        yield from (line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines() if _runs(line))
        yield from (found[1] for found in re.finditer(r"!`([^`\n]{1,300})`", text))
        spans = (found[1] or found[2] or found[3] for found in re.finditer(_UNFENCED, re.sub(_FENCE, "", text)))
        yield from (span.strip() for span in spans if re.match(_LOOKS_RUN, span.strip()))
    elif lower.endswith((".sh", ".bash", ".zsh")) or re.match(r"#!.*\b(?:ba|z|da)?sh\b", text):
        yield from (line for line in text.splitlines() if _runs(line))
    else:
        yield from (line for line in text.splitlines() if re.search(_CALL, line[:2000]))


def _runs(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def _server(need: ToolDependency) -> str:
    target = (need.url or need.command or "").strip()
    return f"{need.value.strip()}: {target}" if target else need.value.strip()


def _front_matter_hooks(directory: Path) -> Iterator[str]:
    """The commands that the front matter has run: those of `hooks`, and with `dynamic` those in the text."""
    try:
        raw = (directory / "SKILL.md").read_bytes()
    except OSError:
        return
    text = raw.decode("utf-8", "replace")
    block = split_frontmatter(text)
    if block is None:
        return
    written = {}
    for source in (block.yaml, repair_yaml(block.yaml)):
        try:
            written = as_object(parse_yaml(f"\n{source}"))
            break
        except YamlRefused:
            continue
    for event, hooks in sorted(as_object(written.get("hooks")).items()):
        yield f"{event}: {json.dumps(hooks, sort_keys=True, default=str)[:1000]}"
    if str(written.get("dynamic", "")).lower() in ("true", "yes", "on"):
        for found in re.finditer(r"!`([^`\n]{1,300})`", text[block.body_start :]):
            yield f"dynamic: {found[1]}"


__all__ = ["Capabilities", "TreeRefused", "capabilities_from", "find_addresses", "find_commands", "read_capabilities"]
