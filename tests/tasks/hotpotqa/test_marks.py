"""Marked evidence: Longformer's two stages of HotpotQA, for several encoders."""

import collections
import dataclasses
import itertools
import json
import pathlib
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from etcmodel import checkpoints, finetuning
from etcmodel.checkpoints import names
from etcmodel.models import encoders
from etcmodel.preprocessing import program
from etcmodel.tasks.hotpotqa import examples, marks, metrics, model, predict, preprocess
from etcmodel.tasks.hotpotqa.config import MARKS, HotpotQaConfig, HotpotQAInputConfig, Kind
from etcmodel.text.word_vocabulary import build_vocabulary
from tests import page, vocabularies
from tests.reference import cases
from tests.tasks import programs, small_encoders
from tests.tasks.hotpotqa.raw_examples import raw_example

REAL_EXAMPLES = pathlib.Path(__file__).parents[4] / "shared" / "real" / "hotpotqa_10.json"
KINDS = ("longformer", "gmat", "big_bird", "modernbert")
GOOD = ("avaria", "belmark", "corsend")
OTHERS = ("dalmora", "estovia", "farland", "gravonia", "ilmaria")
COLORS = ("red", "blue", "green", "pink", "gray", "black")


def make_example(rng, index):
    """A question whose answer is in one of the two paragraphs with a title of `GOOD`."""
    titles = [*rng.sample(GOOD, 2), *rng.sample(OTHERS, 4)]
    rng.shuffle(titles)
    context, facts = [], []
    colored = rng.choice([x for x in titles if x in GOOD])
    colors = dict(zip(titles, rng.sample(COLORS, 6), strict=True))
    for title in titles:
        fact = f" {title} is by the sea ."
        if title == colored or title in OTHERS:
            fact = f" {title} is {colors[title]} ."
        sentences = [f" {title} is old .", fact]
        rng.shuffle(sentences)
        context.append([title, sentences])
        if title in GOOD:
            facts.append([title, sentences.index(fact)])
    is_closed = rng.random() < 0.3
    answer = rng.choice(("yes", "no")) if is_closed else colors[colored]
    question = {"yes": "is it so ?", "no": "is it not ?"}.get(answer, "which color ?")
    return {
        "_id": str(index),
        "question": question,
        "answer": answer,
        "supporting_facts": facts,
        "context": context,
    }


def make_data(folder, num_train=1000, num_dev=100):
    """Raw files and a vocabulary, by name."""
    rng = random.Random(0)
    rows = {"train": [make_example(rng, x) for x in range(num_train)]}
    rows["dev"] = [make_example(rng, x) for x in range(num_dev)]
    paths = {name: str(folder / f"{name}.json") for name in (*rows, "vocab")}
    for name, raws in rows.items():
        pathlib.Path(paths[name]).write_text(json.dumps(raws), encoding="utf-8")
    others = "which color is it so not ? old . by the sea"
    words = build_vocabulary([*GOOD, *OTHERS, *COLORS, others])
    paths["vocab"] = str(folder / "vocab.txt")
    pathlib.Path(paths["vocab"]).write_text("\n".join([*words, *MARKS]) + "\n", encoding="utf-8")
    return paths


RAW = raw_example()
TEXTS = [RAW["question"], *itertools.chain(*([x, *y] for x, y in RAW["context"]))]
tokenizer = vocabularies.fixture([*build_vocabulary(TEXTS), *MARKS])


def input_config(**fields):
    return HotpotQAInputConfig(**{"evidence_as": "marks", "long_seq_length": 60, **fields})


def made(tokenizer, raw=None, kept=None, **fields):
    example = examples.parse_example(raw or raw_example())
    return marks.make_features(example, input_config(**fields), tokenizer, kept)


TEXT = (
    *("[CLS]", "[q]", "what", "is", "red", "?", "[/q]"),
    *("<t>", "two", "</t>", "the", "song", "sings", ".", "[s]"),
    *("a", "song", "of", "it", ".", "[s]"),
    *("<t>", "one", "</t>", "green", "and", "blue", ".", "[s]"),
    *("the", "rose", "is", "red", ".", "[s]"),
)


