"""How many processes raw files are worth."""

import os

from etcmodel.preprocessing import local


def test_a_folder_counts_as_what_is_in_it(tmp_path, monkeypatch, make_job):
    monkeypatch.setattr(local, "_BYTES_PER_WORKER", 10)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for place in ("one", "two"):
        (tmp_path / "texts" / place).mkdir(parents=True)
        (tmp_path / "texts" / place / "a.txt").write_bytes(b"x" * 20)
    (tmp_path / "other.txt").write_bytes(b"x" * 10)
    job = make_job([], direct_num_workers=0)
    assert local.num_workers(job, [str(tmp_path / "texts")]) == 5
    assert local.num_workers(job, [str(tmp_path / "texts"), str(tmp_path / "other.txt")]) == 6
