"""All that training takes of Model Garden (`tf-models-official`) and its loop, Orbit.

A newer Model Garden, or none, is a change of this module alone. Each version asks for one minor
version of TensorFlow; for those that have none, the models work without training programs.
"""

import contextlib

import tensorflow as tf
from absl import logging

from etcmodel import extras

__all__ = [
    "LAMB",
    "AbstractEvaluator",
    "AdamWeightDecay",
    "Controller",
    "StandardTrainer",
    "create_global_step",
    "get_distribution_strategy",
    "make_distributed_dataset",
    "maybe_merge_call",
    "quiet_orbit",
]

NEWEST_TENSORFLOW = "2.20"  # Of those with a Model Garden, as the ranges in setup.py have it.


def _reason(version):
    """What to do where Model Garden is missing, by TensorFlow's version: a sentence, or ''."""
    if tuple(map(int, version.split(".")[:2])) <= tuple(map(int, NEWEST_TENSORFLOW.split("."))):
        return ""
    return (
        f"The programs that train need Model Garden, which goes up to TensorFlow "
        f"{NEWEST_TENSORFLOW}; this is {version}, and the extra brings the older one."
    )


with extras.needed("train", _reason(tf.__version__)):
    from official.common.distribute_utils import get_distribution_strategy
    from official.modeling.optimization.ema_optimizer import maybe_merge_call
    from official.modeling.optimization.lamb import LAMB
    from official.modeling.optimization.legacy_adamw import AdamWeightDecay
    from orbit import AbstractEvaluator, Controller, StandardTrainer, controller
    from orbit.utils import create_global_step, make_distributed_dataset


@contextlib.contextmanager
def quiet_orbit():
    """Sends Orbit's messages to the debug log instead of printing them between progress lines."""
    log = controller._log
    controller._log = logging.debug
    try:
        yield
    finally:
        controller._log = log
