"""README's speed table against the records that it is made from."""

from benchmarks.table import BEGIN, END, README, table


def test_the_readme_shows_the_records():
    """What stands between the markers is what the records give."""
    _, _, rest = README.read_text("utf-8").partition(BEGIN + "\n")

    assert rest.partition("\n" + END)[0] == table()
