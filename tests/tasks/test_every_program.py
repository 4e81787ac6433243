"""What holds for the programs of every task, from raw files to what is told of raw files.

A new task gets a row in `program_rows`. What is of one task alone is among its own tests.
"""

import contextlib
import importlib
import inspect
import io
import json
import logging
import pathlib
import re
from unittest import mock

import pytest

from etcmodel import finetuning
from tests.models import bags
from tests.tasks import program_rows, programs, record_sets, stopping

pytestmark = pytest.mark.slow
ROWS = program_rows.ROWS
# A program that knows nothing of this package: from a file of records to some outputs.
TENSORFLOW_ALONE = """
import json, sys
import tensorflow as tf
export, records, *names = sys.argv[1:]
records = [record.numpy() for record in tf.data.TFRecordDataset(records).take(3)]
loaded = tf.saved_model.load(export)
serve = loaded.signatures["serving_default"]
names_of_inputs = serve.structured_input_signature[1]
given = {"examples": tf.constant(records)}
if "examples" not in names_of_inputs:  # Of generation, ids and masks.
    spec = {name: tf.io.RaggedFeature(tf.int64) for name in names_of_inputs}
    parsed = tf.io.parse_example(records, spec)
    given = {name: tf.cast(value.to_tensor(), tf.int32) for name, value in parsed.items()}
outputs = serve(**given)
assert not any(name.startswith(("etcmodel", "tf_keras", "official")) for name in sys.modules)
print(json.dumps({name: outputs[name].numpy().tolist() for name in names}))
"""


def cases():
    for name, row in ROWS.items():
        for number, model in enumerate(row.models):
            marks = [pytest.mark.exhaustive] if number or "," in name else []
            yield pytest.param((name, model), id=f"{name}-{model}", marks=marks)


def fine_tune(name, **flags):
    programs.fine_tune(name.partition(",")[0], **flags)


def predictor_class(name):
    module = importlib.import_module(f"etcmodel.tasks.{name.partition(',')[0]}.predict")
    return getattr(module, module.__all__[0])


def predictor_of(name, run):
    return predictor_class(name)(str(run.export), **beside(name, run))


def beside(name, run):
    evidence = ROWS[name].evidence
    return {"evidence_dir": str(run.folder / evidence)} if evidence else {}


@contextlib.contextmanager
def logged():
    """A list that gets the warnings."""
    messages, handler = [], logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(handler)


def gold_file(row, folder, paths):
    """dev's, or the same with one between them that preprocessing skips as well."""
    if row.bad_gold is None:
        return paths["dev"]
    raws = record_sets.read_raws(paths["dev"])
    path = folder / f"gold{pathlib.Path(paths['dev']).suffix}"
    return record_sets.write_raws(path, [raws[0], row.bad_gold(raws[0]), *raws[1:]])


def train_flags(name, model, folder, paths):
    row = ROWS[name]
    with open(paths["vocab"], "rb") as file:
        size = len(file.read().splitlines())
    return {
        **row.models[model](size, folder),
        **record_sets.vocabulary(paths),
        **row.training,
        **row.of_model.get(model, {}),
        "run_mode": "train",
        "train_data": record_sets.patterns(name.partition(",")[0], folder)[0],
        "output_dir": folder / "run",
    }


@pytest.fixture(scope="module", params=cases())
def done(request, tmp_path_factory):
    """(name of the row, flags of training, `Run`) of what was trained, measured and exported."""
    name, model = request.param
    row, folder = ROWS[name], tmp_path_factory.mktemp("done")
    task = name.partition(",")[0]
    with bags.registered(), logged() as messages:
        paths = row.make(folder)
        record_sets.make(task, folder, paths, dev=row.of_dev, **row.records)
        flags = train_flags(name, model, folder, paths)
        fine_tune(name, **flags)
        evaluation = {
            "output_dir": folder / "run",
            "eval_data": record_sets.patterns(task, folder)[1],
            **({"eval_gold": gold_file(row, folder, paths)} if row.has_gold else {}),
            **({"predictions_file": folder / row.told} if row.told.startswith("told") else {}),
            **row.evaluation(folder, paths),
        }
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            fine_tune(name, run_mode="evaluate", **evaluation)
        fine_tune(name, run_mode="export", output_dir=folder / "run")
        metrics = json.loads(printed.getvalue().splitlines()[-1])
        evaluated = row.answers(folder / row.told)
        yield (
            name,
            {**flags, **evaluation},
            program_rows.Run(folder, paths, metrics, evaluated, messages),
        )


def test_it_does_better_than_without_reading(done):
    name, _, run = done
    ROWS[name].learned(run)


def test_the_metrics_are_those_of_the_predictions_in_the_file(done):
    name, _, run = done
    measured = ROWS[name].measured(run)
    assert measured and measured == pytest.approx({x: run.metrics[x] for x in measured}, abs=1e-5)
    if ROWS[name].bad_gold is not None:
        assert any(" 1 of " in message and "skipped" in message for message in run.log)


def test_every_metric_that_may_choose_the_best_checkpoint_is_measured(done, capsys):
    name, flags, run = done
    given = {key: x for key, x in flags.items() if not key.startswith("eval_")}
    given["output_dir"] = run.folder / "another"
    with pytest.raises(SystemExit):
        fine_tune(name, **given, metric_for_best_model="loudness")
    told = re.search(r"must be one of (.*)\. Received: 'loudness'", capsys.readouterr().err)[1]
    assert set(told.split(", ")) <= set(run.metrics)


