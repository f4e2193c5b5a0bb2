"""Secrets by their form. All of them are put together here from random characters; none was ever issued."""

from __future__ import annotations

import random
import re
import string
import sysconfig
from pathlib import Path

import pytest

from lsp_server.context import secrets
from lsp_server.context.secrets import (
    RedactedLine,
    has_private_key,
    redact,
    redact_edited,
    redact_lines,
    token_spans,
)
from lsp_server.documents.line_index import split_lines

_LETTERS = string.ascii_letters
_ALNUM = _LETTERS + string.digits
_random = random.Random(7)


def some(length: int, alphabet: str = _ALNUM) -> str:
    """Random characters, with digits, lower and upper case early on where the alphabet has them."""
    while True:
        text = "".join(_random.choice(alphabet) for _ in range(length))
        kinds = [set(text) & set(kind) for kind in (string.digits, string.ascii_lowercase)]
        if length < 16 or alphabet not in (_ALNUM, _URL, _HEX) or all(len(kind) > 2 for kind in kinds):
            return text


_URL = _ALNUM + "-_"
_HEX = "0123456789abcdef"
_B32 = string.ascii_uppercase + "234567"
_B64 = _ALNUM + "+/"

TOKENS = {
    "aws id": "AK" + "IA" + some(16, _B32),
    "aws temporary id": "AS" + "IA" + some(16, _B32),
    "github personal": "gh" + "p_" + some(36),
    "github oauth": "gh" + "o_" + some(36),
    "github server": "gh" + "s_" + some(36),
    "github fine-grained": "github" + "_pat_" + some(22) + "_" + some(59),
    "gitlab": "gl" + "pat-" + some(20, _URL),
    "slack bot": "xo" + "xb-" + some(12, string.digits) + "-" + some(12, string.digits) + "-" + some(24),
    "slack user": "xo" + "xp-" + some(40),
    "stripe": "sk" + "_live_" + some(24),
    "stripe restricted": "rk" + "_live_" + some(24),
    "openai": "s" + "k-" + some(48),
    "openai project": "s" + "k-proj-" + some(64, _URL),
    "anthropic": "s" + "k-ant-api03-" + some(93, _URL),
    "google key": "AI" + "za" + some(35, _URL),
    "google client": "GOC" + "SPX-" + some(28, _URL),
    "google access": "ya" + "29." + some(60, _URL),
    "jwt": "ey" + "J" + some(20, _URL) + ".ey" + "J" + some(40, _URL) + "." + some(43, _URL),
    "npm": "np" + "m_" + some(36),
    "pypi": "py" + "pi-" + some(120, _URL),
    "huggingface": "h" + "f_" + some(34),
    "sendgrid": "S" + "G." + some(22, _URL) + "." + some(43, _URL),
    "digitalocean": "do" + "p_v1_" + some(64, _HEX),
    "docker": "dck" + "r_pat_" + some(27, _URL),
    "shopify": "shp" + "at_" + some(32, _HEX),
    "age": "AGE-" + "SECRET-KEY-1" + some(58, string.ascii_uppercase + string.digits),
    "azure client": some(3) + "8" + "Q~" + some(34, _URL),
}
VALUES = {
    "password": ('password = "', some(20), '"'),
    "single quotes": ("DB_PASSWORD='", some(16), "'"),
    "json": ('  "api_key": "', some(32), '",'),
    "hexadecimal": ('apiKey: "', some(40, _HEX), '"'),
    "map": ('config["auth_token"] = "', some(32), '"'),
    "go": ('secret := "', some(24), '"'),
    "ruby": ('"client_secret" => "', some(24), '"'),
    "symbols": ('passwd = "', "aR7$" + some(12) + "!q4&Zt", '"'),
    "bytes": ('SECRET_KEY = b"', some(32), '"'),
    "yaml": ("  access_token: ", some(32), ""),
    "properties": ("db.password=", some(24), ""),
    "aws secret": ("aws_secret_access_key = ", some(40), ""),
    "keyword argument": ('connect(host, password="', some(20), '")'),
    "url": ("postgres://service:", some(16), "@db.internal:5432/main"),
    "header": ('"Authorization: Bearer ', some(40), '"'),
    "azure storage": ("DefaultEndpointsProtocol=https;Account" + "Key=", some(86, _B64) + "==", ";x"),
    "slack hook": (
        "https://hooks." + "slack.com/services/",
        "T" + some(9, _B32) + "/B" + some(9, _B32) + "/" + some(24),
        "",
    ),
}


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("frame", ['x = "{}"', "{}", "url?key={}&b=1", "# {} is mine"])
def test_tokens(name: str, frame: str) -> None:
    token = TOKENS[name]
    line = frame.format(token)
    at = line.index(token)
    redacted = redact(line + "\n")
    assert isinstance(redacted, RedactedLine)
    assert len(redacted) == len(line) + 1
    assert redacted[:at] == line[:at] and redacted[at + len(token) :] == line[at + len(token) :] + "\n"
    assert set(redacted[at : at + len(token)]) == {secrets.NEUTRAL}
    assert secrets.inside(redacted, at) and secrets.inside(redacted, at + len(token))
    assert not secrets.inside(redacted, at - 1) and not secrets.inside(redacted, at + len(token) + 1)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    before, value, after = VALUES[name]
    assert token_spans(before + value + after + "\r\n") == [(len(before), len(before) + len(value))]


