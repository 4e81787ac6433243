"""Runs of small models on the generated data: one for each row and seed."""

import copy
import dataclasses
import functools

import numpy as np
import tensorflow as tf
import tf_keras

from benchmarks import ingredient_data as data
from benchmarks import ingredient_topics as topics
from benchmarks.ingredient_rows import FIGURES, LENGTHS, TEST_SEED
from etcmodel import training
from etcmodel.autotuning import without_autotuning
from etcmodel.checkpoints import names
from etcmodel.models import heads
from etcmodel.models.config import EtcConfig
from etcmodel.models.initialization import mimetic_initialization
from etcmodel.pretrain import config as pretrain_config
from etcmodel.pretrain import metrics
from etcmodel.pretrain import model as pretrain_model
from etcmodel.pretrain import task as pretrain_task

__all__ = ["ENCODER", "RUNNERS", "SharedGraph", "WindowsTask"]


class SharedGraph:
    """A model, its training step and its prediction.

    Args:
        task: `training.Task`. Its model is built here, its loss minimized.
        num_steps, batch_size: int. Of each training.
        learning_rate: float. Reached after the first tenth of the steps; then it falls to 0.
    """

    def __init__(self, task, *, num_steps, batch_size, learning_rate=3e-3):
        self._num_steps, self._batch_size = num_steps, batch_size
        config = training.TrainingConfig(learning_rate=learning_rate)
        self.model = task.build_model()
        self._optimizer = tf_keras.optimizers.Adam(
            training.build_learning_rate(config, num_steps),
            global_clipnorm=1.0,
            jit_compile=False,  # For steps so short, compiling takes longer than it saves.
        )
        self._optimizer.build(self.model.trainable_variables)
        self._step = tf.function(lambda features: self._train_step(task, features))
        self._predict = tf.function(self._outputs)

    def train(self, task, seed, encoder_weights=None):
        """Trains the model from scratch.

        Args:
            task: `training.Task` of the same model, with the data of this training.
            seed: int. Of the weights and the order of the examples.
            encoder_weights: dict as of `encoder_weights`, to begin with; or None.
        """
        tf_keras.utils.set_random_seed(seed)
        for variable, value in zip(self.model.variables, task.build_model().variables, strict=True):
            variable.assign(value)
        if encoder_weights is not None:
            for name, variable in names.encoder_variables(self.model).items():
                variable.assign(encoder_weights[name])
        for variable in self._optimizer.variables:
            if variable is not self._optimizer.learning_rate:
                variable.assign(tf.zeros_like(variable))
        request = training.TrainDataRequest(global_batch_size=self._batch_size, seed=seed)
        for features in without_autotuning(task.train_dataset(request).take(self._num_steps)):
            self._step(features)

    def evaluate(self, task, batch_size=50):
        """The metrics of the model as it is: dict of float."""

        def predictions():
            for features in without_autotuning(task.eval_dataset(batch_size)):
                both = {**features, **self._predict(features)}
                arrays = {name: np.asarray(x) for name, x in both.items()}
                for row in range(len(next(iter(arrays.values())))):
                    yield {name: x[row] for name, x in arrays.items()}

        return task.evaluate(predictions())

    def encoder_weights(self):
        """The present weights of the encoder: dict of name to array."""
        return {name: x.numpy() for name, x in names.encoder_variables(self.model).items()}

    def _outputs(self, features, is_training=False):
        outputs = self.model(features, training=is_training)
        return outputs if isinstance(outputs, dict) else {"logits": outputs}

    def _train_step(self, task, features):
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            loss = task.loss(self._outputs(features, is_training=True), features)["loss"]
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss


_MLM_WEIGHT, _CPC_SHARE = 0.8, 0.1


