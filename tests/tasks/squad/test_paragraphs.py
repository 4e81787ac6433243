"""HotpotQA's questions for a reader of one text: the context, labels, losses and scores."""

import json
import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.models import span_readers
from etcmodel.tasks.squad import config as config_lib
from etcmodel.tasks.squad import examples, features, metrics
from tests.tasks.squad import small

SENTENCES = st.lists(
    st.sampled_from(["The red king.", " It was muddy.", " who"]), min_size=1, max_size=3
)
# Each paragraph has another title.
PARAGRAPHS = st.lists(SENTENCES, min_size=2, max_size=10).map(
    lambda found: [[f"Title {number}", list(x)] for number, x in enumerate(found)]
)


def raw_question(paragraphs, facts, answer="red king", **fields):
    own = {"_id": "q", "question": "who was it", "context": paragraphs, "type": "bridge"}
    return {**own, "supporting_facts": facts, "answer": answer, **fields}


def arranged(**options):
    return config_lib.ArrangementOptions(**options)


@hypothesis.given(PARAGRAPHS, st.data(), st.booleans(), st.booleans())
@hypothesis.settings(max_examples=80)
def test_paragraphs_become_one_context(paragraphs, data, separated, repeated):
    numbers = st.integers(0, len(paragraphs) - 1)
    gold = data.draw(st.lists(numbers, min_size=2, max_size=2, unique=True))
    facts = [[paragraphs[x][0], len(paragraphs[x][1]) - 1] for x in gold]
    options = arranged(gold_separated=separated, repeat_question=repeated)
    raw = raw_question(paragraphs, facts, _id=data.draw(st.text("abc", min_size=1)))
    example = examples.parse_example(raw, arrangement=options)
    parts = re.split(r"<a> yes no </a> ", example.context)[1:]
    order = [int(re.match(r"Title (\d+) ", part)[1]) for part in parts]
    ending = " who was it " if repeated else " "
    texts = [f"{title} {''.join(sentences)}{ending}" for title, sentences in paragraphs]
    assert parts == [texts[number] for number in order]
    if separated:
        first, last = sorted(order.index(x) for x in gold)
        assert first < 3 and last >= len(order) - 3
        rest = [x for x in order if x not in gold]
        assert rest == sorted(rest)
    else:
        assert order == [*range(len(paragraphs))]
    assert sorted(example.context[a:b] for a, b in example.facts) == sorted(
        paragraphs[x][1][-1] for x in gold
    )
    assert [x.text for x in example.answers] == ["red king"] and example.kind == "bridge"


def test_which_gold_paragraph_comes_first_depends_on_the_question():
    paragraphs = [[f"Title {x}", ["It was."]] for x in range(10)]
    facts = [["Title 4", 0], ["Title 5", 0]]
    starts = {
        examples.parse_example(
            raw_question(paragraphs, facts, _id=str(number)),
            arrangement=arranged(gold_separated=True),
        ).context.split("<a> yes no </a> ")[1][:7]
        for number in range(40)
    }
    assert starts == {"Title 0", "Title 4", "Title 5"}


def test_answers_are_whole_words_of_paragraphs_with_facts():
    paragraphs = [["A", ["red king"]], ["B red", ["reddish, red."]], ["C", ["The king."]]]
    facts = [["B red", 0], ["C", 0]]
    example = examples.parse_example(raw_question(paragraphs, facts, "red"), needs_labels=True)
    found = [example.context[x.start - 2 : x.end + 1] for x in example.answers]
    assert found == ["B red ", ", red."]
    # Only within a word, as the last resort.
    example = examples.parse_example(raw_question(paragraphs, facts, "ddis"), needs_labels=True)
    assert [example.context[x.start - 2 : x.end + 1] for x in example.answers] == ["reddish"]
    # The words for yes and no stand before each paragraph.
    example = examples.parse_example(raw_question(paragraphs, facts, "no"), needs_labels=True)
    assert [example.context[x.start - 8 : x.end + 10] for x in example.answers] == [
        "<a> yes no </a> B re",
        "<a> yes no </a> C Th",
    ]
    with pytest.raises(ValueError, match="'q': field `answer` must be in a paragraph with a supp"):
        examples.parse_example(raw_question(paragraphs, facts, "mud"), needs_labels=True)
    # Without labels nothing is searched, and the order of a file without facts stays.
    raw = {**raw_question(paragraphs, None, None), "supporting_facts": None}
    example = examples.parse_example(raw, arrangement=arranged(gold_separated=True))
    assert example.answers is None and example.context.index("A red") < example.context.index("C T")


def test_an_arrangement_needs_paragraphs():
    raw = small.raw_question("the red king", "red")
    with pytest.raises(
        ValueError, match="'q': field `context` must be a list of paragraphs.*--tag"
    ):
        examples.parse_example(raw, needs_labels=True, arrangement=arranged(tag_facts=True))
    assert examples.parse_example(raw, arrangement=arranged(repeat_question=True)).kind is None