@pytest.mark.parametrize(
    "line",
    [
        'password = "changeme-please-1234"',
        'password = "example-Password-12"',
        'api_key = "xxxxxxxxxxxxxxxxxxxx"',
        'api_key = "YOUR_API_KEY_GOES_HERE_1"',
        'secret = "${SECRET_FROM_ENV_12}"',
        'secret = "{{ vault_secret_12ab }}"',
        'token = "<insert-token-here-12>"',
        'token = "correct horse battery staple"',
        'password = "correct-horse-battery-staple"',
        "token = tokenizer.next_token(stream, 12)",
        "token = self.previous_token_of_line2",
        "SECRET_KEY = os.environ['SECRET_KEY_2024']",
        "password: str = Field(default=None, min_length=12)",
        'token_type = "application/vnd.api+json;v=12"',
        'key = "users/by_name/first_2_letters"',
        'token = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"',
        '"integrity": "sha512-' + some(86, _B64) + '=="',
        '"resolved": "https://registry.test/pkg/-/pkg-1.2.3.tgz#' + some(40, _HEX) + '"',
        "    --hash=sha256:" + some(64, _HEX) + " \\",
        'commit = "' + some(40, _HEX) + '"',
        '<img src="data:image/png;base64,' + some(400, _B64) + '">',
        "AK" + "IAIOSFODNN7EXAMPLE",
        "gh" + "p_" + "a" * 36,
        "https://user:password@example.com/",
        "git@github.com:owner/repository-name-12.git",
        "assert tokens == ['a1', 'b2', 'c3', 'd4', 'e5', 'f6']",
        'authorization = "Bearer " + token_for(user_1, 22)',
        "sk-line-height-and-other-long-css-class-names-here",
        "def password_hash_of_version_2(self) -> None:",
        "secret == " + some(32),
        "",
    ],
)
def test_what_is_no_secret(line: str) -> None:
    assert token_spans(line) == []
    assert redact(line) is line


def key(kind: str, eol: str = "\n", prefix: str = "", suffix: str = "") -> str:
    body = [some(64, _B64) for _ in range(4)]
    lines = [f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----"]
    return "".join(prefix + line + suffix + eol for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        key("PRIVATE " + "KEY"),
        key("RSA PRIVATE " + "KEY", "\r\n"),
        key("EC PRIVATE " + "KEY", prefix="    "),
        key("OPENSSH PRIVATE " + "KEY"),
        key("ENCRYPTED PRIVATE " + "KEY", prefix="# "),
        key("PRIVATE " + "KEY", prefix='    "', suffix='\\n"'),
        key("PGP PRIVATE " + "KEY BLOCK").replace("BLOCK-----\n", "BLOCK-----\nVersion: 1\n\n", 1),
        key("RSA PRIVATE " + "KEY").replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A,B\n\n", 1),
        '{"private_key": "' + key("PRIVATE " + "KEY", "\\n") + '"}',
        "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 4\n" + some(64, _B64),
    ],
)
def test_private_keys(text: str) -> None:
    assert has_private_key(split_lines("first\n" + text))


