"""The base classes of tasks, and the layers that they freeze or slow down."""

import abc
import contextlib
import functools
import importlib
import importlib.util
import re
import types

from etcmodel import atomic_files, file_systems, serving, training
from etcmodel.checkpoints import names as names_lib
from etcmodel.finetuning import records, trained_run
from etcmodel.models import initialization, processed_batches, systems
from etcmodel.reports import results


class OptionsTask(training.Task):
    """A task with a `config`, which is stored with its runs.

    A subclass has `config_class`, a dataclass of options with an `encoder_config`.

    Args:
        config: a `config_class`.
    """

    config_class = None

    def __init__(self, config):
        self.config = config
        self.kept_files = {}  # See `run_files`.

    def run_config(self):
        return trained_run.run_options(self.config)

    def run_config_defaults(self):
        return trained_run.run_option_defaults(self.config_class)

    def run_notes(self):
        return trained_run.run_notes(self.config)

    def run_files(self):
        return self.kept_files


class RecordsTask(OptionsTask):
    """An `OptionsTask` trained on TFRecords; its config has the `DataOptions`."""

    @abc.abstractmethod
    def make_model(self):
        """Makes a new tf_keras.Model, maybe not yet built, that contains an `Encoder`."""

    @functools.cached_property
    def num_train_examples(self):
        """Number of training records: int; raises ValueError, naming the files, if it is 0."""
        pattern = self.config.train_data
        found = self.config.num_train_examples or training.count_examples(pattern)
        if not found:
            raise ValueError(f"The files that match {pattern!r} hold no records.")
        return found

    def build_model(self):
        model = self.make_model()
        model.build()
        if self.config.initialization == "mimetic":
            initialization.mimetic_initialization(names_lib.encoder_of(model))
        return model


# Layers that are frozen or learn more slowly.


_LAYER = re.compile(r"(?:^|/)(\w+)/\w+_layer_(\d+)/")


def depths(model):
    """The depth of each of the encoder's variables.

    Args:
        model: built model that contains an `Encoder` whose system `has_layer_rates`, such as ETC,
            Longformer and GMAT. Other systems have a decoder, whose layers have no place in the
            encoder's order.
    Returns:
        dict from id to int: 0 for embeddings, i + 1 for layer i, from 0. A pooler, which is above
        the layers like a head, is left out.
    Raises:
        ValueError: if the encoder is of another type.
    """
    encoder = names_lib.encoder_of(model)
    kind = encoder.config.model_type
    system = systems.find(kind)
    if system is None or not system.has_layer_rates:
        known = ", ".join(x.model_type for x in systems.having("has_layer_rates"))
        raise ValueError(
            f"--layer_decay and --num_frozen_layers are for encoders of type {known}. The model is "
            f"of type {kind!r}."
        )
    first, num_before = {}, 0  # A compressing GMAT restarts the numbers in each stack.
    for stack in getattr(encoder, "stacks", ()):
        first[stack.name] = num_before
        num_before += stack.num_hidden_layers
    found = {}
    for name, variable in names_lib.encoder_variables(model).items():
        layer = _LAYER.search(name)
        if layer:
            found[id(variable)] = first.get(layer[1], 0) + int(layer[2]) + 1
        elif "emb" in name:  # Such as token_emb_lookup, embedding_norm.
            found[id(variable)] = 0
    return found


def unfrozen(model, variables, num_frozen_layers):
    """The variables to train: all but the frozen layers and, if there are any, the embeddings.

    Args:
        model: as of `depths`.
        variables: list of its variables.
        num_frozen_layers: int.
    Raises:
        ValueError: if the encoder has fewer layers.
    """
    if not num_frozen_layers:
        return variables
    depth_of = depths(model)
    highest = max(depth_of.values())
    if num_frozen_layers > highest:
        raise ValueError(
            f"--num_frozen_layers={num_frozen_layers}: the model has {highest} layers. Give at "
            "most as many."
        )
    return [x for x in variables if depth_of.get(id(x), highest + 1) > num_frozen_layers]


def learning_rate_shares(model, layer_decay):
    """The factors for the learning rates of the encoder's variables.

    Source: Howard and Ruder 2018 (arXiv:1801.06146), section 3.2, "discriminative fine-tuning".

    Args:
        model: as of `depths`.
        layer_decay: float. The factor of a layer ÷ that of the layer above it.
    Returns:
        list of (variable, float), without variables above the layers.
    """
    if layer_decay == 1.0:
        return []
    depth_of = depths(model)
    top = max(depth_of.values()) + 1
    variables = [x for x in model.trainable_variables if id(x) in depth_of]
    return [(x, layer_decay ** (top - depth_of[id(x)])) for x in variables]


