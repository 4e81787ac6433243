"""A folder of results has one value of each option that decides them all."""

import dataclasses

import pytest

from etcmodel.tools import kept_options


@dataclasses.dataclass(frozen=True)
class Options:
    rate: float = 0.1
    sizes: tuple = (1, 2)
    seeds: tuple = (0,)


@dataclasses.dataclass(frozen=True)
class Files:
    data: str


def test_other_options_are_refused_but_those_of_each_result(tmp_path):
    folder = tmp_path / "made" / "here"
    kept_options.keep(folder, Options(), apart=("seeds",))
    kept_options.keep(folder, Options(seeds=(1,)), apart=("seeds",))
    for changed, told in (({"rate": 0.2}, "--rate=0.1, not 0.2"), ({"sizes": (1,)}, "--sizes=")):
        with pytest.raises(ValueError, match=f"{folder} has results with {told}"):
            kept_options.keep(folder, Options(**changed), apart=("seeds",))


def test_files_are_known_by_their_contents(tmp_path):
    kept_options.keep(tmp_path, Files(data="a.csv"), apart=(), digests={"data": "0a"})
    kept_options.keep(tmp_path, Files(data="moved.csv"), apart=(), digests={"data": "0a"})
    with pytest.raises(ValueError, match=r"other data than those of --data=a.csv. Give those, or"):
        kept_options.keep(tmp_path, Files(data="a.csv"), apart=(), digests={"data": "0b"})


def test_a_damaged_file_is_told(tmp_path):
    (tmp_path / "options.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"options.json must hold a JSON object.*Give another"):
        kept_options.keep(tmp_path, Options(), apart=())
