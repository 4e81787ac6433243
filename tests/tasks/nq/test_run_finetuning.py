"""A sparse BigBird, which answers alike however its windows are padded."""

import json
import pathlib

import pytest

from etcmodel.models.bigbird import BigBirdConfig
from tests.tasks import program_rows, programs, record_sets

pytestmark = pytest.mark.exhaustive

ROW = program_rows.ROWS["nq"]
LENGTH = ROW.records["long_seq_length"]
BY_LENGTH = '"pattern_by_length": true'
# Of the pattern: 3 blocks of 8 tokens around each, one at random, the first and the last.
SPARSE = {"attention_type": "block_sparse", "block_size": 8, "num_random_blocks": 1}


def evaluate(folder, paths, name, **flags):
    """(metrics, answers) of the run."""
    printed = program_rows.of_task(
        "nq",
        run_mode="evaluate",
        output_dir=folder / "run",
        eval_data=folder / "dev-*.tfrecord",
        eval_gold=paths["dev"],
        predictions_file=folder / name,
        **flags,
    )
    return json.loads(printed.splitlines()[-1]), ROW.answers(folder / name)


def test_it_learns_and_answers_alike_however_windows_are_padded(tmp_path):
    assert BigBirdConfig(**SPARSE).longest_full < LENGTH / 2
    paths = ROW.make(tmp_path)
    record_sets.make("nq", tmp_path, paths, **ROW.records)
    size = len(pathlib.Path(paths["vocab"]).read_text(encoding="utf-8").splitlines())
    fields = {"num_hidden_layers": 2, "pattern_by_length": True, **SPARSE}
    programs.fine_tune(
        "nq",
        run_mode="train",
        **program_rows.small("big_bird", LENGTH, **fields)(size, tmp_path),
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        output_dir=tmp_path / "run",
        num_train_epochs=8,
        learning_rate=3e-3,
        skip_padding=True,
        **ROW.training,
    )
    metrics, together = evaluate(tmp_path, paths, "together.json", eval_batch_size=16)
    (tmp_path / "curves.png").write_bytes(b"\x89PNG")  # Which the page of the other runs draws.
    ROW.learned(program_rows.Run(tmp_path, paths, metrics, together, []))
    _, alone = evaluate(tmp_path, paths, "alone.json", eval_batch_size=1)
    # The pattern of the padded length, of which the advice of the documentation is to be rid.
    settings = (tmp_path / "run" / "run_config.json").read_text()
    assert settings.count(BY_LENGTH) == 1
    changed = settings.replace(BY_LENGTH, BY_LENGTH[:-4] + "false")
    (tmp_path / "run" / "run_config.json").write_text(changed)
    _, of_padding = evaluate(tmp_path, paths, "other.json", eval_batch_size=16)
    assert together.keys() == alone.keys() == of_padding.keys()
    score, other_score = "long_answer_score", "short_answers_score"
    for key, answer in together.items():
        assert alone[key]["long_answer"] == answer["long_answer"]
        assert alone[key]["short_answers"] == answer["short_answers"]
        for name in (score, other_score):
            assert alone[key][name] == pytest.approx(answer[name], abs=1e-4)
    differing = [x for x in together if abs(of_padding[x][score] - together[x][score]) > 0.1]
    assert len(differing) > len(together) / 10
