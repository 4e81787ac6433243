"""What must hold of a run that was killed, and of one that was killed and resumed to its end."""

import json
import os
import pathlib
import signal

import numpy as np
import tensorflow as tf
import yaml

__all__ = ["differences", "problems_of_end", "problems_of_folder", "values_of"]

_SKIPPED = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE")
_RATE = "examples_per_second"  # The one metric that is of the machine.
_SIGNALS = {-getattr(signal, name) for name in ("SIGTERM", "SIGKILL", "SIGINT")}
_READERS = {".json": json.loads, ".yaml": yaml.safe_load}


def problems_of_end(answer):
    """What is wrong with how a process ended, by the answer of `server`: list of str."""
    status, errors = answer["status"], answer["err"]
    found = []
    if "Traceback" in errors or "Fatal" in errors:
        found.append("a stack trace")
    if status == 0 or status in _SIGNALS and answer["sent"]:
        return found
    told = [line for line in errors.splitlines() if line.startswith("interrupted")]
    if status not in (128 + signal.SIGTERM, 128 + signal.SIGINT) or len(told) != 1:
        found.append(f"it ended with {status} after {answer['sent']} signals: {errors[-500:]}")
    return found


def problems_of_folder(folder):
    """What is half-written under a final name in the folder of a run that was killed: list of str.

    Args:
        folder: path. There may be unfinished files, under other names, and one last line that is
            not whole in a file of metrics.
    """
    found = []
    for path in sorted(pathlib.Path(folder).rglob("*")):
        try:
            if path.suffix in _READERS:
                _READERS[path.suffix](path.read_text(encoding="utf-8"))
            elif path.suffix == ".jsonl":
                _check_lines(path.read_text(encoding="utf-8"))
            elif path.name == "checkpoint":
                values_of(path.parent)
        except (ValueError, IndexError, yaml.YAMLError, tf.errors.OpError) as error:
            found.append(f"{path.relative_to(folder)}: {str(error)[:300]}")
    return found


def _check_lines(text):
    *lines, _ = text.split("\n")
    steps = [json.loads(line)["step"] for line in lines if line]
    if steps != sorted(set(steps)):
        raise ValueError(f"steps {steps}")


def values_of(folder):
    """Every variable of the newest checkpoint of a folder, but how often one was saved.

    Raises:
        ValueError, tf.errors.OpError: if it is not whole.
    """
    path = tf.train.latest_checkpoint(str(folder))
    if path is None:
        raise ValueError("the newest checkpoint that it names is not there")
    reader = tf.train.load_checkpoint(path)
    values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return {name: value for name, value in values.items() if name not in _SKIPPED}


def differences(folder, through):
    """How the folder of a resumed run differs from that of one that was never stopped: list of str.

    Checkpoints, evaluations and the best metric are equal bit by bit, and so are metrics of
    training wherever they are of the same steps: where a run was stopped, there is a line more.
    """
    found = [*problems_of_folder(folder)]
    names, expected = _names(folder), _names(through)
    if names != expected:
        found.append(f"other files: {sorted(names ^ expected)}")
    for part in ("", "best"):
        found += _other_values(pathlib.Path(folder, part), pathlib.Path(through, part), part)
    lines, expected = (_lines(path, "eval_metrics.jsonl") for path in (folder, through))
    if lines != expected:
        found.append(f"other evaluations: {lines}, not {expected}")
    metric, expected = (
        pathlib.Path(path, "best", "best_metric.json").read_text() for path in (folder, through)
    )
    if metric != expected:
        found.append(f"another best metric: {metric}, not {expected}")
    return found + _other_steps(
        *(_lines(path, "train_metrics.jsonl") for path in (folder, through))
    )


def _names(folder):
    """The files of a run, without summaries, whose names tell when they were begun."""
    return {
        os.path.relpath(path, folder)
        for path in pathlib.Path(folder).rglob("*")
        if path.is_file() and "tfevents" not in path.name
    }


def _other_values(folder, through, part):
    values, expected = values_of(folder), values_of(through)
    if values.keys() != expected.keys():
        return [f"other variables in {part!r}: {sorted(values.keys() ^ expected.keys())[:3]}"]
    return [
        f"another value in {part!r}: {name}"
        for name in expected
        if not np.array_equal(values[name], expected[name], equal_nan=True)
    ][:3]


def _lines(folder, name):
    lines = pathlib.Path(folder, name).read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != _RATE} for line in lines]


def _other_steps(lines, expected):
    """Metrics are means since the line before: only lines with the same one before are compared."""
    missing = {x["step"] for x in expected} - {x["step"] for x in lines}
    if missing:
        return [f"no metrics of steps {sorted(missing)}"]
    of_steps = {_steps(pair): pair[1] for pair in _pairs(expected)}
    same = [
        (x, of_steps[_steps(pair)])
        for pair in _pairs(lines)
        if _steps(pair) in of_steps
        for x in pair[1:]
    ]
    return [f"other metrics: {line}, not {other}" for line, other in same if line != other][:3]


def _pairs(lines):
    return zip([{"step": 0}, *lines], lines, strict=False)


def _steps(pair):
    return tuple(line["step"] for line in pair)
