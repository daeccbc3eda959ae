from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.installing.json_spans import BadJson, parse, with_element, with_member, with_value, without

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=5)
LAYOUTS = st.sampled_from(
    [
        {"indent": 2},
        {"indent": 4},
        {"indent": "\t"},
        {"indent": None},
        {"indent": None, "separators": (",", ":")},
        {"indent": 2, "ensure_ascii": False},
    ]
)


def written(value: object, layout: dict[str, object], *, crlf: bool) -> str:
    text = json.dumps(value, **layout) + "\n"  # type: ignore[arg-type]
    return text.replace("\n", "\r\n") if crlf else text


@given(VALUES, LAYOUTS, st.booleans())
def test_reads_what_json_reads(value: object, layout: dict[str, object], crlf: bool) -> None:
    """
    Every JSON text is read with the values that `json` finds in it.
    """
    assert parse(written(value, layout, crlf=crlf)).plain() == value


@given(OBJECTS, LAYOUTS, st.booleans(), VALUES)
def test_an_added_member_is_the_only_change_and_can_be_taken_back(
    value: dict[str, object], layout: dict[str, object], crlf: bool, added: object
) -> None:
    """
    A member that is added and taken out again leaves every byte as it was, where there was another member.
    """
    text = written(value, layout, crlf=crlf)
    key = "added beside"
    changed = with_member(text, parse(text), key, added)

    assert json.loads(changed) == {**value, key: added}
    root = parse(changed)
    back = without(changed, root, len(root.children) - 1)
    assert json.loads(back) == value
    if value:
        assert back == text
    assert ("\r\n" in changed) or not crlf
    assert "\n" not in changed.replace("\r\n", "") or not crlf


@given(st.lists(VALUES, min_size=1, max_size=5), LAYOUTS, st.data())
def test_an_element_can_be_taken_out_from_anywhere(
    value: list[object], layout: dict[str, object], data: st.DataObject
) -> None:
    """
    Taking out an element leaves the others, in JSON.
    """
    text = written(value, layout, crlf=False)
    index = data.draw(st.integers(0, len(value) - 1))

    assert json.loads(without(text, parse(text), index)) == value[:index] + value[index + 1 :]


@given(st.lists(VALUES, max_size=5), LAYOUTS, VALUES)
def test_an_element_is_added_at_the_end(value: list[object], layout: dict[str, object], added: object) -> None:
    """
    An added element stands behind all others.
    """
    text = written(value, layout, crlf=False)

    assert json.loads(with_element(text, parse(text), added)) == [*value, added]


@given(OBJECTS, LAYOUTS, VALUES)
def test_a_value_is_replaced_in_its_place(value: dict[str, object], layout: dict[str, object], other: object) -> None:
    """
    Another value in the place of one leaves all others.
    """
    text = written({**value, "it": 1}, layout, crlf=False)
    node = parse(text).member("it")
    assert node is not None

    assert json.loads(with_value(text, node, other)) == {**value, "it": other}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param('{\n  "a": 1,\n  // no\n  "b": 2\n}', "line 3, column 3: a comment", id="line-comment"),
        pytest.param('{\n  "a": /* no */ 1}', "line 2, column 8: a comment", id="block-comment"),
        pytest.param("{'a': 1}", "line 1, column 2", id="single-quotes"),
        pytest.param('{"a": 1,}', "line 1", id="trailing-comma"),
        pytest.param('{"a": NaN}', "NaN", id="not-a-number"),
        pytest.param('{"a": 1} {"b": 2}', "line 1, column 10", id="two-objects"),
        pytest.param("[" * 100_000, "line 1", id="bottomless"),
        pytest.param("[" * 500 + "]" * 500, "nested too deeply", id="deep"),
        pytest.param("", "line 1, column 1", id="empty"),
        pytest.param('{"a": "\t"}', "line 1, column 8", id="control-character"),
    ],
)
def test_what_is_no_json_is_named_with_its_line(text: str, says: str) -> None:
    """
    A text that cannot be edited safely is refused in one line, with the place.
    """
    with pytest.raises(BadJson, match=says) as refused:
        parse(text)

    assert "\n" not in str(refused.value)
