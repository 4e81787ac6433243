"""What the invented reports promise to those who train and test on them."""

import json
import pathlib

import pytest

from etcmodel.text import byte_bpe
from etcmodel.tools import make_demo_data
from etcmodel.tools.demos import summarization as demo


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder, reports, tokenizer) with 64 tokens before the key sentence."""
    folder = tmp_path_factory.mktemp("demo")
    paths = make_demo_data.make_demo_data(
        dataset="summarization",
        output_dir=str(folder),
        num_train=40,
        num_dev=5,
        seed=0,
        distance=64,
    )
    lines = pathlib.Path(paths["train"]).read_text(encoding="utf-8").splitlines()
    return folder, list(map(json.loads, lines)), byte_bpe.ByteLevelTokenizer(paths["vocab"])


def test_the_summary_is_a_sentence_beyond_the_distance_in_words_of_its_own(made):
    _, reports, tokenizer = made
    for report in reports:
        (summary,) = report["abstract_text"]
        key = summary.removeprefix("<S> ").removesuffix(" </S>")
        place = report["article_text"].index(key)
        before = tokenizer.encode(" ".join(report["article_text"][:place])).ids[1:-1]
        assert 64 <= len(before) < 2 * 64 + 13
        others = " ".join(x for x in report["article_text"] if x != key).split()
        assert not {*others} & {*key.split()[:-1]}
        assert report["article_text"].count(key) >= 2
    assert len({report["abstract_text"][0] for report in reports}) == len(reports)


def test_each_word_is_a_token_and_nothing_is_unknown(made):
    folder, reports, tokenizer = made
    text = " ".join(reports[0]["article_text"])
    assert [x.removeprefix("Ġ") for x in tokenizer.tokenize(text)] == text.split()
    assert tokenizer.decode(tokenizer.encode("Zürich, at 4 pm").ids[1:-1]).strip() == (
        "Zürich, at 4 pm"
    )
    config = json.loads((folder / "led_config.json").read_text())
    assert config["vocab_size"] == len(tokenizer.vocab) == len(demo.vocabulary())
    longest = max(len(tokenizer.encode(" ".join(x["article_text"])).ids) for x in reports)
    assert longest <= config["max_encoder_position_embeddings"]


def test_other_settings_are_refused(tmp_path):
    with pytest.raises(ValueError, match="--pairs: --dataset=summarization has no such setting"):
        make_demo_data.make_demo_data(
            dataset="summarization",
            output_dir=str(tmp_path),
            num_train=1,
            num_dev=1,
            seed=0,
            pairs=2,
        )
