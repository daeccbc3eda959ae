"""
The verdict: what a judge answered, as far as it can be read and believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from .masking import MARK, clean, mask


class Finding(NamedTuple):
    """
    One fault that the judge found in the reply.
    """

    fault: str
    quote: str
    """Copied from the reply by the judge. Raw until `ground` has looked it up: what is a secret depends on what stands around it."""
    reason: str
    """What the agent gets: one or two sentences of plain text."""


class Verdict(NamedTuple):
    """
    The findings of one judgement; none means a clean turn.
    """

    findings: tuple[Finding, ...] = ()
    dropped: int = 0
    """Findings left out: unknown fault, empty quote or reason, or a quote that does not stand in the reply."""


class UnreadableVerdict(ValueError):
    """
    The answer holds no verdict: neither yes nor no.
    """


_LONGEST_ANSWER: Final = 50_000
"""A judge may write some thousand characters, and every broken object in an answer costs a pass over what stands before it."""
_START: Final = re.compile(r'\{(?=\s*["}])|\[(?=\s*[\[{"\]\d])')
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")
_QUOTES: Final = frozenset("\"'\u201c\u201d\u201e\u2018\u2019")


def parse_verdict(text: str, faults: Collection[str]) -> Verdict:
    """
    Return the verdict in a judge's answer: the last top-level JSON object that has `findings`.

    Its quotes may hold secrets: it goes nowhere but through `ground` or `masked`. Raises `UnreadableVerdict` where there is none, or where
    its findings are no list.
    """
    if not text.strip():
        raise UnreadableVerdict("the answer is empty")
    if len(text) > _LONGEST_ANSWER:
        raise UnreadableVerdict(f"the answer is too long: {len(text):,} characters")

    objects = [cast("dict[str, object]", value) for value in _top_level_values(text) if isinstance(value, dict)]
    verdicts = [value["findings"] for value in objects if "findings" in value]
    if not verdicts:
        raise UnreadableVerdict("the answer holds no JSON object with findings")
    if not isinstance(items := verdicts[-1], list):
        raise UnreadableVerdict("the findings are no list")

    found = [_finding(item, faults) for item in cast("list[object]", items)]
    findings = tuple(finding for finding in found if finding is not None)
    return Verdict(findings, dropped=len(found) - len(findings))


def ground(verdict: Verdict, texts: Sequence[str]) -> Verdict:
    """
    Return the verdict, masked, without the findings whose quote stands in none of the texts: the raw reply and the masked one.
    """
    folded = [_folded(text) for text in texts]
    findings = tuple(
        finding._replace(quote=_shown(finding.quote, folded))
        for finding in verdict.findings
        if _stands_in(finding.quote, folded)
    )
    return Verdict(findings, verdict.dropped + len(verdict.findings) - len(findings))


def masked(verdict: Verdict) -> Verdict:
    """
    Return the verdict as it may be stored and shown.
    """
    return verdict._replace(findings=tuple(finding._replace(quote=mask(finding.quote)) for finding in verdict.findings))


MOST_REASONS: Final = 3
_LONGEST_REASONS: Final = 600


def reasons(findings: Sequence[Finding]) -> str:
    """
    Return what the agent is told: plain text, one line for each of the first three findings, at most 600 characters together.
    """
    plain = {(finding.fault, line): line for finding in findings if (line := _plain(finding.reason))}
    lines = list(plain.values())[:MOST_REASONS]
    room = _LONGEST_REASONS - max(0, len(lines) - 1)
    cut: dict[int, str] = {}
    # The shortest first: what it leaves of its share is the others'.
    for left, index in enumerate(sorted(range(len(lines)), key=lambda index: len(lines[index]))):
        cut[index] = _cut_at_word(lines[index], room // (len(lines) - left))
        room -= len(cut[index])
    return "\n".join(cut[index] for index in range(len(lines)))


def _top_level_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while start := _START.search(text, position):
        try:
            value, position = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            is_prose = "{" not in text[start.start() : error.pos]  # such as "[0, 1)"
            position = error.pos if is_prose else _behind_broken(text, start.start(), error.pos)
        except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of levels
            position = _behind_broken(text, start.start(), start.end())
        else:
            if not _is_quoted(text, start.start(), position):
                yield value


def _is_quoted(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES


def _behind_broken(text: str, start: int, broken_at: int) -> int:
    # What stands inside of a broken object is not at the top level, even where it could be read by itself.
    open_ones: list[str] = []
    for match in _STRING_OR_BRACKET.finditer(text, start, broken_at):
        _step(open_ones, match[0])
    for match in _BRACKET.finditer(text, max(broken_at, start + 1)):
        if not open_ones:
            return match.start()
        _step(open_ones, match[0])
    return len(text)


def _step(open_ones: list[str], piece: str) -> None:
    if piece in ("[", "{"):
        open_ones.append(piece)
    elif piece == "]" and open_ones[-1:] == ["["]:
        open_ones.pop()
    elif piece == "}":
        while len(open_ones) > 1 and open_ones[-1] == "[":  # a list that was left open ends with its object
            open_ones.pop()
        if open_ones[-1:] == ["{"]:
            open_ones.pop()


def _finding(item: object, faults: Collection[str]) -> Finding | None:
    if not isinstance(item, dict):
        return None
    fault, quote, reason = (cast("dict[str, object]", item).get(key) for key in Finding._fields)
    if not isinstance(fault, str) or not isinstance(quote, str) or not isinstance(reason, str):
        return None
    if fault not in faults or not quote.strip() or not _plain(reason):
        return None
    return Finding(fault, clean(quote).strip(), mask(clean(reason)).strip())


_SHORTEST_QUOTE: Final = 4
"""In bytes, because two letters are a word in some scripts. A shorter one must be the whole reply: a letter stands in every text."""
_ALIKE: Final = str.maketrans(
    {0x201C: '"', 0x201D: '"', 0x201E: '"', 0x2018: "'", 0x2019: "'", ord("`"): None, ord("*"): None}
)


def _folded(text: str) -> str:
    return " ".join(clean(text).translate(_ALIKE).split())


def _shown(quote: str, folded_texts: Sequence[str]) -> str:
    shown = mask(quote)
    if all(_folded(quote) in text for text in folded_texts) or (MARK in shown and _stands_in(shown, folded_texts)):
        return shown
    # The masked text hides it, by what stands around it.
    return MARK


def _stands_in(quote: str, folded_texts: Sequence[str]) -> bool:
    quote = _folded(quote)
    if not any(map(str.isalnum, quote)):
        return False
    if len(quote.encode()) < _SHORTEST_QUOTE:
        return quote in folded_texts
    return any(quote in text for text in folded_texts)


_ADDRESS: Final = re.compile(
    r"\b(?:[a-zA-Z][a-zA-Z0-9+.-]{1,20}://|(?:javascript|vbscript):|data:[\w/+.-]{0,80}[;,])\S+", re.IGNORECASE
)
_LINK: Final = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,300})\]\([^()\n]{0,2000}\)")
_ESCAPED: Final = re.compile(r"&(?:(amp)|(lt|#0{0,4}60|#x0{0,4}3c)|gt|#0{0,4}62|#x0{0,4}3e);", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z!][^<>]*>")
_EMPHASIS: Final = re.compile(r"(?<!\w)(_(?=[^\W_])|_{2,3}(?=[^\W_][^_\n]* )|___(?=\w))([^_\n]{1,300})\1(?![\w.(])")
_MARKUP: Final = re.compile(r"^\s{0,8}(?:#{1,6}|>|[-*+])\s+|[`*<>|]|~~", re.MULTILINE)
_MOST_NESTED: Final = 5


def _plain(text: str) -> str:
    text = mask(clean(text))
    for _ in range(_MOST_NESTED):
        before = text
        text = _LINK.sub(r"\1", _ESCAPED.sub(_unescaped, text))
        if text == before:
            break
    text = _ADDRESS.sub("(address)", text)
    text = _TAG.sub(" ", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _MARKUP.sub("", text)
    return mask(" ".join(text.split()))


def _unescaped(match: re.Match[str]) -> str:
    return "&" if match[1] else "<" if match[2] else ">"


def _cut_at_word(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    kept = text[: characters - 1]
    at_word = kept.rpartition(" ")[0]
    return (at_word if len(at_word) > characters // 2 else kept).rstrip(" ,;:.") + "…"
