"""Jobs over files of lines."""

import pytest

from etcmodel import preprocessing
from tests.preprocessing import words


@pytest.fixture
def make_job(tmp_path):
    """A function of the files' lines (and fields) to a `Job` over them."""

    def make(*files, **fields):
        for number, lines in enumerate(files):
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / f"{number}.txt").write_text(text)
        defaults = {
            "input_pattern": str(tmp_path / "?.txt"),
            "output_prefix": str(tmp_path / "out" / "train"),
            "num_shards": 2,
            "read": words.read,
            "make_converter": words.make_converter,
            "settings": {"task": "toy"},
            "statistics_file": str(tmp_path / "out" / "stats.json"),
            "direct_num_workers": 1,
            "line_files": {name: str(tmp_path / f"{name}.lines") for name in ("kept", "left_out")},
        }
        return preprocessing.Job(**{**defaults, **fields})

    return make
