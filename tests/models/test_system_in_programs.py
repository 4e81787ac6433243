"""A system from outside in programs: answers trained, exported and served; pre-training."""

import json

import pytest

from etcmodel.serving import rest
from etcmodel.text.gmat_processor import GmatProcessor
from etcmodel.tools import serve
from tests.models import bags
from tests.pretrain import text_runs
from tests.serving.rest import clients
from tests.tasks import programs
from tests.tasks.triviaqa import questions

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def system():
    with bags.registered(**bags.MORE):
        yield


def config_file(folder, vocab):
    """The file of a config for a vocabulary."""
    with open(vocab, encoding="utf-8") as file:
        entries = {"model_type": "bag", "vocab_size": len(file.readlines()), "hidden_size": 16}
        entries["max_length"] = 64
    (folder / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    return folder / "config.json"


def test_it_answers_questions_from_raw_files_to_a_server(tmp_path, capsys):
    paths = questions.write_demo_records(tmp_path, 40, 6)
    run = {"output_dir": tmp_path / "run"}
    programs.fine_tune(
        "triviaqa",
        run_mode="train",
        model_config_file=config_file(tmp_path, paths["vocab"]),
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        train_batch_size=8,
        learning_rate=1e-2,
        num_train_epochs=2,
        layer_decay=0.9,
        **run,
    )
    evaluation = {"eval_data": tmp_path / "dev-*.tfrecord", "eval_gold": paths["dev"]}
    programs.fine_tune("triviaqa", run_mode="evaluate", **evaluation, **run)
    evaluated = json.loads((tmp_path / "run" / "predictions.json").read_text())
    assert len(evaluated) == 6 and "f1" in json.loads(capsys.readouterr().out.splitlines()[-1])
    programs.fine_tune("triviaqa", run_mode="export", **run)
    programs.fine_tune(
        "triviaqa",
        run_mode="predict",
        export_dir=tmp_path / "run" / "export",
        evidence_dir=tmp_path / "evidence",
        input_file=paths["dev"],
        predictions_file=tmp_path / "answers.json",
    )
    assert json.loads((tmp_path / "answers.json").read_text()) == evaluated
    (question, *_) = json.loads((tmp_path / "triviaqa_dev.json").read_text())["Data"]
    pages = [
        {"Text": (tmp_path / "evidence" / "wikipedia" / page["Filename"]).read_text()}
        for page in question["EntityPages"]
    ]
    raw = {"Question": question["Question"], "QuestionId": "asked", "SearchResults": pages}
    (version,) = (tmp_path / "run" / "export").iterdir()
    model = rest.ServedModel(str(version))
    with clients.running(model, examples=serve.raw_examples(model)) as server:
        client = clients.Client(server)
        status, answer = client.predict({"signature_name": "examples", "instances": [raw]})
        client.close()
    assert status == 200, answer
    assert answer["predictions"][0]["answer"] == evaluated[question["QuestionId"]]


def test_it_is_pretrained_on_windows_of_text(tmp_path):
    vocab = tmp_path / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    text_runs.write_texts(tmp_path)
    text = (tmp_path / "heldout.txt").read_text(encoding="utf-8").lower()
    words += sorted({*text.replace(".", " . ").split()})
    vocab.write_text("\n".join(words) + "\n", encoding="utf-8")
    model = bags.BagForMaskedLM(
        bags.BagConfig(vocab_size=len(words), hidden_size=16, max_length=64)
    )
    model.save_pretrained(tmp_path / "first", GmatProcessor(str(vocab)))
    _, last = text_runs.go_on(tmp_path, num_train_epochs=6)
    assert type(last) is bags.BagForMaskedLM
