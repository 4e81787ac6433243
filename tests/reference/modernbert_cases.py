"""How the cases of ModernBERT are run, and compared with the tolerances that belong to them."""

import functools

import numpy as np
import tensorflow as tf

import etcmodel
from etcmodel.text import labels as labels_lib
from tests.reference import cases, longformer_cases, ways

TOPIC = "modernbert"
CASES = cases.load_cases(TOPIC)
# Of which these are in the small copy and run each time: they show every rule of the model.
SAMPLE = (
    "compat/old/length_1",
    "compat/old/padding_right",
    "compat/old/plain",
    "modernbert/d_mc_cls/choices",
    "modernbert/d_mlm_fp16/float32",
    "modernbert/d_mlm_sparse_index/labels",
    "modernbert/d_qa/outside",
    "modernbert/d_seqcls_mean/padding",
)
# And these are run in graphs, too, and compiled, among the slow tests.
TRACED = (
    "compat/old/padding_right",
    "modernbert/d_qa/outside",
    "modernbert/d_seqcls_mean/padding",
)
_LIMITS = {"logits": 1e-4, "start_logits": 1e-4, "end_logits": 1e-4, "loss": 1e-4}
_HIDDEN, _GRADIENTS = 5e-5, 2e-4
_LABELS = ("labels", "start_positions", "end_positions", "cotangent_hidden")


@functools.cache
def model_of(kind):
    """The model of a case, loaded from its folder as users do it."""
    return etcmodel.from_pretrained(cases.topic_folder(TOPIC) / kind)


def check(case, way=ways.EAGER, model=None):
    """Compares all of a case's arrays."""
    arrays, model = cases.arrays_of(TOPIC, case), model or model_of(case["kind"])
    batch = longformer_cases.inputs_of(arrays, *_LABELS)
    labels = {x: tf.constant(arrays[f"in/{x}"]) for x in _LABELS if f"in/{x}" in arrays}
    if model.config.sparse_prediction and "labels" in labels:
        batch["labels"] = labels["labels"]
    run = functools.partial(_results, model, set(arrays), labels)
    results = ways.in_way(way, run)(batch)
    assert_same({name: np.asarray(x) for name, x in results.items()}, arrays, model.config)


def _results(model, names, labels, batch):
    """All that the case's arrays are of: dict of name to tensor."""
    with tf.GradientTape() as tape:
        is_encoder = isinstance(model, etcmodel.ModernBertModel)
        compute = _of_encoder if is_encoder else _of_head
        results, loss = compute(model, names, labels, batch)
    if loss is not None:
        results["out/loss"] = loss
    if any(name.startswith("grad/") for name in names):
        results |= longformer_cases.gradients(model, tape, loss)
    return {name: x for name, x in results.items() if name in names}


def _observed(outputs):
    return {
        f"out/{name}/{number}": x
        for name in ("hidden_states", "attentions")
        for number, x in enumerate(outputs.get(name, ()))
    }


def _of_encoder(model, names, labels, batch):
    wants_attentions = any("/attentions/" in name for name in names)
    hidden, extras = model(**batch, output_hidden_states=True, output_attentions=wants_attentions)
    results = {**_observed(extras), "out/last_hidden_state": hidden}
    if "out/mean" in names:
        share = tf.cast(batch["attention_mask"], tf.float32)[:, :, tf.newaxis]
        results["out/cls"] = hidden[:, 0]
        results["out/mean"] = tf.reduce_sum(hidden * share, 1) / tf.reduce_sum(share, 1)
        for pooling in ("cls", "mean"):
            vectors = tf.linalg.l2_normalize(results[f"out/{pooling}"], axis=-1)
            results[f"out/{pooling}_unit"] = vectors
    given = labels.get("cotangent_hidden")
    return results, None if given is None else tf.reduce_sum(hidden * given)


def _of_head(model, names, labels, batch):
    outputs = model(**batch, output_hidden_states=any("/hidden_states/" in x for x in names))
    outputs = outputs if isinstance(outputs, dict) else {"logits": outputs}
    by_end = {f"out/{x}_logits": outputs[x] for x in ("start", "end") if x in outputs}
    results = {**_observed(outputs), **by_end}
    if "logits" in outputs:
        results["out/logits"] = outputs["logits"]
    return results, _loss(model, outputs, labels) if labels else None


def _loss(model, outputs, labels):
    """The model's own loss; of two ends their mean, as Hugging Face has it."""
    if "start_positions" in labels:
        loss = model.default_loss()
        return tf.add_n([loss[x](labels[f"{x}_positions"], outputs[x]) for x in loss]) / 2
    labels, config = labels["labels"], model.config
    if getattr(model, "problem_type", None) == labels_lib.SINGLE_LABEL and labels.dtype.is_floating:
        model.problem_type = labels_lib.MULTI_LABEL  # Hugging Face goes by the dtype.
    if config.sparse_prediction:
        kept = tf.cast(config.sparse_pred_ignore_index, labels.dtype)
        labels = tf.boolean_mask(labels, tf.not_equal(labels, kept))
    return model.default_loss()(labels, outputs["logits"])


def assert_same(results, arrays, config):
    """Compares all arrays of a case; NaN stands for what means nothing."""
    wanted = {x: y for x, y in arrays.items() if x.startswith(("out/", "grad/"))}
    assert set(results) == set(wanted)
    for name, value in wanted.items():
        found, top = results[name], np.nanmax(np.abs(value), initial=0)
        assert found.shape == value.shape, name
        kind, _, rest = name.partition("/")
        limit = _LIMITS.get(rest.partition("/")[0], _HIDDEN) * max(1.0, top)
        if kind == "grad":
            limit = _GRADIENTS * top + 1e-6
        is_known = ~np.isnan(value)
        if "tok_embeddings" in name:  # Hugging Face's lookup gives padding no gradient.
            is_known[config.pad_token_id] = False
        difference = np.abs(found - value)[is_known]
        assert difference.max(initial=0) <= limit, (name, difference.max(), limit)
