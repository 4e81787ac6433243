"""Which pages of a raw file the task scores, and with what."""

import logging

import numpy as np
import pytest

from etcmodel.models import modeling
from etcmodel.tasks.openkp import examples, metrics
from etcmodel.tasks.openkp.task import OpenKpConfig, OpenKpTask
from tests.tasks.openkp.pages import page, write_lines

GOOD = [page("a red rose", "in gardens", url="u/1"), page("one red rose", url="u/2")]
MISALIGNED = page("a red rose", url="u/bad", text="a red moon")


def make_task(gold_file, **fields):
    config = modeling.EtcConfig(vocab_size=9, hidden_size=8, num_attention_heads=2)
    return OpenKpTask(OpenKpConfig(encoder_config=config, eval_gold=gold_file, **fields))


def output_of(url, start_idx, phrase_len):
    """A record with the model's best n-gram."""
    return {
        "url_code_points": np.array([*map(ord, url), -1]),
        "top_start_idx": np.array([start_idx]),
        "top_phrase_len": np.array([phrase_len]),
        "top_logits": np.array([1.0]),
    }


OUTPUTS = [output_of("u/1", 1, 2), output_of("u/2", 0, 1)]


def test_pages_that_preprocessing_refuses_are_not_scored_but_named(tmp_path, caplog):
    lines = [GOOD[0], page(" ", url="u/empty"), "{nonsense\n", MISALIGNED, GOOD[1]]
    path = write_lines(tmp_path / "dev.jsonl", lines)
    with caplog.at_level(logging.WARNING):
        metrics = make_task(path).evaluate(iter(OUTPUTS))
    assert metrics["precision@1"] == 1 / 2
    empty, nonsense, misaligned, count = caplog.messages
    assert empty.startswith(f"skipped {path}: line 2: page 'u/empty': the page is empty")
    assert nonsense.startswith(f"skipped {path}: line 3: malformed JSON")
    assert misaligned.startswith(f"skipped {path}: line 4: page 'u/bad': VDOM element 0: ")
    assert count == f"{path}: 3 of 5 pages skipped"


def test_a_url_beyond_its_length_has_no_record_and_is_not_scored(tmp_path):
    pages = [*GOOD, page("a red rose", url="u/longer")]
    path = write_lines(tmp_path / "dev.jsonl", pages)
    assert make_task(path, url_max_code_points=7).evaluate(OUTPUTS)["precision@1"] == 1 / 2


def test_a_good_page_without_a_record_scores_nothing(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", GOOD)
    assert make_task(path).evaluate(OUTPUTS[:1])["precision@1"] == 1 / 2


def test_files_of_texts_alone_are_scored_too(tmp_path):
    """As the release's preprocessing writes them: lower-case phrases, no VDOM."""
    texts = [metrics.TextExample.of(examples.parse_example(raw)).to_json() for raw in GOOD]
    assert texts[0]["KeyPhrases"] == [["red rose"]] and "VDOM" not in texts[0]
    path = write_lines(tmp_path / "dev_text_examples.jsonl", texts)
    assert make_task(path).evaluate(OUTPUTS)["precision@1"] == 1 / 2


def test_pages_of_one_url_with_different_texts_are_told(tmp_path, caplog):
    path = write_lines(tmp_path / "dev.jsonl", [*GOOD, GOOD[0]])
    assert make_task(path).evaluate(OUTPUTS)["precision@1"] == 2 / 3
    assert not caplog.messages
    write_lines(tmp_path / "dev.jsonl", [*GOOD, page("a blue rose", url="u/1")])
    with caplog.at_level(logging.WARNING):
        make_task(path).evaluate(OUTPUTS)
    (message,) = caplog.messages
    assert message.startswith("1 URLs have several pages with different texts, of which the last ")
    assert "such as 'u/1'. Clean the raw file with input_validate_and_dedup" in message


def test_with_fixed_blocks_the_vdom_does_not_matter(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", [GOOD[0], MISALIGNED])
    fields = {"use_visual_features_in_long": False, "use_visual_features_in_global": False}
    task = make_task(path, fixed_block_len=4, **fields)
    assert [example.url for example in task.read_examples(path)] == ["u/1", "u/bad"]


def test_a_file_without_a_good_page_is_refused(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", [MISALIGNED])
    with pytest.raises(ValueError, match="dev.jsonl: none of the 1 pages can be used, the first: "):
        make_task(path).evaluate(OUTPUTS)


def test_pages_that_the_file_lacks_count_as_found_nothing_of(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", GOOD)
    whole = make_task(path).evaluate(OUTPUTS)
    found = make_task(path, eval_fraction_of_removed_examples=0.25).evaluate(OUTPUTS)
    assert found == pytest.approx({name: 0.75 * value for name, value in whole.items()})
    assert whole["precision@1"] > 0
