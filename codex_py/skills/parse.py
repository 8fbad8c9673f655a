"""Reading a `SKILL.md` with its `agents/openai.yaml` into a record. Not needed while nothing has changed."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from unicodedata import normalize

from codex_py.errors import CodexError
from codex_py.paths import is_file
from codex_py.skills.metadata import (
    Metadata,
    MetadataRefused,
    as_text,
    collapse,
    parse_metadata,
    read_metadata,
    unreadable_metadata,
)
from codex_py.skills.model import SkillOptions
from codex_py.skills.options import read_flag, read_options
from codex_py.skills.record import FoundFile, SkillRecord, metadata_path
from codex_py.text.files import FileHead, FileRefused, read_inside, read_trusted
from codex_py.text.frontmatter import (
    MAX_BYTES,
    Plain,
    YamlRefused,
    YamlValue,
    parse_yaml,
    repair_yaml,
    split_frontmatter,
)
from codex_py.text.nearest import nearest
from codex_py.text.sanitize import sanitize_line

MAX_NAME_CHARS: Final = 64
# A longer name would crowd out everything else in the list.
MAX_LOADED_NAME_CHARS: Final = 1024
MAX_DESCRIPTION_CHARS: Final = 1024
MAX_TOOLS_CHARS: Final = 4096
_TEXT_KEYS: Final = frozenset({"name", "description", "short-description"})
_Fields: TypeAlias = tuple[str | None, str | None, str | None]
# The target of `[a](b.md)`, of `[a](<b c.md>)`, and of `[a]: b.md`. A limit keeps the search linear.
_MARKDOWN_LINK: Final = r"\](?:\(|:)[ \t]*+<?(?:\./)*(\w[^)<>#:\n]{0,250}?\.md)(?!\w)"
# A tool's name with what it is limited to: `Bash(git add:*)`.
_TOOL: Final = r"[^\s,()]+(?:\([^()]*\))?"


class SkillRefused(CodexError):
    """The file cannot be loaded as a skill; the message says why, without the path."""


class SkillText(NamedTuple):
    """The parsed content of a `SKILL.md`. `remark` says what was ignored, "" if nothing was.

    `name` is the base name and `description` one line, at full length, with what a terminal would obey made visible.
    """

    name: str
    description: str
    short_description: str | None = None
    metadata: Metadata = Metadata()
    user_invocable: bool = True
    allowed_tools: tuple[str, ...] = ()
    remark: str = ""
    options: SkillOptions = SkillOptions()


def parse_skill(text: str, directory_name: str = "") -> SkillText:
    """Read the text of a `SKILL.md`. Raises `SkillRefused`.

    `description` is required, and so is `name` unless there is a `directory_name` to take its place; the other keys
    fail open. Frontmatter that is not YAML is repaired once.
    """
    block = split_frontmatter(text)
    if block is None:
        raise SkillRefused(_why_no_frontmatter(text))
    fields, mapping = _read_repaired(block.yaml)
    name, description, short = (collapse(field or "") for field in fields)
    name, remark = normalize("NFC", name), ""
    if not name:
        name, remark = normalize("NFC", directory_name), _missing("name", mapping)
        if not name:
            raise SkillRefused(remark)
        remark += f"; the name of the directory is used: `{sanitize_line(name)}`"
    check_name(name)
    if len(name) > MAX_NAME_CHARS:
        remark = f"`name` has {len(name)} characters: the format allows {MAX_NAME_CHARS}"
    if not description:
        raise SkillRefused(_missing("description", mapping))
    return _with_extras(
        SkillText(name, sanitize_line(description), sanitize_line(short) or None, remark=remark), mapping
    )


def check_name(name: str) -> None:
    """Raise `SkillRefused` for a name that is longer than any list can show, or not printable."""
    if len(name) > MAX_LOADED_NAME_CHARS:
        raise SkillRefused(f"invalid name: exceeds maximum length of {MAX_LOADED_NAME_CHARS} characters")
    if (shown := sanitize_line(name)) != name or "\t" in name:
        raise SkillRefused(f"invalid name: `{shown}` has characters that cannot be shown")


def _missing(field: str, mapping: dict[str, YamlValue]) -> str:
    """That a field is not there, and the one that may be meant for it."""
    near = nearest(field, [key for key in mapping if key not in ("name", "description")])
    return f"missing field `{field}`" + (f": `{sanitize_line(near)}` is not a field" if near else "")


def qualified_name(namespace: str | None, name: str) -> str:
    """`namespace:name`, or the name alone. Raises `SkillRefused` when the whole is too long or not printable."""
    if namespace is None:
        return name
    whole = f"{namespace}:{name}"
    check_name(whole)
    return whole


def _why_no_frontmatter(text: str) -> str:
    reason = "missing YAML frontmatter delimited by ---"
    if text.startswith("\ufeff"):
        return f"{reason}: the file begins with a byte order mark"
    first, _, rest = text.partition("\n")
    if first.strip() != "---":
        return reason if text.strip() else f"{reason}: the file is empty"
    if rest.lstrip(" \t").startswith("---"):
        return f"{reason}: nothing between the two lines"
    return f"{reason}: no second such line within {MAX_BYTES // 1024} KiB"


def _read_repaired(source: str) -> tuple[_Fields, dict[str, YamlValue]]:
    try:
        return _read(source)
    except SkillRefused as original:
        # The second is more eager: it takes lists and mappings in brackets for texts as well.
        for repaired in (repair_yaml(source, texts=_TEXT_KEYS), repair_yaml(source)):
            with suppress(SkillRefused):
                return _read(repaired)
        raise original from None


def _read(source: str) -> tuple[_Fields, dict[str, YamlValue]]:
    """The name, the description, the short description, and everything there is."""
    try:
        # A line for the fence, so that positions are those of the file.
        value = parse_yaml(f"\n{source}")
        if value is not None and not isinstance(value, dict):
            raise MetadataRefused("not a mapping")
        mapping = value or {}
        metadata = mapping.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise MetadataRefused("`metadata` is not a mapping")
        short = as_text((metadata or {}).get("short-description"), "metadata.short-description")
        fields = (as_text(mapping.get("name"), "name"), as_text(mapping.get("description"), "description"), short)
    except (YamlRefused, MetadataRefused) as error:
        raise SkillRefused(f"invalid YAML: {error}") from None
    return fields, mapping


def _with_extras(skill: SkillText, mapping: dict[str, YamlValue]) -> SkillText:
    if mapping.keys() <= {"name", "description", "metadata"}:
        return skill
    remarks = [skill.remark] if skill.remark else []
    metadata = read_metadata(mapping)
    remarks += [f"ignored: {fault}" for fault in metadata.faults]
    known = len(remarks)
    # A restriction that cannot be read is taken to be there.
    if read_flag(mapping, "disable-model-invocation", remarks) or len(remarks) > known:
        metadata = metadata._replace(allow_implicit=False)
    return skill._replace(
        metadata=metadata,
        user_invocable=read_flag(mapping, "user-invocable", remarks) is not False,
        allowed_tools=_tools(mapping.get("allowed-tools"), remarks),
        options=read_options(mapping, remarks),
        remark="; ".join(remarks),
    )


def _tools(value: YamlValue, remarks: list[str]) -> tuple[str, ...]:
    """A list, or one text with commas or spaces between the tools. They are shown, and change nothing."""
    fault = ""
    names: list[str] = []
    if isinstance(value, list):
        names = [collapse(item) for item in value if isinstance(item, str) and _is_text(item)]
        if len(names) < len(value):
            remarks.append("ignored items of `allowed-tools` that are not texts")
    elif isinstance(value, dict) or not _is_text(value or ""):
        fault = "it is neither a text nor a list"
    else:
        names = [collapse(name) for name in re.findall(_TOOL, value or "")]
    if sum(map(len, names)) > MAX_TOOLS_CHARS:
        fault = f"it is longer than {MAX_TOOLS_CHARS} characters"
    if fault:
        remarks.append(f"ignored `allowed-tools`: {fault}")
        return ()
    return tuple(str(name) for name in names if name)


def _is_text(value: str) -> bool:
    """Whether YAML has a text there: not a number, and neither true nor false."""
    return not isinstance(value, Plain) or re.fullmatch(r"(?i)[-+]?[0-9][0-9_.e+-]*|true|false", value) is None


# No model is ever shown what lies behind this, so it is not read to look for bytes that are no text.
MAX_CHECKED_BYTES: Final = 1024 * 1024


def read_record(found: FoundFile, inside: Path | None) -> SkillRecord:
    """Read what was found; never raises. Files of a project are read only from `inside` it."""
    try:
        directory = found.path.rpartition("/")[0].rpartition("/")[2]
        text = read_skill_text(found.real, inside)
        skill = parse_skill(text, directory)
        name = qualified_name(found.namespace, skill.name)
    except SkillRefused as error:
        return SkillRecord(found, str(error))
    metadata, metadata_remark = skill.metadata, ""
    if found.has_agents:
        metadata = _read_metadata(metadata_path(found), inside).over(metadata)
        metadata_remark = "; ".join(metadata.faults)
    return SkillRecord(
        found,
        name=name,
        description=_cut(skill.description),
        short_description=_cut(skill.short_description) if skill.short_description else None,
        interface=metadata.interface if any(metadata.interface) else None,
        dependencies=metadata.dependencies,
        allow_implicit=metadata.allow_implicit is not False,
        user_invocable=skill.user_invocable,
        allowed_tools=skill.allowed_tools,
        ours=metadata.for_this_program,
        remark=skill.remark,
        metadata_remark=metadata_remark,
        options=None if skill.options == SkillOptions() else skill.options,
        links_to_files=_links_to_files(
            text, Path(found.real if found.real.endswith("/SKILL.md") else found.path).parent
        ),
    )


def _links_to_files(text: str, directory: Path) -> bool:
    """Whether a skill links to another Markdown file below its directory."""
    links = (link[1] for link in re.finditer(_MARKDOWN_LINK, text) if ".." not in link[1].split("/"))
    return any(is_file(directory / link) for link in links if not link.endswith("SKILL.md"))


def sources(found: FoundFile) -> tuple[str, ...]:
    """The files a record is read from; the second may be missing."""
    return (found.real, metadata_path(found)) if found.has_agents else (found.real,)


def read_skill_text(path: Path | str, inside: Path | None) -> str:
    """The first MiB of a `SKILL.md` by its real path. Raises `SkillRefused` when it cannot be read or is no UTF-8."""
    try:
        head = _read_head(path, inside, MAX_CHECKED_BYTES)
        if head is None:
            raise FileRefused("no such file")
        whole = len(head.raw) >= head.size
        return codecs.getincrementaldecoder("utf-8")().decode(head.raw, whole)
    except FileRefused as error:
        raise SkillRefused(f"failed to read file: {str(error).lower()}") from None
    except UnicodeDecodeError as error:
        raise SkillRefused(f"failed to read file: not UTF-8 at byte {error.start}") from None


def _read_metadata(path: str, inside: Path | None) -> Metadata:
    try:
        head = _read_head(path, inside, MAX_BYTES + 1)
    except FileRefused as error:
        return Metadata(faults=(str(error).lower(),))
    if head is None:
        return Metadata()
    text = head.raw.decode(errors="replace")
    if len(head.raw) > MAX_BYTES:
        return unreadable_metadata(text, f"longer than {MAX_BYTES // 1024} KiB")
    if head.raw != text.encode():
        return unreadable_metadata(text, "not UTF-8")
    return parse_metadata(text)


def _read_head(path: Path | str, inside: Path | None, max_bytes: int) -> FileHead | None:
    return read_inside(inside, path, max_bytes) if inside else read_trusted(path, max_bytes)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION_CHARS else f"{text[: MAX_DESCRIPTION_CHARS - 3]}..."
