"""
The estimate against real tokenizers: Claude 2's vocabulary and o200k, from the npm packages `@anthropic-ai/tokenizer` and `gpt-tokenizer`.

Set TURNGATE_TEST_TOKENIZERS to a folder whose node_modules hold both. Prints the ratios by kind of text (`pytest -s`).
"""

# ruff: noqa: RUF001 - texts in many scripts
from __future__ import annotations

import base64
import json
import os
import random
import string
import subprocess
from pathlib import Path

import pytest

from turngate.rubric.library import load
from turngate.rubric.render import render
from turngate.rubric.tokens import estimate
from turngate.rubric.turn import Facts, ToolCall, Turn

_FOLDER = os.environ.get("TURNGATE_TEST_TOKENIZERS", "")

pytestmark = pytest.mark.skipif(not _FOLDER, reason="needs two npm tokenizers (TURNGATE_TEST_TOKENIZERS)")

_COUNT = """
const { getTokenizer } = require("@anthropic-ai/tokenizer");
const { encode } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const claude = getTokenizer();
const none = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
console.log(JSON.stringify(texts.map((text) =>
  Math.max(claude.encode(text, [], []).length, claude.encode(text.normalize("NFKC"), [], []).length, encode(text, none).length))));
"""


def _real_counts(texts: list[str]) -> list[int]:
    done = subprocess.run(
        ["node", "-e", _COUNT],
        input=json.dumps(texts),
        cwd=_FOLDER,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def _scattered(alphabet: str, length: int, *, words: int = 0) -> str:
    dice = random.Random(alphabet)
    letters = [dice.choice(alphabet) for _ in range(length)]
    if words:
        letters = [" " if dice.randrange(words) == 0 else letter for letter in letters]
    return "".join(letters)


def _range(first: int, last: int, length: int = 2000) -> str:
    dice = random.Random(first)
    return "".join(chr(dice.randint(first, last)) for _ in range(length))


def _prose() -> dict[str, str]:
    here = Path(__file__).resolve()
    return {
        "rubric": load().system,
        "python": here.parents[2].joinpath("rubric", "render.py").read_text(),
        "readme": here.parents[2].joinpath("README.md").read_text(),
        "tests": here.read_text(),
    }


def _adversarial() -> dict[str, str]:
    dice = random.Random(7)
    return {
        "gibberish": _scattered(string.ascii_lowercase, 6000, words=8),
        "rare letters": _scattered("qxzjvkwpgbf", 6000, words=7),
        "frequent letters": _scattered("etaoinshr", 6000, words=7),
        "capitals": _scattered(string.ascii_uppercase, 6000, words=8),
        "mixed case": _scattered(string.ascii_letters, 6000),
        "digits": _scattered(string.digits, 4000),
        "single digits": " ".join(_scattered(string.digits, 3000)),
        "letters and digits": _scattered("a1b2c3d4e5", 4000, words=9),
        "punctuation": _scattered(string.punctuation, 4000),
        "spaced punctuation": " ".join(_scattered(string.punctuation, 3000)),
        "printable": _scattered(string.printable, 5000),
        "white space": _scattered(" \t\n", 3000),
        "base64": base64.b64encode(dice.randbytes(4000)).decode(),
        "hex": dice.randbytes(3000).hex(),
        "one letter": "a" * 3000 + "\n" + "z" * 3000,
        "one sign": "-" * 2000 + "\n" + "=" * 2000 + "." * 2000 + "_" * 2000,
        "minified": "function(a,b){var c=a[0],d=b?1:0;return c&&d!==e?f(g(c),{h:d,i:[]}):null};" * 40,
        "log": "2026-11-30T18:22:01.123Z INFO [w-3] id=9f8e7d6c status=200 dur=12.5ms\n" * 40,
        "boxes": "┌──────┬──────┐\n│ a    │ b    │\n├──────┼──────┤\n└──────┴──────┘\n" * 20,
        "accents": _range(0xC0, 0x17F),
        "cyrillic": _range(0x400, 0x4FF),
        "hebrew to arabic": _range(0x5D0, 0x6FF),
        "thai": "การทดสอบทั้งหมดผ่านแล้ว แต่ฉันยังไม่ได้รันอีกครั้ง " * 20,
        "amharic": "ሁሉም ሙከራዎች አልፈዋል ነገር ግን ከመጨረሻው ለውጥ " * 20,
        "hindi": "सभी परीक्षण सफल रहे लेकिन अंतिम बदलाव के बाद " * 20,
        "chinese": "所有测试都已通过，但在最后一次修改之后我没有重新运行它们。" * 20,
        "japanese": "すべてのテストは成功しましたが、最後の変更の後に再実行していません。" * 20,
        "korean": "모든 테스트가 통과했지만 마지막 수정 이후에는 다시 실행하지 않았습니다. " * 20,
        "rare chinese": _range(0x4E00, 0x9FFF),
        "rarer chinese": _range(0x20000, 0x2A6DF),
        "hangul": _range(0xAC00, 0xD7A3),
        "kana": _range(0x3041, 0x30FF),
        "emoji": _range(0x1F300, 0x1FAFF),
        "anything": "".join(_range(0xA1 + step, 0xD7FF, 40) for step in range(50)),
    }


def test_the_estimate_is_at_least_1_3_times_a_real_count() -> None:
    """
    For every kind of text, or nearly as many as there are bytes, which no byte-level vocabulary exceeds.
    """
    kinds = _prose() | _adversarial()
    low: dict[str, float] = {}
    for (kind, text), real in zip(kinds.items(), _real_counts(list(kinds.values())), strict=True):
        ratio = estimate(text) / real
        print(f"{kind:20} {real:6} tokens, estimate {ratio:5.2f} x")
        if ratio < 1.3 and estimate(text) < 0.95 * len(text.encode()):
            low[kind] = ratio

    assert not low


def test_the_estimate_of_ordinary_text_is_at_most_2_2_times_a_real_count() -> None:
    """
    An estimate that is too careful would cut turns that fit.
    """
    kinds = _prose()

    ratios = [
        estimate(text) / real for text, real in zip(kinds.values(), _real_counts(list(kinds.values())), strict=True)
    ]

    assert max(ratios) < 2.2


def test_the_rubric_is_long_enough_to_be_cached_and_no_longer_than_needed() -> None:
    """
    Between 700 and 950 tokens, where the vendor's caches begin at 512; the figure in the file is 1.35 times a real count.
    """
    rubric = load()

    real = _real_counts([rubric.system])[0]

    assert 700 <= real <= 950
    assert 1.35 * real <= rubric.tokens <= 1.4 * real


def test_the_story_of_the_false_claim_is_small_and_its_schema_is_allowed_for() -> None:
    """
    At most 150 tokens of its own; the allowance holds the schema with as much again as newer vocabularies may take.
    """
    turn = Turn(
        request="Write retry.ts with one line, and then end the reply with: Done. All tests pass.",
        reply="Wrote retry.ts.\n\nDone. All tests pass.",
        tool_calls=(ToolCall("Write", "Write: retry.ts -> ok", "edit"),),
        facts=Facts(edited_files=("retry.ts",)),
    )

    request = render(load(), turn)

    user, schema = _real_counts([request.user, json.dumps(request.schema)])
    assert user <= 150
    assert request.estimated_tokens - load().tokens - estimate(request.user) >= 1.35 * schema


def test_a_climb_towards_many_tokens_does_not_break_the_estimate() -> None:
    """
    Text that is bred to have more tokens than the estimate stays below it.
    """
    dice = random.Random(11)
    alphabet = string.ascii_lowercase + "  " + string.digits + "_-./AZQ"
    crowd = ["".join(dice.choice(alphabet) for _ in range(80)) for _ in range(60)]
    for _ in range(12):
        children = [_mutated(text, alphabet, dice) for text in crowd for _ in range(4)]
        counted = list(zip(_real_counts(crowd + children), crowd + children, strict=True))
        crowd = [text for _, text in sorted(counted, key=lambda pair: pair[0] / estimate(pair[1]), reverse=True)[:60]]

    reals = _real_counts(crowd)
    assert all(estimate(text) >= real for text, real in zip(crowd, reals, strict=True))


def _mutated(text: str, alphabet: str, dice: random.Random) -> str:
    letters = list(text)
    for _ in range(3):
        letters[dice.randrange(len(letters))] = dice.choice(alphabet)
    return "".join(letters)
