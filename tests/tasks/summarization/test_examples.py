"""From raw documents to features and records, and ROUGE."""

import gzip
import json
import pathlib

import pytest
import tensorflow as tf

from etcmodel.preprocessing import program
from etcmodel.tasks.summarization import examples, metrics, preprocess
from etcmodel.tasks.summarization import features as summarization_features
from tests.tasks.summarization.raw_documents import input_config, tokenizer, write_vocab

ARXIV = {
    "article_id": "a1",
    "article_text": ["rain fell .", "the sun was long ."],
    "abstract_text": ["<S> rain fell . </S>", "<S> sun . </S>"],
    "section_names": ["i"],
}


def parsed(raw, **options):
    return examples.parse_example(raw, input_config(**options), "file:3")


def test_the_layouts():
    wanted = examples.SummaryExample("a1", "rain fell . the sun was long .", "rain fell .\nsun .")
    assert parsed(ARXIV) == wanted
    plain = examples.SummaryExample("file:3", "rain fell", "rain")
    assert parsed({"text": "rain fell", "summary": "rain"}) == plain
    assert parsed({"document": "rain fell", "summary": "rain"}) == plain
    assert parsed({"id": 4, "document": "a", "summary": "b\nc"}).example_id == "4"
    other = parsed(
        {"body": "rain fell", "tl": "rain"}, text_fields=("body",), summary_fields=("tl",)
    )
    assert other == plain


def test_a_missing_field_is_named():
    with pytest.raises(ValueError, match="example 'x': field `summary` is missing"):
        parsed({"id": "x", "text": "rain"})
    unknown = examples.parse_example({"id": "x", "text": "rain"}, input_config(), "", False)
    assert unknown.summary is None


def test_features_are_padded_or_cut(tmp_path):
    words = tokenizer(tmp_path)
    rain, fell, sun, dot = (words.vocab[f"Ġ{x}"] for x in ("rain", "fell", "sun", "."))
    example = examples.SummaryExample("a", "rain fell .", "rain fell .\nsun . sun")
    features, left_out = summarization_features.make_features(example, input_config(), words)
    assert features == {
        "example_id": ["a"],
        "input_ids": [0, rain, fell, dot, 2, 1, 1, 1],
        "attention_mask": [1] * 5 + [0] * 3,
        "tokens_left_out": [0],
        "labels": [0, rain, fell, dot, sun, 2],
        "summary": ["rain fell .\nsun . sun"],
    }
    assert left_out == 2
    cut, _ = summarization_features.make_features(example, input_config(long_seq_length=4), words)
    assert cut["input_ids"] == [0, rain, fell, 2] and cut["tokens_left_out"] == [1]
    short, _ = summarization_features.make_features(example, input_config(target_length=12), words)
    assert short["labels"] == [0, rain, fell, dot, sun, dot, sun, 2, *[-100] * 4]


def test_records_and_statistics(tmp_path):
    raws = [ARXIV, {"text": "rain"}, {"text": "sun fell", "summary": "sun"}]
    text = "".join(f"{json.dumps(raw)}\n" for raw in raws) + '{"text": \n'
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    options = preprocess.PreprocessOptions(
        input_pattern=str(tmp_path / "train.jsonl.gz"),
        output_prefix=str(tmp_path / "train"),
        vocab_file=write_vocab(tmp_path),
        num_shards=1,
        long_seq_length=8,
        target_length=6,
    )
    ((prefix, statistics),) = program.run(options, preprocess.load_parts)
    found = {
        record.features.feature["example_id"].bytes_list.value[0].decode(): list(
            record.features.feature["tokens_left_out"].int64_list.value
        )
        for record in map(
            tf.train.Example.FromString,
            tf.data.TFRecordDataset(f"{prefix}-00000-of-00001.tfrecord").as_numpy_iterator(),
        )
    }
    assert found == {"a1": [2], "train.jsonl.gz:3": [0]}
    assert statistics["documents_truncated"] == statistics["summaries_truncated"] == 1
    no_summary, no_json = statistics["bad_examples"]
    assert "line 2: example 'train.jsonl.gz:2': field `summary` is missing" in no_summary
    assert "line 4: malformed JSON" in no_json
    settings = json.loads(pathlib.Path(f"{prefix}.config.json").read_text(encoding="utf-8"))
    assert settings["tokenizer"] == "byte_level_bpe" and settings["target_length"] == 6


def test_an_option_of_encoders_is_refused(tmp_path):
    factory = summarization_features.ConverterFactory(
        vocab_file=write_vocab(tmp_path),
        spm_model_file="",
        do_lower_case=True,
        fields={"piece_id_offset": 0},
        split_punctuation=True,
    )
    with pytest.raises(ValueError, match="`split_punctuation` must be left out"):
        factory.tokenizer()


def test_sentences_are_lines_or_end_with_a_dot():
    assert metrics.sentence_lines("a b . c d ! e") == "a b .\nc d !\ne"
    assert metrics.sentence_lines("a . b\n\n c . d \n") == "a . b\nc . d"
    assert metrics.sentence_lines("") == ""


def test_rouge_by_hand():
    # Of 4 and 5 words, 3 are common; of 3 and 4 pairs 1; the longest common sequence is 3 words.
    found = metrics.rouge([("the cat sat down", "the cat is sitting down")])
    assert found == pytest.approx(
        {"rouge1": 6 / 9, "rouge2": 2 / 7, "rougeL": 6 / 9, "rougeLsum": 6 / 9}
    )
    # Sentences in another order cost nothing in the last one alone.
    swapped = metrics.rouge([("e f g h . a b c d .", "a b c d .\ne f g h .")])
    assert (swapped["rougeL"], swapped["rougeLsum"]) == (pytest.approx(0.5), pytest.approx(1.0))
    # The stemmer makes "reports" of "reported"; numbers are means.
    assert metrics.rouge([("reported", "reports"), ("a", "b")])["rouge1"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="There is no summary to evaluate"):
        metrics.rouge([])
