"""Whatever kills a writer, and whenever: the old files or the new ones are there, all of them.

Each case runs in a process that kills itself before its n-th call to the file system, for each n.
What the next reader then finds is exactly the old or the new set, and so it stays when the next
writer finds the disk full. A limit of the size of files stands for the full disk.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import atomic_files, file_systems, preprocessing, record_files, serving
from etcmodel.checkpoints import sources, writing
from etcmodel.finetuning import prediction_lines
from etcmodel.models import encoders
from tests.killed import run_until_call
from tests.models import head_cases
from tests.models.longt5 import models as longt5
from tests.preprocessing import words
from tests.preprocessing.jobs import contents, files_of_at_most

_TEMPORARY = re.compile(r"\.unfinished-|\.tmp$")
_RANDOM = re.compile(r"(?<=unfinished-)\w+")
EVERY = 7  # Of the calls, the quick tests end so many-th ones.


def visible(folder):
    """The files of a folder that programs look at: dict of name to bytes."""
    files = contents(folder)
    return {name: data for name, data in files.items() if not _TEMPORARY.search(name)}


class Files:
    """Three files over three others; one stays, and one goes."""

    old = {"a": "old a", "b": "old b", "gone": "old"}
    new = {"a": "new a", "b": "new b", "c": "new c"}

    def write(self, folder, is_new):
        with atomic_files.scratch_folder(str(folder / "b")) as scratch:
            files = self.new if is_new else self.old
            for name, text in files.items():
                atomic_files.write_text(os.path.join(scratch, name), [text])
            moves = [(os.path.join(scratch, name), str(folder / name)) for name in files]
            gone = [str(folder / "gone")] if is_new else []
            atomic_files.replace_files(moves, scratch, lambda: gone)

    def read(self, folder):
        atomic_files.settle(str(folder))


class Pretrained:
    """A model with a head and a vocabulary, over which an encoder of other sizes is saved."""

    def __init__(self):
        old, new = head_cases.make("sequence"), encoders.build_encoder(head_cases.config())
        (*_, weight), (*_, other) = old.weights, new.weights
        weight.assign(weight + 1.0)
        other.assign(other + 2.0)
        self._models = (old, new)

    def write(self, folder, is_new):
        etcmodel.save_pretrained(self._models[is_new], folder)

    def read(self, folder):
        etcmodel.from_pretrained(folder)


class Processor:
    """A processor over one of another vocabulary and other settings."""

    def write(self, folder, is_new):
        vocab = folder.parent / f"vocab-{is_new}.txt"
        if not vocab.exists():
            pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *["new"] * is_new, "word"]
            vocab.write_text("\n".join(pieces))
        etcmodel.EtcProcessor(str(vocab), max_long_len=64 + is_new).save_pretrained(folder)

    def read(self, folder):
        etcmodel.EtcProcessor.from_pretrained(folder)


class Seq2Seq(Pretrained):
    """A LongT5 with other settings of `generate`."""

    def __init__(self):
        self._models = old, new = longt5.model(), longt5.model()
        new.weights[0].assign(old.weights[0] + 1.0)
        new.generation_config = None


class Converted:
    """A checkpoint and its config."""

    def __init__(self, output_format):
        self._format = output_format

    def write(self, folder, is_new):
        values = {"w": np.full(3 + is_new, 1.0 + is_new, np.float32)}
        config = head_cases.config(local_radius=4 + is_new)
        writing.write(values, str(folder), self._format, config=config, overwrite=True)

    def read(self, folder):
        sources.open_source(str(folder))


class Preprocessed:
    """Two shards over three, with settings, statistics and lines."""

    def write(self, folder, is_new):
        inputs = folder.parent / f"in-{is_new}.txt"
        if not inputs.exists():
            inputs.write_text("a b\nnone\n" if is_new else "c\n")
        preprocessing.run(
            preprocessing.Job(
                input_pattern=str(inputs),
                output_prefix=str(folder / "train"),
                num_shards=2 + (not is_new),
                read=words.read,
                make_converter=words.make_converter,
                settings={"is_new": is_new},
                statistics_file=str(folder / "train.stats.json"),
                direct_num_workers=1,
                line_files={name: str(folder / f"{name}.jsonl") for name in ("kept", "left_out")},
            )
        )

    def read(self, folder):
        files = record_files.matching_files(str(folder / "train-*"))
        record_files.check_sizes(files)
        assert record_files.known_num_records(files) is not None


SUBJECTS = {
    "files": Files,
    "save_pretrained": Pretrained,
    "seq2seq": Seq2Seq,
    "processor": Processor,
    "released": lambda: Converted(sources.RELEASED),
    "safetensors": lambda: Converted(sources.SAFETENSORS),
    "preprocess": Preprocessed,
}
QUICK = ("files", "save_pretrained", "preprocess")


def without_time(files):
    """The same files, without the time that a run took."""
    found = dict(files)
    for name, data in files.items():
        if name.endswith(".stats.json"):
            statistics = json.loads(data)
            statistics.pop("seconds")
            found[name] = json.dumps(statistics)
    return found


def check_killed_at_each_call(subject, tmp_path, step=1):
    """Returns after how many calls the writer was killed, and how often the new set was there."""
    folder, kept, other = tmp_path / "there", tmp_path / "kept", tmp_path / "other"
    for path, is_new in ((kept, False), (other, False), (other, True)):
        path.mkdir(exist_ok=True)
        subject.write(path, is_new)
    old, new = without_time(visible(kept)), without_time(visible(other))
    assert old != new
    number, num_new = 0, 0
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        was_killed = run_until_call(number, lambda: subject.write(folder, True), folder)
        at_kill = sorted(contents(folder))
        if number % 2:
            subject.read(folder)
        with files_of_at_most(0), contextlib.suppress(OSError, ValueError, tf.errors.OpError):
            subject.write(folder, True)
            pytest.fail("it wrote to a full disk")
        after_full_disk = without_time(visible(folder))
        assert after_full_disk in (old, new), (number, at_kill)
        subject.read(folder)
        assert without_time(visible(folder)) == after_full_disk
        num_new += after_full_disk == new
        subject.write(folder, True)
        assert without_time(contents(folder)) == new  # Nothing else is left.
        if not was_killed:
            return number, num_new
        number += step


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", QUICK)
def test_a_killed_writer_loses_nothing(name, tmp_path):
    number, num_new = check_killed_at_each_call(SUBJECTS[name](), tmp_path, EVERY)
    assert number and num_new


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_writer_that_is_killed_at_any_call_loses_nothing(name, tmp_path):
    number, num_new = check_killed_at_each_call(SUBJECTS[name](), tmp_path)
    assert number > 10 and 3 < num_new < number - 3


@pytest.fixture
def files(tmp_path):
    """A function that gives a folder in which a writer of `Files` was killed before its n-th call.

    That is None if it came to its end before.
    """
    (tmp_path / "kept").mkdir()
    Files().write(tmp_path / "kept", False)

    def killed(number):
        folder = tmp_path / "there"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", folder)
        was_killed = run_until_call(number, lambda: Files().write(folder, True), folder)
        return folder if was_killed else None

    return killed


def encoded(files):
    return {name: text.encode() for name, text in files.items()}


OLD, NEW = encoded(Files.old), encoded(Files.new)


def is_begun(folder):
    return bool(list(folder.glob("*/moves*.json")))


def half_moved(files):
    """A folder in which neither the old nor the new files are all there."""
    folder = next(filter(lambda x: visible(x) not in (OLD, NEW), map(files, range(30, 200))))
    assert is_begun(folder)
    return folder


def check_killed_twice(files, act, outcomes, step):
    """A second process is killed, too, at each call of what it does with what the first left.

    That is done once, where the first left the same at several of its calls.
    """
    number, count, before = 0, 0, None
    while folder := files(number):
        left = {_RANDOM.sub("", name): data for name, data in contents(folder).items()}
        if is_begun(folder) and left != before:
            before, second = left, 0
            while run_until_call(second, lambda: act(str(folder)), folder):
                atomic_files.settle(str(folder))
                assert visible(folder) in outcomes, (number, second)
                files(number)
                count, second = count + 1, second + step
            assert visible(folder) == outcomes[-1] and not is_begun(folder)
        number += step
    return count


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("act", "outcomes"), [(atomic_files.settle, [NEW]), (atomic_files.go_back, [NEW, OLD])]
)
@pytest.mark.parametrize("step", [EVERY, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_completing_and_taking_back_may_be_killed_themselves(files, act, outcomes, step):
    assert check_killed_twice(files, act, outcomes, step) > 2


def test_a_folder_may_be_moved_before_it_is_completed(files, tmp_path):
    folder = half_moved(files).rename(tmp_path / "elsewhere")
    atomic_files.settle(str(folder))
    assert contents(folder) == NEW


def test_without_locks_a_line_says_how_to_go_on_or_back(files, monkeypatch):
    def no_locks(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for act, outcome in ((atomic_files.finish, NEW), (atomic_files.go_back, OLD)):
        folder = half_moved(files)
        before, advice = contents(folder), rf"{act.__name__}\('{folder}'\)`"
        for use in (Files().read, lambda x: Files().write(x, True)):
            with pytest.raises(ValueError, match=rf"unfinished-.*cannot be locked.*{advice}"):
                use(folder)
        assert contents(folder) == before
        atomic_files.settle(str(folder), lambda name: name == "other")  # It is not of concern.
        act(str(folder))
        assert visible(folder) == outcome
    with pytest.raises(ValueError, match="Nothing in '.*' is half replaced"):
        atomic_files.go_back(str(folder))


def test_where_nothing_can_be_written_reading_says_so(files, monkeypatch):
    folder = half_moved(files)

    def read_only(source, target):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), source)

    monkeypatch.setattr(os, "replace", read_only)
    with pytest.raises(ValueError, match=r"Read-only file system.*`etcmodel\.atomic_files\.finish"):
        Files().read(folder)


def test_files_that_another_program_put_there_meanwhile_are_not_lost(files):
    folder = half_moved(files)
    missing = next(name for name in NEW if not (folder / name).exists())
    (folder / missing).write_text("a third one")
    before = contents(folder)
    with pytest.raises(
        ValueError, match=f"/{missing}' was written by another program while '.*unf"
    ):
        Files().read(folder)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "..", "", 3, "a/b"])
@pytest.mark.parametrize("key", ["moves", "olds"])
def test_moves_to_elsewhere_are_refused(tmp_path, name, key):
    scratch = tmp_path / "x.unfinished-0123abcd"
    scratch.mkdir()
    plan = {"moves": [["a", name]], "olds": []} if key == "moves" else {"moves": [], "olds": [name]}
    (scratch / "moves.json").write_text(json.dumps(plan))
    atomic_files.settle(str(tmp_path), lambda name: name == "another")
    with pytest.raises(ValueError, match="moves.json' is no list of moves"):
        atomic_files.settle(str(tmp_path))


def test_a_users_folder_that_is_named_alike_is_left_alone(tmp_path):
    for name in ("b.unfinished-2", "b.unfinished-run", "b.unfinished-0123abc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    Files().write(tmp_path, False)
    assert len(list(tmp_path.glob("*/mine"))) == 3


def test_moves_that_fail_and_cannot_be_taken_back_are_completed_by_the_next(tmp_path, monkeypatch):
    Files().write(tmp_path, False)
    left, replace = 6, os.replace

    def failing(source, target):
        nonlocal left
        left -= "unfinished" in str(source) or "unfinished" in str(target)
        if left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="Input/output error"):
            Files().write(tmp_path, True)
    assert is_begun(tmp_path)
    with files_of_at_most(0), pytest.raises(OSError, match="too large"):
        Files().write(tmp_path, True)
    assert visible(tmp_path) in (OLD, NEW)


def test_several_writers_and_readers_at_once_leave_one_whole_set(tmp_path):
    Files().write(tmp_path, False)

    def write(is_new):
        for _ in range(10):
            Files().write(tmp_path, is_new)
            Files().read(tmp_path)

    threads = [threading.Thread(target=write, args=(is_new,)) for is_new in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Files().write(tmp_path, True)
    assert contents(tmp_path) == NEW


class TestRemainsOfEarlierVersions:
    """They kept no list of moves, and `old-00000` were the weights of the older model."""

    @pytest.fixture
    def folder(self, tmp_path):
        Pretrained().write(tmp_path, False)
        scratch = tmp_path / "model.safetensors.unfinished-0123abcd"
        scratch.mkdir()
        (tmp_path / "model.safetensors").rename(scratch / "old-00000")
        (tmp_path / "head_config.json").rename(scratch / "old-00001")
        (scratch / "model.safetensors").write_text("new")
        return tmp_path

    def test_a_reader_says_what_they_are(self, folder):
        before = contents(folder)
        for read in (etcmodel.from_pretrained, sources.open_source):
            with pytest.raises(ValueError, match="0123abcd' is of a saving by an earlier version"):
                read(str(folder))
        assert contents(folder) == before

    def test_the_next_save_removes_them_only_when_it_is_complete(self, folder):
        before = contents(folder)
        with files_of_at_most(0), pytest.raises(OSError, match="too large"):
            Pretrained().write(folder, True)
        assert contents(folder) == before
        Pretrained().write(folder, True)
        assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors"]

    def test_they_are_removed_where_their_place_is_taken(self, folder):
        (folder / "model.safetensors").write_text("copied back")
        with atomic_files.scratch_folder(str(folder / "model.safetensors")):
            assert len(list(folder.glob("*unfinished*"))) == 1


class Predicted:
    """Lines of predictions, with the state of those that are not complete."""

    def write(self, folder, is_new):
        lines = [{"id": number, "is_new": is_new} for number in range(4)]
        path = str(folder / "lines.jsonl")
        return prediction_lines.write_lines(path, {"of": is_new}, lambda count: lines[count:])


@pytest.mark.parametrize("step", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
def test_predictions_that_are_killed_leave_the_older_ones_and_are_continued(tmp_path, step):
    Predicted().write(tmp_path, False)
    (tmp_path / "kept").mkdir()
    Predicted().write(tmp_path / "kept", True)
    old, new = ((x / "lines.jsonl").read_bytes() for x in (tmp_path, tmp_path / "kept"))
    number, folder = 0, tmp_path / "there"
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        Predicted().write(folder, False)
        was_killed = run_until_call(number, lambda: Predicted().write(folder, True), folder)
        with files_of_at_most(0), contextlib.suppress(OSError, tf.errors.OpError):
            Predicted().write(folder, True)
        assert (folder / "lines.jsonl").read_bytes() in (old, new)
        assert Predicted().write(folder, True) == 4
        assert contents(folder) == {"lines.jsonl": new}
        if not was_killed:
            break
        number += step
    assert number > 5


class TestBuckets:
    """There, a file is copied to its new name, and then removed; there are no locks."""

    @pytest.fixture
    def killed(self, tmp_path, monkeypatch):
        """A function as `files`, of a writer to such a place; it also gives its address."""
        Files().write(tmp_path / "kept", False)
        folder = tmp_path / "there"
        address = f"file://{folder}"

        def write():
            with atomic_files.scratch_folder(f"{address}/b") as scratch:
                for name, data in NEW.items():
                    (folder / os.path.basename(scratch) / name).write_bytes(data)
                moves = [(f"{scratch}/{name}", f"{address}/{name}") for name in NEW]
                atomic_files.replace_files(moves, scratch, lambda: [f"{address}/gone"])

        def rename(source, target):
            shutil.copy(source.removeprefix("file://"), target.removeprefix("file://"))
            os.remove(source.removeprefix("file://"))

        def killed(number):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tmp_path / "kept", folder)
            with monkeypatch.context() as patched:
                patched.setattr(file_systems.RemoteFiles, "rename", rename)
                return run_until_call(number, write, folder) and (folder, address)

        return killed

    @pytest.mark.parametrize("step", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
    def test_who_knows_that_nobody_writes_there_completes_it_or_takes_it_back(self, killed, step):
        number = num_begun = 0
        while found := killed(number):
            folder, address = found
            if is_begun(folder):
                num_begun += 1
                with pytest.raises(ValueError, match=rf"finish\('{address}'\)"):
                    atomic_files.settle(address)
                atomic_files.finish(address)
                assert visible(folder) == NEW, number
                killed(number)
                atomic_files.go_back(address)
                assert visible(folder) == OLD, number
            else:
                assert visible(folder) in (OLD, NEW), number
            number += step
        assert num_begun > 2


def test_an_export_that_was_killed_is_named(tmp_path):
    unfinished = tmp_path / "export" / "1.0123abcd.tmp"
    unfinished.mkdir(parents=True)
    for path in (tmp_path / "export", tmp_path / "export" / "1"):
        with pytest.raises(ValueError, match=f"'{unfinished.name}' was begun, and is not complete"):
            serving.SavedModelRunner(str(path))
