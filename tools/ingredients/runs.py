"""Runs of small models on the generated data: one for each row and seed."""

import functools

import numpy as np

from etcmodel import training
from etcmodel.models import heads
from etcmodel.models.config import EtcConfig
from etcmodel.models.initialization import mimetic_initialization
from etcmodel.tools.ingredients import data, topics
from etcmodel.tools.ingredients.rows import FIGURES, LENGTHS, TEST_SEED
from etcmodel.tools.ingredients.shared_graph import SharedGraph
from etcmodel.tools.ingredients.windows_task import WindowsTask

__all__ = ["ENCODER", "RUNNERS"]

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
        row: `rows.Row`.
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