class WindowsTask(training.HeadTask):
    """Pre-trains on arrays of windows.

    Args:
        encoder_config: `EtcConfig`.
        train, evaluation: dict of arrays, as of `ingredient_topics.windows`.
        seed: int. Of the first weights.
        cpc_weight: float. Without it no sentence is masked in training.
        cpc_warmup_steps: int. Steps in which the weight rises from 0.
        **model_options: of `PretrainModel`.
    """

    def __init__(
        self,
        encoder_config,
        train,
        evaluation,
        *,
        seed,
        cpc_weight=0.2,
        cpc_warmup_steps=0,
        **model_options,
    ):
        super().__init__(None, (train, {}), (evaluation, {}), name="windows")
        self._encoder_config, self._seed = encoder_config, seed
        self._warmup_steps = cpc_warmup_steps
        self._weights = {"mlm_weight": _MLM_WEIGHT, "cpc_weight": cpc_weight}
        self._model_options = {"use_cpc": cpc_weight > 0, **model_options}
        mask = topics.MASK_TOKEN_ID
        self._masking = pretrain_config.MaskingConfig(
            mask_token_id=mask,
            special_token_ids=(0, 1, mask),
            random_token_ids=tuple(range(mask + 1, encoder_config.vocab_size)),
            long_seq_length=train["long_token_ids"].shape[1],
            global_seq_length=train["global_token_ids"].shape[1],
            cpc_share=_CPC_SHARE if cpc_weight else 0.0,
            max_cpc_sentence_length=topics.SENTENCE_LENGTH,
        )

    def without_masked_sentences(self):
        """A copy whose windows have masked tokens only: MLM is alike with and without CPC."""
        other = copy.copy(self)
        other._masking = dataclasses.replace(self._masking, cpc_share=0.0)
        return other

    def build_model(self):
        model = pretrain_model.PretrainModel(self._encoder_config, **self._model_options)
        model.build()
        mimetic_initialization(model.etc_model, self._seed)
        return model

    def loss(self, outputs, features):
        return pretrain_model.pretraining_loss(outputs, features, **self._weights)

    def train_dataset(self, request):
        batches = pretrain_task.masked_train_batches(
            super().train_dataset(request), self._masking, request
        )
        return pretrain_task.with_cpc_weight_shares(batches, self._warmup_steps, request)

    def eval_dataset(self, batch_size):
        batches = super().eval_dataset(batch_size)
        return pretrain_task.masked_eval_batches(batches, self._masking, batch_size)

    def evaluate(self, predictions):
        return metrics.metrics(predictions, **self._weights)


ENCODER = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "local_radius": 2,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 12,
    "segment_vocab_size": 2,
    "initializer_range": 0.1,  # The released models are 12 times wider.
    "share_qkv_projections": False,
    "use_pre_activation_order": True,
    "use_hard_g2l_mask": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_REACH = 16  # Two layers of the larger radius reach 8 tokens.


class _Runner:
    """Trains and evaluates the models of one row.

    Args:
        row: `ingredient_rows.Row`.
        share: float. Fraction of the training steps and test examples, for a trial.
        graphs: dict, empty at first, of the graphs that runs have traced. Rows and seeds whose
            models differ in nothing but weights and data share them.
    """

    batch_size = 32

    def __init__(self, row, share=1.0, graphs=None):
        self._row, self._share = row, share
        self._graphs = {} if graphs is None else graphs

    def __call__(self, seed):
        """The figures of a run with that seed of weights, data and order: dict of float."""
        raise NotImplementedError

    def _count(self, number):
        return max(1, round(number * self._share))

    def _trained(self, task, seed, num_steps, *, encoder_weights=None, options=None):
        """The `SharedGraph` after the training of a task with these options."""
        row = self._row
        key = repr((type(self), type(task), row.changes, row.features, options, self._share))
        if key not in self._graphs:
            self._graphs[key] = SharedGraph(
                task, num_steps=self._count(num_steps), batch_size=self.batch_size
            )
        self._graphs[key].train(task, seed, encoder_weights)
        return self._graphs[key]

    def _config(self, vocab_size):
        return EtcConfig(vocab_size=vocab_size, **{**ENCODER, **self._row.changes})

    def _head_task(self, head_class, vocab_size, train, test, seed, **options):
        """The task of training a model with a head, which is given what the row says."""

        def make_model():
            model = head_class(self._config(vocab_size), **options)
            mimetic_initialization(model.encoder, seed)
            return model

        parts = (
            ({name: features[name] for name in self._row.features}, labels)
            for features, labels in (train, test)
        )
        return training.HeadTask(make_model, *parts, name="ingredients")


