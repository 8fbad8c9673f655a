"""Which texts hold a credential: known shapes do, what ordinary environments hold does not."""

from __future__ import annotations

import pytest

from codex_py.text.credentials import has_credential

_HEX = "0123456789abcdef" * 3
_WORD = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0"


@pytest.mark.parametrize(
    "value",
    [
        "postgres://app:hunter2@db.example.com:5432/app",
        "redis://:hunter2@localhost:6379/0",
        "amqps://u:p%40ss@host/vhost",
        "https://user:pw@proxy.example.com:8080",
        "root:hunter2@tcp(127.0.0.1:3306)/app",
        "host=db user=app password=hunter2 dbname=app",
        "Server=db;Database=app;User Id=sa;Password=hunter2;",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcdEFGH1234==;EndpointSuffix=core.windows.net",
        "https://files.example.com/a?sv=2024&sig=abcdefgh1234",
        "https://api.example.com/v1?access_token=abcdefgh1234",
        f"https://hooks.slack.com/services/T0000/B0000/{_WORD}",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{_WORD}",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----",
        '{"type": "service_account", "key": "-----BEGIN PRIVATE KEY-----\\nMIIE"}',
        f"ghp_{_WORD}",
        f"x-access-auth:ghs_{_WORD}@",
        f"github_pat_{_WORD}",
        f"glpat-{_WORD}",
        f"sk-proj-{_WORD}",
        f"sk-ant-api03-{_WORD}",
        f"sk_live_{_WORD}",
        "xoxb-123456789012-abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        f"AIza{_WORD}abcde",
        f"npm_{_WORD}abcdef",
        f"pypi-{_HEX}",
        f"hf_{_WORD}",
        f"Authorization: Bearer {_WORD}",
        "AUTHORIZATION: basic dXNlcjpwYXNzd29yZA==",
        f"//registry.npmjs.org/:_authToken={_WORD}",
        f"sessionid={_WORD}; theme=dark",
        f"Cookie: theme=dark; auth_token={_WORD}",
        "-Dspring.datasource.password=hunter2",
    ],
)
def test_known_shapes_are_credentials(value: str) -> None:
    assert has_credential(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "/usr/local/sbin:/usr/local/bin:/usr/bin:/home/me/.npm_packages/bin:/opt/sk-tools/bin",
        "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35:*.tar=01;31:*.tgz=01;31",
        "https://example.com/a/b?page=2&sort=token",
        "http://proxy.example.com:8080",
        "postgres://app@localhost:5432/app",
        "postgres://app:$PGPASSWORD@localhost/app",
        "https://registry.npmjs.org:443/@scope/package",
        "git@github.com:me/project.git",
        "ssh://git@github.com:22/me/project.git",
        "unix:path=/run/user/1000/bus,guid=0123456789abcdef0123456789abcdef",
        "/run/user/1000/keyring/ssh",
        "sk-SK.UTF-8",
        "task-force-of-twenty-people-and-more",
        "disk-0123456789abcdef0123456789",
        "() {  local password=$1; PWD=$(pwd); echo basic things; }",
        "\\[\\e[0;32m\\]\\u@\\h:\\w\\$ ",
        "-Xmx2g -Dfile.encoding=UTF-8 -Djava.io.tmpdir=/tmp",
        "the bearer of bad news",
        "Basic understanding of internationalization",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "localhost,127.0.0.1,.example.com",
        "ghostty",
        "ghp_short",
        "0b5b3f6e-8a3d-4d5e-9a53-0123456789ab",
        _HEX,
        "-e password=",
        'history -a; printf \'\\033]0;%s@%s:%s\\007\' "${USER}" "${HOSTNAME%%.*}" "${PWD/#$HOME/~}"',
    ],
)
def test_what_ordinary_environments_hold_is_no_credential(value: str) -> None:
    assert not has_credential(value)


@pytest.mark.parametrize("piece", ["eyJ", "sess=", "://a:", "x@", "password=", "basic ", "auth", "eyJ-", "; auth"])
def test_a_long_value_is_checked_quickly(piece: str) -> None:
    # Quadratic work on this much text would not end within the time limit of a test.
    has_credential(piece * 100_000)
