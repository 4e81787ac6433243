"""Generated documents of the demo data, and the answers that need no reading."""

import json
import pathlib

from etcmodel.tasks.coreference import examples
from etcmodel.tools import make_demo_data


def make(folder, num_train, num_dev):
    """Demo data as files of CoNLL-2012, `train.conll` and `dev.conll`: (paths, dev documents)."""
    paths = make_demo_data.make_demo_data(
        dataset="coreference", output_dir=str(folder), num_train=num_train, num_dev=num_dev, seed=0
    )
    raws = {}
    for name in ("train", "dev"):
        lines = pathlib.Path(paths[name]).read_text(encoding="utf-8").splitlines()
        raws[name] = list(map(json.loads, lines))
        (folder / f"{name}.conll").write_text(conll(raws[name]), encoding="utf-8")
    return paths, raws["dev"]


def conll(raws):
    return "".join(
        line
        for raw in raws
        for line in examples.conll_lines(
            raw["doc_key"], raw["sentences"], raw["speakers"], raw["clusters"]
        )
    )


def one_cluster(raw):
    """The actual mentions, as if all were of one thing."""
    return [[span for cluster in raw["clusters"] for span in cluster]]


def equal_words(raw):
    """The actual mentions, as if those of equal words were of one thing."""
    words = [word for sentence in raw["sentences"] for word in sentence]
    by_text = {}
    for start, end in one_cluster(raw)[0]:
        by_text.setdefault(tuple(words[start : end + 1]), []).append((start, end))
    return list(by_text.values())
