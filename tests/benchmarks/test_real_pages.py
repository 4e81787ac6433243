"""Web pages by topic: which are chosen, what the linear model is measured on, and a whole run."""

import json

import numpy as np
import pytest

import etcmodel
from benchmarks import real_pages as benchmark
from tests.checkpoints import berts

TOPICS = {"rivers": "wey thames bridge ford", "novels": "emma heroine captain letter"}
WORDS = [*" ".join(TOPICS.values()).split(), "the"]


def test_long_pages_of_large_topics_are_chosen_once():
    pages = [benchmark.Page(f"a/deep/{number}.html", f"{number} x x") for number in range(6)]
    others = [("a/copy.html", "5 x x"), ("a/short.html", "x x"), ("b/0.html", "y y y")]
    given = [*pages, *(benchmark.Page(*x) for x in others)]
    chosen = benchmark.choose(given, min_words=3, min_pages=2)
    assert {page.topic for page in chosen} == {"a"}
    assert [page.text for page in chosen] == [page.text for page in pages]
    assert benchmark.choose(given, min_words=3, min_pages=7) == []


def test_each_part_is_measured_by_a_model_of_the_others():
    topics = ["rivers", "novels"] * 25
    texts = [TOPICS[topic] for topic in topics]
    assert benchmark.accuracies(texts, None, topics) == [1.0] * 5
    # Words that each page has alone tell nothing of others.
    alone = [f"the word{number}" for number in range(50)]
    assert np.mean(benchmark.accuracies(alone, None, topics)) < 0.7
    vectors = np.array([[1.0, 0.1] if topic == "rivers" else [0.1, 1.0] for topic in topics])
    assert benchmark.accuracies(None, vectors, topics) == [1.0] * 5
    assert benchmark.accuracies(texts, vectors * 0, topics) == [1.0] * 5


def test_the_table_has_the_mean_and_the_range_of_the_parts():
    made = {"tokens": 511.6, "seconds": 0.126}
    found = benchmark.table({"first": ([0.5, 0.75], made), "tfidf": ([0.25, 0.5], None)})
    assert found.splitlines()[2:] == [
        "| first | 0.625 (0.500 to 0.750) | 512 | 0.13 |",
        "| tfidf | 0.375 (0.250 to 0.500) | all |  |",
    ]


@pytest.mark.slow
@pytest.mark.benchmark
def test_a_run(tmp_path, capsys):
    berts.write_folder(tmp_path / "bert", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])
    for topic, words in TOPICS.items():
        (tmp_path / "pages" / topic).mkdir(parents=True)
        for number in range(5):
            html = f"<nav>the the</nav><h1>the</h1><p>{words} {'the ' * number}</p>"
            (tmp_path / "pages" / topic / f"{number}.html").write_text(html)
        (tmp_path / "pages" / topic / "index.html").write_text(f"<p>{words}</p>")
    options = benchmark.RealPagesOptions(
        pages=str(tmp_path / "pages"),
        bert=str(tmp_path / "bert"),
        output_dir=str(tmp_path / "runs"),
        min_words=5,
        min_pages=5,
        first_tokens=6,
        max_tokens=12,
        local_radius=3,
    )
    benchmark.main(options)
    printed = capsys.readouterr().out
    assert printed.startswith("10 pages of 7 words in the middle, 2 topics")
    assert "| tfidf | 1.000 (1.000 to 1.000) | all |  |" in printed

    made = {
        kind: json.loads((tmp_path / "runs" / f"{kind}.json").read_text())
        for kind in ("first", "whole")
    }
    encoder = etcmodel.TextEncoder(tmp_path / "bert", max_length=6)
    page = f"the\n{TOPICS['novels']} the the the the"  # Of the last novel; topics are in order.
    np.testing.assert_allclose(made["first"]["vectors"][4], encoder.encode(page), atol=1e-6)
    long = etcmodel.TextEncoder(tmp_path / "runs" / "long_bert", max_length=12)
    np.testing.assert_allclose(made["whole"]["vectors"][4], long.encode(page), atol=1e-6)

    before = (tmp_path / "runs" / "whole.json").stat().st_mtime_ns
    benchmark.main(options)
    assert (tmp_path / "runs" / "whole.json").stat().st_mtime_ns == before
    assert capsys.readouterr().out == printed
