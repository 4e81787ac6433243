"""The programs of the task, from CoNLL's columns to clusters, for every encoder."""

import json

import pytest

from etcmodel.models import encoders
from etcmodel.preprocessing import program
from etcmodel.tasks.coreference import examples, metrics, model, predict, preprocess
from tests.tasks import programs
from tests.tasks.coreference import small
from tests.tasks.token_classification.test_run_finetuning import CONFIGS

pytestmark = pytest.mark.slow


def make_records(folder, vocab):
    for name in ("train", "dev"):
        options = preprocess.PreprocessOptions(
            input_pattern=str(folder / f"{name}.conll"),
            output_prefix=str(folder / name),
            vocab_file=vocab,
            long_seq_length=96,
            global_seq_length=12,
            stride=48 if name == "dev" else None,
            num_shards=1,
            strict=True,
        )
        list(program.run(options, preprocess.load_parts))


@pytest.mark.parametrize(
    "encoder",
    [
        "longformer",
        *(
            pytest.param(encoder, marks=pytest.mark.exhaustive)
            for encoder in ("etc", "big_bird", "modernbert", "gmat")
        ),
    ],
)
def test_a_model_learns_what_equal_words_do_not_tell_and_is_exported(tmp_path, capsys, encoder):
    paths, raws = small.make(tmp_path, 240, 20)
    make_records(tmp_path, paths["vocab"])
    config = {**CONFIGS[encoder], "vocab_size": 300}
    config |= {"max_position_embeddings": 100} if "max_position_embeddings" in config else {}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    written = tmp_path / "dev_told.conll"
    programs.fine_tune(
        "coreference",
        run_mode="train",
        model_config_file=tmp_path / "config.json",
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        train_batch_size=8,
        learning_rate=1e-2,
        head_rate_factor=1,
        save_checkpoints_steps=210,
        num_train_epochs=7,
        skip_padding=True,
        max_span_width=5,
        top_span_ratio=1,
        coref_depth=1,
        max_top_antecedents=20,
        ffnn_size=32,
        feature_size=4,
        head_dropout=0.0,
        output_dir=tmp_path / "run",
        eval_data=tmp_path / "dev-*.tfrecord",
        predictions_file=written,
    )
    printed = capsys.readouterr().out.splitlines()
    found = json.loads(next(line for line in printed if line.startswith("{")))
    trivial = max(
        metrics.scores((raw["clusters"], answer(raw)) for raw in raws)["f1"]
        for answer in (small.one_cluster, small.equal_words)
    )
    assert found["f1"] > trivial + 0.2 and found["words_left_out"] == 0

    programs.fine_tune("coreference", run_mode="export", output_dir=tmp_path / "run")
    export = tmp_path / "run" / "export"
    programs.fine_tune(
        "coreference",
        run_mode="predict",
        export_dir=export,
        input_file=tmp_path / "dev.conll",
        predictions_file=tmp_path / "told.json",
    )
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    documents = list(examples.example_reader()(str(written)))
    read = {
        document.example_id: [[list(span) for span in cluster] for cluster in document.clusters]
        for document in documents
    }
    # The windows of the export are the training's: one, which has the whole document.
    gold = {f"{raw['doc_key']}_0": raw for raw in raws}  # Part 0 of the file of columns.
    assert read.keys() == told.keys() == gold.keys()
    alike = metrics.scores((read[key], told[key]["clusters"]) for key in read)
    assert alike["f1"] > 0.9
    again = metrics.scores((gold[key]["clusters"], read[key]) for key in read)
    assert again["f1"] == pytest.approx(found["f1"])
    one = predict.CoreferencePredictor(str(export)).predict_one(raws[0]["sentences"])
    assert one["clusters"] == told[f"{raws[0]['doc_key']}_0"]["clusters"]


def test_a_system_that_classifies_no_tokens_is_refused_by_name(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "longt5", "vocab_size": 50, "d_model": 8}))
    with pytest.raises(
        ValueError, match="Coreference is resolved by models of .* Received: 'longt5'"
    ):
        read = encoders.read_config(str(config))
        model.CoreferenceModel(read)
