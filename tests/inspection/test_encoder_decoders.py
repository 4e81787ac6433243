"""Looking inside LED, LongT5 and PEGASUS-X, and into what decoders see: what the models tell."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import inspection
from etcmodel.models.gmat.modeling import GmatForConditionalGeneration, GmatSeq2SeqConfig
from etcmodel.models.led import LedForQuestionAnswering
from etcmodel.models.longt5 import LongT5EncoderModel
from tests.inspection import test_observed as observed
from tests.models.led import models as led
from tests.models.longt5 import models as longt5
from tests.models.pegasus_x import models as pegasus_x

IDS, MASK, LENGTH = observed.IDS, observed.MASK, observed.LENGTH
GIVEN = {"input_ids": IDS, "attention_mask": MASK}
pytestmark = pytest.mark.slow

TARGETS = np.array([[2, 5, 7, 9], [2, 8, 6, 4]])
KEYS = {"longt5": LENGTH + 2, "pegasus_x": LENGTH + 3}  # Blocks of 4 tokens; global tokens.


@functools.cache
def model(name):
    if name == "led":
        return led.model(attention_window=(2, 4))
    if name == "gmat":
        config = GmatSeq2SeqConfig.of_encoder(
            observed.make_gmat().config, decoder_start_token_id=2, type_vocab_size=2
        )
        made = GmatForConditionalGeneration(config)
        made({**GIVEN, "decoder_input_ids": TARGETS})
        return made
    return {"longt5": longt5, "pegasus_x": pegasus_x}[name].model()


def dense(part, query, head):
    return np.concatenate([*part.dense(query, head).values()])


@pytest.mark.parametrize("example", [0, 1])
@pytest.mark.parametrize("name", KEYS)
def test_the_encoder_s_rows_are_those_that_it_tells(name, example):
    told = model(name).encoder(**GIVEN, output_attentions=True)
    found = inspection.attention(model(name), GIVEN, example=example)
    sides = {"long": "attentions", "global": "global_attentions"}
    wanted = [(x, side) for x in range(2) for side, kind in sides.items() if kind in told]
    assert [(part.layer, part.query_side) for part in found] == wanted
    for part in found:
        assert sum(part.num_keys) == KEYS[name]
        probs = told[sides[part.query_side]][part.layer].numpy()[example]
        for head, query in np.ndindex(probs.shape[:2]):
            np.testing.assert_allclose(dense(part, query, head), probs[head, query], atol=1e-6)
        assert np.ptp(probs) > 0.2


@pytest.mark.parametrize("example", [0, 1])
def test_a_led_s_rows_are_those_that_it_tells(example):
    given = {**GIVEN, "global_attention_mask": observed.GLOBAL}
    told = model("led").encoder(**given, output_attentions=True)
    found = inspection.attention(model("led"), given, example=example)
    assert [(part.layer, part.query_side) for part in found] == [(0, "long"), (1, "long")]
    for part in found:
        for head, query in np.ndindex(2, LENGTH):
            row = observed.longformer_row(told, part.layer, example, head, query, 1 + part.layer)
            np.testing.assert_allclose(part.dense(query, head)["long"], row, atol=1e-6)


def test_a_led_s_own_global_positions_are_seen_by_all():
    config = led.config(attention_window=(2, 4), global_positions=(0,))
    made = led.LedForConditionalGeneration(config)
    (part,) = inspection.attention(made, {"input_ids": IDS}, layers=[0], heads=[0])
    assert set(part.key[part.query == 7]) == {0, 6, 7, 8}
    assert set(part.key[part.query == 0]) == set(range(LENGTH))


@pytest.mark.parametrize("name", ["led", "longt5", "pegasus_x", "gmat"])
def test_what_a_decoder_s_tokens_look_at_is_what_the_model_tells(name):
    given = {**GIVEN, "decoder_input_ids": TARGETS}
    told = model(name)(given, output_attentions=True)["cross_attentions"]
    found = inspection.cross_attention(model(name), given, queries=[0, 3], example=1)
    assert [(part.layer, part.query_side) for part in found] == [(0, "global"), (1, "global")]
    for part, probs in zip(found, told, strict=True):
        assert part.num_keys == (probs.shape[-1], 4) and set(part.query) == {0, 3}
        for head in range(probs.shape[1]):
            for query in (0, 3):
                row = part.dense(query, head)
                np.testing.assert_allclose(row["long"], probs[1, head, query], atol=1e-6)
                assert not row["global"].any()
    (mean,) = inspection.cross_attention(
        model(name), given, layers=[1], heads=[inspection.MEAN], top=2
    )
    assert max(np.bincount(mean.query)) == 2


@pytest.mark.parametrize("name", ["led", "longt5", "pegasus_x"])
def test_hidden_states_are_those_that_the_encoder_tells(name):
    told = model(name).encoder(**GIVEN, output_hidden_states=True)
    streams = [told[x] for x in ("hidden_states", "global_states") if x in told]
    for given in (GIVEN, {**GIVEN, "decoder_input_ids": TARGETS}):
        states = inspection.hidden_states(model(name), given)
        for found, wanted in zip(states, zip(*streams, strict=True), strict=True):
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x, y, atol=1e-5)


def test_of_a_gmat_with_a_decoder_the_encoder_is_looked_into():
    made = model("gmat")
    for found, wanted in zip(
        inspection.attention(made, GIVEN),
        inspection.attention(made.encoder.gmat, GIVEN),
        strict=True,
    ):
        np.testing.assert_array_equal(found.probability, wanted.probability)
    *_, told = made.encoder.gmat(**GIVEN, output_hidden_states=True)
    told = zip(told["hidden_states"], told["memory_states"], strict=True)
    for found, wanted in zip(inspection.hidden_states(made, GIVEN), told, strict=True):
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-6)


def test_an_encoder_alone_is_looked_into():
    made = LongT5EncoderModel(longt5.config())
    made(IDS)
    made.set_weights(model("longt5").encoder.get_weights())
    for found, wanted in zip(
        inspection.attention(made, GIVEN),
        inspection.attention(model("longt5"), GIVEN),
        strict=True,
    ):
        np.testing.assert_allclose(found.probability, wanted.probability, atol=1e-6)


# Without normalized embeddings nothing changes between 0 and a token, but next to 0.
@pytest.mark.parametrize(
    ("name", "baseline_id"), [("led", None), ("longt5", 1), ("pegasus_x", None)]
)
@pytest.mark.slow_cases(1)
def test_contributions_of_input_and_output_tokens_add_up(name, baseline_id):
    given = {**GIVEN, "decoder_input_ids": TARGETS}

    def score(outputs):
        return outputs["logits"][:, -1, 5]

    found = inspection.integrated_gradients(
        model(name), given, score, num_steps=50, baseline_id=baseline_id
    )
    np.testing.assert_allclose(found.score, score(model(name)(given)), atol=1e-4)
    assert [x.shape for x in found.tokens] == [(2, LENGTH), (2, 4)]
    assert all(np.abs(x).max() > 1e-3 for x in found.tokens)
    assert np.abs(found.tokens[0][MASK == 0]).max() < 1e-5


def test_a_page_tells_input_from_output(tmp_path):
    given = {**GIVEN, "decoder_input_ids": TARGETS}
    found = inspection.cross_attention(model("longt5"), given, heads=[0], top=2)
    words, path = [f"w{i}" for i in range(LENGTH)], tmp_path / "page.html"
    inspection.write_page(path, found, words, list("abcd"), sides=("input", "<output>"))
    page = path.read_text(encoding="utf-8")
    assert ">&lt;output&gt; tokens</h2>" in page and ">Input tokens</h2>" in page
    assert "d (&lt;output&gt; 3)" in page and "(long" not in page


def test_what_a_head_reads_besides_or_what_is_none_hinders_nothing():
    made = led.model(LedForQuestionAnswering, attention_window=(2, 4))
    ends = {"start_positions": np.array([1, 2]), "end_positions": np.array([2, 3])}
    none = dict.fromkeys(("decoder_input_ids", *ends))
    wanted = inspection.attention(made.encoder, GIVEN)
    states = inspection.hidden_states(made.encoder, GIVEN)
    for others in (ends, none):
        for part, same in zip(inspection.attention(made, GIVEN | others), wanted, strict=True):
            np.testing.assert_allclose(part.probability, same.probability, atol=1e-6)
        found = inspection.hidden_states(made, GIVEN | others)
        np.testing.assert_allclose(found, states, atol=1e-5)


@pytest.mark.parametrize("name", ["longt5", "pegasus_x", "gmat"])
def test_what_the_model_is_asked_to_tell_changes_nothing(name):
    given = {**GIVEN, "decoder_input_ids": TARGETS}
    told = given | dict.fromkeys(("output_attentions", "output_hidden_states"), True)
    for see in (inspection.attention, inspection.cross_attention):
        for part, same in zip(see(model(name), told), see(model(name), given), strict=True):
            np.testing.assert_array_equal(part.probability, same.probability)
    wanted = inspection.hidden_states(model(name), given)
    for state, same in zip(inspection.hidden_states(model(name), told), wanted, strict=True):
        for x, y in zip(state, same, strict=True):
            np.testing.assert_array_equal(x, y)


def test_what_cannot_be_seen_is_refused():
    for see in (inspection.attention, inspection.hidden_states):
        with pytest.raises(ValueError, match="With `encoder_output` the encoder is not called"):
            see(model("led"), {"encoder_output": np.zeros([2, 9, 16]), "labels": TARGETS})
    compressing = {"num_hidden_layers": 4, "num_compression_layers": 1, "num_memory_layers": 1}
    with pytest.raises(ValueError, match="'gmat' has 3 stacks of layers"):
        inspection.hidden_states(observed.make_gmat(**compressing), GIVEN)
    with pytest.raises(ValueError, match="'longformer' has no decoder that attends to an encoder"):
        inspection.cross_attention(observed.make_longformer(), GIVEN)
    given = {**GIVEN, "decoder_input_ids": TARGETS}
    with pytest.raises(ValueError, match=r"`queries\['global'\]` must be from 0 to 3. Received: 4"):
        inspection.cross_attention(model("longt5"), given, queries=[4])
    with pytest.raises(ValueError, match="`heads` must be from 0 to 3, or -1. Received: 4"):
        inspection.cross_attention(model("led"), given, heads=[4])
    with pytest.raises(ValueError, match="Give `decoder_input_ids`"):
        inspection.cross_attention(model("longt5"), GIVEN)
    with pytest.raises(ValueError, match="needs eager execution"):
        tf.function(lambda: inspection.cross_attention(model("longt5"), given))()
