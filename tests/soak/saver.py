"""Saves one thing again and again, each time with another number, and prints the number after that.

A timer of the system kills it, at any moment after the first time. What lies there is of one
number: `read` tells which.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import sys

import numpy as np
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints, program_end, serving
from etcmodel.checkpoints import sources, writing
from etcmodel.finetuning import prediction_lines
from etcmodel.models import encoders
from tests.models import head_cases
from tests.soak.whole_files import FIXTURES

__all__ = ["WAYS"]

CONFIG = head_cases.config(vocab_size=3000)
NUM_LINES = 100


def only_number(values):
    """The number that all values are.

    Raises:
        ValueError: if they are of several.
    """
    (number,) = {float(x) for value in values for x in np.unique(value)}
    return int(number)


class Saving:
    """`save_pretrained`, of a model with a vocabulary."""

    renamed = r"/model/.*moves\.json$"

    def __init__(self):
        self._model = encoders.build_encoder(CONFIG)
        vocab = str(FIXTURES / "hotpotqa" / "vocab.txt")
        self._model.processor = etcmodel.EtcProcessor(vocab)

    def save(self, folder, number):
        for variable in self._model.weights:
            variable.assign(tf.fill(variable.shape, float(number)))
        self._model.save_pretrained(folder / "model")

    def read(self, folder):
        model = etcmodel.from_pretrained(folder / "model")
        assert isinstance(model.processor, etcmodel.EtcProcessor)
        return only_number(model.get_weights())


class Converting:
    """`convert` over an older checkpoint, from a source on another disk."""

    renamed = r"/converted/.*moves\.json$"

    def __init__(self, output_format):
        self._format = output_format
        names = checkpoints.release_names(encoders.build_encoder(CONFIG))
        self._shapes = {name: variable.shape for name, variable in names.items()}

    def save(self, folder, number):
        values = {name: np.full(x, number, np.float32) for name, x in self._shapes.items()}
        source = f"{folder}-source"
        writing.write(values, source, sources.SAFETENSORS, config=CONFIG, overwrite=True)
        checkpoints.convert(source, str(folder / "converted"), self._format, overwrite=True)

    def read(self, folder):
        source = sources.open_source(str(folder / "converted"))
        return only_number(map(source.read, source.shapes))


class Model:
    """What an export needs."""

    def __init__(self, number):
        self.variables = [tf.Variable(np.full(1000, number, np.float32))]

    def __call__(self, features, training):
        return {"y": features["x"] * self.variables[0][0]}


class Exporting:
    """Exports into numbered folders, with a file beside the graph."""

    def save(self, folder, number):
        path = str(folder / "export" / str(number))
        if not os.path.exists(path):  # Where it was killed before it told.
            features = {"x": tf.io.FixedLenFeature([1], tf.float32)}
            assets = {"number.txt": str(number).encode() * 1000}
            serving.export_saved_model(Model(number), path, features=features, assets=assets)

    def read(self, folder):
        runner = serving.SavedModelRunner(str(folder / "export"))
        (output,) = runner([{"x": [1.0]}])
        number = only_number([output["y"]])
        text = pathlib.Path(runner.asset("number.txt")).read_text()
        assert runner.directory.endswith(f"/{number}") and text == str(number) * 1000
        return number


class Predicting:
    """Predictions of an exported model for raw questions; each has the number in its id."""

    def __init__(self):
        from etcmodel.tasks.hotpotqa import predict
        from tests.soak import whole_files

        questions = json.loads((FIXTURES / "hotpotqa" / "hotpotqa_dev.json").read_text())
        self._question = questions[0]
        self._predict, self._make_folder = predict, whole_files.make_folder
        self._predictor = None

    def save(self, folder, number):
        inputs = pathlib.Path(f"{folder}-inputs")
        if self._predictor is None:
            if not inputs.exists():
                self._make_folder(inputs)
            self._predictor = self._predict.HotpotQaPredictor(str(inputs / "hotpotqa" / "export"))
        path = inputs / "questions.json"
        path.write_text(json.dumps([{**self._question, "_id": str(number)}]))
        self._predictor.predict_file(str(path), str(folder / "answers.json"))

    def read(self, folder):
        answers = json.loads((folder / "answers.json").read_text())
        (answer,), (facts,) = answers["answer"], answers["sp"]
        assert answer == facts
        return int(answer)


class PredictingLines:
    """Predictions as lines, which are continued where a killed process was."""

    def save(self, folder, number):
        lines = [{"id": index, "number": number} for index in range(NUM_LINES)]
        path = str(folder / "lines.jsonl")
        prediction_lines.write_lines(path, {"of": number}, lambda count: lines[count:])

    def read(self, folder):
        lines = list(prediction_lines.read_lines(str(folder / "lines.jsonl")))
        assert [line["id"] for line in lines] == list(range(NUM_LINES))
        return only_number([line["number"] for line in lines])


WAYS = {
    "save_pretrained": Saving,
    "convert to released": lambda: Converting("released"),
    "convert to safetensors": lambda: Converting("safetensors"),
    "export": Exporting,
    "predict": Predicting,
    "predict lines": PredictingLines,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--first", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float, help="until it is killed, from the first on")
    parser.add_argument("--amid_moves", help="True: from the first rename of the second time on")
    options = parser.parse_args()
    with program_end.ends_in_one_line():
        way = WAYS[options.way]()
        for number in range(options.first, options.first + options.count):
            way.save(options.folder, number)
            print(number, flush=True)
            if options.seconds and number == options.first:
                _end_after(
                    options.seconds, getattr(way, "renamed", ""), options.amid_moves == "True"
                )


def _end_after(seconds, renamed, amid_moves):
    """Ends the process so long after now, or after it begins to give files their names."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # Ends it at once, wherever it is.
    if not amid_moves:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def begin(event, args):
        if event == "os.rename" and re.search(renamed, str(args[1])):
            signal.setitimer(signal.ITIMER_REAL, seconds)

    if amid_moves:
        sys.addaudithook(begin)


if __name__ == "__main__":
    main()