@pytest.mark.parametrize(
    "text",
    [
        key("CERTIFICATE"),
        key("PUBLIC " + "KEY"),
        "-----BEGIN PRIVATE " + "KEY-----\n",
        'if line == "-----BEGIN PRIVATE ' + 'KEY-----":\n    return parse(line)\n',
        "-----BEGIN PRIVATE " + "KEY-----\n(your key here)\n-----END PRIVATE " + "KEY-----\n",
        "-----BEGIN PRIVATE " + "KEY-----\n" + "A" * 64 + "\n",
    ],
)
def test_what_is_no_private_key(text: str) -> None:
    assert not has_private_key(split_lines(text))


def test_pythons_own_library_has_none() -> None:
    root = Path(sysconfig.get_paths()["stdlib"])
    seen = 0
    for file in sorted(root.glob("*.py")) + sorted(root.glob("[a-e]*/*.py")):
        try:
            lines = split_lines(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        seen += len(lines)
        assert not has_private_key(lines), file
        assert [line for line in lines if redact(line) is not line] == [], file
    assert seen > 100_000


def test_an_edit_of_a_long_line_keeps_what_is_known_and_finds_what_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two, new = (TOKENS[name] for name in ("npm", "github oauth", "stripe"))
    line = "a " * 20_000 + one + " b" * 20_000 + " " + two + " c" * 20_000
    before = redact(line)
    searched: list[int] = []
    search = secrets.token_spans
    monkeypatch.setattr(secrets, "token_spans", lambda text: searched.append(len(text)) or search(text))
    for at in (10, 39_900, 40_030, 60_000, line.index(two), line.index(two) + 10, len(line)):
        changed = line[:at] + f" {new} " + line[at:]
        redacted = redact_edited(changed, before, at, before, at)
        assert len(redacted) == len(changed)
        assert new not in redacted
        for old in (one, two):
            assert old not in redacted
    assert max(searched) < 2000
    shorter = redact_edited(line[:100] + line[50_000:], before, 100, before, 50_000)
    assert isinstance(shorter, RedactedLine) and len(shorter.spans) == 1


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_many_lines_at_once_are_as_each_for_itself(token: str) -> None:
    lines = ["x = 1\n", f"token = '{token}'\n", "\n", f'"{token}"\r\n', "KEY = 'a'\n", f"İ {token}"]
    for some_lines in (lines, lines[:-1], [], ["\n"]):
        assert redact_lines(some_lines) == list(map(redact, some_lines))
    assert sum(line is not other for line, other in zip(lines, redact_lines(lines), strict=True)) > 1


def test_only_lines_with_a_hint_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(secrets, "redact", lambda line: searched.append(line) or line)
    lines = [f"value_{number} = compute({number})\n" for number in range(1000)]
    lines[500] = "PassWord = input()\n"
    assert redact_lines(lines) == lines and searched == [lines[500]]


def test_whatever_hints_at_a_secret_is_found_by_the_search_of_all_lines() -> None:
    """The words of the pattern, each with its first choice of letters."""
    words = [
        re.sub(r"\[(.)[^]]*\]|\(\?:(\w+)[^)]*\)|\\", lambda match: match[1] or match[2] or "", word)
        for word in re.split(r"\|(?![^(]*\))", secrets._HINT.pattern)
    ]
    assert len(words) > 30
    for word in words:
        assert secrets._HINT.search(word), word
        assert any(hint in word.lower() for hint in secrets._HINTS), word