def test_a_run_that_is_done_is_not_trained_again(done):
    name, flags, run = done
    before = {path.name: path.read_bytes() for path in (run.folder / "run").glob("ckpt-*")}
    fine_tune(name, **{key: x for key, x in flags.items() if not key.startswith("eval_")})
    after = {path.name: path.read_bytes() for path in (run.folder / "run").glob("ckpt-*")}
    assert before and before == after


def test_an_export_tells_of_raw_files_what_the_evaluation_told(done, caplog):
    """What nobody knows yet is left out, and what is of no use is skipped and named."""
    name, _, run = done
    row, source = ROWS[name], pathlib.Path(run.paths["dev"])
    if row.hidden:
        raws = record_sets.read_raws(source)
        questions = [{x: y for x, y in raw.items() if x not in row.hidden} for raw in raws]
        questions += [make(questions[0]) for make, _ in row.bad]
        source = record_sets.write_raws(run.folder / f"questions{source.suffix}", questions)
    fine_tune(
        name,
        run_mode="predict",
        export_dir=run.export,
        input_file=source,
        predictions_file=run.folder / "predicted.json",
        predict_batch_size=7,
        **beside(name, run),
    )
    row.alike(run.evaluated, row.answers(run.folder / "predicted.json"))
    skipped = [message for message in caplog.messages if "skipped" in message]
    assert len(skipped) == len(row.bad) + bool(row.bad)
    for (_, wanted), message in zip(row.bad, skipped, strict=False):
        assert f"{source}: " in message and wanted in message
    if row.bad:
        assert f"{source}: {len(row.bad)} of {len(questions)} " in skipped[-1]


def test_single_examples_are_told_the_same(done):
    name, _, run = done
    row, source = ROWS[name], run.paths["dev"]
    raws = record_sets.read_raws(source) if row.hidden else None
    row.one(predictor_of(name, run), raws, run)


def test_an_export_needs_nothing_but_tensorflow(done):
    name, _, run = done
    task, row = name.partition(",")[0], ROWS[name]
    pattern = record_sets.patterns(task, run.folder)[1]
    (records,) = (x for x in pattern.parent.glob(pattern.name) if "-of-" in x.name)
    (export,) = run.export.iterdir()
    names, check = row.served
    serving = programs.start_python("-c", TENSORFLOW_ALONE, export, records, *names)
    outputs = json.loads(programs.finish(serving)[0].splitlines()[-1])
    check(outputs, record_sets.read_raws(run.paths["dev"])[:3] if row.hidden else [0] * 3, run)


def test_a_stopped_prediction_goes_on(done, tmp_path):
    """Or leaves nothing, where predictions are not made one at a time."""
    name, _, run = done
    predictor, source = predictor_of(name, run), run.paths["dev"]
    if isinstance(predictor, finetuning.LinePredictor):
        stopping.assert_a_stopped_prediction_goes_on(predictor, source, tmp_path)
        return
    stopped = mock.patch.object(predictor, "run", side_effect=KeyboardInterrupt)
    with stopped, pytest.raises(KeyboardInterrupt):
        predictor.predict_file(source, str(tmp_path / "stopped.json"))
    assert not list(tmp_path.iterdir())


def test_stopped_predictions_of_records_go_on(done, tmp_path):
    """Likewise; so does an evaluation that needs no more than the lines."""
    name, flags, run = done
    task_class = predictor_class(name).task_class
    by_line = issubclass(predictor_class(name), finetuning.LinePredictor)
    kept = ("output_dir", "eval_data", "eval_gold")
    given = {key: flags[key] for key in kept if key in flags}
    given |= {"predictions_file": tmp_path / "told.json", "predict_batch_size": 2}
    modes = ["predict_records"]
    if issubclass(task_class, finetuning.MeasuredLineTask):
        modes.append("evaluate")
    for mode in modes:
        with stopped_after(task_class, 3 if by_line else 0):
            fine_tune(name, run_mode=mode, **given)
        left = [path.name for path in tmp_path.iterdir()]
        assert left == (["told.json.partial"] if by_line else [])
        printed = program_rows.of_task(name.partition(",")[0], run_mode=mode, **given)
        assert not (tmp_path / "told.json.partial").exists()
        if not ROWS[name].told.startswith("told"):
            program_rows.same(run.evaluated, ROWS[name].answers(tmp_path / "told.json"))
        (tmp_path / "told.json").unlink()
    if "evaluate" in modes:
        assert json.loads(printed.splitlines()[-1]) == pytest.approx(run.metrics, abs=1e-5)


@contextlib.contextmanager
def stopped_after(task_class, most):
    """As by Ctrl-C, when so many lines are made: of other tasks, when predictions are decoded."""
    step, made = ("line" if most else "decode"), []
    known = inspect.getattr_static(task_class, step)  # Of some tasks, it takes no task.

    def stopped(task, *given):
        made.append(given)
        if len(made) > most:
            raise KeyboardInterrupt
        return known.__get__(task)(*given)

    with (
        mock.patch.object(task_class, step, stopped),
        pytest.raises((KeyboardInterrupt, SystemExit)),
    ):
        yield
