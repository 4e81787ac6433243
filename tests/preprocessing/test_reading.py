"""How far the reading of raw files has come."""

import gzip
import json
import types

import pytest

from etcmodel import opener
from etcmodel.preprocessing import local, raw_files, records


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bytes_are_counted_as_they_lie_on_the_disk(tmp_path, pack):
    lines = b"".join(b"line %d\n" % i for i in range(20_000))
    path = tmp_path / ("lines.jsonl.gz" if pack is gzip.compress else "lines.jsonl")
    path.write_bytes(pack(lines))
    size = path.stat().st_size
    with opener.ReadingMeter(2 * size).active() as meter:
        assert meter.seconds_left(10.0) is None  # Nothing is known yet.
        found = b""
        with opener.open_bytes(str(path)) as file:
            found += file.readline()
            assert 0 < meter.read <= size
            found += file.read()
        assert found == lines and meter.read == size
    assert meter.seconds_left(10.0) == 10.0  # Half of all was read.
    with opener.open_bytes(str(path)) as file:
        file.read()
    assert meter.read == size  # It counts in its context only.


def test_going_back_takes_back_what_was_counted(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 1000)
    with opener.ReadingMeter(256_000).active() as meter, opener.open_bytes(str(path)) as file:
        file.read(100_000)
        assert meter.read >= 100_000
        file.seek(10)
        assert (file.tell(), file.read(3)) == (10, bytes([10, 11, 12]))
        file.read()
        assert meter.read == 256_000


def test_a_second_reading_does_not_make_the_time_negative():
    meter = opener.ReadingMeter(10)
    meter.read = 25
    assert meter.seconds_left(3.0) == 0.0


def test_preprocessing_tells_number_rate_and_time_left(tmp_path, monkeypatch, caplog):
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps({"id": i, "x": "y" * 5000}) + "\n" for i in range(200)))
    monkeypatch.setattr(local, "_SECONDS_BETWEEN_REPORTS", -1)
    job = types.SimpleNamespace(
        read=raw_files.read_json_values,
        make_converter=lambda: lambda raw: records.Converted(features=[{"id": [raw["id"]]}]),
        num_shards=1,
        direct_num_workers=1,
        line_files={},
        strict=False,
        deals_records=False,
    )
    with caplog.at_level("INFO"):
        local.run_local(job, [str(path)], str(tmp_path))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 200
    assert all(" a second, time left " in line for line in lines)
    assert lines[0].startswith("1 examples done, ") and lines[-1].endswith("time left 0s")
