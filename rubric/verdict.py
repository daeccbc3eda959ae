"""
The verdict: what a judge answered, as far as it can be read and believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from .masking import clean, mask


class Finding(NamedTuple):
    """
    One fault that the judge found in the reply.
    """

    fault: str
    quote: str
    """Copied from the reply by the judge; `ground` drops a finding whose quote is not there."""
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


_LONGEST_ANSWER: Final = 200_000
_START: Final = re.compile(r'\{(?=\s*["}])|\[(?=\s*[\[{"\]\d])')
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def parse_verdict(text: str, faults: Collection[str]) -> Verdict:
    """
    Return the verdict in a judge's answer: the last top-level JSON object that has `findings`.

    Raises `UnreadableVerdict` where there is none, or where its findings are no list.
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
    Return the verdict without the findings whose quote stands in none of the texts.
    """
    folded = [_folded(text) for text in texts]
    findings = tuple(finding for finding in verdict.findings if _stands_in(finding.quote, folded))
    return Verdict(findings, verdict.dropped + len(verdict.findings) - len(findings))


_MOST_REASONS: Final = 3
_LONGEST_REASONS: Final = 600


def reasons(findings: Sequence[Finding]) -> str:
    """
    Return what the agent is told: plain text, one line for each of the first three findings, at most 600 characters together.
    """
    plain = {(finding.fault, line): line for finding in findings if (line := _plain(finding.reason))}
    lines = list(plain.values())[:_MOST_REASONS]
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
            position = _behind_broken(text, start.start(), error.pos)
        except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of levels
            position = _behind_broken(text, start.start(), start.end())
        else:
            yield value


def _behind_broken(text: str, start: int, broken_at: int) -> int:
    # What stands inside of a broken object is not at the top level, even where it could be read by itself.
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start, broken_at):
        depth += _step(match[0])
    for match in re.compile(r"[\[\]{}]").finditer(text, max(broken_at, start + 1)):
        if depth <= 0:
            return match.start()
        depth += _step(match[0])
    return len(text)


def _step(piece: str) -> int:
    return 1 if piece in "[{" else -1 if piece in "]}" else 0


def _finding(item: object, faults: Collection[str]) -> Finding | None:
    if not isinstance(item, dict):
        return None
    fault, quote, reason = (cast("dict[str, object]", item).get(key) for key in Finding._fields)
    if not isinstance(fault, str) or not isinstance(quote, str) or not isinstance(reason, str):
        return None
    if fault not in faults or not quote.strip() or not _plain(reason):
        return None
    return Finding(fault, mask(clean(quote)).strip(), mask(clean(reason)).strip())


_ALIKE: Final = str.maketrans(
    {0x201C: '"', 0x201D: '"', 0x201E: '"', 0x2018: "'", 0x2019: "'", ord("`"): None, ord("*"): None}
)


def _folded(text: str) -> str:
    return " ".join(clean(text).translate(_ALIKE).split())


def _stands_in(quote: str, folded_texts: Sequence[str]) -> bool:
    quote = _folded(quote)
    return any(map(str.isalnum, quote)) and any(quote in text for text in folded_texts)


_ADDRESS: Final = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://\S+")
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,2000}\)")
_TAG: Final = re.compile(r"</?[A-Za-z!][^<>]{0,300}>")
_MARKUP: Final = re.compile(r"^\s{0,8}(?:#{1,6}|>|[-*+])\s+|[`*<>|]|~~|__(?=\S)", re.MULTILINE)


def _plain(text: str) -> str:
    text = mask(clean(text))
    text = _LINK.sub(r"\1", text)
    text = _ADDRESS.sub("(address)", text)
    text = _TAG.sub(" ", text)
    text = _MARKUP.sub("", text)
    return mask(" ".join(text.split()))


def _cut_at_word(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    kept = text[: characters - 1]
    at_word = kept.rpartition(" ")[0]
    return (at_word if len(at_word) > characters // 2 else kept).rstrip(" ,;:.") + "…"
