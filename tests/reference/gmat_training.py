"""The cases of how GMATs are trained and measured."""

import numpy as np
import tensorflow as tf

from etcmodel.models.heads import losses
from etcmodel.training import TrainingConfig, build_learning_rate, build_optimizer
from etcmodel.training import optimizer as optimizer_lib
from tests.reference.gmat_arrays import arrays_of, assert_close

IGNORED = -100


def check_bert_adam(case):
    config, arrays = case["config"], arrays_of(case)
    assert config["clipped_per"] == "variable"
    options = TrainingConfig(
        optimizer="bert_adam",
        learning_rate=config["learning_rate"],
        warmup_proportion=config["warmup_proportion"],
        weight_decay_rate=config["weight_decay"],
        gradient_clip_norm=config["max_grad_norm"],
    )
    schedule = build_learning_rate(options, config["total_steps"])
    rates = [float(schedule(step)) for step in range(config["total_steps"])]
    assert_close(rates, arrays["learning_rates"])
    optimizer = build_optimizer(options, schedule)
    variable = tf.Variable(arrays["initial"], name="dense/kernel")
    # Beside another one, since each has a norm of its own.
    other = tf.Variable([1.0, 2.0], name="dense/bias")
    for gradient, wanted in zip(arrays["gradients"], arrays["parameters"], strict=True):
        gradients = [tf.constant(gradient), tf.constant([30.0, 40.0])]
        clipped, _ = optimizer_lib.clip_gradients(
            gradients, options.gradient_clip_norm, per_variable=True
        )
        optimizer.apply_gradients(zip(clipped, [variable, other], strict=True))
        assert_close(variable, wanted)


def check_mlm_scores(case):
    config, arrays = case["config"], arrays_of(case)
    labels = np.where(arrays["weights"] > 0, arrays["labels"], IGNORED)
    assert_close(losses.MeanCrossentropy()(labels, arrays["logits"]), config["loss"])
    found = {"perplexity": losses.Perplexity(), "error_percent": losses.ErrorPercent()}
    for name, metric in found.items():
        for row, logits in zip(labels, arrays["logits"], strict=True):  # The mean is over tokens.
            metric.update_state(row[np.newaxis], logits[np.newaxis])
        assert_close(metric.result(), config[name], name=name)
