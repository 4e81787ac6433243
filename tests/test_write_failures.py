"""Full disks and places that cannot be written to: one line, nothing complete lost, nothing left.

A limit on the size of files stands for the full disk: the system refuses what a program writes
beyond it, wherever it writes.
"""

import os
import pathlib
import stat

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from etcmodel import atomic_files, preprocessing, program_end, record_files, serving
from etcmodel.checkpoints import sources, writing
from etcmodel.models import modeling
from tests.preprocessing import jobs
from tests.preprocessing.jobs import contents, files_of_at_most

CONFIG = modeling.EtcConfig(vocab_size=3, hidden_size=2, num_attention_heads=1)
FORMATS = (sources.RELEASED, sources.SAFETENSORS)


def fails_in_one_line(write, folder, capsys):
    """Whether it fails; then in one line, and the folder is as before."""
    before = contents(folder)
    try:
        with program_end.ends_in_one_line():
            write()
    except SystemExit as ended:
        line = capsys.readouterr().err
        assert ended.code == 1 and line.startswith("error: ") and line.count("\n") == 1
        assert "too large" in line.lower(), line
        assert contents(folder) == before
        assert not [name for name in os.listdir(folder) if "tmp" in name or "unfinished" in name]
        return True
    return False


def sizes_up_to(largest, count):
    return sorted({round(size) for size in np.linspace(0, largest, count)})


def make_job(folder, lines, **fields):
    """A job whose settings are longer than its records."""
    settings = {"task": "toy", "long": ["entry"] * 500}
    return jobs.make(folder, lines, settings=settings, **fields)


def test_preprocessing_on_a_full_disk_keeps_the_old_set_wherever_it_fails(tmp_path, capsys):
    lines = ["a b " * 100, "none", *("bad",) * 50] * 3
    (tmp_path / "elsewhere").mkdir()
    preprocessing.run(make_job(tmp_path / "elsewhere", lines))
    largest = max(map(len, contents(tmp_path / "elsewhere" / "out").values()))  # It holds paths.
    preprocessing.run(make_job(tmp_path, ["o1 o2 o3"], num_shards=3))
    job = make_job(tmp_path, lines)
    sizes, failed = sizes_up_to(1.05 * largest, 30), []
    for size in sizes:

        def run(size=size):
            with files_of_at_most(size):
                preprocessing.run(job)

        failed.append(fails_in_one_line(run, tmp_path / "out", capsys))
    assert failed == sorted(failed, reverse=True) and failed[0] and not failed[-1]
    assert sum(failed) > 10
    assert record_files.known_num_records(record_files.matching_files(f"{job.output_prefix}-*"))


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("is_there", [False, True], ids=["new", "overwriting"])
def test_converting_on_a_full_disk_keeps_the_old_checkpoint(
    tmp_path, capsys, output_format, is_there
):
    random = np.random.default_rng(0)
    old, new = ({"w": random.normal(size=n).astype(np.float32)} for n in (5, 3000))
    if is_there:
        writing.write(old, str(tmp_path), output_format, config=CONFIG)
    failed = []
    for size in sizes_up_to(13_000, 14):

        def convert(size=size):
            with files_of_at_most(size):
                writing.write(new, str(tmp_path), output_format, config=CONFIG, overwrite=True)

        failed.append(fails_in_one_line(convert, tmp_path, capsys))
    assert failed == sorted(failed, reverse=True) and sum(failed) > 10 and not failed[-1]
    np.testing.assert_array_equal(sources.open_source(str(tmp_path)).read("w"), new["w"])


FEATURES = {"x": tf.io.FixedLenFeature([2], tf.float32)}


class _Doubling:
    """What an export needs of a model."""

    def __init__(self):
        self.variables = [tf.Variable(np.ones(4000, np.float32))]

    def __call__(self, features, training):
        return {"y": features["x"] * self.variables[0][0]}


def exported(directory, asset):
    serving.export_saved_model(
        _Doubling(), str(directory), features=FEATURES, assets={"words.txt": str(asset)}
    )