def slow_kind(place):
    """What the token of `TEXT` is, by its looks."""
    looks = {"<t>": Kind.TITLE, "</t>": Kind.TITLE_END, "[s]": Kind.SENTENCE}
    return Kind.QUESTION if place < 7 else looks.get(TEXT[place], Kind.TEXT)


def test_the_text_has_the_papers_marks_and_labels_at_those_of_the_evidence(tokenizer):
    found = made(tokenizer, is_training=True, debug=True)
    assert found[1:] == (None, len(TEXT), 0, 0)
    assert found.features["long_tokens"] == [*TEXT]
    kinds = found.features["kinds"]
    assert kinds == [*map(slow_kind, range(len(TEXT))), *[Kind.PADDING] * (60 - len(TEXT))]
    labels = np.flatnonzero(found.features["supporting_facts"]).tolist()
    second = TEXT.index("<t>", 8)
    assert labels == [second, len(TEXT) - 1]
    assert found.features["answer_types"] == [0]
    assert found.features["answer_begins"] == found.features["answer_ends"] == [len(TEXT) - 5]
    # Each token's characters are its own, in the text of its title or sentence.
    parts = marks.parts_of(examples.parse_example(raw_example()))
    columns = (found.features[name] for name in ("kinds", *marks.DECODING_FEATURES))
    for token, (kind, part, start, end) in zip(TEXT, zip(*columns, strict=True), strict=False):
        assert kind != Kind.TEXT or parts[part].text[start:end] == token
        assert (part >= 0) == (kind > Kind.QUESTION) and (start >= 0) == (kind == Kind.TEXT)


def test_what_does_not_fit_or_was_not_kept_is_left_out(tokenizer):
    found = made(tokenizer, long_seq_length=30, is_training=False)
    assert found.num_long_tokens == 29 and found.num_left_out == 1  # Before the rose.
    assert made(tokenizer, long_seq_length=30).drop_reason == "no_supporting_fact_in_input"
    assert made(tokenizer, raw_example(answer="lily")).drop_reason == "no_answer_in_input"
    kept = made(tokenizer, kept={1}, debug=True)
    assert kept.features["long_tokens"] == [*TEXT[:7], *TEXT[TEXT.index("<t>", 8) :]]
    assert kept.features["parts"][7:10] == [3, 3, 3]  # Numbers are those of the whole example.
    closed = made(tokenizer, raw_example(answer="no")).features
    assert closed["answer_types"] == [2] and closed["answer_begins"] == [-1]
    with pytest.raises(ValueError, match="'q1': .* need 7 tokens, more than long_seq_length=6"):
        made(tokenizer, long_seq_length=6)
    with pytest.raises(ValueError, match="'q1': field `question`: ' ' has no tokens"):
        marks.make_features(
            examples.HotpotQAExample("q1", " ", ()), input_config(is_training=False), tokenizer
        )


@pytest.mark.skipif(not REAL_EXAMPLES.exists(), reason="There are no true examples here.")
def test_true_examples_are_whole_in_byte_level_pieces():
    folder = cases.reference_root() / "longformer" / "tokenizer"
    processor = etcmodel.LongformerProcessor.from_pretrained(str(folder))
    processor.add_tokens(list(MARKS))
    config = input_config(long_seq_length=None, debug=True)
    for example in examples.read_examples(str(REAL_EXAMPLES)):
        found = marks.make_features(example, config, processor.tokenizer).features
        parts = marks.parts_of(example)
        columns = [found[name] for name in ("kinds", *marks.DECODING_FEATURES)]
        covered = [set() for _ in parts]  # Several pieces may be the bytes of one character.
        for kind, part, start, end in zip(*columns, strict=True):
            if kind == Kind.TEXT:
                covered[part].update(range(start, end))
        for chars, part in zip(covered, parts, strict=True):
            assert chars >= {x for x, char in enumerate(part.text) if not char.isspace()}
        facts = [
            (example.paragraphs[parts[part].paragraph].title, parts[part].sentence)
            for part, kind, is_fact in zip(
                found["parts"], found["kinds"], found["supporting_facts"], strict=True
            )
            if is_fact and kind == Kind.SENTENCE
        ]
        assert sorted(facts) == sorted(example.supporting_facts)
        if example.answer not in ("yes", "no"):
            begin, end = found["answer_begins"][0], found["answer_ends"][0]
            text = parts[found["parts"][begin]].text
            span = text[found["token_starts"][begin] : found["token_ends"][end]]
            assert span == example.answer


