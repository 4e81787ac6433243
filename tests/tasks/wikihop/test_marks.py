"""Marked candidates: Longformer's form of WikiHop, for several encoders."""

import json
import pathlib
import random
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel.checkpoints import names
from etcmodel.models import encoders, processed_batches
from etcmodel.models.processed_batches import GLOBAL_FEATURES, LONG_FEATURES
from etcmodel.tasks.wikihop import examples, features, metrics, model, predict
from etcmodel.tasks.wikihop.config import MARKS, WikiHopConfig, WikiHopInputConfig
from etcmodel.text.word_vocabulary import build_vocabulary
from tests.reference import cases
from tests.tasks import programs, small_encoders
from tests.tasks.wikihop import tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

REAL_EXAMPLE = pathlib.Path(__file__).parents[4] / "shared" / "real" / "wikihop_1.json"
KINDS = ("longformer", "etc", "gmat", "big_bird", "modernbert")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizers.wordpiece(tmp_path_factory.mktemp("vocab"), MARKS)


def input_config(**fields):
    lengths = {"long_seq_length": 24, "global_seq_length": 8}
    return WikiHopInputConfig(**{"candidates_as": "marks", **lengths, **fields})


START = (
    "[CLS] [q] country ember mill [/q] [ent] avaria [/ent] [ent] belmark [/ent] "
    "[ent] new belmark [/ent]"
)
CHUNKS = (
    f"{START} [SEP] ember mill is far [SEP]",
    f"{START} [SEP] it is near . [SEP]",
)
SUPPORTS = ["Ember Mill is far", "It is near."]


def made(tokenizer, supports=SUPPORTS, **fields):
    example = examples.parse_example(raw_example(supports=supports))
    return features.make_marked_features(example, input_config(**fields), tokenizer)


def test_each_chunk_has_all_candidates_and_the_next_part_of_the_documents(tokenizer):
    found = made(tokenizer, long_seq_length=22, max_num_chunks=3)
    assert found[1:] == (22 * 2, 2, 0)
    ids = np.reshape(found.features["token_ids"], [3, 22])
    is_real = np.reshape(found.features["example_ids"], [3, 22]) > 0
    texts = [
        " ".join(tokenizer.convert_ids_to_tokens(x[y])) for x, y in zip(ids, is_real, strict=True)
    ]
    assert texts == [*CHUNKS, ""]
    segments = np.reshape(found.features["segment_ids"], [3, 22])
    assert segments[1].tolist() == [0] * 16 + [1] * 6
    # The candidates, the question, [CLS]; the documents belong to the latter.
    globals_ = found.features["global_token_ids"]
    assert tokenizer.convert_ids_to_tokens(globals_[:5]) == [*["[ent]"] * 3, "[q]", "[CLS]"]
    links = np.reshape(found.features["links"], [3, 22])
    wanted = [4, *[3] * 5, *[0] * 3, *[1] * 3, *[2] * 4, *[4] * 6]
    assert links.tolist() == [wanted, wanted, [-1] * 22]
    places = found.features["candidate_places"]
    assert [texts[1].split()[x] for x in places[:3]] == ["[ent]"] * 3 and not any(places[3:])
    assert found.features["label_id"] == [0.0]


@pytest.mark.skipif(not REAL_EXAMPLE.exists(), reason="There is no true example here.")
def test_a_true_example_is_whole_in_its_chunks(tokenizer):
    (example,) = examples.read_examples(str(REAL_EXAMPLE))
    lengths = {"long_seq_length": 1024, "max_num_chunks": 9}  # In characters, mostly.
    found = features.make_marked_features(example, input_config(**lengths), tokenizer)
    assert found.num_chunks > 1 and not found.num_tokens_left_out
    ids, segments = (np.reshape(found.features[x], [9, 1024]) for x in ("token_ids", "segment_ids"))
    documents = [["[SEP]", *tokenizer.tokenize(x), "[SEP]"] for x in example.documents]
    assert tokenizer.convert_ids_to_tokens(ids[segments == 1]) == sum(documents, [])
    for chunk in ids[: found.num_chunks]:
        for place, text in zip(
            found.features["candidate_places"], example.candidates, strict=False
        ):
            marked = ["[ent]", *tokenizer.tokenize(text), "[/ent]"]
            assert tokenizer.convert_ids_to_tokens(chunk[place : place + len(marked)]) == marked
    assert example.candidates[int(found.features["label_id"][0])] == example.answer


def test_what_does_not_fit_is_cut_or_an_error_that_names_the_example(tokenizer):
    found = made(tokenizer, long_seq_length=22, max_num_chunks=1)
    assert found[1:] == (22, 1, 6)
    for name, needed in (("long", 17), ("global", 5)):
        field = {f"{name}_seq_length": needed - 1}
        told = f"example 'w1': the candidates and the query need {needed} {name} tokens, more than"
        with pytest.raises(ValueError, match=told):
            made(tokenizer, **field)
        made(tokenizer, **{f"{name}_seq_length": needed})
    with pytest.raises(ValueError, match="example 'w1': field `candidates`: ' ' has no tokens"):
        raw = raw_example(candidates=["avaria", " "])
        features.make_marked_features(examples.parse_example(raw), input_config(), tokenizer)