@pytest.mark.slow
def test_exporting_on_a_full_disk_leaves_nothing(tmp_path, capsys):
    asset = tmp_path / "asset.txt"
    asset.write_text("word\n" * 1000)
    (tmp_path / "out").mkdir()
    exported(tmp_path / "elsewhere", asset)
    largest = max(map(len, contents(tmp_path / "elsewhere").values()))
    failed = []
    for size in sizes_up_to(1.05 * largest, 9):

        def export(size=size):
            with files_of_at_most(size):
                exported(tmp_path / "out" / "1", asset)

        failed.append(fails_in_one_line(export, tmp_path / "out", capsys))
        if not failed[-1]:
            break
    assert failed == sorted(failed, reverse=True) and failed[0] and not failed[-1]
    assert (tmp_path / "out" / "1" / "saved_model.pb").exists()


@pytest.mark.parametrize("field", ["statistics_file", "line_files", "output_prefix"])
@pytest.mark.parametrize("place", ["a folder", "below a file", "a scheme that nobody knows"])
def test_a_place_that_cannot_be_written_to_is_found_before_the_work(tmp_path, field, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    path = {
        "a folder": str(tmp_path / "folder"),
        "below a file": str(tmp_path / "file" / "x" / "y"),
        "a scheme that nobody knows": "nowhere://bucket/x",
    }[place]
    if (field, place) == ("output_prefix", "a folder"):
        path = str(tmp_path / "file" / "train")  # A prefix may be the name of a folder.

    def read(unused_path):
        pytest.fail("the work was begun")

    value = {"kept": path} if field == "line_files" else path
    job = make_job(tmp_path, ["a"], read=read, **{field: value})
    with pytest.raises(OSError, match=f"^Cannot write to '{path}': ") as error:
        preprocessing.run(job)
    assert "\n" not in str(error.value)
    assert contents(tmp_path / "out") == {} if (tmp_path / "out").exists() else True


def test_an_input_that_cannot_be_reached_is_told_in_one_line(tmp_path):
    job = make_job(tmp_path, ["a"], input_pattern="nowhere://bucket/*.json")
    with pytest.raises(OSError, match="File system scheme 'nowhere' not implemented"):
        preprocessing.run(job)


def test_a_conversion_that_was_killed_is_not_in_its_own_way(tmp_path):
    values = {"w": np.ones(3, np.float32)}
    writing.write(values, str(tmp_path), sources.RELEASED, config=CONFIG)
    (tmp_path / "model.ckpt.index").unlink()  # It comes last.
    writing.check_absent(str(tmp_path), sources.RELEASED, CONFIG)
    path = writing.write(values, str(tmp_path), sources.RELEASED, config=CONFIG)
    np.testing.assert_array_equal(sources.open_source(path).read("w"), values["w"])
    with pytest.raises(ValueError, match="model.ckpt.index' exists already"):
        writing.check_absent(str(tmp_path), sources.RELEASED, CONFIG)


def test_a_tensor_without_a_name_is_refused(tmp_path):
    path = str(tmp_path / "model.safetensors")
    safetensors.numpy.save_file({"": np.ones(2, np.float32), "a": np.ones(1, np.float32)}, path)
    with pytest.raises(ValueError, match=f"'{path}' has a tensor without a name: leave it out"):
        sources.open_source(path)


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_files_are_readable_by_whom_the_umask_says(tmp_path, umask):
    asset = tmp_path / "asset.txt"
    asset.write_text("word\n")
    previous = os.umask(umask)
    try:
        preprocessing.run(make_job(tmp_path, ["a", "none"]))
        for output_format in FORMATS:
            values = {"w": np.ones(3, np.float32)}
            writing.write(values, str(tmp_path / output_format), output_format, config=CONFIG)
        exported(tmp_path / "export", asset)
        atomic_files.write_text(str(tmp_path / "texts" / "a.txt"), ["a"])
    finally:
        os.umask(previous)
    made = [
        path
        for folder in ("out", *FORMATS, "export", "texts")
        for path in [tmp_path / folder, *pathlib.Path(tmp_path / folder).rglob("*")]
    ]
    assert len(made) > 20
    wrong = {
        str(path): oct(mode)
        for path in made
        if (mode := stat.S_IMODE(path.stat().st_mode))
        != (0o777 if path.is_dir() else 0o666) & ~umask
    }
    assert not wrong
