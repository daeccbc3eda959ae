"""
How far two labellers agree.
"""

from __future__ import annotations

import pytest

from turngate.lab.errors import NotDecidable
from turngate.lab.labelling.agreement import HELD, agreement_text, agreements
from turngate.lab.labelling.labels import Label, Labels

FAULTS = ("claim", "opener")
IDS = [f"c{number}" for number in range(51)]


def said(labeller: str, faults: dict[str, list[str]]) -> list[Label]:
    return [
        Label(case=case, turn="0" * 16, labeller=labeller, labels=labels, at="now") for case, labels in faults.items()
    ]


def test_cohens_own_arithmetic() -> None:
    """
    Of 50 cases both name a fault in 20, A alone in 5, B alone in 10, nobody in 15: they agree in 0.7, chance alone in 0.5, kappa is 0.4.
    """
    kinds = [(["claim"], ["claim"])] * 20 + [(["claim"], [])] * 5 + [([], ["claim"])] * 10 + [([], [])] * 15
    a = said("anna", {case: kind[0] for case, kind in zip(IDS, kinds, strict=False)})
    b = said("ben", {case: kind[1] for case, kind in zip(IDS, kinds, strict=False)})
    alone = said("ben", {"c50": ["opener"]})

    (found,) = agreements(Labels([*a, *b, *alone]), IDS, FAULTS)

    claim, opener, held = found.rows
    assert (found.a, found.b, found.n) == ("anna", "ben", 50)
    assert claim[:-1] == ("claim", 20, 5, 10, 15)
    assert claim.kappa == pytest.approx(0.4)
    assert opener == ("opener", 0, 0, 0, 50, None)
    assert held.name == HELD
    assert held[1:] == claim[1:]


def test_agreement_is_told_as_a_table() -> None:
    """
    One row for each fault and one for being held at all; a kappa that is not defined is unknown, never 1.
    """
    labels = Labels([*said("anna", {"c0": ["claim"], "c1": []}), *said("ben", {"c0": ["claim"], "c1": []})])

    assert agreement_text(agreements(labels, IDS, FAULTS)) == (
        "A: anna, B: ben, 2 cases that both labelled\n"
        "fault   both  only A  only B  neither    kappa\n"
        "claim      1       0       0        1     1.00\n"
        "opener     0       0       0        2  unknown\n"
        "held       1       0       0        1     1.00\n"
    )


def test_three_labellers_are_compared_two_by_two() -> None:
    """
    Each with each other, on the cases that both have; labels of cases that are not in the file do not count.
    """
    labels = Labels([*said("a", {"c0": []}), *said("b", {"c0": []}), *said("c", {"c0": [], "gone": []})])

    assert [(found.a, found.b, found.n) for found in agreements(labels, IDS, FAULTS)] == [
        ("a", "b", 1),
        ("a", "c", 1),
        ("b", "c", 1),
    ]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        pytest.param([], "two labellers are needed, and nobody labelled", id="nobody"),
        pytest.param(said("anna", {"c0": []}), "two labellers are needed, and anna labelled", id="one"),
        pytest.param(
            [*said("anna", {"c0": []}), *said("ben", {"c1": []})], "no case was labelled by two people", id="none shared"
        ),
    ],
)  # fmt: skip
def test_without_two_labellers_of_a_case_there_is_no_agreement(labels: list[Label], why: str) -> None:
    """
    It says so rather than give a number.
    """
    with pytest.raises(NotDecidable, match=why):
        agreements(Labels(labels), IDS, FAULTS)