def slow_facts(paragraphs, sentences, threshold):
    """The most probable of all choices of sentences that are of exactly two paragraphs."""
    places = [(x, y) for x, logits in sentences.items() for y in logits]
    best = (-np.inf, [])
    for size in range(1, len(places) + 1):
        for chosen in itertools.combinations(places, size):
            of = {x for x, _ in chosen}
            if len(of) == 2:
                odds = np.log(threshold / (1 - threshold))
                score = sum(sentences[x][y] - odds for x, y in chosen)
                best = max(best, (score + sum(paragraphs[x] for x in of), [*chosen]))
    return sorted(best[1])


def test_facts_are_the_most_probable_ones_of_exactly_two_paragraphs():
    rng = np.random.default_rng(0)
    for threshold in (0.5, 0.2) * 20:
        paragraphs = dict(enumerate(rng.normal(size=3)))
        sentences = {x: dict(enumerate(rng.normal(-1, 2, 3))) for x in paragraphs}
        wanted = slow_facts(paragraphs, sentences, threshold)
        assert marks.best_facts(paragraphs, sentences, threshold) == wanted
    assert marks.best_facts({0: 1.0, 1: 2.0}, {0: {}, 1: {0: -9.0, 1: -8.0}}) == [(1, 1)]


def test_the_span_is_the_best_one_within_a_part():
    rng = np.random.default_rng(0)
    for number in range(1, 30):
        begins, ends = rng.normal(size=(2, number))
        parts = np.repeat(rng.permutation([-1, 0, 1, -1, 2]), 6)[:number]
        spans = [
            (begins[x] + ends[y], (x, y))
            for x in range(number)
            for y in range(x, min(x + 4, number))
            if parts[x] == parts[y] >= 0
        ]
        wanted = max(spans)[1] if spans else None
        assert marks.best_span(begins, ends, parts, 4) == wanted


def test_the_best_paragraphs_are_kept_up_to_a_number_and_above_a_threshold(tmp_path):
    path = tmp_path / "paragraphs.jsonl"
    scored = [["a", -3.5], ["b", 2.0], ["c", -2.0], ["d", 1.0], ["e", -9.0]]
    path.write_text(json.dumps({"id": "q1", "paragraphs": scored}) + "\n")
    by_id = marks.read_first_stage(str(path))
    context = [[title, ["x"]] for title in "edcba"]
    example = examples.parse_example(raw_example(context=context))
    own = examples.parse_example(raw_example(context=context, paragraphs=scored))
    for number, threshold, wanted in (
        (5, -3.0, "bdc"),
        (2, -3.0, "bd"),
        (5, 1.5, "bd"),
        (5, -20.0, "bdcae"),
    ):
        config = input_config(max_num_paragraphs=number, paragraph_threshold=threshold)
        of_file = dataclasses.replace(config, first_stage=str(path))
        for kept in (
            marks.paragraphs_kept(example, of_file, by_id),
            marks.paragraphs_kept(own, config, {}),
            marks.paragraphs_kept(own, of_file, {}),  # What an example says comes first.
        ):
            assert kept == {"edcba".index(title) for title in wanted}
    assert marks.paragraphs_kept(own, input_config(), {}) is None
    # Only the second stage reads the field; elsewhere it may hold anything.
    for foreign in ("12", [["a", "2"]], {"title": ["a"]}):
        odd = examples.parse_example(raw_example(context=context, paragraphs=foreign))
        assert marks.paragraphs_kept(odd, input_config(), {}) is None
        with pytest.raises(ValueError, match="^example 'q1': field `paragraphs.* must "):
            marks.paragraphs_kept(odd, input_config(max_num_paragraphs=2), {})
    for other, told in (({}, "nothing of it"), ({"q1": [("z", 1)]}, "paragraphs that it has not")):
        with pytest.raises(ValueError, match=f"'q1': .*jsonl has {told}"):
            marks.paragraphs_kept(example, of_file, other)
    path.write_text('{"id": "q1", "paragraphs": [["a", NaN]]}\n')
    with pytest.raises(ValueError, match="jsonl: line 1: .*Give the …_paragraphs.jsonl"):
        marks.read_first_stage(str(path))


