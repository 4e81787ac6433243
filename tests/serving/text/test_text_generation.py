"""Generation from texts to texts in one SavedModel: the processor's ids, the model's sequences."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import etcmodel
from etcmodel import serving
from etcmodel.serving.text import generation
from tests.models.bigbird_pegasus import models as bigbird_pegasuses
from tests.models.longt5 import models as longt5s
from tests.models.pegasus_x import models as pegasus_xs

SENTENCE_PIECES = pathlib.Path(__file__).parents[2] / "fixtures/sentence_pieces/spiece.model"
OF_SYSTEM = {"longt5": {"extra_ids": 4}, "pegasus_x": {"id_offset": 5}, "bigbird_pegasus": {}}
MODELS = {"longt5": longt5s, "pegasus_x": pegasus_xs, "bigbird_pegasus": bigbird_pegasuses}
PARTS = ["The", " ", "river", "[ent]", "[x]", "<extra_id_2>", "</s>", "<mask_1>", "<unk>", "é", "%"]


def processor_of(name, **options):
    processor = etcmodel.Seq2SeqProcessor(SENTENCE_PIECES, **OF_SYSTEM[name], **options)
    processor.add_tokens(["[ent]"])
    processor.add_tokens(["[x]"], special_tokens=True)
    return processor


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SYSTEM)
def test_the_graph_has_the_ids_and_the_texts_of_the_processor(name):
    processor = processor_of(name)
    pieces, number = generation._Pieces(processor.tokenizer), processor.vocab_size
    encode = tf.function(lambda x: pieces.encode(x, 7), [tf.TensorSpec([None], tf.string)])
    decode = tf.function(pieces.decode, [tf.TensorSpec([None, None], tf.int32)])
    texts = st.lists(st.lists(st.sampled_from(PARTS)).map("".join), min_size=1, max_size=4)
    ids = st.lists(st.lists(st.integers(0, number + 3), min_size=6, max_size=6), min_size=1)

    @settings(max_examples=60)
    @given(texts, ids)
    def check(texts, ids):
        expected = [processor.tokenizer.encode(text, 7)[0] for text in texts]
        assert encode(texts).to_list() == expected
        found = [x.decode() for x in decode(ids).numpy()]
        assert found == [processor.decode(row) for row in ids]

    check()


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("name", OF_SYSTEM)
def test_an_export_generates_the_texts_of_the_model(name, tmp_path):
    processor = processor_of(name, max_length=8)
    model = MODELS[name].model()
    model.resize_token_embeddings(processor.vocab_size)
    # New rows are almost equal: rounding, which a graph has of its own, would decide among them.
    for table in [x for x in model.weights if x.shape[0] == processor.vocab_size]:
        table.assign(np.random.default_rng(0).normal(size=table.shape))
    sampled = {"do_sample": True, "seed": 4, "num_beams": 2, "num_return_sequences": 2}
    options = {"max_length": 9, "eos_token_id": [processor.tokenizer.eos_id, 40, 50]}
    options |= sampled if name == "longt5" else {"num_beams": 2}
    texts = ["The [ent] river is long.", "A [x]bird"]
    path = serving.export_text_generation(model, str(tmp_path / "1"), processor, **options)
    exported = tf.saved_model.load(path).signatures
    found = exported["serving_default"](tf.constant(texts))
    wanted = model.generate(processor(texts), **options)["sequences"]
    np.testing.assert_array_equal(found["sequences"], wanted)
    assert [x.decode() for x in found["texts"].numpy()] == list(map(processor.decode, wanted))
    assert set(exported) == {"serving_default", "generate", "generate_text"}
    assert len(serving.GenerationRunner(path).numbers) == (3 if name == "longt5" else 4)


def test_what_has_no_sentence_pieces_or_too_few_rows_is_refused(tmp_path):
    model = longt5s.model()
    with pytest.raises(ValueError, match="`processor` must be given: the model has none"):
        serving.export_text_generation(model, str(tmp_path / "1"))
    processor = processor_of("longt5")
    processor.add_tokens([f"<{x}>" for x in range(500)])
    with pytest.raises(ValueError, match="more than the model's `vocab_size`, .*resize_token_emb"):
        serving.export_text_generation(model, str(tmp_path / "1"), processor)
