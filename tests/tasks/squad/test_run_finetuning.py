"""The programs of the task, from SQuAD's file to answers, for several encoders."""

import json
import pathlib
import re

import pytest

from etcmodel.preprocessing import program
from etcmodel.tasks.squad import metrics, predict, preprocess
from etcmodel.tasks.squad.examples import read_examples
from etcmodel.tools import adversarial_distractors, make_demo_data
from tests.tasks import programs

pytestmark = pytest.mark.slow

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.1,
}
DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CONFIGS = {
    "etc": {
        **SIZES,
        **DROPOUT,
        "local_radius": 16,
        "relative_pos_max_distance": 8,
        "relative_vocab_size": 24,
        "use_pre_activation_order": True,
    },
    "gmat": {**SIZES, **DROPOUT, "model_type": "gmat", "chunk_size": 64, "num_memory_tokens": 2},
    "longformer": {
        **SIZES,
        **DROPOUT,
        "model_type": "longformer",
        "attention_window": 32,
        "max_position_embeddings": 98,
    },
    "big_bird": {
        **SIZES,
        **DROPOUT,
        "model_type": "big_bird",
        "attention_type": "original_full",
        "max_position_embeddings": 98,
    },
}


def make_records(folder, num_train):
    paths = make_demo_data.make_demo_data(
        dataset="squad", output_dir=str(folder), num_train=num_train, num_dev=40, seed=0
    )
    for name in ("train", "dev"):
        options = preprocess.PreprocessOptions(
            input_pattern=paths[name],
            output_prefix=str(folder / name),
            vocab_file=paths["vocab"],
            is_training=name == "train",
            num_shards=1,
            long_seq_length=64,
            global_seq_length=32,
            doc_stride=24,
            strict=True,
        )
        list(program.run(options, preprocess.load_parts))
    return paths


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("encoder", CONFIGS)
def test_answers_are_learned_and_exported(tmp_path, capsys, encoder):
    paths = make_records(tmp_path, num_train=600)
    with open(paths["vocab"], encoding="utf-8") as file:
        sizes = {"vocab_size": len(file.readlines())}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**CONFIGS[encoder], **sizes}), encoding="utf-8")
    run, is_etc = tmp_path / "run", encoder == "etc"
    programs.fine_tune(
        "squad",
        run_mode="train",
        model_config_file=config,
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        output_dir=run,
        train_batch_size=16,
        learning_rate=3e-3,
        **(
            {"initialization": "mimetic", "num_train_epochs": 6}
            if is_etc
            else {"num_train_epochs": 12}
        ),
        skip_padding=True,
    )
    evaluated = {"eval_data": tmp_path / "dev-*.tfrecord", "eval_gold": paths["dev"]}
    programs.fine_tune("squad", run_mode="evaluate", output_dir=run, **evaluated)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    gold = list(read_examples(paths["dev"]))
    # No answer to any question is right for 0.3 of them, and no other one for as many.
    none = metrics.metrics(gold, dict.fromkeys((x.example_id for x in gold), ""))
    assert found["best_f1"] >= found["f1"] >= none["f1"] + 0.2
    answers, odds, nbest = (
        json.loads((run / name).read_text(encoding="utf-8"))
        for name in ("predictions.json", "null_odds.json", "nbest_predictions.json")
    )
    best = {key: next(x["text"] for x in told if x["text"]) for key, told in nbest.items()}
    assert metrics.metrics(gold, best, odds) == pytest.approx(found)
    by_id = {example.example_id: example for example in gold}
    for key, told in nbest.items():
        assert answers[key] == ("" if odds[key] > 0 else best[key])
        context = by_id[key].context
        assert all(context[x["start"] : x["end"]] == x["text"] for x in told if x["text"])

    programs.fine_tune("squad", run_mode="export", output_dir=run)
    programs.fine_tune(
        "squad",
        run_mode="predict",
        export_dir=run / "export",
        input_file=paths["dev"],
        predictions_file=tmp_path / "dev_predictions.json",
        null_score_diff_threshold=1e9,
    )
    told = json.loads((tmp_path / "dev_predictions.json").read_text(encoding="utf-8"))
    assert told == best
    assert (tmp_path / "dev_null_odds.json").exists()
    predictor = predict.SquadPredictor(str(run / "export"))
    one = predictor.predict_one(by_id["demo_dev_0"].question, by_id["demo_dev_0"].context)
    assert one["answer"] == answers["demo_dev_0"]

    as_paragraphs(paths["dev"])
    few, harder = tmp_path / "few.json", tmp_path / "adversarial.json"
    few.write_text(json.dumps(json.loads(pathlib.Path(paths["dev"]).read_text("utf-8"))[:5]))
    adversarial_distractors.main(
        adversarial_distractors.AdversarialOptions(
            input_file=str(few),
            output_file=str(harder),
            num_distractors=1,
            num_retrieved=3,
            reader_export_dir=str(run / "export"),
        )
    )
    made = list(read_examples(str(harder)))
    assert [x.example_id for x in made] == [x.example_id for x in read_examples(str(few))]
    assert all(x.answers for x in made)