@pytest.mark.slow
def test_a_server_of_the_second_stage_reads_the_scores_in_a_request(tokenizer, tmp_path):
    config = HotpotQaConfig(
        encoder_config=small_config("longformer", len(tokenizer.vocab)),
        vocab_file=str(tokenizer.source_file),
        evidence_as="marks",
        max_num_paragraphs=2,
        long_seq_length=60,
    )
    task = predict.HotpotQaTask(config)
    exported = finetuning.export(task.build_model(), task, str(tmp_path / "export"))
    scored = [["two", -1.0], ["one", 2.0], ["three", 1.0]]
    raw = raw_example(context=[*raw_example()["context"], ["three", ["more ."]]])
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "q1", "paragraphs": scored}) + "\n")
    of_file = predict.HotpotQaPredictor(exported, first_stage=str(tmp_path / "a.jsonl"))
    served = predict.HotpotQaPredictor(exported, **predict.HotpotQaPredictor.served_options)
    wanted = of_file.predict([raw])
    assert {title for title, _ in wanted["paragraphs"]["q1"]} == {"one", "three"}
    records, prediction = served.prepare({**raw, "paragraphs": scored}, 0)
    found = prediction(list(served.run(records, 1)))
    assert found == {name: by_id["q1"] for name, by_id in wanted.items()}
    for paragraphs, problem in (
        (None, "has no field `paragraphs`, .* or give --first_stage"),
        ([["z", 1.0]], "its field `paragraphs` has paragraphs that it has not"),
        ([["one", "2"]], r"field `paragraphs\[0\]` must be a title and a score"),
        ("one", r"field `paragraphs` must be a list of pairs \(title, score\)"),
    ):
        with pytest.raises(ValueError, match=f"example 'q1'.* {problem}"):
            served.prepare({**raw, "paragraphs": paragraphs}, 0)


def test_a_vocabulary_without_marks_is_refused(tmp_path):
    unmarked = vocabularies.tokenizer(tmp_path, build_vocabulary(["a"]))
    with pytest.raises(ValueError, match=r"lacks the tokens \[q\], .*`model.processor.add_tokens`"):
        HotpotQAInputConfig.for_tokenizer(unmarked, evidence_as="marks")


def small_config(kind, vocab_size, positions=128):
    return small_encoders.config(kind, vocab_size, positions)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_marks_are_scored_alone_and_padding_changes_nothing(kind, tokenizer):
    config = small_config(kind, len(tokenizer.vocab))
    ours, skipping = (model.MarkedHotpotQaModel(config, skip_padding=x) for x in (False, True))
    rows = [made(tokenizer).features, made(tokenizer, kept={1}).features]
    batch = {x: tf.constant([row[x] for row in rows], tf.int32) for x in marks.PADDING}
    outputs = ours(batch)
    scope = encoders.encoder_type(kind).scope  # As in a checkpoint that it starts from.
    assert {x.partition("/")[0] for x in names.encoder_variables(ours)} == {scope}
    kinds = batch["kinds"].numpy()
    of_mark = outputs["supporting_facts_logits"].numpy() > -1e8
    np.testing.assert_array_equal(of_mark, (kinds == Kind.TITLE) | (kinds == Kind.SENTENCE))
    for end in ("begin", "end"):
        of_text = outputs[f"answer_{end}_logits"].numpy() > -1e8
        np.testing.assert_array_equal(of_text, kinds == Kind.TEXT)
    skipping.build()
    skipping.set_weights(ours.get_weights())
    for name, found in skipping(batch).items():
        np.testing.assert_allclose(found, outputs[name], rtol=1e-5, atol=2e-5)