def test_a_vocabulary_without_marks_and_options_of_etc_are_refused(tmp_path):
    unmarked = tokenizers.wordpiece(tmp_path)
    with pytest.raises(ValueError, match=r"lacks the tokens \[q\], .*`model.processor.add_tokens`"):
        input_config().check_tokenizer(unmarked)
    longformer = etcmodel.LongformerConfig(max_position_embeddings=4098)
    with pytest.raises(ValueError, match="--flat_sequence is for --candidates_as=global"):
        WikiHopConfig(encoder_config=longformer, candidates_as="marks", flat_sequence=True)
    with pytest.raises(ValueError, match="'longformer'. Or preprocess with --candidates_as=marks"):
        WikiHopConfig(encoder_config=longformer)


def small_config(kind, vocab_size, **fields):
    return small_encoders.config(kind, vocab_size, 96, **fields)


def batch_of(rows, num_chunks, length):
    def shaped(name, values):
        return np.reshape(values, [num_chunks, length] if name in LONG_FEATURES else [-1])

    names = (*LONG_FEATURES, *GLOBAL_FEATURES, "candidate_places")
    return {x: tf.constant(np.stack([shaped(x, y[x]) for y in rows]), tf.int32) for x in names}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_mean_over_the_chunks_of_an_example_whatever_else_is_in_the_batch(
    kind, tokenizer
):
    config = small_config(kind, len(tokenizer.vocab))
    ours, skipping = (model.MarkedWikiHopModel(config, skip_padding=x) for x in (False, True))
    lengths = {"long_seq_length": 30, "max_num_chunks": 3}
    long = [made(tokenizer, [*SUPPORTS, *SUPPORTS], **lengths).features]
    rows = [*long, made(tokenizer, SUPPORTS[:1], **lengths).features]
    batch = batch_of(rows, 3, 30)
    outputs = ours(batch)
    scope = encoders.encoder_type(kind).scope  # As in a checkpoint that it starts from.
    assert {x.partition("/")[0] for x in names.encoder_variables(ours)} == {scope}
    skipping.build()
    skipping.set_weights(ours.get_weights())
    for row, of_row in enumerate(rows):
        one = {name: x[row] for name, x in batch.items()}
        scores = []
        for chunk in range(3):
            if not np.any(one["example_ids"][chunk]):
                continue
            of_chunk = {x: one[x][tf.newaxis, chunk] for x in LONG_FEATURES}
            of_chunk |= {x: one[x][tf.newaxis] for x in GLOBAL_FEATURES}
            if kind == "longformer":
                is_start = (of_chunk["segment_ids"] == 0) & (of_chunk["example_ids"] == 1)
                of_chunk["global_attention_mask"] = tf.cast(is_start, tf.int32)
            logits = ours.tagger(of_chunk)["logits"].numpy()[0, :, 0]
            scores.append(logits[of_row["candidate_places"][:3]])
        assert len(scores) == (2, 1)[row]
        wanted = [*np.mean(scores, axis=0), *[model.MASKED_LOGIT] * 5]
        np.testing.assert_allclose(outputs["logits"][row], wanted, atol=2e-5)
    for name, found in skipping(batch).items():
        np.testing.assert_allclose(found, outputs[name], atol=2e-5)


def test_padding_stays_where_attention_depends_on_the_length_of_the_row(tokenizer):
    """The last block of BigBird's rows is global, and random blocks are drawn by their number."""
    sparse = {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1}
    config = small_config("big_bird", len(tokenizer.vocab), **sparse)
    ours, skipping = (model.MarkedWikiHopModel(config, skip_padding=x) for x in (False, True))
    lengths = {"long_seq_length": 64, "max_num_chunks": 1}
    batch = batch_of([made(tokenizer, **lengths).features], 1, 64)
    wanted = ours(batch)["logits"]
    skipping.build()
    skipping.set_weights(ours.get_weights())
    np.testing.assert_allclose(skipping(batch)["logits"], wanted, atol=2e-5)


def test_the_start_is_global_in_longformer(tokenizer):
    config = small_config("longformer", len(tokenizer.vocab))
    ours = model.MarkedWikiHopModel(config)
    far = "Belmark is near . " * 10
    with mock.patch.object(type(ours.tagger), "read", processed_batches.ReadsProcessed.read):
        local = ours(batch_of([made(tokenizer, [far], long_seq_length=64).features], 4, 64))
    found = ours(batch_of([made(tokenizer, [far], long_seq_length=64).features], 4, 64))
    assert np.abs(found["logits"][0, :3] - local["logits"][0, :3]).max() > 1e-3


