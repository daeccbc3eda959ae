"""
The prices: what a usage costs in USD, and who says so.

The user's own prices come first, then our dated corrections (`prices.toml`), then genai-prices. A price that nobody
knows is None. This is the one file that imports genai_prices, and only when a price is asked for.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from .usage import Usage

USER_FILE: Final = "prices.toml"

UNKNOWN: Final = "unknown"
"""The source of a price that nobody knows."""

_BATCH: Final = Decimal("0.5")
"""Half of every class, cached or not: https://platform.claude.com/docs/en/build-with-claude/batch-processing#pricing."""

_GEOGRAPHIES: Final = {"": Decimal(1), "global": Decimal(1), "not_available": Decimal(1), "us": Decimal("1.1")}
"""US-only inference costs 1.1 times every class: https://platform.claude.com/docs/en/about-claude/pricing."""

_SHALLOW: Final = reprlib.Repr()
"""Shows values of any depth. Texts stay whole: a secret that was cut cannot be masked."""
_SHALLOW.maxstring = _SHALLOW.maxother = 1_000_000

_MILLION: Final = Decimal(1_000_000)

_MOST: Final = 1_000_000
"""USD per million tokens: no price is higher than a dollar for each token."""


class PriceError(ValueError):
    """
    A file of prices cannot be used; one line that names file, key and value.
    """


class Price(NamedTuple):
    """
    A cost and where its price comes from.
    """

    cost_usd: Decimal | None
    source: str


class PriceEntry(NamedTuple):
    """
    The prices of a model for some days, in USD per million tokens.
    """

    model: str
    since: date | None
    until: date | None
    """The first day on which it no longer holds."""
    input: Decimal
    output: Decimal
    cache_write_5m: Decimal | None
    cache_write_1h: Decimal | None
    cache_read: Decimal | None
    """None: not priced, so that a usage with such tokens costs an unknown amount."""

    def holds(self, model: str, day: date) -> bool:
        """
        Say whether this is the price of the model on a day (UTC).
        """
        in_time = (self.since is None or self.since <= day) and (self.until is None or day < self.until)
        return in_time and self.model.lower() in (model.lower(), _without_date(model).lower())

    def cost(self, usage: Usage) -> Decimal | None:
        """
        Work out the cost of a usage.
        """
        parts = (
            (usage.input_tokens, self.input),
            (usage.output_tokens, self.output),
            (usage.cache_write_5m_tokens, self.cache_write_5m),
            (usage.cache_write_1h_tokens, self.cache_write_1h),
            (usage.cache_read_tokens, self.cache_read),
        )
        costs = [per_million * tokens / _MILLION for tokens, per_million in parts if per_million is not None]
        priced = all(per_million is not None for tokens, per_million in parts if tokens)
        return sum(costs, Decimal(0)) if priced else None


def price(
    model: str,
    usage: Usage,
    at: datetime,
    *,
    batch: bool = False,
    geography: str = "",
    overrides: Sequence[PriceEntry] = (),
) -> Price:
    """
    Say what a usage costs at a time.

    `geography` is the API's `inference_geo`. A model, class of tokens or geography without a known price gives None.
    """
    factor = _factor(batch, geography)
    if factor is None:
        return Price(None, UNKNOWN)

    day = at.astimezone(UTC).date()
    shipped, version = _shipped()
    for entries, source in ((overrides, "user"), (shipped, f"turngate prices {version}")):
        # The last one wins: a later line corrects an earlier one.
        entry = next((entry for entry in reversed(entries) if entry.holds(model, day)), None)
        if entry is not None:
            return _priced(entry.cost(usage), factor, source)

    return _genai_price(model, usage, at, factor)


def warm() -> None:
    """
    Load all that a price needs (160 to 300 ms), for a thread that has time while the network waits.
    """
    price("claude-sonnet-5-5", Usage(), datetime.now(UTC))


def user_prices(config_dir: str | Path | None) -> tuple[PriceEntry, ...]:
    """
    Read the user's own prices; none where there is no such file. Raises PriceError.
    """
    if config_dir is None:
        return ()
    try:
        return read_prices(Path(config_dir) / USER_FILE)[0]
    except PriceError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return ()
        raise


