"""How the cases of BigBird are run, and compared with the tolerances that belong to them."""

import functools

import numpy as np
import tensorflow as tf

import etcmodel
from tests.reference import cases, seq2seq_cases, ways
from tests.reference.longformer_cases import gradients

TOPIC = "bigbird"
# Of which a few are in the small copy and run each time: they show every rule of the attention.
SAMPLE = (
    "bigbird/a_base/given_plan_gradients",
    "bigbird/a_base/left_padding",
    "bigbird/a_base/padding_odd",
    "bigbird/a_base/short",
    "bigbird/a_base/train",
    "bigbird/b_base/inputs_embeds",
    "bigbird/h_pretraining_v4/pretraining",
    "bigbird/h_qa/from_sep",
    "bigbird/h_seqcls/classify",
    "bigbird/r0_base/padding",
    "pegasus/a_generate/beam4_return3",
    "pegasus/a_lm/given_plan",
    "pegasus/h_seqcls/classify",
)
# And these are run in graphs for any length, too, and compiled, among the slow tests.
TRACED = (
    "bigbird/a_base/given_plan_gradients",
    "bigbird/a_base/left_padding",
    "bigbird/a_base/short",
    "bigbird/a_base/train",
    "bigbird/h_qa/from_sep",
    "pegasus/a_lm/given_plan",
)
_LIMITS = {"loss": 1e-4, "logits": 1e-4, "prediction_logits": 1e-4}
_HIDDEN, _GRADIENTS = 5e-5, 2e-4
_IN_QUESTION = -1e5  # Logits below mean that there is no answer, whatever their value.
_ENDS = ("start", "end")
_CLASSIFIER = "pegasus/h_seqcls"  # The only one of its heads that encoders have, too.
_LABELS = ("labels", "next_sentence_label", *(f"{end}_positions" for end in _ENDS))
_NO_ARGUMENTS = (*_LABELS, "training", "cotangent_hidden", "cotangent_pooler")


def all_cases():
    return cases.load_cases(TOPIC)


@functools.cache
def model_of(kind):
    """A model, loaded from its folder as users do it."""
    # Hugging Face's library finds out by the labels: these are floats.
    kinds = {"bigbird/h_seqcls_multilabel": {"problem_type": "multi_label_classification"}}
    return etcmodel.from_pretrained(cases.topic_folder(TOPIC) / kind, **kinds.get(kind, {}))


def arguments_of(case, arrays):
    """(tensors by name, options): the arguments of the model's call."""
    given = {name.removeprefix("in/"): x for name, x in arrays.items() if name.startswith("in/")}
    tensors = {name: tf.constant(x) for name, x in given.items() if name not in _NO_ARGUMENTS}
    if case.get("plan") == "given":
        layers = [name for name in arrays if name.startswith("plan/")]
        plans = [arrays[f"plan/{number}"] for number in range(len(layers))]
        tensors["random_blocks"] = tf.constant(np.stack(plans), tf.int32)
    return tensors, {"training": True} if "training" in given else {}


def check(case, way=ways.EAGER):
    """Runs a case and compares all that it has."""
    if case["kind"].startswith("pegasus/") and case["kind"] != _CLASSIFIER:
        seq2seq_cases.check(TOPIC, case, way=way)
        return
    arrays, model = cases.arrays_of(TOPIC, case), model_of(case["kind"])
    tensors, options = arguments_of(case, arrays)
    if case["kind"].endswith("_base") or case["kind"].endswith("_mlm"):
        names = {name.split("/")[1] for name in arrays}
        wishes = ("hidden_states", "attentions")
        options |= {f"output_{name}": name in names for name in wishes}
    if case["kind"] == _CLASSIFIER:
        options["output_hidden_states"] = True

    def run(tensors):
        with tf.GradientTape() as tape:
            results = _results(model(**tensors, **options))
            loss = _loss(model, results, arrays)
        results |= {} if loss is None else {"loss": loss}
        return results, gradients(model, tape, loss) if case["gradients"] else {}

    run = ways.in_way(way, run)
    if way == ways.GRAPH:
        run = run.get_concrete_function(tf.nest.map_structure(_of_any_length, tensors))
    results, found = run(tensors)
    _assert_same({f"out/{name}": x.numpy() for name, x in results.items()}, arrays)
    _assert_same_gradients({name: x.numpy() for name, x in found.items()}, arrays)


