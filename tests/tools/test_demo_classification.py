"""What the invented reports promise to those who train and test on them."""

import collections
import json
import pathlib

from etcmodel.text import tokenization
from etcmodel.tools import make_demo_data
from etcmodel.tools.demos import classification

TRAIN = classification.make_examples(split="train", num_examples=400, seed=0)
CUT = 512  # Word pieces that a short model reads, [CLS] and [SEP] included.


def seal_of(text):
    (seal,) = [seal for seal in ("red", "blue") if f"The parcel had a {seal} seal." in text]
    return seal


def order_of(text):
    (order,) = [
        name for name, forms in classification.ORDERS.items() if all(x in text for x in forms)
    ]
    return order


def test_the_label_follows_from_seal_and_order():
    for example in TRAIN:
        seal, order = seal_of(example["text"]), order_of(example["text"])
        passes = order == "all" or order == seal
        assert example["label"] == ("pass" if passes else "hold")


def test_labels_are_balanced_whatever_the_seal():
    counts = collections.Counter((seal_of(x["text"]), x["label"]) for x in TRAIN)
    assert set(counts) == {(x, y) for x in ("red", "blue") for y in classification.LABELS}
    assert all(75 <= count <= 125 for count in counts.values()), counts
    assert sum(example["label"] == "pass" for example in TRAIN) == len(TRAIN) / 2


def test_the_order_lies_beyond_what_a_short_model_reads(tmp_path):
    paths = make_demo_data.make_demo_data(
        dataset="classification", output_dir=str(tmp_path), num_train=300, num_dev=60, seed=1
    )
    tokenizer = tokenization.FullTokenizer(paths["vocab"])
    assert paths["train"].endswith("classification_train.jsonl")
    lines = pathlib.Path(paths["dev"]).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 60
    for raw in map(json.loads, lines):
        first = min(raw["text"].index(x) for x in classification.ORDERS[order_of(raw["text"])])
        seal = raw["text"].index("The parcel had a")
        assert len(tokenizer.tokenize(raw["text"][:first])) >= CUT
        assert len(tokenizer.tokenize(raw["text"][:seal])) < 60
        assert len(tokenizer.tokenize(raw["text"])) < 700
