"""How cases of Longformer's heads are run: logits, losses, and the gradients of all weights."""

import functools

import tensorflow as tf

from tests.reference import cases, longformer_cases, ways

TOPIC = longformer_cases.TOPIC
CASES = [
    case
    for case in cases.load_cases(TOPIC)
    if case["kind"].startswith("longformer/") and not case["kind"].endswith("_base")
]
LABELS = ("labels", "start_positions", "end_positions")

model_of = functools.cache(lambda kind: longformer_cases.model_of({"kind": kind}))


def loss_of(model, logits, arrays):
    """The model's own loss; of two ends their mean, as Hugging Face has it."""
    loss = model.default_loss()
    if not isinstance(loss, dict):
        return loss(tf.constant(arrays["in/labels"]), logits)
    ends = [loss[x](tf.constant(arrays[f"in/{x}_positions"]), logits[x]) for x in loss]
    return tf.add_n(ends) / len(ends)


def check(case, model=None, way=ways.EAGER):
    arrays = cases.arrays_of(TOPIC, case)
    model = model or model_of(case["kind"])
    batch = longformer_cases.inputs_of(arrays, *LABELS)

    def run(batch):
        with tf.GradientTape() as tape:
            logits = model(batch)
            loss = loss_of(model, logits, arrays)
        return logits, loss, longformer_cases.gradients(model, tape, loss)

    logits, loss, gradients = ways.in_way(way, run)(batch)
    named = logits if isinstance(logits, dict) else {"": logits}
    results = {f"out/{end}_logits".replace("/_", "/"): x.numpy() for end, x in named.items()}
    longformer_cases.assert_same({**results, "out/loss": loss.numpy()}, arrays)
    if any(name.startswith("grad/") for name in arrays):
        longformer_cases.assert_same_gradients(gradients, arrays)
