"""The programs of the task, from SQuAD's file to answers, for several encoders."""

import json
import pathlib
import re

import pytest

from etcmodel.preprocessing import program
from etcmodel.tasks.squad import metrics, predict, preprocess
from etcmodel.tasks.squad.examples import read_examples
from etcmodel.tools import adversarial_distractors, make_demo_data
from tests.tasks import programs, small_encoders

pytestmark = pytest.mark.slow

OWN = {
    "etc": {"local_radius": 16, "use_pre_activation_order": True},
    "gmat": {},
    "longformer": {"attention_window": 32},
    "big_bird": {},
}


def make_records(folder, paths, of_training=(), **options):
    """Records of both files, in which no question is left out."""
    for name in ("train", "dev"):
        chosen = preprocess.PreprocessOptions(
            input_pattern=paths[name],
            output_prefix=str(folder / name),
            vocab_file=paths["vocab"],
            is_training=name == "train",
            num_shards=1,
            strict=True,
            **options,
            **dict(of_training if name == "train" else ()),
        )
        list(program.run(chosen, preprocess.load_parts))


def train(folder, paths, encoder, sizes, **options):
    """Trains in `folder / "run"`, evaluates, and returns the folder of the run."""
    with open(paths["vocab"], encoding="utf-8") as file:
        size = len(file.readlines())
    config = small_encoders.entries(encoder, size, 96, num_hidden_layers=2, **sizes)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    programs.fine_tune(
        "squad",
        run_mode="train",
        model_config_file=folder / "config.json",
        vocab_file=paths["vocab"],
        train_data=folder / "train-*.tfrecord",
        output_dir=folder / "run",
        train_batch_size=16,
        learning_rate=3e-3,
        skip_padding=True,
        **{"num_train_epochs": 12, **options},
    )
    evaluated = {"eval_data": folder / "dev-*.tfrecord", "eval_gold": paths["dev"]}
    programs.fine_tune("squad", run_mode="evaluate", output_dir=folder / "run", **evaluated)
    return folder / "run"


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("encoder", OWN)
def test_answers_are_learned_and_exported(tmp_path, capsys, encoder):
    paths = make_demo_data.make_demo_data(
        dataset="squad", output_dir=str(tmp_path), num_train=600, num_dev=40, seed=0
    )
    make_records(tmp_path, paths, long_seq_length=64, global_seq_length=32, doc_stride=24)
    is_etc = encoder == "etc"
    options = {"initialization": "mimetic", "num_train_epochs": 6} if is_etc else {}
    run = train(tmp_path, paths, encoder, OWN[encoder], **options)
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
    make_records(
        *(tmp_path, paths, {"tag_facts": True}),
        long_seq_length=96,
        global_seq_length=48,
        doc_stride=32,
        gold_separated=True,
        repeat_question=True,
    )
    run = train(tmp_path, paths, "gmat", {"num_memory_tokens": 8}, question_as_memory=True)
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