def read_prices(file: Path) -> tuple[tuple[PriceEntry, ...], str]:
    """
    Read a file of dated prices, and its version.

    Raises PriceError for anything that is not understood, unknown keys included: a price is not guessed at.
    """
    import tomllib

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as exc:
        raise PriceError(f"{file}: {exc.strerror}") from exc
    except (ValueError, ArithmeticError, RecursionError) as exc:
        raise PriceError(f"{file}: {' '.join(str(exc).split())}") from exc

    for key in content.keys() - {"version", "price"}:
        raise PriceError(f"{file}: unknown key {key!r}: expected one of 'version', 'price'")

    entries = content.get("price", [])
    if not isinstance(entries, list):
        raise PriceError(f"{file}: price = {_shown(entries)} is not a list of tables: write [[price]]")
    version = content.get("version", "")
    known = str(version) if isinstance(version, str | int | date) else ""
    return tuple(_entry(entry, file) for entry in cast("list[object]", entries)), known


@cache
def _shipped() -> tuple[tuple[PriceEntry, ...], str]:
    return read_prices(Path(__file__).with_name("prices.toml"))


def _factor(batch: bool, geography: str) -> Decimal | None:
    by_place = _GEOGRAPHIES.get(geography.lower())
    return by_place and by_place * (_BATCH if batch else 1)


def _priced(cost: Decimal | None, factor: Decimal, source: str) -> Price:
    return Price(None, UNKNOWN) if cost is None else Price(cost * factor, source)


def _genai_price(model: str, usage: Usage, at: datetime, factor: Decimal) -> Price:
    import genai_prices

    for name in dict.fromkeys((model, _without_date(model))):
        try:
            found = genai_prices.calc_price(_genai_usage(usage), name, genai_request_timestamp=at)
        except (LookupError, ValueError):
            continue
        if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
            continue
        if factor != 1 and found.provider.id != "anthropic":
            continue  # the factors are this vendor's
        return _priced(found.total_price, factor, f"genai-prices {genai_prices.__version__}")
    return Price(None, UNKNOWN)


def _genai_usage(usage: Usage) -> Any:
    import genai_prices

    # Its input_tokens include the cached ones, and its cache writes both lifetimes.
    return genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        cache_write_tokens=usage.cache_write_5m_tokens + usage.cache_write_1h_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        cache_read_tokens=usage.cache_read_tokens,
    )


def _without_date(model: str) -> str:
    return re.sub(r"-\d{8}\Z", "", model)


def _entry(raw: object, file: Path) -> PriceEntry:
    if not isinstance(raw, Mapping):
        raise PriceError(f"{file}: price = {_shown(raw)} is not a table: write [[price]]")

    values = cast("Mapping[str, object]", raw)
    known = ("model", "from", "until", *_AMOUNTS)
    for key in values.keys() - set(known):
        raise PriceError(f"{file}: unknown key {key!r} in [[price]]: expected one of {', '.join(known)}")

    model = values.get("model")
    if not isinstance(model, str) or not model:
        raise PriceError(f"{file}: model = {_shown(model)} in [[price]] is no model id")

    amounts = {key: _amount(values.get(key), f"{file}: {key} of {model!r}", key in _NEEDED) for key in _AMOUNTS}
    return PriceEntry(
        model, _day(values, "from", file), _day(values, "until", file), **cast("dict[str, Decimal]", amounts)
    )


_AMOUNTS: Final = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
_NEEDED: Final = ("input", "output")


def _amount(value: object, where: str, needed: bool) -> Decimal | None:
    if value is None and not needed:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PriceError(f"{where} = {_shown(value)} is no number")
    if not Decimal(value).is_finite() or not 0 <= value <= _MOST:
        raise PriceError(f"{where} = {_shown(value)} is no price")
    return Decimal(value)


def _shown(value: object) -> str:
    try:
        return str(value) if isinstance(value, Decimal) else _SHALLOW.repr(value)
    except ValueError:
        return "a number too long to show"


def _day(values: Mapping[str, object], key: str, file: Path) -> date | None:
    value = values.get(key)
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    raise PriceError(f"{file}: {key} = {_shown(value)} of {values['model']!r} is no date: write {key} = 2026-10-07")