def test_the_loss_is_the_sum_of_four_means(tokenizer):
    rng = np.random.default_rng(0)
    rows = [made(tokenizer).features, made(tokenizer, raw_example(answer="yes")).features]
    labels = ("kinds", "supporting_facts", "answer_types", "answer_begins", "answer_ends")
    batch = {x: tf.squeeze(tf.constant([row[x] for row in rows], tf.int32)) for x in labels}
    facts, begins, ends = rng.normal(size=(3, 2, 60)).astype(np.float32)
    types = rng.normal(size=(2, 3)).astype(np.float32)
    outputs = {
        "supporting_facts_logits": facts,
        "answer_type_logits": types,
        "answer_begin_logits": begins,
        "answer_end_logits": ends,
    }
    wanted = dict.fromkeys(("paragraphs", "sentences", "answer_type", "answer_span"), 0.0)
    for row, example in enumerate(rows):
        for name, kind in (("paragraphs", Kind.TITLE), ("sentences", Kind.SENTENCE)):
            costs = [
                np.log1p(np.exp(-x if label else x))
                for x, of, label in zip(
                    facts[row], example["kinds"], example["supporting_facts"], strict=True
                )
                if of == kind
            ]
            wanted[name] += np.mean(costs) / 2
        wanted["answer_type"] -= np.log(softmax(types[row])[example["answer_types"][0]]) / 2
        for logits, name in ((begins, "answer_begins"), (ends, "answer_ends")):
            if example[name][0] >= 0:
                wanted["answer_span"] -= np.log(softmax(logits[row])[example[name][0]]) / 4
    found = model.marked_loss({x: tf.constant(y) for x, y in outputs.items()}, batch)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[f"{name}_loss"], value, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], sum(wanted.values()), rtol=1e-5)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def test_the_marks_are_global_in_longformer(tokenizer):
    """What is far behind a mark changes its score, in one layer of narrow windows."""
    ours = model.MarkedHotpotQaModel(small_config("longformer", len(tokenizer.vocab)))
    row = made(tokenizer).features
    batch = {x: np.array([row[x]], np.int32) for x in marks.PADDING}
    before = ours(batch)["supporting_facts_logits"].numpy()[0]
    batch["token_ids"][0, len(TEXT) - 3] = tokenizer.vocab["song"]  # It was "is".
    after = ours(batch)["supporting_facts_logits"].numpy()[0]
    assert abs(after - before)[TEXT.index("<t>")] > 1e-5
    assert abs(after - before)[TEXT.index("[s]")] > 1e-5


# An encoder of full attention and learned positions has to learn what is near.
NUM_EPOCHS = {"big_bird": 24}


