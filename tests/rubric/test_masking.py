"""
Masking: a secret never goes out, and what is no secret stays readable.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.rubric.masking import MARK, clean, cut, mask

_X = "a1B2c3D4e5F6g7H8i9J0"
SHAPES = {
    "anthropic": f"sk-ant-api03-{_X}{_X}",
    "openai": f"sk-{_X}{_X}",
    "openai-project": f"sk-proj-{_X}-{_X}",
    "github": f"ghp_{_X}{_X[:16]}",
    "github-app": f"ghs_{_X}{_X[:16]}",
    "github-fine": f"github_pat_11ABC_{_X}{_X}",
    "gitlab": f"glpat-{_X}",
    "slack": "xoxb-1234567890-abcdefABCDEF",
    "slack-app": "xapp-1-A012-3456-abcdef",
    "aws-id": "AKIAIOSFODNN7EXAMPLE",
    "aws-session-id": "ASIAIOSFODNN7EXAMPLE",
    "google": f"AIza{_X}{_X[:15]}",
    "npm": f"npm_{_X}{_X[:16]}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{_X}",
    "hugging-face": f"hf_{_X}{_X[:14]}",
    "sendgrid": f"SG.{_X}.{_X}",
    "stripe": f"sk_live_{_X}",
    "stripe-restricted": f"rk_live_{_X}",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
    "twilio": "SK" + "0123456789abcdef" * 2,
    "telegram": f"123456789:AA{_X}{_X[:13]}",
    "atlassian": f"ATATT3xFfGF0{_X}{_X}",
    "databricks": "dapi" + "0123456789abcdef" * 2,
    "rubygems": "rubygems_" + "0123456789abcdef" * 3,
    "nvidia": f"nvapi-{_X}{_X}",
    "tailscale": f"tskey-auth-{_X}-{_X}",
    "age": "AGE-SECRET-KEY-1" + "Q2" * 29,
    "pulumi": "pul-" + "0123456789" * 4,
    "postman": f"PMAK-{_X}{_X[:4]}-{_X}{_X[:14]}",
    "discord": f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{_X}{_X[:7]}",
    "figma": f"figd_{_X}{_X}",
    "replicate": f"r8_{_X}{_X[:17]}",
    "supabase": "sbp_" + "0123456789" * 4,
    "mailgun": "key-" + "0123456789abcdef" * 2,
    "hubspot": "pat-na1-01234567-89ab-cdef-0123-456789abcdef",
    "aws-signature": "&X-Amz-Signature=" + "0123456789abcdef" * 4,
}


@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES.keys())
@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_secret_of_a_known_shape_never_survives(secret: str, before: str, after: str) -> None:
    """
    Whatever stands around it, a key of a known shape is gone from the masked text.
    """
    assert secret not in mask(f"{before} {secret} {after}")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("export FOO_TOKEN=abc", "abc"),
        ('"password": "hunter2"', "hunter2"),
        ('{\\"password\\": \\"hunter2\\"}', "hunter2"),
        ("password: hunter2", "hunter2"),
        ("POSTGRES_PASSWORD: letmein", "letmein"),
        ("PGPASSWORD=letmein psql", "letmein"),
        ("mysql --password hunter2", "hunter2"),
        ("tool --token=abc", "abc"),
        ("tool --api-key abcdef", "abcdef"),
        ("clientSecret: 'abcdefg'", "abcdefg"),
        ('password: str = "hunter2"', "hunter2"),
        ("login(user, password='opensesame')", "opensesame"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE", "wJalrXUtnFEMI"),
        ("EndpointsProtocol=https;AccountKey=abc123def456==;", "abc123def456"),
        ("<password>hunter2</password>", "hunter2"),
        ("https://h/?access_token=abcd&x=1", "abcd"),
        ("https://h/x?sv=1&sig=aB3%2FaB3aB3aB3aB3aB3aB3", "aB3%2F"),
        ("curl -u user:opensesame https://h", "opensesame"),
        ("curl --user 'user:opensesame' https://h", "opensesame"),
        ("curl -H 'Authorization: Bearer abcdef'", "abcdef"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("-H 'x-api-key: abcdefgh'", "abcdefgh"),
        ("sent Bearer 0123abcd4567", "0123abcd4567"),
        ("postgres://bob:hunter@localhost/db", "hunter"),
        ("https://ghtoken0123456789abcdef@host/x", "ghtoken0123456789abcdef"),
        ("https://hooks.slack.com/services/T000/B000/XXXX0000", "T000/B000"),
        ("Cookie: sid=abcdef; other=ghijkl", "abcdef"),
        ("sshpass -p opensesame ssh h", "opensesame"),
        ("//registry/:_authToken=abcd-1234", "abcd-1234"),
        ('os.environ["API_KEY"] = "opensesame"', "opensesame"),
        ("config['db']['password'] = 'opensesame'", "opensesame"),
        ('.withPassword("opensesame")', "opensesame"),
        ("client.set_token('opensesame')", "opensesame"),
        ('auth=("user", "opensesame")', "opensesame"),
        ("password=b'opensesame'", "opensesame"),
        ("client-key-data: LS0tLS1CRUdJTiBQUklW", "LS0t"),
        ('{"value":"opensesame","name":"PASSWORD"}', "opensesame"),
        ('{"name":"DB_PASSWORD","value":"opensesame"}', "opensesame"),
        ('<add key="ApiKey" value="opensesame"/>', "opensesame"),
        ("- name: PASSWORD\n  value: opensesame\n", "opensesame"),
        ("password:\n  hunter2secret\n", "hunter2"),
        ("password: |\n  hunter2secret\n", "hunter2"),
        ('const apiSecret =\n  "opensesame";', "opensesame"),
        ("PASSWORD=\\\n'opensesame'", "opensesame"),
        ("password = '!opensesame'", "opensesame"),
        ('password = "#opensesame"', "opensesame"),
        ('"password": "@opensesame"', "opensesame"),
        ('"password": "*opensesame"', "opensesame"),
        ('"password": "~opensesame"', "opensesame"),
        ('"password": "{opensesame"', "opensesame"),
        ("password=xxxxhunter2secret", "hunter2"),
        ("POSTGRES_PASSWORD=secretpassword", "secretpassword"),
        ("POSTGRES_PASSWORD: secretpassword\n", "secretpassword"),
        ("ADMIN_PASSWORD=SuperSecret", "SuperSecret"),
        ('PASSPHRASE="correct horse battery staple"', "horse"),
        ('password: "correct horse battery staple"', "horse"),
        ("curl -su user:opensesame https://h", "opensesame"),
        ("curl -sSLuuser:opensesame https://h", "opensesame"),
        ("curl -b 'session=opensesame' https://h", "opensesame"),
        ("curl -H 'Authorization: hunter2secretZ9' https://h", "hunter2"),
        ("machine h login bob password opensesame", "opensesame"),
        ("machine h\n  login bob\n  password opensesame\n", "opensesame"),
        ("aws configure set aws_secret_access_key opensesame", "opensesame"),
        ("ENV PASSWORD opensesame", "opensesame"),
        ("setx API_TOKEN opensesame", "opensesame"),
        ("keytool -list -storepass opensesame", "opensesame"),
        ("mysql -u root -popensesame db", "opensesame"),
        ("mysqldump -uroot -p'open sesame' db", "sesame"),
        ("docker login -u bob -p opensesame", "opensesame"),
        ("redis-cli -h h -a opensesame ping", "opensesame"),
        ('password="hunter2\\"opensesame"', "opensesame"),
        ('password = "it\'s opensesame"', "sesame"),
        ("postgres://bob:hun@opensesame@localhost/db", "opensesame"),
        ("postgres://bob:hun/opensesame@localhost/db", "opensesame"),
        ("postgres://bob:opensesame@${HOST}/db", "opensesame"),
    ],
)
def test_a_value_that_its_name_calls_secret_is_masked(text: str, secret: str) -> None:
    """
    In commands, headers, addresses and files, the value goes and the name stays.
    """
    masked = mask(text)

    assert secret not in masked
    assert MARK in masked


@pytest.mark.parametrize(
    "text",
    [
        "token_count = 5",
        "max_tokens: 1024",
        "eos_token = 50256",
        "password: str",
        "password: Optional[str] = None",
        "token: string | null",
        "TOKEN=$TOKEN",
        "TOKEN=${TOKEN}",
        'api_key=os.environ["TOKEN"]',
        "secret=settings.SECRET_KEY",
        'api_key = "<your-key>"',
        "Authorization: Bearer $TOKEN",
        "the secret: always test first",
        "author: Jane Doe",
        "auth: none",
        "password=password",
        "token=get_token()",
        "token = parse(x)",
        'if token == "":',
        "commit 1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e",
        "550e8400-e29b-41d4-a716-446655440000",
        "PWD=/home/user/project",
        '"password": "Enter your password here"',
        "fix(auth): handle refresh",
        "--password-file x",
        "API_KEY=",
        "GOOGLE_APPLICATION_CREDENTIALS=/home/user/key.json",
        "bearer authentication",
        "docker run -u 1000:1000 image",
        "tests pass: 12",
        "2 failed, 3 passed in 1.20s",
        "sk-folding-cube-container-big",
        'getToken("user")',
        'client.get_secret("prod/db")',
        'deletePassword("bob")',
        "setToken(token)",
        'app.set_token("")',
        "the token:\n  is read from the file",
        "secret:\n  name: db-1\n  optional: true",
        "  API_KEY=\n  OTHER=abc123def\n",
        "password:\n  type: string",
        "name: TOKEN\n  valueFrom: env1",
        "name: PASSWORD\n  value: $(DB_PASSWORD)",
        "name: auth\nvalue: strong opinion",
        "| `TOKEN` | value | none |",
        'password = "****"',
        'password = "xxxx1234"',
        'password = "${PASSWORD}"',
        'password = "{{ password }}"',
        'password = "<password>"',
        'password = "%s"',
        "SECRET_KEY=settings.SECRET_KEY",
        "API_KEY=API_KEY",
        '"password": "Must be at least eight characters."',
        "ENV TOKEN=$TOKEN",
        "config set the password field",
        "mysql -p db",
        "mysql -P 3306 -h h",
        "docker run -p 8080:80 mysql",
        "mkdir -p src/token",
        "after login press -p twice",
        "the machine shows a login and a password field",
        "http://localhost:8080/users/@me",
        "https://h/@scope/package",
        "git@github.com:owner/name.git",
        "see https://h:443/a, mail bob@example.com",
        "Authorization: required",
        "Authorization: OAuth2",
        "Signature=unknown",
        "auth=(user, password)",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    """
    Names, types, variables, placeholders, hashes and prose are evidence that the judge needs.
    """
    assert mask(text) == text


BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3S\n"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(f"-----BEGIN PRIVATE KEY-----\n{BODY}-----END PRIVATE KEY-----", id="whole"),
        pytest.param(f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}", id="end-cut-off"),
        pytest.param("-----BEGIN PRIVATE KEY-----\\n" + BODY.replace("\n", "\\n"), id="escaped-line-ends"),
        pytest.param("  1→-----BEGIN EC PRIVATE KEY-----\n  2→" + BODY.replace("\n", "\n  3→"), id="numbered-lines"),
    ],
)
def test_a_private_key_block_is_masked_and_the_text_behind_it_is_not(block: str) -> None:
    """
    A key cannot be used to hide the rest of a reply from the judge.
    """
    masked = mask(f"The file:\n{block}\n\nAll tests pass.")

    assert "MIIEvQ" not in masked
    assert "VJTUt9" not in masked
    assert masked.endswith("All tests pass.")


_FRAGMENTS = st.sampled_from(
    [
        *("token", "secret", "password", "auth", "pass", "=", ":", " ", '"', "'", "\\", "\n", ";", "$", "(", ".", "]", ">", "<", "@"),
        *("[secret]", "sk-", "sk-ant-", "ghp_", "AKIA", "A" * 16, "a1" * 12, "eyJ", "Bearer ", "authorization: ", "://", "curl -u "),
        *("name", "value", "mysql", " -p", "ENV ", "TOKEN", "\n  ", "['", "']", "b'", "with", "password", "xxxx", "login", "machine "),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "x1y2z3w4", "--", "_", "cookie: ", "SK" + "0a" * 16),
        ":AA" + "b" * 30,
    ]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(_FRAGMENTS, max_size=14).map("".join)))
def test_masking_twice_changes_nothing(text: str) -> None:
    """
    Masked text may be masked again anywhere on its way.
    """
    assert mask(mask(text)) == mask(text)


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_cleaning_never_fails_and_leaves_only_what_can_be_seen(text: str) -> None:
    """
    Lone surrogates, NULs, direction marks and zero-width characters are gone, and the rest can be encoded.
    """
    cleaned = clean(text)

    assert clean(cleaned) == cleaned
    assert cleaned.encode().decode() == cleaned
    assert not set(cleaned) & set("\x00\x1b\r\u200b\u202e\ufeff\U000e0041")
    mask(text)


def test_no_format_character_is_left_but_those_that_are_seen() -> None:
    """
    Of Unicode's format characters (Cf) only the number signs of Arabic, Syriac and Kaithi have a shape of their own.
    """
    every = "".join(map(chr, range(0x110000)))
    left = {char for char in clean(every) if unicodedata.category(char) == "Cf"}

    assert {unicodedata.name(char).split()[0] for char in left} <= {"ARABIC", "SYRIAC", "KAITHI"}


def test_cleaning_takes_escape_sequences_whole_and_keeps_lines_and_tabs() -> None:
    """
    Colours of a terminal leave no letters behind.
    """
    assert clean("\x1b[1;31mFAILED\x1b[0m a\tb\r\nc\u200bd\ud800e") == "FAILED a\tb\ncde"


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("start", "0123456789[… 70 characters left out …]"),
        ("end", "[… 70 characters left out …]0123456789"),
        ("both", "012[… 70 characters left out …]3456789"),
    ],
)
def test_a_cut_is_seen_and_counted(keep: str, expected: str) -> None:
    """
    The mark says how much is missing; of both sides, the end is the larger one.
    """
    text = ("0123456789" * 8) if keep != "both" else "012" + "x" * 70 + "3456789"

    assert cut(text, 38, keep=keep) == expected  # pyright: ignore[reportArgumentType]


@given(st.text(), st.integers(0, 60), st.sampled_from(["start", "end", "both"]))
def test_a_cut_is_never_longer_than_asked(text: str, characters: int, keep: str) -> None:
    """
    Also where the mark itself does not fit.
    """
    assert len(cut(text, characters, keep=keep)) <= max(characters, 0)  # pyright: ignore[reportArgumentType]


def test_a_secret_across_the_cut_is_masked_before_it() -> None:
    """
    Masking comes first: what is left of a text is never half a key (pitfall 39).
    """
    text = "x" * 40 + SHAPES["github"] + "y" * 40

    assert "a1B2c3" not in cut(mask(text), 60, keep="start")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda n: "token" * n, id="names"),
        pytest.param(lambda n: "token: " * n, id="assignments"),
        pytest.param(lambda n: "eyJ" * n, id="jwt-heads"),
        pytest.param(lambda n: "://a" * n, id="addresses"),
        pytest.param(lambda n: "-----BEGIN PRIVATE KEY-----" * n, id="key-heads"),
        pytest.param(lambda n: ("SK" + "0a" * 16) * n, id="twilio-chain"),
        pytest.param(lambda n: "password='" * n, id="open-quotes"),
        pytest.param(lambda n: "a" * 5 * n, id="one-letter"),
        pytest.param(lambda n: "cookie: a=b; " * n, id="cookies"),
        pytest.param(lambda n: "://a:b@" * n, id="addresses-with-names"),
        pytest.param(lambda n: "mysql " * n, id="commands"),
        pytest.param(lambda n: "name: TOKEN value " * n, id="named-values"),
        pytest.param(lambda n: "name" + " " * 20 * n, id="spaces"),
        pytest.param(lambda n: 'password="\\"' * n, id="escaped-quotes"),
        pytest.param(lambda n: "config set " * n, id="setters"),
        pytest.param(lambda n: "machine " * n, id="netrc"),
    ],
)
def test_masking_takes_time_in_proportion_to_the_text(make: Callable[[int], str]) -> None:
    """
    Eight times the text takes far less than the sixty-four times of a quadratic pattern.
    """
    small, large = make(3_000), make(24_000)

    assert _seconds(large) < 30 * max(_seconds(small), 0.0005)


def _seconds(text: str) -> float:
    def once() -> float:
        start = time.perf_counter()
        mask(text)
        return time.perf_counter() - start

    return min(once() for _ in range(3))
