"""
The expected costs are worked by hand from Anthropic's price table (https://platform.claude.com/docs/en/about-claude/pricing).

With the usage below and prices in USD per million tokens, in millionths of a dollar:

            input         output       5m write      1h write     read
sonnet-5-5  1000 x 2    + 100 x 10   + 200 x 2.50  + 300 x 4    + 400 x 0.10 = 4740
   before 2026-10-07                                            + 400 x 0.20 = 4780
haiku-5-5   1000 x 0.10 + 100 x 0.50 + 200 x 0.125 + 300 x 0.20 + 400 x 0.01 =  239
haiku-4-5   1000 x 1    + 100 x 5    + 200 x 1.25  + 300 x 2    + 400 x 0.10 = 2390
opus-5-5    1000 x 4    + 100 x 20   + 200 x 5     + 300 x 8    + 400 x 0.20 = 9480
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.prices import PriceEntry, PriceError, price, read_prices, user_prices
from turngate.costing.usage import Usage, total

USAGE = Usage(
    input_tokens=1000,
    output_tokens=100,
    thinking_tokens=60,
    cache_write_5m_tokens=200,
    cache_write_1h_tokens=300,
    cache_read_tokens=400,
)
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
GENAI = f"genai-prices {genai_prices.__version__}"
MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-haiku-4-5", "claude-opus-5-5")


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("claude-sonnet-5-5", "0.00474"),
        ("claude-haiku-5-5", "0.000239"),
        ("claude-haiku-4-5", "0.00239"),
        ("claude-opus-5-5", "0.00948"),
    ],
)
def test_each_class_of_tokens_has_its_own_price(model: str, cost: str) -> None:
    """
    The cost is the sum of all classes at their prices; thinking is part of the output and not paid twice.
    """
    assert price(model, USAGE, NOW) == (Decimal(cost), GENAI)


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        pytest.param({"batch": True}, "0.00237", id="batch-is-half"),
        pytest.param({"geography": "us"}, "0.005214", id="us-only-is-1.1-times"),
        pytest.param({"batch": True, "geography": "us"}, "0.002607", id="both"),
        pytest.param({"geography": "global"}, "0.00474", id="global-is-plain"),
        pytest.param({"geography": "not_available"}, "0.00474", id="not-available-is-plain"),
    ],
)
def test_batch_and_geography_are_factors_on_everything(options: dict[str, object], cost: str) -> None:
    """
    Both factors apply to every class, cached ones too, and multiply.
    """
    assert price("claude-sonnet-5-5", USAGE, NOW, **options).cost_usd == Decimal(cost)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("at", "cost", "ours"),
    [
        pytest.param(datetime(2026, 10, 6, 23, 59, 59, tzinfo=UTC), "0.00478", True, id="last-second-before"),
        pytest.param(datetime(2026, 10, 7, tzinfo=UTC), "0.00474", False, id="first-second-after"),
        pytest.param(
            datetime(2026, 10, 7, 1, tzinfo=timezone(timedelta(hours=2))), "0.00478", True, id="day-is-in-utc"
        ),
    ],
)
def test_the_cut_of_a_cache_read_price_has_its_date(at: datetime, cost: str, ours: bool) -> None:
    """
    Reading Sonnet 5.5's cache costs 0.20 before 2026-10-07 and 0.10 since; genai-prices knows only the latter.
    """
    found = price("claude-sonnet-5-5", USAGE, at)

    assert found.cost_usd == Decimal(cost)
    assert found.source.startswith("turngate prices 20" if ours else "genai-prices ")


@pytest.mark.parametrize(
    ("input_tokens", "cost"),
    [
        # 99,100 + 900 cached = 100,000: 99,100 x 0.10 + 50 + 25 + 60 + 4 = 10,049 millionths
        pytest.param(99_100, "0.010049", id="100k"),
        # one more: 99,101 x 0.50 + 100 x 2.50 + 200 x 0.625 + 300 x 1 + 400 x 0.05 = 50,245.5 millionths
        pytest.param(99_101, "0.0502455", id="over-100k"),
    ],
)
def test_a_long_prompt_to_haiku_costs_more_as_a_whole(input_tokens: int, cost: str) -> None:
    """
    Above 100,000 tokens of prompt, cached ones counted, every token of the request has the higher price.
    """
    usage = USAGE._replace(input_tokens=input_tokens)

    assert price("claude-haiku-5-5", usage, NOW).cost_usd == Decimal(cost)
    assert price("claude-haiku-5-5", usage, NOW, batch=True).cost_usd == Decimal(cost) / 2


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch", [False, True], ids=["standard", "batch"])
def test_genai_prices_agrees(model: str, batch: bool) -> None:
    """
    genai-prices' own way of asking, with its own batch prices, comes to the same amounts.
    """
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=1900,
            output_tokens=100,
            cache_write_tokens=500,
            cache_write_1h_tokens=300,
            cache_read_tokens=400,
        ),
        model,
        genai_request_timestamp=NOW,
        price_context={"processing": "batch"} if batch else None,
    )

    assert price(model, USAGE, NOW, batch=batch).cost_usd == theirs.total_price


@pytest.mark.parametrize(
    ("model", "options"),
    [
        pytest.param("claude-tomorrow-9", {}, id="unknown-claude"),
        pytest.param("my-local-model", {}, id="unknown-vendor"),
        pytest.param("", {}, id="empty"),
        pytest.param("\ud800" * 50_000, {}, id="damaged"),
        pytest.param("gemma-3", {}, id="listed-without-a-price"),
        pytest.param("claude-sonnet-5-5", {"geography": "atlantis"}, id="unknown-geography"),
        pytest.param("gpt-5", {"geography": "us"}, id="factor-of-another-vendor"),
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model: str, options: dict[str, str]) -> None:
    """
    Where nobody knows the price there is no cost, not even for no tokens at all.
    """
    for usage in (USAGE, Usage()):
        assert price(model, usage, NOW, **options) == (None, "unknown")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("model", ["claude-sonnet-5-5-20260914", "claude-opus-4-8-20990101", "gpt-5-20260101"])
def test_a_dated_model_id_has_the_price_of_the_model(model: str) -> None:
    """
    Ids with a date at the end are priced like the id without it.
    """
    assert price(model, USAGE, NOW).cost_usd == price(model[:-9], USAGE, NOW).cost_usd is not None


@given(st.lists(st.builds(Usage, *[st.integers(0, 10**6)] * 6), min_size=1, max_size=5), st.sampled_from(MODELS[:1]))
def test_the_cost_of_a_sum_is_the_sum_of_the_costs(usages: list[Usage], model: str) -> None:
    """
    Nothing is rounded: pricing apart and pricing together come to the same amount, to the last digit.
    """
    apart = [price(model, usage, NOW).cost_usd or Decimal(0) for usage in usages]

    assert price(model, total(usages), NOW).cost_usd == sum(apart)


USER = """
[[price]]
model = "claude-sonnet-5-5"
input = 1.5
output = 7.1
cache_write_5m = 2
cache_write_1h = 3
cache_read = 0.1

