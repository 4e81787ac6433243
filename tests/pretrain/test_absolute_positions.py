"""A model with absolute positions, as a lifted BERT has them: a window holds one document."""

import json
import math

import pytest

from tests.pretrain import windows
from tests.pretrain.runs import lines_of, make_records, run_here

pytestmark = pytest.mark.slow


@pytest.mark.exhaustive
def test_packed_documents_are_refused_and_single_ones_are_learned_from(tmp_path, capsys):
    config, text = tmp_path / "etc_config.json", tmp_path / "text.jsonl"
    positions = windows.etc_config(num_hidden_layers=1, max_absolute_position_embeddings=64)
    config.write_text(json.dumps(positions.to_dict()))
    documents = [windows.document(str(n), *range(n, n + 4)) for n in range(8)]
    text.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    vocab = windows.write_vocab(tmp_path)
    arguments = {
        "model_config_file": config,
        "vocab_file": vocab,
        "train_data": tmp_path / "text-*.tfrecord",
        "eval_data": tmp_path / "text-*.tfrecord",
        "output_dir": tmp_path / "model",
        "train_batch_size": 2,
        "eval_batch_size": 4,
        "num_train_epochs": 1,
    }
    make_records(tmp_path, text, vocab)
    with pytest.raises(SystemExit):
        run_here(**arguments)
    assert "text.config.json: windows hold several documents" in capsys.readouterr().err
    make_records(tmp_path / "single", text, vocab, pack_documents=False)
    single = tmp_path / "single" / "text-*.tfrecord"
    run_here(**{**arguments, "train_data": single, "eval_data": single})
    assert math.isfinite(lines_of(tmp_path / "model" / "eval_metrics.jsonl")[-1]["mlm_loss"])

    def refused(message):
        with pytest.raises(SystemExit):
            run_here(**{**arguments, "train_data": single, "output_dir": tmp_path / "other"})
        assert message in capsys.readouterr().err

    few = windows.LONG - 1
    config.write_text(json.dumps({**positions.to_dict(), "max_absolute_position_embeddings": few}))
    refused(f"must be at most the model's number of positions, {few}. Received: {windows.LONG}")
    config.write_text(json.dumps(positions.to_dict()))
    (tmp_path / "single" / "text.config.json").unlink()
    arguments |= {"long_seq_length": windows.LONG, "global_seq_length": windows.GLOBAL}
    refused("no settings (`.config.json`) beside the records tell")
