"""The folder of a pre-trained model cuts text as the records were, wherever they are by then."""

import json

import pytest

from etcmodel.pretrain import task
from tests.pretrain import windows
from tests.pretrain.runs import make_records, run_here


def write(folder, name, **settings):
    (folder / f"{name}-00000-of-00001.tfrecord").write_bytes(b"")
    (folder / f"{name}.config.json").write_text(json.dumps(settings))
    return str(folder / f"{name}-*.tfrecord")


def test_the_settings_of_records_tell(tmp_path):
    lower = write(tmp_path, "lower", do_lower_case=True)
    cased = write(tmp_path, "cased", do_lower_case=False)
    old = write(tmp_path, "old")
    assert task.is_lower_case(lower) is True
    assert task.is_lower_case([cased, old]) is False
    assert task.is_lower_case(old) is None and task.is_lower_case(None) is None
    message = f"^{tmp_path}/lower.config.json: .* that of {tmp_path}/cased.config.json was not"
    with pytest.raises(ValueError, match=message):
        task.is_lower_case([cased, lower])


@pytest.mark.exhaustive
def test_a_run_knows_without_its_records(tmp_path, capsys):
    config, text, run = (tmp_path / name for name in ("etc_config.json", "text.jsonl", "run"))
    config.write_text(json.dumps(windows.etc_config(num_hidden_layers=1).to_dict()))
    documents = [windows.document(str(n), *range(n, n + 4)) for n in range(8)]
    text.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    vocab = windows.write_vocab(tmp_path)
    make_records(tmp_path, text, vocab, do_lower_case=False)
    data = {"train_data": tmp_path / "text-*.tfrecord", "vocab_file": vocab}
    model = {"model_config_file": config, "train_batch_size": 2, "num_train_epochs": 1}
    run_here(**data, **model, output_dir=run)
    for path in tmp_path.glob("text[-.]*"):
        path.unlink()

    def saved(**flags):
        run_here(run_mode="save_pretrained", output_dir=run, **flags)
        return json.loads((run / "pretrained" / "tokenizer_config.json").read_text())

    def refused(message, **flags):
        with pytest.raises(SystemExit):
            saved(**flags)
        assert message in capsys.readouterr().err

    assert saved()["do_lower_case"] is False
    refused("--do_lower_case=true: the data of the training was made with", do_lower_case=True)

    kept = json.loads((run / "run_config.json").read_text())
    del kept["notes"]["do_lower_case"]  # As versions before did not write it.
    (run / "run_config.json").write_text(json.dumps(kept))
    refused("--do_lower_case: neither the run nor settings beside its training records tell")
    assert saved(do_lower_case=False)["do_lower_case"] is False
