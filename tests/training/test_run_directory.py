"""A directory belongs to one run."""

import pytest

from etcmodel.training import run_directory


def test_the_same_run_may_come_back(tmp_path):
    config = {"training": {"learning_rate": 1e-5, "sizes": (1, (2, 3))}}
    run_directory.claim_directory(str(tmp_path / "run"), config)
    run_directory.claim_directory(str(tmp_path / "run"), config)


def test_another_run_is_refused_and_told_why(tmp_path):
    old = {"training": {"learning_rate": 1e-5, "optimizer": "adamw"}, "task": {"radius": 84}}
    new = {"training": {"learning_rate": 2e-5, "optimizer": "adamw"}, "task": {"length": 9}}
    run_directory.claim_directory(str(tmp_path), old)
    message = (
        "other options.*task.length: '\\(not set\\)' there, 9 now; task.radius: 84 there, "
        "'\\(not set\\)' now; training.learning_rate: 1e-05 there, 2e-05 now$"
    )
    with pytest.raises(run_directory.OtherRunError, match=message):
        run_directory.claim_directory(str(tmp_path), new)


def test_a_worker_only_compares(tmp_path):
    run_directory.claim_directory(str(tmp_path), {"training": {}}, write=False)
    assert not list(tmp_path.iterdir())


def test_a_directory_without_checkpoint_has_no_best_one(tmp_path):
    with pytest.raises(ValueError, match="must hold a checkpoint"):
        run_directory.best_checkpoint(str(tmp_path))
