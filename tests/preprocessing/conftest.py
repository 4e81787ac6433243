"""Jobs over files of lines."""

import functools

import pytest

from tests.preprocessing import jobs


@pytest.fixture
def make_job(tmp_path):
    """A function of the files' lines (and fields) to a `Job` over them."""
    lines = {name: str(tmp_path / f"{name}.lines") for name in ("kept", "left_out")}
    return functools.partial(jobs.make, tmp_path, line_files=lines)
