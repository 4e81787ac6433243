"""From texts of each kind to the outputs of heads: what else is in a batch changes nothing."""

import json

import numpy as np
import pytest
import tf_keras

from etcmodel.models import heads
from etcmodel.text.answers import best_answer
from tests.models import text_cases
from tests.models.text_cases import EXAMPLES, RELATIONS

LENGTHS = {"max_long_len": 160, "max_global_len": 32}
every_kind = pytest.mark.parametrize("kind", EXAMPLES)


@pytest.fixture(scope="module")
def processor(tmp_path_factory):
    return text_cases.processor(tmp_path_factory.mktemp("vocab"))


@pytest.fixture(scope="module")
def models(processor):
    """A classifier and a question answerer with the same encoder.

    The latter without types of answers, which would be one a row, so that rows may be packed.
    """
    tf_keras.utils.set_random_seed(0)
    config = text_cases.config(processor)
    classifier = heads.EtcForSequenceClassification(config, relation_names=RELATIONS)
    return classifier, heads.EtcForQuestionAnswering(
        classifier.encoder, answer_types=(), relation_names=RELATIONS
    )


def by_window(batch, outputs):
    """Of each window of each example the logits of its own tokens, by output."""
    found = {}
    for x in batch.encodings:
        long = slice(x.place, x.place + len(x.token_ids))
        side = slice(x.global_place, x.global_place + len(x.global_ids))
        places = {"start": long, "end": long, "evidence": side}
        found[x.example, x.window] = {
            name: outputs[name].numpy()[x.row, where] for name, where in places.items()
        }
    return found


def assert_same(found, expected):
    assert list(found) == list(expected)
    for window, outputs in expected.items():
        for name, logits in outputs.items():
            np.testing.assert_allclose(found[window][name], logits, atol=1e-5, err_msg=name)


@pytest.mark.quick_cases(1)
@every_kind
def test_padding_and_other_examples_of_a_batch_change_nothing(processor, models, kind):
    classifier, answerer = models
    alone = processor(EXAMPLES[kind])
    wide = processor(EXAMPLES[kind], settings={**LENGTHS, "pad_to": "max"})
    assert wide["token_ids"].shape == (1, 160) and alone["token_ids"].shape[1] < 160
    together = processor([*EXAMPLES.values()])
    row = [*EXAMPLES].index(kind)

    expected = classifier(alone).numpy()
    assert expected.shape == (1, 2) and np.ptp(expected) > 1e-3
    np.testing.assert_allclose(classifier(wide), expected, atol=1e-5)
    np.testing.assert_allclose(classifier(together)[row : row + 1], expected, atol=1e-5)

    expected = by_window(alone, answerer(alone))
    assert all(np.ptp(logits) > 1e-3 for logits in expected[0, 0].values())
    assert_same(by_window(wide, answerer(wide)), expected)
    found = by_window(together, answerer(together))
    assert_same({(0, 0): found[row, 0]}, expected)


def test_examples_that_share_a_row_are_as_if_alone(processor, models):
    classifier, answerer = models
    examples = [*EXAMPLES.values()]
    packed = processor(examples, settings={**LENGTHS, "pack": True})
    assert len(packed["token_ids"]) < len(examples)
    expected = {}
    for number, example in enumerate(examples):
        alone = processor(example)
        expected[number, 0] = by_window(alone, answerer(alone))[0, 0]
        if number == 1:
            answer = best_answer(alone, *(answerer(alone)[x] for x in ("start", "end")))
    outputs = answerer(packed)
    assert_same(by_window(packed, outputs), expected)
    found = best_answer(packed, outputs["start"], outputs["end"], example=1)
    assert found[:4] == answer[:4]
    with pytest.raises(ValueError, match="`example_ids` must .* below 2, one example a row"):
        classifier(packed)


def test_windows_are_as_if_alone(processor, models):
    _, answerer = models
    examples = [EXAMPLES["documents"], EXAMPLES["html"]]
    settings = {"max_long_len": 30, "max_global_len": 32, "stride": 4}
    batch = processor(examples, settings=settings)
    assert len(batch.encodings) > 4
    expected = by_window(batch, answerer(batch))
    one_a_call = {}
    for row, encoding in enumerate(batch.encodings):
        outputs = answerer({name: array[row : row + 1] for name, array in batch.items()})
        found = {name: logits[0] for name, logits in outputs.items()}
        side = {"start": encoding.token_ids, "end": encoding.token_ids}
        side["evidence"] = encoding.global_ids
        key = (encoding.example, encoding.window)
        one_a_call[key] = {name: found[name][: len(x)] for name, x in side.items()}
    assert_same(one_a_call, expected)
    packed = processor(examples, settings={**settings, "max_long_len": 30, "pack": True})
    assert_same(by_window(packed, answerer(packed)), expected)
    fits = processor(examples, settings={**LENGTHS, "stride": 4})
    whole = processor(examples)
    assert_same(by_window(fits, answerer(fits)), by_window(whole, answerer(whole)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "kind, names",
    [
        ("documents", ["part_of"]),
        ("sections", ["part_of"]),
        ("table", ["row", "column", "header"]),
        ("html", ["part_of", "under", "link", "mentions"]),
        ("graph", ["father", "sister"]),
    ],
)
def test_every_relation_of_an_example_tells_in_its_outputs(processor, models, kind, names):
    _, answerer = models
    batch = processor(EXAMPLES[kind])
    expected = answerer(batch)
    for name in names:
        (feature,) = {f"edges/{name}", f"links/{name}"} & set(batch)
        without = {**batch, feature: np.full([1, 1, 2], -1, np.int32)}
        found = answerer(without)
        assert max(np.abs(found[x] - expected[x]).max() for x in expected) > 1e-3, name


@pytest.mark.exhaustive
def test_json_lines_are_the_examples(processor, models, tmp_path):
    classifier, _ = models
    lines = [json.dumps(x if isinstance(x, dict) else {"text": x}) for x in EXAMPLES.values()]
    path = tmp_path / "examples.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = classifier.predict(processor.dataset(str(path), batch_size=4), verbose=0)
    expected = classifier(processor([*EXAMPLES.values()]))
    np.testing.assert_allclose(found, expected, atol=1e-5)
