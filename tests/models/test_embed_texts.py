"""`EtcModel.embed` of texts: a vector for each of them, of what the processor makes of it."""

import numpy as np
import pytest

from etcmodel.models import modeling
from tests.models import text_cases

TEXTS = ["a b. c d.", "the wey is long. it is.", "e"]


def make_model(folder, relative_vocab_size=24, **settings):
    processor = text_cases.processor(folder, **settings)
    config = text_cases.config(
        processor, num_hidden_layers=1, relative_vocab_size=relative_vocab_size
    )
    model = modeling.EtcModel(config)
    model.processor = processor
    return model


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("names", [(), ("part_of",), text_cases.RELATIONS])
def test_the_relations_are_those_of_the_processor(tmp_path, names):
    model = make_model(tmp_path, relation_names=names)
    found = model.embed(TEXTS)
    assert found.shape == (3, 16)
    np.testing.assert_array_equal(found, model.embed(model.processor(TEXTS), relation_names=names))


def test_relations_that_texts_have_none_of_change_nothing(tmp_path):
    model = make_model(tmp_path)
    found = model.embed(TEXTS)
    model.processor = text_cases.processor(tmp_path, relation_names=())
    np.testing.assert_allclose(found, model.embed(TEXTS), atol=1e-6)
    assert len({row.tobytes() for row in found.numpy()}) == len(TEXTS)


def test_more_relations_than_the_model_has_labels_for_are_told(tmp_path):
    model = make_model(tmp_path, relative_vocab_size=12, relation_names=("part_of",))
    with pytest.raises(ValueError, match=r"leaves 0 free. Received 1 names: \['part_of'\]"):
        model.embed(TEXTS)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"stride": 2, "max_long_len": 7}, "the processor has `stride`, 2: give the batch, `model"),
        ({"pack": True, "max_long_len": 90, "max_global_len": 9}, "the processor has `pack`, True"),
    ],
)
def test_a_processor_that_makes_more_or_fewer_rows_than_texts_is_refused(
    tmp_path, settings, message
):
    model = make_model(tmp_path, relation_names=(), **settings)
    assert len(model.processor(TEXTS)["token_ids"]) != len(TEXTS)
    with pytest.raises(ValueError, match=f"Each text must be one row, but {message}"):
        model.embed(TEXTS)


def test_texts_need_a_processor(tmp_path):
    model = make_model(tmp_path)
    model.processor = None
    with pytest.raises(ValueError, match="Texts need a processor: set `model.processor`"):
        model.embed(TEXTS)
