"""What `EtcModel` refuses when a graph runs: traced, compiled, functional and exported."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import input_utils
from tests.models.test_input_checks import (
    BAD_LINKS,
    BATCH,
    LINKS,
    POSITIONED,
    TOKENS,
    make_model,
    make_structure,
    ones,
    with_link,
)

UNKNOWN = tf.TensorSpec([None, None], tf.int32)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def graph(model):
    return by_graph(model)


@pytest.fixture(scope="module")
def compiled(model):
    return by_graph(model, jit_compile=True)


def by_graph(model, jit_compile=False):
    """The model as a graph that knows no length when it is traced."""

    @tf.function(input_signature=[UNKNOWN] * 3, jit_compile=jit_compile, autograph=False)
    def run(token_ids, global_token_ids, links):
        structure = input_utils.make_structure_from_example_ids(
            tf.ones_like(token_ids), tf.ones_like(global_token_ids), links, 2
        )
        return model(token_ids, global_token_ids, structure=structure)

    return run


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("link, place", BAD_LINKS)
def test_a_graph_refuses_such_links_when_it_runs(graph, link, place):
    line = (
        rf"`structure.links\[0\]` must hold .*\] \[{link}\] \[in example\] \[{place[0]}\] "
        rf"\[at token\] \[{place[1]}\] \[for\] \[3\] \[global tokens\]"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        graph(*TOKENS.values(), with_link(link))


@pytest.mark.slow
@pytest.mark.parametrize("link", [3, -2, 10**6])
def test_compiled_by_xla_such_links_link_nothing(model, compiled, link):
    wrong = with_link(link)
    nothing = np.where(wrong == link, -1, wrong)
    outputs = compiled(*TOKENS.values(), wrong)
    expected = model(**TOKENS, structure=make_structure(nothing))
    others = model(**TOKENS, structure=make_structure())
    for x, y, other in zip(outputs, expected, others, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
        assert not np.allclose(y, other, atol=1e-5)


@pytest.mark.slow
def test_minus_one_is_no_link_and_right_links_pass_everywhere(model, graph, compiled):
    expected = model(**TOKENS, structure=make_structure())
    for run in (graph, compiled):
        outputs = run(*TOKENS.values(), LINKS)
        for x, y in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_without_a_global_input_links_are_not_looked_at(model, graph):
    nothing = np.zeros([BATCH, 0], int)
    structure = make_structure(np.zeros_like(LINKS), global_len=0)
    model(TOKENS["token_ids"], nothing, structure=structure)
    graph(TOKENS["token_ids"], nothing, np.zeros_like(LINKS))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "changes, line",
    [
        (
            {"global_token_ids": ones(1, 3)},
            r"`global_token_ids` must have shape \[batch, global_len\]. Received shape:\] \[1 3\]",
        ),
        (
            {"links": ones(2, 5)},
            r"`structure.links\[0\]` must have shape \[batch, long_len\]. Rec.*:\] \[2 5\]",
        ),
        (
            {"links": ones(1, 6)},
            r"`structure.links\[0\]` must have shape \[batch, long_len\]. Rec.*:\] \[1 6\]",
        ),
    ],
)
def test_a_graph_that_knows_no_length_compares_them_when_it_runs(graph, changes, line):
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        graph(*{**TOKENS, "links": LINKS, **changes}.values())


@pytest.mark.slow
def test_masks_are_compared_when_the_graph_runs(model):
    mask_spec = tf.TensorSpec([None, None, None], tf.int32)

    @tf.function(input_signature=[UNKNOWN, UNKNOWN, mask_spec], autograph=False)
    def run(token_ids, global_token_ids, mask):
        return model(token_ids, global_token_ids, l2g_att_mask=mask)

    run(*TOKENS.values(), ones(2, 6, 3))
    line = r"`l2g_att_mask` must have shape \[batch, long_len, global_len\]. Rec.*:\] \[2 3 6\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        run(*TOKENS.values(), ones(2, 3, 6))


def test_a_graph_refuses_inputs_beyond_the_table_when_it_runs():
    model = make_model(**POSITIONED)
    run = tf.function(lambda *x: model(*x), input_signature=[UNKNOWN] * 2, autograph=False)
    run(*TOKENS.values())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"at most .*, 6. Rec.*\] \[7\]"):
        run(ones(2, 7), TOKENS["global_token_ids"])


@pytest.mark.parametrize(
    "inputs, line",
    [
        (
            [tf_keras.Input([], dtype=tf.int32), tf_keras.Input([3], dtype=tf.int32)],
            "`token_ids` must have shape [batch, long_len]. Received shape: [?]",
        ),
        (
            [tf_keras.Input([None], dtype=tf.int32, ragged=True), tf_keras.Input([3])],
            "`token_ids` must have shape [batch, long_len], padded. Received: a RaggedTensor of "
            "shape [?, ?]",
        ),
    ],
)
def test_a_functional_model_is_refused_when_it_is_made(model, inputs, line):
    with pytest.raises(ValueError) as raised:
        model(*inputs)
    assert str(raised.value) == line


@pytest.mark.slow
def test_a_functional_model_refuses_wrong_links_and_lengths_when_it_is_called(model):
    inputs = {
        "token_ids": tf_keras.Input([None], dtype=tf.int32, name="token_ids"),
        "global_token_ids": tf_keras.Input([None], dtype=tf.int32, name="global_token_ids"),
        "links": tf_keras.Input([None], dtype=tf.int32, name="links"),
    }
    ids = {name: inputs[name] for name in TOKENS}
    structure = input_utils.make_structure_from_example_ids(
        tf.ones_like(inputs["token_ids"]),
        tf.ones_like(inputs["global_token_ids"]),
        inputs["links"],
        2,
    )
    functional = tf_keras.Model(inputs, model(**ids, structure=structure))
    features = {name: tf.constant(x, tf.int32) for name, x in {**TOKENS, "links": LINKS}.items()}
    expected = model(**TOKENS, structure=make_structure())
    np.testing.assert_allclose(functional(features)[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(functional.predict(features, verbose=0)[0], expected[0], atol=1e-6)
    wrong = {**features, "links": tf.constant(with_link(3), tf.int32)}
    with pytest.raises(ValueError, match=r"`structure.links\[0\]` must hold indices"):
        functional(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`structure.links\[0\]` must hold"):
        functional.predict(wrong, verbose=0)


@pytest.mark.slow
def test_an_exported_graph_checks_links_too(model, graph, tmp_path):
    module = tf.Module()
    module.model_variables = model.variables
    without_gradients = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    signature = graph.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signature, without_gradients)
    loaded = tf.saved_model.load(str(tmp_path))
    exported = loaded.signatures["serving_default"]

    def run(function, links):
        named = zip((*TOKENS, "links"), (*TOKENS.values(), links), strict=True)
        return function(**{name: tf.constant(x, tf.int32) for name, x in named})["output_0"]

    expected = graph(*TOKENS.values(), LINKS)[0]
    np.testing.assert_allclose(run(exported, LINKS), expected, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`structure.links\[0\]` must hold"):
        run(exported, with_link(3))
