"""Reads what a client sends: its capabilities, directories and MCP servers, and the blocks of a prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from codex_py.paths import is_directory
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.ops import ImageInput, ImageUrlInput, TextInput, UserInput
from codex_py.protocol.value import Value
from codex_py.server.messages import Params, RpcError

_MAX_SERVERS: Final = 100
_SHOWN: Final = 80
_TRANSPORTS: Final = ("stdio", "http", "sse", "acp")
_SUPPORTED_TRANSPORTS: Final = ("stdio", "http")


def directory_of(params: Params) -> Path:
    """The working directory of a session, which must be an absolute path."""
    directory = params.directory("cwd")
    if directory is None:
        raise params.missing("cwd")
    if not params.text("cwd").startswith("/"):
        raise RpcError("invalid request: `cwd` is not an absolute path")
    return directory


def directories_of(params: Params) -> tuple[Path, ...]:
    """The other directories that a session may write to."""
    directories: list[Path] = []
    for text in params.texts("additionalDirectories") or ():
        real = Path(os.path.realpath(text))
        if not text.startswith("/") or not is_directory(real):
            raise RpcError(f"invalid request: `{text[:_SHOWN]}` is not the absolute path of a directory")
        directories.append(real)
    return tuple(directories)


def servers_of(params: Params) -> dict[str, dict[str, Any]]:
    """The MCP servers by name. Raises `RpcError` for an invalid entry or an unsupported transport."""
    servers = params.nested_list("mcpServers") or []
    if len(servers) > _MAX_SERVERS:
        raise RpcError(f"invalid request: {len(servers)} entries in `mcpServers`, and {_MAX_SERVERS} are the most")
    return {server.text("name"): _server_table(server) for server in servers}


def _server_table(server: Params) -> dict[str, Any]:
    transport = server.choice("type", _TRANSPORTS) or "stdio"
    if transport not in _SUPPORTED_TRANSPORTS:
        raise RpcError(f"invalid request: MCP servers of the type `{transport}` are not taken, only `stdio` and `http`")
    if transport == "http":
        url = server.text("url")
        if not url.lower().startswith(("http://", "https://")):
            raise RpcError("invalid request: the `url` of an MCP server is not an `http:` or `https:` address")
        return {"url": url, "http_headers": _pairs(server, "headers")}
    command = server.text("command")
    if not command:
        raise server.missing("command")
    return {"command": command, "args": server.texts("args") or (), "env": _pairs(server, "env")}


def _pairs(server: Params, name: str) -> dict[str, str]:
    return {pair.text("name"): pair.text("value") for pair in server.nested_list(name) or []}


_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_BLOCKS: Final = 10_000


class AcpPrompt(NamedTuple):
    """A prompt: its pictures, and everything else as one `text` in the order of the blocks."""

    text: str
    pictures: tuple[UserInput, ...]

    @property
    def inputs(self) -> tuple[UserInput, ...]:
        return (*self.pictures, *([TextInput(self.text)] if self.text else []))


def read_prompt(params: Params) -> AcpPrompt:
    """Read the content blocks of a request's `prompt`. Raises `RpcError` for an invalid or unsupported block.

    The contents of attached files follow the user's text, which names each file where it was attached.
    """
    blocks = params.raw("prompt")
    if not isinstance(blocks, list):
        raise params.missing("prompt")
    blocks = as_list(cast("object", blocks))
    if len(blocks) > _MAX_BLOCKS:
        raise RpcError(
            f"invalid request: `prompt` has {len(blocks)} blocks, and {_MAX_BLOCKS} are the most that are read"
        )
    texts: list[str] = []
    attached: list[str] = []
    pictures: list[UserInput] = []
    for index, block in enumerate(blocks):
        for piece in _read_block(as_object(block), f"prompt[{index}]"):
            if isinstance(piece, _Attached):
                attached.append(piece.text)
            elif isinstance(piece, str):
                texts.append(piece)
            else:
                pictures.append(piece)
    text = "\n\n".join(["".join(texts), *attached]) if attached else "".join(texts)
    if not text.strip() and not pictures:
        raise RpcError("invalid request: `prompt` is empty")
    return AcpPrompt(text, tuple(pictures))


class _Attached(NamedTuple):
    text: str


def _read_block(block: dict[str, Any], where: str) -> Iterator[str | UserInput | _Attached]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "image", "data": str(encoded), "mimeType": str(media)} if encoded:
            yield _picture(encoded, media, where)
        case {"type": "image", "uri": str(uri)} if uri:
            path = _path_of(uri)
            yield ImageUrlInput(uri) if path is None else ImageInput(path)
        case {"type": "resource_link", "uri": str(uri)}:
            yield _mention(uri, str(block.get("name") or ""))
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            yield _mention(uri, "")
            yield _Attached(f'<context ref="{_quoted(uri)}">\n{text}\n</context>')
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob)} as resource}:
            media = str(as_object(resource).get("mimeType", ""))
            yield _mention(uri, "")
            if media in _PICTURES:
                yield _picture(blob, media, where)
            else:
                yield _Attached(f"[{media or 'binary'} file {uri}, {len(blob) * 3 // 4} bytes: not shown]")
        case {"type": "audio"}:
            raise RpcError(f"invalid request: `{where}` is audio, which is not taken")
        case _:
            raise RpcError(
                f"invalid request: `{where}` is no content block of a known kind with all that belongs to it"
            )


def _picture(encoded: str, media: str, where: str) -> ImageUrlInput:
    if media not in _PICTURES:
        raise RpcError(
            f"invalid request: `{where}` is a picture of the type `{media[:80]}`; PNG, JPEG, GIF and WebP are taken"
        )
    return ImageUrlInput(f"data:{media};base64,{''.join(encoded.split())}")


def _mention(uri: str, name: str) -> str:
    """A file or an address as a Markdown link within the user's text."""
    path = _path_of(uri)
    target = uri if path is None else str(path)
    title = name or target.rstrip("/").rpartition("/")[2] or target
    return f"[@{title}]({target})"


def _path_of(uri: str) -> Path | None:
    """The path of a `file:` URI; None for any other URI."""
    try:
        address = urlsplit(uri)
    except ValueError:
        return None
    if address.scheme != "file" or address.netloc not in ("", "localhost") or "\0" in (path := unquote(address.path)):
        return None
    return Path(path)


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")


class Abilities(Value):
    """What a client can show: forms, notices outside of the conversation, and a terminal to log in."""

    forms: bool = False
    notices: bool = False
    terminal: bool = False


def read_abilities(capabilities: Mapping[str, Any]) -> Abilities:
    """Read a client's `clientCapabilities`; invalid entries count as missing."""
    return Abilities(
        forms=isinstance(as_object(capabilities.get("elicitation")).get("form"), dict),
        notices=isinstance(as_object(capabilities.get("session")).get("notices"), dict),
        terminal=as_object(capabilities.get("auth")).get("terminal") is True,
    )
