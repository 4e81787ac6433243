"""Results that are kept as lines: what was done is not done again, whatever ended the program."""

import json

import pytest

from etcmodel.tools import row_results


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_cut_off_is_run_again(tmp_path, cut):
    path, ran = tmp_path / "results.jsonl", []

    def run():
        ran.append(1)
        return {"accuracy": len(ran)}

    results = row_results.Results(path)
    for seed in (0, 1):
        results.fill({"variant": "é", "seed": seed}, run)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    results = row_results.Results(path)
    is_lost = cut > 1  # The last byte is only the end of its line.
    assert len(results.all) == 2 - is_lost
    assert [results.fill({"variant": "é", "seed": x}, run)["accuracy"] for x in (0, 1, 2)] == (
        [1, 3, 4] if is_lost else [1, 2, 3]
    )
    kept = row_results.Results(path).all
    assert [line["seed"] for line in kept] == [0, 1, 2] and len(ran) == 3 + is_lost
    assert json.loads(whole.splitlines()[0]) == kept[0]