def test_tokens_of_facts_are_tagged(tmp_path):
    tokenizer = small.tokenizer(tmp_path)
    raw = raw_question([["it", ["The red", " king ."]], ["mud", ["green"]]], [["it", 1]], "king")
    options = small.input_config(tag_facts=True, long_seq_length=48)
    example = examples.parse_example(raw, True, options)
    ((window,), _) = features.make_features(example, options, options.make_processor(tokenizer))
    tokens = np.array(tokenizer.convert_ids_to_tokens(window["token_ids"]))
    assert tokens[np.flatnonzero(window["labels/facts"])].tolist() == ["king", "."]
    assert tokens[np.flatnonzero(window["labels/starts"])].tolist() == ["king"]


def test_facts_weigh_as_much_as_all_other_tokens():
    rng = np.random.default_rng(0)
    logits, tags = rng.normal(size=[3, 7, 2]), rng.integers(0, 2, [3, 7])
    tags[1] = 0  # A window without a fact.
    is_token = np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 3 + [0] * 4])
    wanted = []
    for row in range(3):
        costs = {0: [], 1: []}
        for place in np.flatnonzero(is_token[row]):
            shares = np.exp(logits[row, place]) / np.exp(logits[row, place]).sum()
            costs[tags[row, place]].append(-np.log(shares[tags[row, place]]))
        wanted.append(np.mean([np.mean(x) for x in costs.values() if x]))
    found = span_readers.facts_loss(
        {"facts": tf.constant(logits, tf.float32)},
        {"labels/facts": tf.constant(tags), "example_ids": tf.constant(is_token)},
    )
    np.testing.assert_allclose(found, np.mean(wanted), rtol=1e-6)


def test_the_question_is_memory(tmp_path):
    tokenizer = small.tokenizer(tmp_path)
    options = small.input_config(is_training=False)
    encoder = etcmodel.GmatConfig(
        vocab_size=19, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, chunk_size=4
    )
    batch = [
        features.make_features(
            examples.parse_example(small.raw_question(question=question)),
            options,
            options.make_processor(tokenizer),
        )[0][0]
        for question in ("who was it", "red green king of it")
    ]
    names = ("token_ids", "segment_ids", "example_ids", "links")
    batch = {name: tf.constant([row[name] for row in batch], tf.int32) for name in names}
    for size, rows in ((2, [[1, 1], [1, 1]]), (4, [[1, 1, 1, 0], [1] * 4]), (40, None)):
        config = etcmodel.GmatConfig.from_dict({**encoder.to_dict(), "num_memory_tokens": size})
        reader = span_readers.make_span_reader(config, question_as_memory=True)
        read = reader.read(batch)
        mask = read["memory_mask"].numpy()
        assert mask.sum(axis=1).tolist() == [min(3, size), min(5, size)]
        assert rows is None or mask.tolist() == rows
        questions = [read["input_ids"][row, 1 : 1 + mask[row].sum()] for row in range(2)]
        for row in range(2):
            np.testing.assert_array_equal(
                read["memory_ids"][row, : mask[row].sum()], questions[row]
            )
        plain = span_readers.make_span_reader(config)
        plain.set_weights(reader.get_weights())
        wanted = plain.encoder(**read)[0]
        other = plain.encoder(**plain.read(batch))[0]
        found = reader.encoder(**reader.read(batch))[0]
        np.testing.assert_array_equal(found, wanted)
        assert np.abs(found - other).max() > 1e-4
    with pytest.raises(ValueError, match="in a GMAT alone, not in 'longformer'"):
        span_readers.make_span_reader(etcmodel.LongformerConfig(), question_as_memory=True)
    with pytest.raises(ValueError, match="of a GMAT with memory alone.*`num_memory_tokens` is 0"):
        none = etcmodel.GmatConfig.from_dict({**encoder.to_dict(), "num_memory_tokens": 0})
        span_readers.make_span_reader(none, question_as_memory=True)


def test_scores_are_hotpotqas_and_by_kind(tmp_path):
    path = tmp_path / "dev.json"
    raws = [
        raw_question([["A", ["red king"]]], [["A", 0]], answer, _id=key, type=kind)
        for key, answer, kind in (
            ("a", "yes", "comparison"),
            ("b", "red king", "bridge"),
            ("c", "no", "comparison"),
        )
    ]
    path.write_text(json.dumps(raws), encoding="utf-8")
    gold = list(examples.read_examples(str(path)))
    # SQuAD's overlap of "yes" and "yes it is" is not 0.
    found = metrics.metrics(gold, {"a": "yes it is", "b": "the king", "c": "No."})
    assert found == pytest.approx(
        {
            "exact_match": 1 / 3,
            "f1": (0 + 2 / 3 + 1) / 3,
            "bridge_exact_match": 0,
            "bridge_f1": 2 / 3,
            "comparison_exact_match": 1 / 2,
            "comparison_f1": 1 / 2,
        }
    )
