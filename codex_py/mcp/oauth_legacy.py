"""Servers of the protocol's revision of March 2025, which are their own issuers of logins.

Their metadata stands at the root of their origin and may name an issuer below it. The SDK takes only the origin's own
name, as is right for issuers elsewhere; for one of the same origin nobody else could have written the document.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from httpx2 import Request, Response

from codex_py.protocol.encoding import as_object, decode_json

_METADATA: Final = "/.well-known/oauth-authorization-server"


def is_metadata_request(request: Request) -> bool:
    """Whether a request asks for the metadata of an issuer at the root of its origin."""
    return str(request.url.path) == _METADATA


async def with_own_issuer(response: Response, request: Request) -> Response:
    """The answer, naming the origin as its issuer where it names one below it; any other answer as it is."""
    if response.status_code != 200:
        return response
    try:
        document = as_object(decode_json(await response.aread()))
    except ValueError:
        return response
    issuer = document.get("issuer")
    origin = _origin(str(request.url))
    if not isinstance(issuer, str) or _origin(issuer) != origin:
        return response
    return Response(200, json={**document, "issuer": origin}, request=request)


def _origin(url: str) -> str:
    pieces = urlsplit(url)
    return f"{pieces.scheme}://{pieces.netloc}"