CITIES = {"avaria": "tarn", "belmark": "osset", "corsend": "pell", "dalmora": "quint"}


def make_example(rng, index):
    """A question whose answer is the country of the city in one of the documents."""
    answer, *others = rng.sample(sorted(CITIES), 3)
    supports = ["It is old.", "It is far.", f"It is near {CITIES[answer]}."]
    rng.shuffle(supports)
    return {
        "id": str(index),
        "query": "country of it",
        "answer": answer,
        "candidates": sorted([answer, *others]),
        "supports": supports,
    }


def make_raw_files(folder):
    """The paths of two raw files, by name."""
    rng = random.Random(0)
    raws = {"train": [make_example(rng, x) for x in range(1000)]}
    raws["dev"] = [make_example(rng, x) for x in range(100)]
    paths = {name: folder / f"{name}.json" for name in raws}
    for name, rows in raws.items():
        paths[name].write_text(json.dumps(rows), encoding="utf-8")
    return paths


def words_and_config(kind, folder):
    """Flags of preprocessing and of training: a vocabulary of words, a config of random weights."""
    words = [*build_vocabulary([*CITIES, *CITIES.values(), "country of it is old far near."])]
    vocabulary, config = folder / "vocab.txt", folder / "config.json"
    vocabulary.write_text("\n".join([*words, *MARKS]) + "\n", encoding="utf-8")
    config.write_text(small_config(kind, len([*words, *MARKS])).to_json_string())
    return {"vocab_file": vocabulary}, {"vocab_file": vocabulary, "model_config_file": config}


def marked_longformer(folder):
    """Flags that name a Longformer with RoBERTa's kind of pieces, to which the marks were added."""
    pieces = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"
    plain = etcmodel.LongformerModel(small_config("longformer", 2000, type_vocab_size=1))
    tokenizer = etcmodel.LongformerProcessor(str(pieces)).tokenizer
    plain.build(None)
    etcmodel.save_pretrained(plain, folder / "plain", tokenizer)
    model = etcmodel.from_pretrained(folder / "plain")
    model.processor.add_tokens([*MARKS])
    model.resize_token_embeddings()
    model.save_pretrained(folder / "longformer_marked")
    flags = {"init_checkpoint": folder / "longformer_marked"}
    return flags, flags


BYTE_LEVEL = "longformer in bytes"


@pytest.mark.slow
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("kind", [BYTE_LEVEL, *KINDS])
def test_learns_evaluates_exports_and_predicts(kind, tmp_path, capsys):
    paths = make_raw_files(tmp_path)
    is_byte_level = kind == BYTE_LEVEL
    made_with, trained_with = (
        marked_longformer(tmp_path) if is_byte_level else words_and_config(kind, tmp_path)
    )
    programs.run(
        "wikihop",
        "preprocess",
        input_pattern=paths["train"],
        dev_input_pattern=paths["dev"],
        output_dir=tmp_path / "records",
        num_shards=1,
        strict=True,
        candidates_as="marks",
        long_seq_length=44 if is_byte_level else 26,
        global_seq_length=5,
        max_num_chunks=2,
        **made_with,
    )
    run = tmp_path / "run"
    programs.fine_tune(
        "wikihop",
        run_mode="train",
        train_data=tmp_path / "records" / "train" / "tf_examples*",
        output_dir=run,
        train_batch_size=16,
        learning_rate=3e-3,
        num_train_epochs=5,
        skip_padding=True,
        **trained_with,
    )
    dev = tmp_path / "records" / "dev" / "tf_examples*"
    told = {"eval_data": dev, "eval_gold": paths["dev"]}
    programs.fine_tune("wikihop", run_mode="evaluate", output_dir=run, **told)
    accuracy = json.loads(capsys.readouterr().out.splitlines()[-1])["accuracy"]
    gold = list(examples.read_examples(str(paths["dev"])))
    first = metrics.metrics(gold, {e.example_id: e.candidates[0] for e in gold})["accuracy"]
    # No candidate is in the documents: the first one is as good as one that is mentioned most.
    assert accuracy > max(1 / 3, first) + 0.2
    predictions = json.loads((run / "predictions.json").read_text())
    assert metrics.metrics(gold, predictions) == {"accuracy": pytest.approx(accuracy)}

    programs.fine_tune("wikihop", run_mode="export", output_dir=run)
    answers = tmp_path / "answers.json"
    programs.fine_tune(
        "wikihop",
        run_mode="predict",
        export_dir=run / "export",
        input_file=paths["dev"],
        predictions_file=answers,
    )
    assert json.loads(answers.read_text()) == predictions
    raw = {**json.loads(paths["dev"].read_text())[0], "answer": "of no matter"}
    predictor = predict.WikiHopPredictor(str(run / "export"))
    assert predictor.predict_one(raw) == predictions[raw["id"]]
