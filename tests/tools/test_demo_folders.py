"""Folders of demos."""

import pytest

from etcmodel.tools.demos import folders


def test_the_folder_of_an_earlier_demo_is_made_anew(tmp_path):
    path = tmp_path / "there" / "demo"
    (folders.new_folder(str(path)) / "records").mkdir()
    assert not (folders.new_folder(str(path)) / "records").exists()


def test_what_no_demo_made_stays(tmp_path):
    (tmp_path / "own.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "own.txt"):
        with pytest.raises(ValueError, match="--output_dir: .* is no folder of an earlier demo"):
            folders.new_folder(str(path))
    assert (tmp_path / "own.txt").read_text() == "mine"