def _of_any_length(x):
    """A batch's spec for inputs of any length; sizes that belong to the model are known."""
    sizes = [None] * len(x.shape)
    if x.dtype.is_floating and len(sizes) == 3:
        sizes[-1] = x.shape[-1]
    if len(sizes) == 4:  # Random blocks.
        sizes = [*x.shape[:2], None, x.shape[-1]]
    return tf.TensorSpec(sizes, x.dtype)


def _results(outputs):
    """The outputs of a model or a head by Hugging Face's names: dict."""
    if isinstance(outputs, tuple):
        hidden, pooled, *extras = outputs
        found = {"last_hidden_state": hidden, "pooler_output": pooled}
        return {**found, **_by_layer(extras[0] if extras else {})}
    if not isinstance(outputs, dict):
        return {"logits": outputs}
    return _by_layer({f"{x}_logits" if x in _ENDS else x: y for x, y in outputs.items()})


def _by_layer(outputs):
    found = {}
    for name, value in outputs.items():
        several = value if isinstance(value, (list, tuple)) else [value]
        keys = [f"{name}/{x}" for x in range(len(several))] if several is value else [name]
        found |= dict(zip(keys, several, strict=True))
    return found


def _loss(model, results, arrays):
    """The loss of a case by the model's own losses; None if it has no labels."""
    if "in/cotangent_hidden" in arrays:
        loss = tf.reduce_sum(results["last_hidden_state"] * arrays["in/cotangent_hidden"])
        return loss + tf.reduce_sum(results["pooler_output"] * arrays["in/cotangent_pooler"])
    labels = {name: tf.constant(arrays[f"in/{name}"]) for name in _LABELS if f"in/{name}" in arrays}
    if not labels:
        return None
    loss = model.default_loss()
    if not isinstance(loss, dict):
        return loss(labels["labels"], results["logits"])
    if "start" in loss:  # Of two ends their mean, as Hugging Face has it.
        ends = [loss[end](labels[f"{end}_positions"], results[f"{end}_logits"]) for end in _ENDS]
        return tf.add_n(ends) / 2
    total = loss["prediction_logits"](labels["labels"], results["prediction_logits"])
    name, given = "seq_relationship_logits", labels.get("next_sentence_label")
    return total if given is None else total + loss[name](given, results[name])


def _assert_same(results, arrays):
    """Compares all outputs of a case; NaN stands for what means nothing."""
    wanted = {name: x for name, x in arrays.items() if name.startswith("out/")}
    results = {name: x for name, x in results.items() if name in wanted}
    assert set(results) == set(wanted)
    for name, value in wanted.items():
        assert results[name].shape == value.shape, name
        is_known = ~np.isnan(value)
        if name.removeprefix("out/") in [f"{end}_logits" for end in _ENDS]:
            np.testing.assert_array_equal(results[name] < _IN_QUESTION, value < _IN_QUESTION)
            is_known &= value > _IN_QUESTION
        largest = np.abs(value[is_known]).max(initial=1.0)
        limit = _LIMITS.get(name.split("/")[1], _HIDDEN) * largest
        difference = np.abs(results[name] - value)[is_known].max(initial=0)
        assert difference <= limit, (name, difference, limit)


def _assert_same_gradients(found, arrays):
    wanted = {name: x for name, x in arrays.items() if name.startswith("grad/")}
    if not found:
        return
    assert set(found) == set(wanted)
    largest = max(np.abs(x).max() for x in wanted.values())
    for name, value in wanted.items():
        # torch gives the row of padding no gradient; this has it.
        value = arrays.get(name.replace("grad/", "grad_full/"), value)
        # Some gradients are 0 but for rounding, above all those of the keys' biases.
        limit = _GRADIENTS * np.abs(value).max() + 2e-6 * largest + 1e-6
        difference = np.abs(found[name] - value).max()
        assert difference <= limit, (name, difference, limit)