class _Tagging(_Runner):
    """Classifies the tokens of what `make` makes."""

    make = None
    num_steps = 200

    def __call__(self, seed):
        task = self._task(seed)
        graph = self._trained(task, seed, self.num_steps)
        return {"accuracy": graph.evaluate(task)["accuracy"]}

    def _task(self, seed, num_test=1000, **test_options):
        return self._head_task(
            heads.EtcForTokenClassification,
            data.vocabulary(),
            self.make(self._count(self.num_steps) * self.batch_size, _rng(seed)),
            self.make(self._count(num_test), _rng(TEST_SEED), **test_options),
            seed,
            num_labels=data.NUM_VALUES,
        )


class _Range(_Tagging):
    make = staticmethod(functools.partial(data.long_range, length=48, reach=_REACH))


class _Structure(_Tagging):
    num_steps, batch_size = 150, 64
    make = staticmethod(data.structure)


class _Length(_Tagging):
    """Measures models at the length of their training and at eight times that length."""

    kind = "length"
    num_steps = 600  # With 200, those without positions of their own stay at guessing.

    def make(self, *args, length=None):
        return data.long_range(*args, length=length or LENGTHS[self.kind][0], reach=_REACH)

    def __call__(self, seed):
        length = LENGTHS[self.kind][1]
        task = self._task(seed, 400)
        longer = self._task(seed, 400, length=length)
        longer.build_model()  # With which its loss and metrics come.
        graph = self._trained(task, seed, self.num_steps, encoder_weights=self._first(seed))
        found = graph.evaluate(task), graph.evaluate(longer, batch_size=20 * 1024 // length)
        return {name: x["accuracy"] for name, x in zip(FIGURES[self.kind], found, strict=True)}

    def _first(self, seed):
        """The encoder's weights to begin with: None, or as of `SharedGraph.encoder_weights`."""


class _Longer(_Length):
    """Begins with the encoder of `length`: in 600 steps at 512 tokens alone it learned nothing."""

    kind = "longer"
    num_steps = 200

    def _first(self, seed):
        shorter = _Length(self._row, self._share, self._graphs)
        graph = shorter._trained(shorter._task(seed), seed, shorter.num_steps)
        return graph.encoder_weights()


class _Meaning(_Runner):
    """Pre-trains on windows, and then learns from few documents to find the odd sentence."""

    num_pretraining_steps, num_windows = 1600, 20000
    num_steps, num_examples = 40, 160

    def __call__(self, seed):
        figures, weights = {}, None
        if self._row.is_pretrained:
            task = self._windows_task(seed)
            graph = self._trained(
                task, seed, self.num_pretraining_steps, options=self._row.pretraining
            )
            figures = {**graph.evaluate(task), **graph.evaluate(task.without_masked_sentences())}
            weights = graph.encoder_weights()
        task = self._head_task(
            heads.EtcForMultipleChoice,
            topics.vocabulary(),
            topics.odd_sentence(self.num_examples, _rng(seed)),
            topics.odd_sentence(self._count(1000), _rng(TEST_SEED)),
            seed,
            candidate_token_id=1,
        )
        graph = self._trained(task, seed, self.num_steps, encoder_weights=weights)
        figures["accuracy"] = graph.evaluate(task)["accuracy"]
        return {name: figures[name] for name in FIGURES["meaning"] if name in figures}

    def _windows_task(self, seed):
        return WindowsTask(
            self._config(topics.vocabulary()),
            topics.windows(self.num_windows, _rng(seed)),
            topics.windows(self._count(400), _rng(TEST_SEED)),
            seed=seed,
            **self._row.pretraining,
        )


# By the kind of data.
RUNNERS = {
    "range": _Range,
    "structure": _Structure,
    "meaning": _Meaning,
    "length": _Length,
    "longer": _Longer,
}


def _rng(seed):
    return np.random.default_rng(seed)
