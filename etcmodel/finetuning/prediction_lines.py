"""Writes predictions incrementally as JSON lines, so that a stopped program can resume.

Until they are complete, they are in `<file>.partial`, whose first line identifies their source.
"""

import abc
import contextlib
import dataclasses
import datetime
import itertools
import json
import os

import tensorflow as tf

from etcmodel import atomic_files, bounded_json, options, training
from etcmodel.finetuning.predictor import Predictor
from etcmodel.finetuning.task import FinetuningTask

_PARTIAL = ".partial"
_ADVICE = "Remove the file to begin anew, or give another --predictions_file."


def write_lines(path, source, predictions_after, finish=None):
    """Writes predictions, or resumes an earlier call that was stopped.

    Args:
        path: str. The file; it appears, or replaces an older one, only when it is complete.
        source: JSON-serializable dict that identifies the origin of the predictions. A file begun
            with a different source is not resumed.
        predictions_after: function from a number to an iterable of the predictions after skipping
            that many: dicts for JSON.
        finish: function that takes an iterator over all these dicts, writes the file, and returns
            its number of predictions. None: the file has one line per prediction.
    Returns:
        int. Number of predictions in the file.
    Raises:
        ValueError: naming the entry, if the file was begun with another `source`.
        BlockingIOError: if another process writes to the file.
    """
    partial = path + _PARTIAL
    with atomic_files.held(partial + ".lock"):
        count = _begin(partial, json.loads(json.dumps(source)))
        try:
            with tf.io.gfile.GFile(partial, "a") as file:
                for prediction in predictions_after(count):
                    file.write(_line(prediction))
                    file.flush()
                    count += 1
        except BaseException:
            if not count:  # There is no progress to keep.
                tf.io.gfile.remove(partial)
            raise
        lines = itertools.islice(_whole_lines(partial), 1, None)
        if finish:
            count = finish(map(bounded_json.loads, lines))
        else:
            atomic_files.write_text(path, lines)
        tf.io.gfile.remove(partial)
    return count


def read_lines(path):
    """Yields the predictions in a complete file, as dicts."""
    return map(bounded_json.loads, _whole_lines(path))


def file_states(paths):
    """Fingerprints that show whether files have changed: dict from each existing file to a str.

    Args:
        paths: iterable of str. A folder stands for all files in and below it.
    """
    found = {}
    for path in paths:
        if tf.io.gfile.isdir(path):
            found |= file_states(
                os.path.join(x, y) for x, _, z in tf.io.gfile.walk(path) for y in z
            )
        elif tf.io.gfile.exists(path):
            stat = tf.io.gfile.stat(path)
            changed = datetime.datetime.fromtimestamp(stat.mtime_nsec / 1e9, datetime.timezone.utc)
            found[os.fspath(path)] = f"{stat.length} bytes of {changed.isoformat()}"
    return found


def _begin(partial, source):
    """Prepares the file for the next line; returns its number of predictions."""
    if not tf.io.gfile.exists(partial):
        atomic_files.write_text(partial, [_line(source)])
        return 0
    lines = _whole_lines(partial)
    first = next(lines, None)
    if first is None:  # Only the start of a line.
        tf.io.gfile.remove(partial)
        return _begin(partial, source)
    _check_source(partial, first, source)
    count = sum(1 for _ in lines)
    # Drops an incomplete last line, left by a killed process.
    atomic_files.write_text(partial, _whole_lines(partial))
    return count


def _check_source(partial, line, source):
    try:
        begun = bounded_json.loads(line)
    except ValueError as error:
        raise ValueError(f"{partial}: the first line is damaged. {_ADVICE}") from error
    for name in sorted({*begun, *source}):
        if begun.get(name) != source.get(name):
            raise ValueError(
                f"{partial}: these predictions were begun with `{name}` {begun.get(name)!r}, and "
                f"now it is {source.get(name)!r}. {_ADVICE}"
            )


def _line(value):
    return json.dumps(value, ensure_ascii=False) + "\n"


