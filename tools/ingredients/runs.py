"""Runs of small models on the generated data: one for each row and seed."""

import dataclasses
import functools
import typing

import numpy as np

from etcmodel import training
from etcmodel.models import heads
from etcmodel.models.config import EtcConfig
from etcmodel.models.initialization import mimetic_initialization
from etcmodel.tools.ingredients import data
from etcmodel.tools.ingredients.shared_graph import SharedGraph

__all__ = ["ENCODER", "KINDS", "Runner"]

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
_NUM_TEST, _TEST_SEED = 1000, 1_000_000


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What is learned, and for how long.

    Attributes:
        make: function of the number of examples and a generator: (features, labels).
        num_steps, batch_size: int.
    """

    make: typing.Callable
    num_steps: int
    batch_size: int


KINDS = {
    # Two layers of the larger radius see 8 tokens.
    "range": _Kind(functools.partial(data.long_range, length=48, reach=16), 200, 32),
    "structure": _Kind(data.structure, 150, 64),
}


class Runner:
    """Trains and measures models of one row; the graphs are traced once for all seeds.

    Args:
        kind: str, a key of `KINDS`.
        row: `rows.Row`.
        share: float. Share of the training steps and test examples, for a trial.
    """

    def __init__(self, kind, row, share=1.0):
        self._kind, self._row, self._share = KINDS[kind], row, share
        self._graph = None

    def __call__(self, seed):
        """The figures of a run with that seed of weights, data and order: dict of float."""
        task = self._task(seed)
        if self._graph is None:
            self._graph = SharedGraph(
                task,
                num_steps=self._count(self._kind.num_steps),
                batch_size=self._kind.batch_size,
            )
        self._graph.train(task, seed)
        return {"accuracy": self._graph.evaluate(task)["accuracy"]}

    def _count(self, number):
        return max(1, round(number * self._share))

    def _task(self, seed):
        """The task of classifying tokens, of which the model is given what the row says."""
        kind = self._kind

        def make_model():
            config = EtcConfig(vocab_size=data.vocabulary(), **{**ENCODER, **self._row.changes})
            model = heads.EtcForTokenClassification(config, num_labels=data.NUM_VALUES)
            mimetic_initialization(model.encoder, seed)
            return model

        parts = (
            ({name: features[name] for name in self._row.features}, labels)
            for features, labels in (
                kind.make(self._count(kind.num_steps) * kind.batch_size, _rng(seed)),
                kind.make(self._count(_NUM_TEST), _rng(_TEST_SEED)),
            )
        )
        return training.HeadTask(make_model, *parts, name="ingredients")


def _rng(seed):
    return np.random.default_rng(seed)
