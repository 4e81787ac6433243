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


def test_a_folder_is_the_same_with_the_slash_that_shells_add(tmp_path):
    kept_options.keep(tmp_path, Files(data="bert"), apart=())
    kept_options.keep(tmp_path, Files(data="bert/"), apart=())
    for other in ("bert2", "/"):
        with pytest.raises(ValueError, match=f"--data=bert, not {other}"):
            kept_options.keep(tmp_path, Files(data=other), apart=())


def test_an_option_that_was_not_given_is_to_be_left_out(tmp_path):
    """None and [] are nothing that a command line could give; "" is."""

    @dataclasses.dataclass(frozen=True)
    class Settings:
        length: int | None = None
        labels: tuple = ()

    kept_options.keep(tmp_path / "a", Settings(), apart=())
    for name, value in (("length", 128), ("labels", ("1", "2"))):
        with pytest.raises(ValueError) as refused:
            kept_options.keep(tmp_path / "a", Settings(**{name: value}), apart=())
        assert str(refused.value) == (
            f"{tmp_path / 'a'} has results without --{name}. Leave the flag out, or give another "
            "--output_dir."
        )
    kept_options.keep(tmp_path / "b", Settings(length=0, labels=("1", "2")), apart=())
    with pytest.raises(ValueError, match="results with --labels=1,2. Give that, or another --out"):
        kept_options.keep(tmp_path / "b", Settings(length=0), apart=())
    kept_options.keep(tmp_path / "c", Files(data=""), apart=())
    with pytest.raises(ValueError, match="results with --data=, not id. Give that, or another"):
        kept_options.keep(tmp_path / "c", Files(data="id"), apart=())
    with pytest.raises(ValueError, match="results with --length=0, not 5. Give that, or another"):
        kept_options.keep(tmp_path / "b", Settings(length=5, labels=("1", "2")), apart=())


def test_files_are_known_by_their_contents(tmp_path):
    kept_options.keep(tmp_path, Files(data="a.csv"), apart=(), digests={"data": "0a"})
    kept_options.keep(tmp_path, Files(data="moved.csv"), apart=(), digests={"data": "0a"})
    with pytest.raises(ValueError, match=r"other data than those of --data=a.csv. Give those, or"):
        kept_options.keep(tmp_path, Files(data="a.csv"), apart=(), digests={"data": "0b"})


def test_files_that_are_given_once_and_left_out_once_are_told(tmp_path):
    kept_options.keep(tmp_path / "with", Files(data="a.csv"), apart=(), digests={"data": "0a"})
    with pytest.raises(ValueError, match="with --data, which is left out now. Give it, or another"):
        kept_options.keep(tmp_path / "with", Files(data=""), apart=(), digests={"data": ""})
    kept_options.keep(tmp_path / "without", Files(data=""), apart=(), digests={"data": ""})
    with pytest.raises(ValueError, match="without --data. Leave the flag out, or give another"):
        kept_options.keep(tmp_path / "without", Files(data="a"), apart=(), digests={"data": "0a"})


def test_a_damaged_file_is_told(tmp_path):
    (tmp_path / "options.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"options.json must hold a JSON object.*Give another"):
        kept_options.keep(tmp_path, Options(), apart=())