[[price]]
model = "claude-sonnet-5-5"
from = 2026-11-01
until = 2026-12-01
input = 3
output = 11

[[price]]
model = "my-local-model"
input = 0
output = 0
"""


@pytest.fixture
def overrides(tmp_path: Path) -> tuple[PriceEntry, ...]:
    (tmp_path / "prices.toml").write_text(USER)
    return user_prices(tmp_path)


def test_the_users_own_prices_come_first(overrides: tuple[PriceEntry, ...]) -> None:
    """
    A user's price beats ours and genai-prices', for dated ids too, and factors apply to it.
    """
    # 1000 x 1.5 + 100 x 7.1 + 200 x 2 + 300 x 3 + 400 x 0.1 = 3550 millionths
    october = datetime(2026, 10, 1, tzinfo=UTC)

    assert price("claude-sonnet-5-5", USAGE, october, overrides=overrides) == (Decimal("0.00355"), "user")
    assert price("claude-sonnet-5-5-20260914", USAGE, october, overrides=overrides, batch=True) == (
        Decimal("0.001775"),
        "user",
    )


def test_the_last_entry_that_holds_wins(overrides: tuple[PriceEntry, ...]) -> None:
    """
    A dated entry further down replaces an earlier one from its first day until the day before its last.
    """
    usage = Usage(1000, 100)  # 1000 x 3 + 100 x 11 = 4100 millionths; outside: 1000 x 1.5 + 100 x 7.1 = 2210
    costs = [
        price("claude-sonnet-5-5", usage, datetime(2026, month, day, tzinfo=UTC), overrides=overrides).cost_usd
        for month, day in ((10, 31), (11, 1), (11, 30), (12, 1))
    ]

    assert costs == [Decimal("0.00221"), Decimal("0.0041"), Decimal("0.0041"), Decimal("0.00221")]


def test_a_class_without_a_users_price_makes_the_cost_unknown(overrides: tuple[PriceEntry, ...]) -> None:
    """
    Cached tokens are not given away when a user's entry leaves their price out.
    """
    assert price("claude-sonnet-5-5", USAGE, NOW, overrides=overrides) == (None, "unknown")


def test_a_price_of_zero_is_a_price(overrides: tuple[PriceEntry, ...]) -> None:
    """
    A model that the user says is free costs 0, which is something else than unknown.
    """
    assert price("my-local-model", Usage(10, 10), NOW, overrides=overrides) == (Decimal(0), "user")


def test_no_file_means_no_prices_of_the_users_own(tmp_path: Path) -> None:
    """
    A missing file, and a user without a config directory, are nothing to complain about.
    """
    assert user_prices(tmp_path) == user_prices(None) == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("price = [", "Invalid value", id="no-toml"),
        pytest.param("price = " + "[" * 100_000, "prices.toml", id="deep-nesting"),
        pytest.param('[[prices]]\nmodel = "m"', "unknown key 'prices'", id="unknown-table"),
        pytest.param("price = 3", "price = 3", id="price-is-a-number"),
        pytest.param("price = [3]", "price = 3", id="entry-is-a-number"),
        pytest.param("[[price]]\ninput = 1\noutput = 1", "model = None", id="no-model"),
        pytest.param('[[price]]\nmodel = "m"\ninput = 1', "output of 'm' = None", id="no-output"),
        pytest.param('[[price]]\nmodel = "m"\ninput = -1\noutput = 1', "input of 'm' = -1", id="negative"),
        pytest.param('[[price]]\nmodel = "m"\ninput = nan\noutput = 1', "input of 'm' = NaN", id="nan"),
        pytest.param('[[price]]\nmodel = "m"\ninput = true\noutput = 1', "input of 'm' = True", id="bool"),
        pytest.param('[[price]]\nmodel = "m"\ninput = "1"\noutput = 1', "input of 'm' = '1'", id="text"),
        pytest.param('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nfrom = "x"', "from = 'x'", id="no-date"),
        pytest.param('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\ncached = 1', "unknown key 'cached'", id="key"),
    ],
)
def test_a_bad_file_of_prices_is_one_clear_line(content: str, says: str, tmp_path: Path) -> None:
    """
    The error names the file, the key and the value, in one line.
    """
    (tmp_path / "prices.toml").write_text(content)

    with pytest.raises(PriceError) as raised:
        user_prices(tmp_path)

    assert str(raised.value).startswith(f"{tmp_path / 'prices.toml'}: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_of_prices_that_is_no_text_is_a_price_error(tmp_path: Path) -> None:
    """
    Bytes that are not UTF-8 do not raise anything else.
    """
    (tmp_path / "prices.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(PriceError):
        user_prices(tmp_path)


def test_a_folder_in_place_of_the_file_is_a_price_error(tmp_path: Path) -> None:
    """
    What is there and cannot be read is told; only what is not there is nothing.
    """
    (tmp_path / "prices.toml").mkdir()

    with pytest.raises(PriceError, match=r"prices\.toml: Is a directory"):
        user_prices(tmp_path)


def test_our_corrections_are_dated() -> None:
    """
    Each entry that we ship ends on a day, so that genai-prices is used again once it is right.
    """
    from turngate.costing import prices

    entries, version = read_prices(Path(prices.__file__).with_name("prices.toml"))

    assert entries
    assert all(entry.until is not None and entry.until <= date.fromisoformat(version) for entry in entries)


def test_genai_prices_is_imported_only_for_a_price() -> None:
    """
    Importing the prices costs nothing heavy; `warm` loads all that a later price needs.
    """
    code = (
        "import sys; from turngate.costing import prices; print('genai_prices' in sys.modules);"
        "prices.warm(); print('genai_prices.data' in sys.modules)"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "True"]