# Tasks with predictions and official metrics.


class FinetuningTask(RecordsTask):
    """A task with records, predictions and official metrics.

    A subclass sets `name` (for files), `title` (for people), `config_class`, `best_metric` and
    `other_metrics` (dict of those that may choose the best checkpoint in its place to whether
    higher is better), and implements the abstract methods by calling the modules of its folder. One
    that sets these by its config does so before it calls `__init__`. It also says whether
    `decode` needs the vocabulary (`decoding_needs_vocabulary`) and the raw examples of `eval_gold`
    (`decoding_needs_examples`), whether `evaluate` needs that file (`needs_gold`), whether
    predictions are identified by `example_id`, which must then be unique (`predicts_by_id`),
    whether the model gets the labels, too, in training (`training_needs_labels`), as for teacher
    forcing, and whether `save_pretrained` writes it (`saves_head`), by `pretrained_parts`. Without
    teacher forcing the model, which may be a head of `etcmodel.models.heads`, only gets the
    `model_features` of the task's records.

    Args:
        config: the task's `FinetuningConfig`.
    Raises:
        ValueError: if its `metric_for_best_model` is none of those metrics.

    >>> from etcmodel.tasks.classification.task import ClassificationConfig, ClassificationTask
    >>> config = ClassificationConfig(encoder_config=etcmodel.EtcConfig(128), labels=("neg", "pos"))
    >>> task = ClassificationTask(config)
    >>> task.name, task.best_metric, task.higher_is_better
    ('classification', 'accuracy', True)
    """

    name = None
    title = None
    other_metrics = types.MappingProxyType({})
    decoding_needs_vocabulary = True
    decoding_needs_examples = True
    needs_gold = True
    predicts_by_id = False
    training_needs_labels = False
    saves_head = False

    def __init__(self, config):
        super().__init__(config)
        if (chosen := config.metric_for_best_model) in (None, self.best_metric):
            return
        if chosen not in self.other_metrics:
            known = dict.fromkeys([*filter(None, [self.best_metric]), *self.other_metrics])
            raise ValueError(
                f"`metric_for_best_model` must be one of {', '.join(known) or 'none'}. "
                f"Received: {chosen!r}"
            )
        self.best_metric, self.higher_is_better = chosen, self.other_metrics[chosen]

    def model_features(self, model, features, *, training):
        if isinstance(getattr(model, "input", None), dict):  # A functional model names its inputs.
            return super().model_features(model, features, training=training)
        config = self.config.records()
        labels = config.label_features() if training and self.training_needs_labels else ()
        return {name: features[name] for name in (*config.model_features(), *labels)}

    @abc.abstractmethod
    def read_examples(self, path, check=None):
        """Iterator over the valid examples of a raw file, for `decode` and the predictor.

        Args:
            path: str.
            check: function that raises a ValueError for an example that cannot be used; see
                `preprocessing.raw_files.example_reader`. None: only parsing errors count.
        """

    @abc.abstractmethod
    def decode(self, outputs, examples):
        """Predictions in the official format.

        Args:
            outputs: iterator with one dict of NumPy arrays per record: its features and the model's
                outputs. The records of an example are consecutive.
            examples: list of examples.
        """

    @abc.abstractmethod
    def metrics(self, examples, predictions):
        """The official metrics of the predictions: dict of float.

        Args:
            examples: list of those of `eval_gold`; None if it is not given, and the task needs
                none, since its predictions have what the records say.
            predictions: of `decode`.
        """

    def write_predictions(self, path, predictions):
        """Writes the predictions that `decode` returns; by default as JSON."""
        atomic_files.write_json(path, predictions)

    def num_predictions(self, predictions):
        """Number of examples in the predictions that `decode` returns: int."""
        return len(predictions)

    def write_export(self, model, directory, assets):
        """Writes a trained model as a SavedModel, which by default takes features.

        Args:
            model: the result of `build_model`.
            directory: str. Must not exist.
            assets: dict of file name to path.
        Returns:
            `directory`.
        """
        config = self.config.records()
        return serving.export_saved_model(
            model,
            directory,
            features=config.model_features(),
            padding=config.padding,
            axes=config.model_axes(),
            checks=config.checks(),
            assets=assets,
            weights=self.config.export_weights,
        )

    def read_folder(self, folder):
        """Takes what a model's folder tells beside its config and vocabulary; by default nothing.

        Called for a model that is not trained here, before it is evaluated or exported.

        Args:
            folder: str.
        """

    def pretrained_parts(self, model):
        """What `save_pretrained` writes of a trained model; by default a head, by its `plain`.

        Args:
            model: the result of `build_model`, such as a `processed_batches.ReadsProcessed`.
        Returns:
            (model for `etcmodel.save_pretrained`, its processor); None if no class has this model.
        """
        if not getattr(model, "is_plain", False):  # Models from elsewhere may lack it.
            return None
        # Where attention depends on a row's length, rows are as long as those of the training.
        keeps_length = not processed_batches.may_skip_padding(self.config.encoder_config)
        pad_to = "max" if keeps_length else "longest"
        processor = self.config.features().make_processor(self.tokenizer, pad_to)
        return model.plain(self.config.labels), processor

    def evaluate_checkpoint(self, config, checkpoint=None):
        """The official metrics of a checkpoint: see `training.evaluate`.

        Args:
            config: `TrainingConfig`.
            checkpoint: str. Path prefix. None: the best one.
        """
        return training.evaluate(self, config, checkpoint)

    def predict_records(self, config, checkpoint, path):
        """Writes a checkpoint's predictions for the evaluation's records, without metrics.

        Args:
            config, checkpoint: as in `evaluate_checkpoint`.
            path: str.
        Returns:
            int. Number of predictions.
        """
        with contextlib.closing(training.predict(self, config, checkpoint)) as outputs:
            predictions = self.predict(outputs)
        self.write_predictions(path, predictions)
        return self.num_predictions(predictions)

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` for the configuration's vocabulary."""
        return self.config.tokenizer()

    def trained_variables(self, model):
        variables = super().trained_variables(model)
        return unfrozen(model, variables, self.config.num_frozen_layers)

    def learning_rate_shares(self, model):
        return learning_rate_shares(model, self.config.layer_decay)

    def train_dataset(self, request):
        config = self.config.records()
        records.check_records(self.config.train_data, config, need_labels=True)
        records.check_punctuation(self.config.train_data, self.config.split_punctuation)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.train_data, self.tokenizer)
        else:
            records.check_one_vocabulary(self.config.train_data, self.config.eval_data)
        return records.make_train_dataset(self.config.train_data, config, request)

    def eval_dataset(self, batch_size):
        if not self.config.eval_data:
            return None
        config = self.config.records()
        records.check_records(self.config.eval_data, config, need_labels=False)
        records.check_punctuation(self.config.eval_data, self.config.split_punctuation)
        records.check_evaluation(self.config.eval_data, self.config)
        if self.config.has_vocabulary():
            records.check_vocabulary(self.config.eval_data, self.tokenizer)
        else:
            records.check_one_vocabulary(self.config.eval_data)
        return records.make_eval_dataset(self.config.eval_data, config, batch_size)

    def evaluate(self, predictions):
        path = self.config.eval_gold
        gold = list(self.read_examples(path)) if path or self.needs_gold else None
        predicted = self.decode(predictions, gold)
        if self.config.predictions_file:
            self.write_predictions(self.config.predictions_file, predicted)
        return self.metrics(gold, predicted)

    def text_samples(self, number):
        """See `Task`; made from the predictions file by the task's `report` module."""
        path, gold = self.config.predictions_file, self.config.eval_gold
        report = type(self).__module__.rpartition(".")[0] + ".report"
        if not (
            path and gold and file_systems.gfile().exists(path) and importlib.util.find_spec(report)
        ):
            return []
        given = results.Given(path, gold, trained_run.run_options(self.config))
        items = importlib.import_module(report).read_results(given).items
        return [(item.question, item.prediction, item.gold) for item in items[:number]]

    def check_data(self):
        config = self.config.records()
        patterns = {self.config.train_data: True, self.config.eval_data: False}
        for pattern, need_labels in patterns.items():
            if pattern:
                records.find_bad_record(pattern, config, need_labels=need_labels)

    def predict(self, outputs):
        """Predictions in the official format for the evaluation's records, without metrics.

        Args:
            outputs: as in `decode`.
        """
        needs_examples = self.decoding_needs_examples
        examples = list(self.read_examples(self.config.eval_gold)) if needs_examples else None
        return self.decode(outputs, examples)

    def check_run(self, output_dir):
        """Compares vocabularies with that of a run's training records, if it is known.

        Raises:
            ValueError: naming the file, if the vocabulary of the configuration or of the
                evaluation's records differs.
        """
        run = trained_run.TrainedRun.find(output_dir)
        if run is None:
            return
        if self.config.has_vocabulary():
            found = {self.tokenizer.source_file: self.tokenizer.source_sha256()}
        else:
            found = records.vocabularies(self.config.eval_data)
        run.check_vocabularies(found)

    def run_config(self):
        known = set(records.vocabularies(self.config.train_data).values())
        if not known and self.config.has_vocabulary():
            known = {self.tokenizer.source_sha256()}
        return {**trained_run.run_options(self.config), "vocab_sha256": sorted(known)}
