"""A prediction that is stopped and started again."""

import contextlib
import json

import pytest


@contextlib.contextmanager
def _lines_of(task, most=None):
    """Counts the lines that a task makes, in a list; after `most` it is stopped, as by Ctrl-C."""
    made, line = [], task.line

    def counted(output):
        if len(made) == most:
            raise KeyboardInterrupt
        made.append(line(output))
        return made[-1]

    task.line = counted
    try:
        yield made
    finally:
        del task.line


def assert_a_stopped_prediction_goes_on(predictor, input_file, folder):
    """It makes the lines that are missing alone, and the same files as one that was not stopped.

    Args:
        predictor: `LinePredictor`.
        input_file: path of at least five raw examples.
        folder: `pathlib.Path` of an empty folder.
    """
    path, whole = folder / "stopped.json", folder / "whole.json"
    with _lines_of(predictor.task) as everything:
        count = predictor.predict_file(str(input_file), str(whole), batch_size=2)
    with _lines_of(predictor.task, most=3) as first, pytest.raises(KeyboardInterrupt):
        predictor.predict_file(str(input_file), str(path), batch_size=2)
    assert not path.exists()
    partial = (folder / "stopped.json.partial").read_text(encoding="utf-8").splitlines()
    assert list(map(json.loads, partial[1:])) == first == everything[:3]
    with _lines_of(predictor.task) as rest:
        assert predictor.predict_file(str(input_file), str(path), batch_size=2) == count
    assert len(rest) == len(everything) - 3
    assert path.read_bytes() == whole.read_bytes()
    for beside in folder.glob("whole_*"):  # What a task writes with it.
        other = folder / beside.name.replace("whole", "stopped")
        assert other.read_bytes() == beside.read_bytes()
    assert not (folder / "stopped.json.partial").exists()
