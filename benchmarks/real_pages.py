"""Classifies real web pages of thousands of words by topic: what does reading them whole bring?

The topic of a page is the first folder of its path. A linear model learns it from what the page
shows, without its navigation: from TF-IDF of words, or from vectors of a BERT that is not trained
for it: of the first tokens alone, or of the page read at once by the long version of the BERT.
Pages are divided into five parts; each is the test once. Vectors that are there are used again.

  apt-get install linux-doc
  python -m benchmarks.real_pages --pages=/usr/share/doc/linux-doc-6.1/html --bert=minilm
"""

import collections
import dataclasses
import json
import pathlib
import statistics
import time

import numpy as np

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.tools import kept_options

__all__ = ["Page", "RealPagesOptions", "accuracies", "choose", "table"]

_FOLDS = 5
_KINDS = ("tfidf", "first", "whole", "whole_tfidf")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RealPagesOptions(Options):
    """The pages, and how much of them is read."""

    pages: str = option("pages", "Folder of HTML pages, in a folder for each topic.")
    bert: str = option("minilm", "Folder of a Hugging Face BERT, with its vocabulary.")
    output_dir: str = option("real_pages", "Directory for vectors.")
    min_words: int = option(1000, "Fewest words of a page.", lower_bound=1)
    min_pages: int = option(15, "Fewest pages of a topic.", lower_bound=_FOLDS)
    kinds: tuple = option(
        _KINDS,
        "What the linear model gets: TF-IDF of words and pairs of words; the vector of the first "
        "tokens; the vector of the whole page; or the last and TF-IDF.",
        choices=_KINDS,
    )
    first_tokens: int = option(512, "Tokens that the BERT reads at once.", lower_bound=3)
    max_tokens: int = option(4096, "Tokens of a page that the long version reads.", lower_bound=3)
    local_radius: int = option(
        256, "Tokens on each side that a token of the long version attends to.", lower_bound=1
    )
    batch_size: int = option(4, "Number of texts that are read together.", lower_bound=1)


@dataclasses.dataclass(frozen=True)
class Page:
    """A web page.

    Attributes:
        path: str. Below the folder of all pages.
        text: str. What it shows, without navigation.
    """

    path: str
    text: str

    @property
    def topic(self):
        return self.path.split("/")[0]


def choose(pages, min_words, min_pages):
    """The pages to classify: list of `Page`.

    Args:
        pages: iterable of `Page`.
        min_words: int. Shorter pages are left out, and so is one with the text of another.
        min_pages: int. Topics with fewer pages are left out.
    """
    kept = {page.text: page for page in pages if len(page.text.split()) >= min_words}.values()
    counts = collections.Counter(page.topic for page in kept)
    return [page for page in kept if counts[page.topic] >= min_pages]


def _read(options):
    """Yields each `Page` of the folder but indices, which have no text of their own."""
    from etcmodel import EtcProcessor

    folder = pathlib.Path(options.pages)
    processor = EtcProcessor(f"{options.bert}/vocab.txt", main_only=True)
    for path in sorted(folder.glob("*/**/*.html")):
        if not path.name.endswith("index.html"):
            batch = processor(html=path.read_text(encoding="utf-8"))
            shown = batch.encodings[0].document.texts
            yield Page(path.relative_to(folder).as_posix(), "\n".join(shown))


def _of_first(options, texts):
    from etcmodel import TextEncoder

    encoder = TextEncoder(options.bert, max_length=options.first_tokens)
    return encoder.encode_counted(texts, options.batch_size)


def _of_whole(options, texts):
    from etcmodel import TextEncoder, from_pretrained

    folder = pathlib.Path(options.output_dir, "long_bert")
    model = from_pretrained(options.bert, local_radius=options.local_radius)
    model.save_pretrained(folder, model.processor)
    return TextEncoder(folder, max_length=options.max_tokens).encode_counted(
        texts, options.batch_size
    )


_VECTORS = {"first": _of_first, "whole": _of_whole}


def _vectors(options, kind, texts):
    """The vectors of a kind, float32 [pages, size], and how they were made: dict."""
    path = pathlib.Path(options.output_dir, f"{kind}.json")
    if not path.exists():
        start = time.process_time()
        found = _VECTORS[kind](options, texts)
        made = {
            "vectors": np.asarray(found.vectors).tolist(),
            "tokens": float(np.mean(found.num_tokens)),
            "cpu_seconds": round(time.process_time() - start),
        }
        atomic_files.write_json(str(path), made)
    made = json.loads(path.read_text(encoding="utf-8"))
    return np.asarray(made.pop("vectors"), np.float32), made


def accuracies(texts, vectors, topics):
    """Accuracies of a linear model in each of five parts, on which it was not trained: list.

    Args:
        texts: list of str, for TF-IDF; or None: without it.
        vectors: float32 [pages, size]; or None.
        topics: list of str.
    """
    from scipy import sparse
    from sklearn import feature_extraction, model_selection, preprocessing, svm

    parts = model_selection.StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    topics, found = np.asarray(topics), []
    for train, test in parts.split(topics, topics):
        features = []
        if texts is not None:
            words = feature_extraction.text.TfidfVectorizer(
                sublinear_tf=True, ngram_range=(1, 2), min_df=2
            ).fit([texts[i] for i in train])
            features.append(words.transform(texts))
        if vectors is not None:
            features.append(sparse.csr_matrix(preprocessing.normalize(vectors)))
        rows = sparse.hstack(features).tocsr()
        model = svm.LinearSVC(C=10.0, random_state=0).fit(rows[train], topics[train])
        found.append(float((model.predict(rows[test]) == topics[test]).mean()))
    return found


def table(results):
    """Markdown of the results: dict of kind to (accuracies, dict of how vectors were made)."""
    rows = [["a linear model of", "accuracy", "tokens read", "CPU seconds a page"], ["---"] * 4]
    for kind, (found, made) in results.items():
        spread = f"{statistics.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})"
        costs = [f"{made['tokens']:.0f}", f"{made['seconds']:.2f}"] if made else ["all", ""]
        rows.append([kind, spread, *costs])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main(options):
    """Prints the table after each kind."""
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    kept_options.keep(folder, options, apart=("output_dir", "kinds"))
    pages = choose(_read(options), options.min_words, options.min_pages)
    if not pages:
        raise ValueError(f"--pages={options.pages} has no topic with enough pages.")
    texts, topics = [page.text for page in pages], [page.topic for page in pages]
    counts = collections.Counter(topics)
    words = statistics.median(len(text.split()) for text in texts)
    print(
        f"{len(pages)} pages of {words:.0f} words in the middle, {len(counts)} topics, of which "
        f"the largest has {max(counts.values()) / len(pages):.3f}."
    )
    results = {}
    for kind in options.kinds:
        vectors = made = None
        if kind != "tfidf":
            vectors, made = _vectors(options, kind.split("_")[0], texts)
            made["seconds"] = made["cpu_seconds"] / len(pages)
        given = texts if kind.endswith("tfidf") else None
        results[kind] = accuracies(given, vectors, topics), made
        print(table(results), flush=True)


if __name__ == "__main__":
    run_program(RealPagesOptions, main)
