"""The programs of the task, from CoNLL's columns to tags, for every encoder."""

import json

import numpy as np
import pytest

from etcmodel.preprocessing import program
from etcmodel.tasks.token_classification import metrics, predict, preprocess
from tests.tasks import programs
from tests.tasks.token_classification import small

pytestmark = pytest.mark.slow

SIZES = {
    "vocab_size": len(small.VOCAB),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}
CONFIGS = {
    "etc": {**SIZES, "local_radius": 4, "relative_pos_max_distance": 4, "relative_vocab_size": 12},
    "longformer": {
        **SIZES,
        "model_type": "longformer",
        "attention_window": 8,
        "max_position_embeddings": 40,
    },
    "big_bird": {
        **SIZES,
        "model_type": "big_bird",
        "attention_type": "original_full",
        "max_position_embeddings": 40,
    },
    "gmat": {**SIZES, "model_type": "gmat", "chunk_size": 12, "num_memory_tokens": 2},
    "modernbert": {
        "model_type": "modernbert",
        "vocab_size": len(small.VOCAB),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "local_attention": 8,
        "max_position_embeddings": 40,
        **{f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")},
    },
}


def make_records(folder, stride):
    for name, count, seed in (("train", 200, 1), ("dev", 20, 2)):
        text = small.conll(small.documents(count, seed))
        (folder / f"{name}.conll").write_text(text, encoding="utf-8")
        options = preprocess.PreprocessOptions(
            input_pattern=str(folder / f"{name}.conll"),
            output_prefix=str(folder / name),
            vocab_file=small.write_vocab(folder),
            labels_file=str(folder / "train.config.json") if name == "dev" else None,
            long_seq_length=24,
            global_seq_length=6,
            stride=stride,
            num_shards=2,
            strict=True,
        )
        list(program.run(options, preprocess.load_parts))


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("encoder", CONFIGS)
def test_a_tagger_learns_and_is_exported(tmp_path, capsys, encoder):
    make_records(tmp_path, stride=4)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[encoder]), encoding="utf-8")
    run = {"output_dir": tmp_path / "run", "eval_data": tmp_path / "dev-*.tfrecord"}
    programs.fine_tune(
        "token_classification",
        run_mode="train",
        model_config_file=tmp_path / "config.json",
        vocab_file=tmp_path / "vocab.txt",
        train_data=tmp_path / "train-*.tfrecord",
        train_batch_size=8,
        learning_rate=1e-2,
        save_checkpoints_steps=150,
        num_train_epochs=10,
        skip_padding=True,
        **run,
    )
    columns = tmp_path / "dev_tags.txt"
    evaluated = {"predictions_file": columns, **run}
    programs.fine_tune("token_classification", run_mode="evaluate", **evaluated)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    # Which words go on with a name, only those before tell; as if none did, it would be 0.4.
    assert found["f1"] > 0.8 and found["words_left_out"] == 0
    cells = [line.split() for line in columns.read_text(encoding="utf-8").splitlines() if line]
    assert found["accuracy"] == np.mean([gold == tag for _, gold, tag in cells])

    programs.fine_tune("token_classification", run_mode="export", output_dir=tmp_path / "run")
    export = tmp_path / "run" / "export"
    programs.fine_tune(
        "token_classification",
        run_mode="predict",
        export_dir=export,
        input_file=tmp_path / "dev.conll",
        predictions_file=tmp_path / "tags.json",
    )
    told = json.loads((tmp_path / "tags.json").read_text(encoding="utf-8"))
    pairs = [
        list(zip(words, tags, strict=True))
        for one in told.values()
        for words, tags in zip(one["words"], one["tags"], strict=True)
    ]
    blocks = columns.read_text(encoding="utf-8").split("\n\n")  # In the order of the records.
    evaluated = [[tuple(line.split()[::2]) for line in x.splitlines()] for x in blocks if x]
    assert sorted(pairs) == sorted(evaluated)
    predictor = predict.TokenClassificationPredictor(str(export))
    words = ["ann", "boba", "lives", "in", "rio", "."]
    one = predictor.predict_one(words)
    assert one["words"] == words and len(one["probabilities"]) == len(words)
    kinds = {"kind", "text", "sentence", "start", "end"}
    assert one["entities"] and all(x.keys() == kinds for x in one["entities"])
    assert [(x["kind"], x["start"], x["end"]) for x in one["entities"]] == metrics.entities(
        one["tags"]
    )