def as_paragraphs(path):
    """Makes HotpotQA's questions of SQuAD's: the paragraph that answers, and that of another."""
    with open(path, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    pairs = [(x["title"], x["paragraphs"][0]) for x in articles]
    raws = []
    for (title, paragraph), (other, rest) in zip(pairs, pairs[1:], strict=False):
        (question,) = paragraph["qas"]
        if not question["answers"] or title == other:
            continue
        (answer,) = question["answers"]
        sentences = re.split(r"(?<=\.)(?= )", paragraph["context"])
        ends = [sum(map(len, sentences[: x + 1])) for x in range(len(sentences))]
        fact = next(x for x, end in enumerate(ends) if answer["answer_start"] < end)
        context = [[title, sentences], [other, [rest["context"]]]]
        raws.append(
            {
                "_id": question["id"],
                "question": question["question"],
                "answer": answer["text"],
                "type": "bridge",
                "supporting_facts": [[title, fact]],
                "context": context[:: -1 if len(raws) % 2 else 1],
            }
        )
    with open(path, "w", encoding="utf-8") as file:
        json.dump(raws, file)


@pytest.mark.exhaustive
def test_a_gmat_with_the_question_as_memory_learns_hotpotqas_paragraphs(tmp_path, capsys):
    paths = make_demo_data.make_demo_data(
        dataset="squad", output_dir=str(tmp_path), num_train=800, num_dev=60, seed=0
    )
    for name in ("train", "dev"):
        as_paragraphs(paths[name])
        options = preprocess.PreprocessOptions(
            input_pattern=paths[name],
            output_prefix=str(tmp_path / name),
            vocab_file=paths["vocab"],
            is_training=name == "train",
            num_shards=1,
            long_seq_length=96,
            global_seq_length=48,
            doc_stride=32,
            gold_separated=True,
            repeat_question=True,
            tag_facts=name == "train",
            strict=True,
        )
        list(program.run(options, preprocess.load_parts))
    with open(paths["vocab"], encoding="utf-8") as file:
        sizes = {"vocab_size": len(file.readlines()), "num_memory_tokens": 8}
    config, run = tmp_path / "config.json", tmp_path / "run"
    config.write_text(json.dumps({**CONFIGS["gmat"], **sizes}), encoding="utf-8")
    programs.fine_tune(
        "squad",
        run_mode="train",
        model_config_file=config,
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        output_dir=run,
        question_as_memory=True,
        train_batch_size=16,
        learning_rate=3e-3,
        num_train_epochs=12,
        skip_padding=True,
    )
    evaluated = {"eval_data": tmp_path / "dev-*.tfrecord", "eval_gold": paths["dev"]}
    programs.fine_tune("squad", run_mode="evaluate", output_dir=run, **evaluated)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    gold = list(read_examples(paths["dev"]))
    texts = [x.answers[0].text for x in gold]
    common = max(texts, key=texts.count)
    trivial = metrics.metrics(gold, {x.example_id: common for x in gold})
    assert found["f1"] == found["bridge_f1"] >= trivial["f1"] + 0.2
    answers = json.loads((run / "predictions.json").read_text(encoding="utf-8"))
    programs.fine_tune("squad", run_mode="export", output_dir=run)
    predictor = predict.SquadPredictor(str(run / "export"))
    told = predictor.predict(json.loads(pathlib.Path(paths["dev"]).read_text(encoding="utf-8")))
    assert {key: x["answer"] for key, x in told.items()} == answers
