"""The certificate authorities that connections trust, and the advice where a certificate is refused."""

from __future__ import annotations

import codecs
import os
import ssl
from pathlib import Path
from typing import Final

import certifi

from codex_py.errors import ConfigError

# Editors and PowerShell put them at the start of a file, where OpenSSL looks for the first line of a certificate.
_MARKS: Final = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_VARIABLES: Final = ("CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "SSL_CERT_DIR")
# Codes of OpenSSL: the issuer is not known; and the checks of X509_V_FLAG_X509_STRICT, on since Python 3.13.
_UNKNOWN_ISSUER: Final = (2, 18, 19, 20, 21)
_STRICT: Final = range(80, 94)


def authorities(ca_file: str | None) -> ssl.SSLContext:
    """A context that trusts the authorities of a PEM file; without one those of the system, which SSL_CERT_FILE and
    SSL_CERT_DIR can name, and those of certifi. Raises `ConfigError`."""
    try:
        text = _text_behind_mark(ca_file) if ca_file is not None else None
        context = ssl.create_default_context(cafile=ca_file if text is None else None, cadata=text)
    except (OSError, ValueError) as error:
        is_read = isinstance(error, ssl.SSLError | ValueError)
        reason = "no certificate in it" if is_read else str(error.strerror).lower()
        variable = next((f"`{name}`" for name in _VARIABLES if os.environ.get(name) == ca_file), "the setting")
        raise ConfigError(
            f"cannot read the certificate file `{ca_file}`: {reason}", hint=f"{variable} has to name a PEM file"
        ) from error
    if ca_file is None and not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        # Some systems have none.
        context.load_verify_locations(certifi.where())
    return context


def certificate_advice(error: ssl.SSLCertVerificationError) -> str:
    """The rest of the message about a refused certificate; "" where no setting helps."""
    code = getattr(error, "verify_code", 0)
    if code in _STRICT:
        return "; Python checks certificates strictly since 3.13: its authority has to issue one that passes"
    if code not in _UNKNOWN_ISSUER:
        return ""
    variable = next((name for name in _VARIABLES if os.environ.get(name)), None)
    if variable is None:
        return "; if it is your own authority's, name its PEM file in `CODEX_CA_CERTIFICATE`"
    return f"; its authority is not in `{os.environ[variable]}`, which `{variable}` names"


def _text_behind_mark(path: str) -> str | None:
    """The certificates of a file that begins with a byte order mark; None for any other file. Raises `OSError`."""
    content = Path(path).read_bytes()
    encoding = next((encoding for mark, encoding in _MARKS.items() if content.startswith(mark)), None)
    if encoding is None:
        return None
    # OpenSSL takes ASCII alone; anything else is a comment. Without a text the system's authorities would be trusted.
    return content.decode(encoding).encode("ascii", "ignore").decode() or "\n"
