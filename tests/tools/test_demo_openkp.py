"""What the invented pages promise to those who train and test on them."""

import json

from etcmodel.tasks.openkp import examples, input_validate_and_dedup, vdom
from etcmodel.tools.demos import openkp as demo_openkp
from etcmodel.tools.make_demo_data import make_demo_data

PAGES = demo_openkp.make_examples(split="train", num_examples=300, seed=0)


def elements_of(raw):
    """(text, visual features) of each element; malformed pages fail."""
    example = examples.parse_example(raw)
    for element in vdom.parse(example.vdom, example.words):
        looks = {name: value for name, (value,) in vdom.features([element]).items()}
        yield " ".join(example.words[element.begin : element.end]), looks


def test_pages_are_valid_and_need_no_cleaning():
    for raw in PAGES:
        page, num_dropped = input_validate_and_dedup.validated(raw)
        assert num_dropped == 0
        assert page["KeyPhrases"] == [[" ".join(phrase)] for phrase in raw["KeyPhrases"]]
        assert 2 <= len(raw["KeyPhrases"]) <= 3
        assert list(elements_of(raw))


def test_urls_are_unique_and_splits_differ():
    assert len({raw["url"] for raw in PAGES}) == len(PAGES)
    dev = demo_openkp.make_examples(split="dev", num_examples=300, seed=0)
    assert not {raw["text"] for raw in PAGES} & {raw["text"] for raw in dev}


def test_the_looks_tell_the_key_phrases_and_nothing_else():
    for raw in PAGES:
        bold = [text.lower() for text, looks in elements_of(raw) if looks["global_bold_indicator"]]
        key_phrases = [" ".join(phrase) for phrase in raw["KeyPhrases"]]
        assert len(bold) == len(key_phrases)
        assert all(any(phrase in text for text in bold) for phrase in key_phrases)


def test_file_has_a_page_a_line_and_a_vocabulary_without_unknown_words(tmp_path):
    paths = make_demo_data(
        dataset="openkp", output_dir=str(tmp_path), num_train=20, num_dev=5, seed=1
    )
    lines = (tmp_path / "openkp_train.jsonl").read_text().splitlines()
    assert [json.loads(line)["url"] for line in lines] == [
        f"http://example.org/train/{i}" for i in range(20)
    ]
    with open(paths["vocab"], encoding="utf-8") as file:
        vocab = set(file.read().split("\n"))
    for line in lines:
        words = json.loads(line)["text"].lower().split()
        assert all(word in vocab for word in words)