def _whole_lines(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line.decode("utf-8")


class LineTask(FinetuningTask):
    """A task whose predictions are JSON lines, one per record.

    A subclass implements `line` in place of `decode`.

    >>> from etcmodel.tasks.classification.task import ClassificationConfig, ClassificationTask
    >>> config = ClassificationConfig(encoder_config=etcmodel.EtcConfig(128), labels=("neg", "pos"))
    >>> output = {"example_id": b"1", "logits": np.array([0.0, 9.0])}
    >>> ClassificationTask(config).line(output)["label"]
    'pos'
    """

    decoding_needs_examples = False

    @abc.abstractmethod
    def line(self, output):
        """The prediction of a record: a dict for JSON.

        Args:
            output: dict of NumPy arrays: the record's features, and the model's outputs.
        """

    def source(self):
        """The settings, besides weights and data, that predictions depend on: dict for JSON."""
        return {"decoding": options.select(self.config, "inference", "decoding")}

    def decode(self, outputs, examples):
        return list(map(self.line, outputs))

    def write_predictions(self, path, predictions):
        atomic_files.write_text(path, map(_line, predictions))

    def write_made(self, path, source, predictions_after):
        """Calls `write_lines` with this task's file format."""
        return write_lines(path, {**source, **self.source()}, predictions_after)

    def predict_records(self, config, checkpoint, path):
        checkpoint = checkpoint or training.best_checkpoint(config.output_dir)
        records = self.config.eval_data
        files = [f"{checkpoint}.index", *training.matching_files(records)]
        source = {"checkpoint": checkpoint, "records": records, **file_states(files)}

        def predictions_after(count):
            def rest(batch_size):
                return self.eval_dataset(batch_size).skip(count // batch_size)

            outputs = training.predict(self, config, checkpoint, make_dataset=rest)
            with contextlib.closing(outputs):
                wanted = itertools.islice(outputs, count % config.predict_batch_size, None)
                yield from map(self.line, wanted)

        return self.write_made(path, source, predictions_after)


class KeyedLineTask(LineTask):
    """A task whose predictions are a dict by `id`, combined from the lines of the records.

    A subclass implements `line`, and also `combine` if a prediction may need several lines.

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.triviaqa.task import TriviaQaTask
    >>> issubclass(TriviaQaTask, finetuning.KeyedLineTask), TriviaQaTask.title
    (True, 'TriviaQA')
    """

    predicts_by_id = True

    def combine(self, lines):
        """Predictions in the official format: dict of str.

        Args:
            lines: iterable of dict: `id`, and `prediction`, which JSON can hold.
        """
        return {line["id"]: line["prediction"] for line in lines}

    def decode(self, outputs, examples):
        return self.combine(map(self.line, outputs))

    def write_predictions(self, path, predictions):
        atomic_files.write_json(path, predictions)

    def write_made(self, path, source, predictions_after):
        def finish(lines):
            predictions = self.combine(lines)
            self.write_predictions(path, predictions)
            return self.num_predictions(predictions)

        return write_lines(path, {**source, **self.source()}, predictions_after, finish)


class MeasuredLineTask(LineTask):
    """A task whose metrics need only the lines, so that evaluations can be resumed as well.

    A subclass also implements `metrics_of`, in place of `metrics`.

    >>> from etcmodel import finetuning
    >>> from etcmodel.tasks.summarization.task import SummarizationTask
    >>> issubclass(SummarizationTask, finetuning.MeasuredLineTask), SummarizationTask.title
    (True, 'summarization')
    """

    needs_gold = False

    @abc.abstractmethod
    def metrics_of(self, lines):
        """The metrics of predictions for the evaluation records: dict of float.

        Args:
            lines: iterable of dict.
        """

    def metrics(self, examples, predictions):
        return self.metrics_of(predictions)

    def evaluate_checkpoint(self, config, checkpoint=None):
        config = dataclasses.replace(config, predict_batch_size=config.eval_batch_size)
        path = self.config.predictions_file or "predictions.json"
        self.predict_records(config, checkpoint, path)
        return self.metrics_of(read_lines(path))


class LinePredictor(Predictor):
    """A predictor of a `LineTask`.

    >>> from etcmodel.tasks.classification.predict import ClassificationPredictor
    >>> predictor = ClassificationPredictor("my_classifier")
    >>> sorted(predictor.predict([{"text": "Good!"}])[0])
    ['id', 'label', 'probabilities']
    """

    def predict_file(self, input_file, predictions_file, batch_size=8):
        export = self._runner.directory
        source = {
            "export": export,
            "input_file": os.fspath(input_file),
            **file_states([os.path.join(export, "saved_model.pb"), input_file]),
        }

        def predictions_after(count):
            # From the start of a batch: in a different batch, the last digits may differ.
            again = count % batch_size
            records = self.records(self.read_examples(input_file))
            outputs = self.run(itertools.islice(records, count - again, None), batch_size)
            return map(self.task.line, itertools.islice(outputs, again, None))

        with self._counted():
            return self.task.write_made(predictions_file, source, predictions_after)


class ProcessorPredictor(LinePredictor):
    """A `LinePredictor` whose config's `features()` make a processor.

    Attributes:
        features: the feature config.
        processor: the processor that it made for the export's vocabulary.

    >>> from etcmodel.tasks.classification.predict import ClassificationPredictor
    >>> ClassificationPredictor("my_classifier").processor
    EtcProcessor(105 tokens, max_long_len=16, max_global_len=4, pad_to='max')
    """

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self.features = self.config.features()
        self.processor = self.features.make_processor(self.tokenizer)
