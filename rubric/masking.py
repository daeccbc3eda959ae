"""
What may leave this machine of a text: no secrets, nothing invisible, and no more of it than asked for.

A secret is known by its published shape (after the rules of gitleaks and detect-secrets) or by the name that it is assigned to. Names of
variables, placeholders, types and hashes stay readable, because a judge that cannot read the turn judges it wrongly.
"""

# ruff: noqa: SIM905 - a list of words reads best as words
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal

MARK: Final = "[secret]"
"""What stands in the place of a secret."""

_SHAPES: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    # (of what one stands in every text that the pattern can match, the pattern)
    (("sk-ant-",), r"sk-ant-[\w-]{16,}"),
    (("sk-",), r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,80}\d)[\w-]{20,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    (("github_pat_",), r"github_pat_\w{20,}"),
    (("gl",), r"gl(?:pat|dt|rt|soat|cbt|ptt|ft|imt|agent|oas)-[\w.-]{16,}"),
    (("xox",), r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    (("xapp-",), r"xapp-\d-[A-Za-z0-9-]{10,}"),
    (("hooks.slack.com/",), r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]{8,}"),
    (("/webhooks/",), r"(?<=/webhooks/)\d{5,}/[\w-]{20,}"),
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"(?<![A-Z0-9])A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}"),
    (("AIza",), r"AIza[\w-]{30,}"),
    (("ya29.",), r"ya29\.[\w-]{20,}"),
    (("GOCSPX-",), r"GOCSPX-[\w-]{20,}"),
    (("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    (("pypi-Ag",), r"pypi-Ag[\w-]{16,}"),
    (("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    (("SG.",), r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    (("k_live_",), r"[srp]k_live_[A-Za-z0-9]{10,}"),
    (("k_test_",), r"[srp]k_test_[A-Za-z0-9]{16,}"),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=]{20,}"),
    (("eyJ",), r"eyJ[\w-]{16,}(?:\.[\w-]{2,}){0,4}"),
    (("SK", "AC"), r"(?<![A-Za-z0-9])(?:(?:SK|AC)[0-9a-f]{32})+(?![0-9a-f])"),
    ((":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{30,}"),
    (("sig=",), r"(?<=[?&]sig=)[\w%+/=-]{20,}"),
    (("Signature=",), r"(?<=Signature=)[0-9a-f]{32,}"),
    # What stands in front of the first letter is asked for behind it: so the letter can be looked for.
    ((".",), r"[MNO](?<![\w.-][MNO])[\w-]{23,28}\.[\w-]{6}\.[\w-]{27,}"),
    # A password in an address may hold "@" and "/": it ends where a host follows, and is no port.
    (
        ("@",),
        r"(?<=://)[^\s/:@\"'<>]{0,256}:(?![$<{*]|//|\d{1,5}[/?#])[^\s\"'<>]{1,512}?(?=@[\w.-]{1,255}(?::\d{1,5})?(?:[/?#\s\"'`),]|\Z))",
    ),
    (("@",), r"(?<=://)[^\s/:@\"'<>]{0,256}:(?![$<{*])[^\s/@\"'<>]{1,512}(?=@)"),
    (("@",), r"(?<=://)[A-Za-z0-9_-]{20,256}(?=@)"),
    (
        ("dop_v1_", "shp", "dckr_pat_", "lin_api_", "gsk_", "xai-", "pplx-", "hvs.", "sntrys_", "figd_", "ATATT3"),
        r"(?<![A-Za-z0-9])(?:dop_v1_|shp(?:at|ca|pa|ss)_|dckr_pat_|lin_api_|gsk_|xai-|pplx-|hvs\.|sntrys_|figd_|ATATT3)[\w=-]{20,}",
    ),
    (
        ("nvapi-", "PMAK-", "tskey-", "AGE-SECRET-KEY-"),
        r"(?<![A-Za-z0-9])(?:nvapi-|PMAK-|tskey-|AGE-SECRET-KEY-)[\w-]{20,}",
    ),
    (("dapi", "rubygems_", "sbp_", "pul-", "key-"), r"(?<![A-Za-z0-9])(?:dapi|rubygems_|sbp_|pul-|key-)[0-9a-f]{32,}"),
    (("r8_",), r"(?<![A-Za-z0-9])r8_[A-Za-z0-9]{30,}"),
    (("pat-",), r"(?<![A-Za-z0-9])pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
)

# A key block may be cut off, indented, quoted, numbered or hold literal "\n": whatever follows its head and still looks like it, goes.
_KEY_BLOCK: Final = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\\[nr]|[^A-Za-z0-9+/=-]|[A-Za-z0-9+/=]{20,}|(?:Proc-Type|DEK-Info|Comment|Version)\b[^\n\\]*|\d{1,6}(?=[\t→|:]))*+"
    r"(?:[A-Za-z0-9+/=]{1,19}(?:\s|\\[nr])*(?=-----END|\Z))?(?:-----END [A-Z0-9 ]{0,40}-----)?"
)

_HEADER: Final = r"(?i:(?<=authorization)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:bearer|basic|token|digest|apikey) {1,3})([^\s\"'`,;]+)"
_BARE_HEADER: Final = r"(?i:(?<=authorization)[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?)(?!AWS4-)([^\s\"'`,;]{12,})"
_BEARER: Final = r"(?i:(?<![A-Za-z])bearer {1,3})([A-Za-z0-9._~+/=-]{8,})"
_COOKIE: Final = r"(?i:(?<![A-Za-z])cookie: {0,3})([\w.-]+=[^\s\"'`]+(?:; ?[\w.-]+=[^\s\"'`]+)*)"
_CURL: Final = (
    r"(?<!\S)(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)(?:[ =] {0,3})?[\"']?[^\s:\"'/]{0,128}:([^\s\"']+)"
    r"|(?<!\S)(?:-b|--cookie)[ =] {0,3}[\"']?([\w.-]+=[^\s\"'`]+(?:; ?[\w.-]+=[^\s\"'`]+)*)"
)

_VALUE: Final = r"(?:\"([^\"\n]{1,512})\"|'([^'\n]{1,512})'|([^\s\"'`;&|<>()]+))"
_OPTIONS: Final[tuple[tuple[str, str], ...]] = (
    # (a command, the option that takes a password)
    ("sshpass", "-p ?"),
    ("mysql", "-p(?=[^ -])"),
    ("mariadb", "-p(?=[^ -])"),
    ("redis-cli", "-a "),
    ("docker login", "(?:-p|--password)[ =]"),
    ("az login", "-p "),
    ("ssh-keygen", "-N "),
)
_SPACED_NAME: Final = r"[^\s=]{0,64}(?i:token|secret|passw(?:or)?d|_key|_pass) {1,3}"
_PLACES: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    # (of what one stands in every text that the pattern can match, what stands before a secret value)
    *(((command,), rf"(?<![\w-]){command}[a-z-]{{0,12}}\b[^\n;&|]{{0,200}}? {option}") for command, option in _OPTIONS),
    (("ENV ",), rf"(?<!\S)ENV {{1,3}}{_SPACED_NAME}"),
    (("setx ",), rf"(?<!\S)setx {{1,3}}{_SPACED_NAME}"),
    ((" set ",), rf"(?<!\S)config(?:ure)? set {_SPACED_NAME}"),
    (("machine ",), r"(?<!\S)machine {1,3}\S{1,256}\s{1,16}(?:login\s{1,16}\S{1,256}\s{1,16})?password[ \t]{1,16}"),
    (("auth",), r"(?<!\w)auth ?= ?\((?:\"[^\"\n]{0,128}\"|'[^'\n]{0,128}'), ?(?=[\"'])"),
    (
        ('("', "('", '( "', "( '"),
        r"(?:(?<![a-z])(?:[Ww]ith|[Ss]et)_?[A-Za-z_]{0,32}(?i:token|secret|passw(?:or)?d|passphrase|key)|\.password)\( ?(?=[\"'])",
    ),
)

_STRONG: Final = r"""
    token | secret | passw(?:or)?d | passphrase | pwd | (?:store|key)pass | credentials?
      | (?:api|access|private|secret|signing|encryption|account|master|service|deploy)[_-]?key | key_base | client-key-data
"""
_ASSIGNED: Final = re.compile(
    rf"""
    (?P<word> {_STRONG} | pass | auth )
    \d{{0,3}}
    (?: (?: \\{{0,7}}["']\]? )? [ \t]{{0,3}}
        (?: :[ ]?[A-Za-z_][\w.\[\]|]{{0,40}}[ ]?(?==) )?  # a type between the name and the value
        (?P<sep> => | := | =(?!=) | : | (?<=[A-Za-z])> )
        (?P<gap> [ \t]{{0,8}} (?: (?: \\\n[ \t]{{0,40}} | (?:[|>]-?)?\n[ \t]{{1,40}} )  # a value on a line of its own
            (?= (?: [^\s=:"'`]{{6,512}}={{0,2}} | (?P<mark>["'`])(?:(?!(?P=mark)).){{1,512}}(?P=mark) )
                [;,)]{{0,2}}[ \t]{{0,8}}(?:\n|\Z) ) )? )
      | (?P<flag> [ ]{{1,3}} )
    )
    # Looked at, not taken: what is no secret may hold an assignment of its own.
    (?= (?: [bru]{{0,2}}\$?(?P<quote> \\{{0,7}}["'`] )
            (?: (?P<quoted> (?: (?!(?P=quote)) (?: \\. | [^\\\n] ) ){{1,2048}} ) (?P=quote) | (?P<open> [^"'`\n\\]{{1,2048}} ) )
        | (?P<bare> [^\s"'`;&|<>()\\]{{1,256}} ) ) )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_WORD: Final = re.compile(rf"(?: {_STRONG} | pass | auth ) (?= [0-9\\\"' \t:=>] )", re.VERBOSE)
"""How a match of `_ASSIGNED` begins, in lower case, with what may stand behind its first word."""
_WORD_SIGNS: Final = ("token", "secret", "pass", "pwd", "key", "auth", "credential")
"""One of these stands in each such word."""
_REST: Final = re.compile(r"[^\s\"'`;&|<>()\\]*")

_NAMED: Final = re.compile(
    rf"""
    (?<![A-Za-z])(?:name|key)["']?[ ]?[:=][ ]?["']?[\w.-]{{0,64}}(?:{_STRONG})\d{{0,3}}["']?(?:,?\s{{1,40}}|,)
        ["']?value["']?[ ]?[:=][ ]? (?: "([^"\n]{{1,2048}})" | '([^'\n]{{1,2048}})' | ([^\s"'`,;<>(){{}}]+) )
    | (?<![A-Za-z])value["'][ ]?:[ ]?["']([^"'\n]{{1,2048}})["'],\s{{0,40}}
        ["']name["'][ ]?:[ ]?["'][\w.-]{{0,64}}(?:{_STRONG})\d{{0,3}}["']
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""Two fields, of which one holds the name and the other the value."""

_NAME_BEFORE: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}\Z", re.ASCII)
_PUNCTUATION: Final = ",.;:)]}"
_WEAK: Final = frozenset({"auth", "pass"})
"""Words that name many other things, too: here only a value that looks random is a secret."""
_NO_SECRET_NAMES: Final = frozenset({"PWD", "OLDPWD"})
_PASSPHRASE: Final = re.compile(r"[a-z]{3,}(?: [a-z]{3,}){3,}")
_SECRET_WORD: Final = re.compile(r"token|secret|passw|pwd|key|cred|auth", re.IGNORECASE)
_REFERENCE: Final = re.compile(
    r"[$%<]|\{[\w.\s{$-]*\}|\[|[xX*•.…#_-]{3,}\w{0,4}\Z|os\.|env\.|process\.|import\.|vault:|op:|(?:\.{0,2}|~)/\w[\w.-]*/"
)
_BARE_REFERENCE: Final = re.compile(r"[{*!&@#~•…]")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+", re.ASCII)
_FILE: Final = re.compile(r"[\w./~-]+\.[A-Za-z]{1,5}(?::\d+)*", re.ASCII)
_ANNOTATION: Final = re.compile(r"[A-Za-z_.]+(?:\[[^\d]*|\?)", re.ASCII)
_PLAIN: Final = frozenset(
    """
    any auto basic bearer bool boolean byte bytes bytes32 char default digest disabled empty enabled example expired
    false float hidden int int32 int64 integer invalid jwt masked missing no none null number oauth oauth2 object off on
    optional redacted required sha1 sha256 sha512 str string text true uint8 uint32 uint64 undefined unknown unset utf8
    uuid uuid4 valid varchar void yes
    """.split()
)


_MOST_PASSES: Final = 8
_SHORTEST: Final = 5
"""Characters that a text with a secret has: `pwd=x`."""


def mask(text: str) -> str:
    """
    Return the text with every known secret replaced by `MARK`; masking twice changes nothing.
    """
    if len(text) < _SHORTEST:
        return text
    for _ in range(_MOST_PASSES):
        # A mark is a border, so one that is set can lay open what stands beside it.
        masked, text = text, _mask_once(text)
        if masked == text:
            break
    return text


def _mask_once(text: str) -> str:
    if "PRIVATE KEY" in text:
        text = re.sub(_KEY_BLOCK, MARK, text)
    for signs, pattern in _SHAPES:
        if _has_any(signs, text):
            text = re.sub(pattern, MARK, text, flags=re.ASCII)

    lowered = text.lower()
    for sign, pattern, replacement in _LINES:
        if sign in lowered:
            text = re.sub(pattern, replacement, text)
    for signs, pattern in _PLACES:
        if _has_any(signs, text):
            text = re.sub(pattern + _VALUE, _masked_unless_reference, text)
    return _without_assigned(text)


def _has_any(signs: tuple[str, ...], text: str) -> bool:
    for sign in signs:  # noqa: SIM110 - a loop takes half the time of `any`
        if sign in text:
            return True
    return False


def _masked_unless_reference(match: re.Match[str]) -> str:
    group = match.lastindex or 0
    return match[0] if _is_reference(match[group]) else _with(match, group)


def _masked_if_random(match: re.Match[str]) -> str:
    return _with(match, 1) if _looks_random(match[1]) or len(match[1]) >= 24 else match[0]


def _masked_after_curl(match: re.Match[str]) -> str:
    line = match.string[max(0, match.start() - 400) : match.start()].rpartition("\n")[2]
    group = match.lastindex or 0
    if "curl" not in line or match[group].isdigit() or _is_reference(match[group]):
        return match[0]
    return _with(match, group)


_LINES: Final[tuple[tuple[str, str | re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    # (what stands in every text in lower case that the pattern can match, the pattern, what to do with its last group)
    ("authorization", _HEADER, _masked_unless_reference),
    ("authorization", _BARE_HEADER, _masked_if_random),
    ("bearer", _BEARER, _masked_if_random),
    ("cookie:", _COOKIE, _masked_unless_reference),
    ("curl", _CURL, _masked_after_curl),
    ("value", _NAMED, _masked_unless_reference),
)


def _without_assigned(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for match in _assigned(text):
        group = match.lastgroup or "bare"
        start, end = match.span(group)
        if match.start() < done or not _is_secret(match, match[group]):
            continue
        if group == "bare":
            end = _REST.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]
            unmarked = text[start:end].replace(MARK, "")
            pieces += text[done:start], MARK, unmarked[len(unmarked.rstrip(_PUNCTUATION)) :]
        else:
            pieces += text[done:start], MARK
        done = end
    return "".join((*pieces, text[done:]))


def _assigned(text: str) -> Iterator[re.Match[str]]:
    """
    All matches of `_ASSIGNED`, as its own `finditer` has them.

    Without regard to case, a pattern is tried at every character: where a word can begin is found ten times as fast in lower case.
    """
    lowered = text.lower()
    if not _has_any(_WORD_SIGNS, lowered):
        return
    if len(lowered) != len(text):  # a capital letter with a dot has two in lower case
        yield from _ASSIGNED.finditer(text)
        return
    found = _WORD.search(lowered)
    while found:
        match = _ASSIGNED.match(text, found.start())
        if match:
            yield match
        found = _WORD.search(lowered, match.end() if match else found.start() + 1)


def _is_secret(match: re.Match[str], value: str) -> bool:
    value = value.replace(MARK, "").rstrip(_PUNCTUATION)
    before = _NAME_BEFORE.search(match.string, max(0, match.start() - 64), match.start())
    name = (before[0] if before else "") + match["word"]
    is_bare = match.lastgroup == "bare"
    if (
        not value
        or name in _NO_SECRET_NAMES
        or _is_reference(value)
        or (is_bare and _BARE_REFERENCE.match(value))
        or (match["sep"] == ">" and not _is_element(match, name))
        or (match["flag"] and not name.startswith("-"))
    ):
        return False

    is_shouted = name.isupper() and ("_" in name or match["sep"] == "=")
    if match["word"].lower() in _WEAK and not (is_shouted and name.endswith("_PASS")):
        is_word_of_its_own = not name[: -len(match["word"])][-1:].isalnum() or match["word"][0].isupper()
        return is_word_of_its_own and _looks_random(value) and not _FILE.fullmatch(value)
    if value.isdigit():
        return len(value) >= 6 and match["sep"] == "=" and not match["gap"]

    has_digit = any(map(str.isdigit, value))
    is_set = is_shouted and _is_set(match)
    if not has_digit and _SECRET_WORD.search(value) and (not is_set or _is_name(value, name)):
        return False
    if is_bare:
        return _is_bare_secret(match, name, value, is_shouted=is_shouted)
    is_passphrase = match["word"].lower().startswith("pass") and bool(_PASSPHRASE.fullmatch(value))
    return len(value.split()) < 3 or has_digit or is_set or is_passphrase


def _is_bare_secret(match: re.Match[str], name: str, value: str, *, is_shouted: bool) -> bool:
    is_flag = name.startswith("-")
    if "\n" not in (match["gap"] or "") and (is_shouted or is_flag or name[:2].lower() == "x-" or match["sep"] == ">"):
        return not _ANNOTATION.fullmatch(value) and not (value.startswith("-") and is_flag)
    if _DOTTED.fullmatch(value) or _behind(match) == "(":
        return False
    return (match["sep"] == "=" and not match["gap"]) or (_looks_random(value) and not _FILE.fullmatch(value))


def _is_set(match: re.Match[str]) -> bool:
    # NAME=value, or a line of YAML
    return match["sep"] == "=" if not match["gap"] else match["sep"] == ":" and _behind(match) in ("", "\n")


def _is_name(value: str, name: str) -> bool:
    return value.isupper() or value.lower() in name.lower() or bool(_DOTTED.fullmatch(value))


def _behind(match: re.Match[str]) -> str:
    end = match.end("bare")
    return match.string[end : end + 1]


def _is_element(match: re.Match[str], name: str) -> bool:
    start = match.end("word") - len(name)
    return match.string[max(0, start - 1) : start] == "<"


def _is_reference(value: str) -> bool:
    return value.lower().rstrip(_PUNCTUATION) in _PLAIN or bool(_REFERENCE.match(value))


def _looks_random(value: str) -> bool:
    return len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _with(match: re.Match[str], group: int | str) -> str:
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + MARK + match[0][end:]


_ESCAPE_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)")
_LINE_END: Final = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    """
    Return what a reader sees of the text: no control characters but line ends and tabs, no lone surrogates, nothing that hides text.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _LINE_END.sub("\n", text)
    return _INVISIBLE.sub("", text)


def cut(text: str, characters: int, *, keep: Literal["start", "end", "both"]) -> str:
    """
    Return at most so many characters of the text, with a visible mark where some were left out.

    `both` keeps the start and, twice as large, the end.
    """
    if len(text) <= characters:
        return text

    room = characters - len(_left_out(len(text)))
    if room <= 0:
        return "…"[: max(0, characters)]
    mark = _left_out(len(text) - room)
    if keep == "start":
        return text[:room] + mark
    if keep == "end":
        return mark + text[-room:]
    at_start = room // 3
    return text[:at_start] + mark + text[len(text) - (room - at_start) :]


def _left_out(characters: int) -> str:
    return f"[… {characters:,} characters left out …]"