def run_stage(name, folder, paths, num_epochs, kept=None):
    """Runs all programs of a stage; returns its metrics on the dev set."""
    for split in ("train", "dev"):
        options = preprocess.PreprocessOptions(
            input_pattern=paths[split],
            output_prefix=str(folder / f"{name}_{split}"),
            vocab_file=paths["vocab"],
            num_shards=1,
            is_training=split == "train",
            debug=False,
            strict=True,
            evidence_as="marks",
            long_seq_length=128,
            **({"first_stage": kept[split], "max_num_paragraphs": 3} if kept else {}),
        )
        list(program.run(options, preprocess.load_parts))
    run = folder / name
    programs.fine_tune(
        "hotpotqa",
        run_mode="train",
        model_config_file=folder / "config.json",
        vocab_file=paths["vocab"],
        train_data=folder / f"{name}_train*.tfrecord",
        output_dir=run,
        train_batch_size=16,
        learning_rate=3e-3,
        num_train_epochs=num_epochs,
        skip_padding=True,
    )
    programs.fine_tune(
        "hotpotqa",
        run_mode="evaluate",
        output_dir=run,
        eval_data=folder / f"{name}_dev*.tfrecord",
        eval_gold=paths["dev"],
    )
    programs.fine_tune("hotpotqa", run_mode="export", output_dir=run)
    for split in ("train", "dev"):
        programs.fine_tune(
            "hotpotqa",
            run_mode="predict",
            export_dir=run / "export",
            input_file=paths[split],
            predictions_file=folder / f"{name}_{split}.json",
            **({"first_stage": kept[split]} if kept else {}),
        )
    predictions = json.loads((run / "predictions.json").read_text())
    assert json.loads((folder / f"{name}_dev.json").read_text()) == predictions
    return metrics.metrics(list(examples.read_examples(paths["dev"])), predictions)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_both_stages_learn_evaluate_export_and_predict(kind, tmp_path):
    paths = make_data(tmp_path)
    size = len(pathlib.Path(paths["vocab"]).read_text("utf-8").splitlines())
    (tmp_path / "config.json").write_text(small_config(kind, size).to_json_string())
    first = run_stage("first", tmp_path, paths, NUM_EPOCHS.get(kind, 8))
    kept = {x: str(tmp_path / f"first_{x}_paragraphs.jsonl") for x in ("train", "dev")}
    found = run_stage("second", tmp_path, paths, NUM_EPOCHS.get(kind, 8), kept)
    gold = list(examples.read_examples(paths["dev"]))
    answer = collections.Counter(x.answer for x in gold).most_common(1)[0][0]
    facts = {
        x.example_id: [(y.title, 0) for y in x.paragraphs if y.title in GOOD] for x in gold
    }  # Better than what does not know the right paragraphs.
    trivial = {"answer": dict.fromkeys(facts, answer), "sp": facts}
    trivial = metrics.metrics(gold, trivial)["joint_f1"]
    assert min(first["joint_f1"], found["joint_f1"]) > trivial + 0.2
    export = tmp_path / "second" / "export"
    predictor = predict.HotpotQaPredictor(str(export))
    raw = json.loads(pathlib.Path(paths["dev"]).read_text())[0]
    scores = json.loads(pathlib.Path(kept["dev"]).read_text().splitlines()[0])
    assert scores["id"] == raw["_id"]
    raw["paragraphs"] = scores["paragraphs"]
    predictions = json.loads((tmp_path / "second_dev.json").read_text())
    wanted = tuple(predictions[name][raw["_id"]] for name in ("answer", "sp"))
    assert predictor.predict_one(raw) == wanted


@pytest.mark.exhaustive
def test_the_pages_commands_run_both_stages(tmp_path):
    data = make_data(tmp_path, 8, 4)
    (tmp_path / "data").mkdir()
    for name, split in (("train_v1.1", "train"), ("dev_distractor_v1", "dev")):
        shutil.copy(data[split], tmp_path / "data" / f"hotpot_{name}.json")
    vocab = pathlib.Path(data["vocab"])
    size = len(vocab.read_text("utf-8").splitlines())
    config = small_config("longformer", size, positions=4096)
    folder = tmp_path / "longformer_marked"
    checkpoints.save_pretrained(encoders.build_encoder(config), str(folder))
    shutil.copy(vocab, folder / "vocab.txt")
    printed = page.run_commands("hotpotqa.md#two-stages-longformer", tmp_path, "for stage")
    assert printed.count("joint_f1") >= 2
    predictions = json.loads((tmp_path / "answers.json").read_text())
    assert set(predictions) == {"answer", "sp"} and len(predictions["answer"]) == 4
    settings = json.loads((tmp_path / "data/second/dev.config.json").read_text())
    assert settings["max_num_paragraphs"] == 5
