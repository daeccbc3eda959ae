from __future__ import annotations

from turngate.costing.tables import table


def test_a_table_takes_text_as_it_is_and_cuts_nothing() -> None:
    """
    Square brackets are no markup, colons no emoji, and a long cell stays in its line.
    """
    long = "x" * 500

    lines = table(["name", "count"], [["[red]a[/red] :smile:", "1"], [long, "22"]], right=["count"])

    assert lines[1:] == [f"{'[red]a[/red] :smile:':500}      1", f"{long}     22"]
