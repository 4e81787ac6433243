"""Times for people."""

import pytest

from etcmodel import durations


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.4, "59s"), (92, "1m32s"), (11220, "3h07m"), (190800, "2d05h")],
)
def test_durations_show_two_units(seconds, text):
    assert durations.format_duration(seconds) == text
