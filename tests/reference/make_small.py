"""Writes `small/`: cases of each kind, for a checkout that has no reference folder beside it.

The public vocabularies are far too big for that. They shrink to the pieces that the kept texts
need; the first ones, which have special meanings, keep their ids, the others get new ones, and so
the values in the kept files are the original ones but for the renamed token ids.

  python -m tests.reference.make_small --max_cases_per_kind=14
"""

import argparse
import io
import json
import pathlib
import shutil
import sys

import numpy as np

from etcmodel.text import tokenization
from tests.reference import (
    cases,
    shrink_vocabulary,
    small_bigbird,
    small_core,
    small_gmat,
    small_longformer,
    small_modernbert,
    small_t5,
)

TOPICS = ("tokenization", "hotpotqa")
LISTED_TOPICS = (
    small_bigbird.TOPIC,
    small_core.TOPIC,
    small_gmat.TOPIC,
    "hotpotqa",
    small_longformer.TOPIC,
    small_modernbert.TOPIC,
    "nq",
    "openkp",
    small_t5.TOPIC,
    "tokenization",
    "wikihop",
)
WORDPIECE = "vocab/bert_uncased_vocab.txt"
SENTENCEPIECE = "vocab/gpt2_sentencepiece.model"
MAX_ENTRIES = 40  # Of `strings.json`.

README = """# A small copy of the reference cases

Written by `tests/reference/make_small.py` and its siblings, which select cases of the full
reference folder; the layout is the same. The vocabularies are cut down to the pieces that the kept
texts need: ids from 104 up are renamed, in the vocabularies and in the values alike. The
SentencePiece models also lost their normalization table, which no kept text needs. The cases of
`core` are copied as they are, only the biggest are left out; so are samples of those of `gmat`,
which a plain twin of the paper computed, and of `bigbird`, `longformer`, `modernbert` and `t5`,
with the models of these, which Hugging Face's library computed. Everything else is what the
authors' release computed. `all_cases.json` has the names of all cases of the full folder, against
which the report at the end of a test run counts. Whoever has that folder sets
`ETCMODEL_REFERENCE_ROOT` or puts it at `../shared/reference`.
The vocabularies come from Google's BERT and BigBird releases (Apache 2.0).
"""


def selected_cases(topic, max_cases, max_bytes):
    """The cases with the smallest files, in the manifest's order."""
    by_kind = {}
    for case in cases.load_cases(topic):
        size = cases.resolve(topic, case["file"]).stat().st_size
        is_small = size <= max_bytes or case["file"] == "strings.json"
        if is_small:
            by_kind.setdefault(cases.kind_of(case), []).append((size, case["name"], case))
    kept = [case for group in by_kind.values() for *_, case in sorted(group)[:max_cases]]
    names = {case["name"] for case in kept}
    return [case for case in cases.load_cases(topic) if case["name"] in names]


def strings_in(value):
    """Every string within a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)


def files_of(topic, case):
    """The files, not vocabularies, that a case names."""
    own = [name for name in strings_in(case) if not name.startswith("vocab/")]
    return {name for name in own if name and cases.resolve(topic, name).is_file()}


def thinned(name, content):
    """Fewer entries of the long list of strings."""
    if name != "strings.json":
        return content
    return content[:: -(-len(content) // MAX_ENTRIES)]


def renamed(value, id_maps, context):
    """Renames the token ids in a JSON value; `context` tells the tokenizer they belong to."""
    if isinstance(value, list):
        return [renamed(item, id_maps, context) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, item in value.items():
        kind = "sentencepiece" if "sentencepiece" in context + key else "wordpiece"
        is_ids = key in ("token_ids", "long_token_ids") or key.endswith("piece_ids")
        is_ids = is_ids or key in ("wordpiece_lower_ids", "wordpiece_cased_ids")
        if is_ids:
            result[key] = [id_maps[kind][index] for index in item]
        else:
            result[key] = renamed(item, id_maps, context)
    return result


def renamed_arrays(path, id_maps):
    """The bytes of an `.npz` file with its token ids renamed."""
    kind = "sentencepiece" if "sentencepiece" in path.name else "wordpiece"
    with np.load(path, allow_pickle=False) as arrays:
        arrays = dict(arrays)
    ids = arrays["long_token_ids"]
    arrays["long_token_ids"] = np.vectorize(id_maps[kind].get)(ids).astype(ids.dtype)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def shrink_vocabularies(texts, target):
    """Writes the small vocabularies; returns old id to new id, by tokenizer."""
    (target / "vocab").mkdir(parents=True)
    paths = {name: cases.resolve("", name) for name in (WORDPIECE, SENTENCEPIECE)}
    wordpiece = [
        tokenization.FullTokenizer(str(paths[WORDPIECE]), lower) for lower in (True, False)
    ]
    sentencepiece = tokenization.FullTokenizer(None, spm_model_file=str(paths[SENTENCEPIECE]))
    needed = {
        piece for text in texts for tokenizer in wordpiece for piece in tokenizer.tokenize(text)
    }
    lines, wordpiece_map = shrink_vocabulary.shrink_wordpieces(wordpiece[0].vocab, needed)
    (target / WORDPIECE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    needed = {piece for text in texts for piece in sentencepiece.tokenize(text)}
    model, sentencepiece_map = shrink_vocabulary.shrink_sentencepieces(
        paths[SENTENCEPIECE].read_bytes(), needed
    )
    (target / SENTENCEPIECE).write_bytes(model)
    return {"wordpiece": wordpiece_map, "sentencepiece": sentencepiece_map}


def kept_texts(files):
    """Every string in the kept JSON files."""
    texts = set()
    for topic, name in files:
        if name.endswith(".json"):
            texts |= set(strings_in(thinned(name, cases.load_json(topic, name))))
    return texts


def write_file(topic, name, target, id_maps):
    """Copies one file of a topic, with fewer entries and renamed ids."""
    source = cases.resolve(topic, name)
    path = target / topic / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".json"):
        content = thinned(name, cases.load_json(topic, name))
        content = renamed(content, id_maps, f"{name} ")
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8")
    elif name.endswith(".npz"):
        path.write_bytes(renamed_arrays(source, id_maps))
    elif name.endswith(".model"):
        path.write_bytes(shrink_vocabulary.without_normalization(source.read_bytes()))
    else:
        shutil.copyfile(source, path)


def write_manifest(topic, kept, target):
    """Writes the cases, with the number of entries that are left."""
    for case in kept:
        if case["file"] == "strings.json":
            case["count"] = len(thinned("strings.json", cases.load_json(topic, "strings.json")))
    text = json.dumps({"cases": kept}, ensure_ascii=False, separators=(",", ":"))
    (target / topic / "manifest.json").write_text(text + "\n", encoding="utf-8")


def write_names(target):
    """Writes the names of all cases, kept or not, by topic and kind."""
    names = {topic: cases.names_by_kind(topic) for topic in LISTED_TOPICS}
    text = json.dumps(names, ensure_ascii=False, indent=0)
    (target / cases.ALL_CASES).write_text(text + "\n", encoding="utf-8")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max_cases_per_kind", type=int, default=14)
    parser.add_argument("--max_file_bytes", type=int, default=30_000)
    target = pathlib.Path(__file__).resolve().parent / "small"
    parser.add_argument("--target", type=pathlib.Path, default=target)
    flags = parser.parse_args(arguments)
    if flags.target.resolve() == cases.reference_root().resolve():
        parser.error(f"{flags.target} is the only reference folder there is")
    kept = {
        topic: selected_cases(topic, flags.max_cases_per_kind, flags.max_file_bytes)
        for topic in TOPICS
    }
    files = sorted({(t, name) for t in TOPICS for case in kept[t] for name in files_of(t, case)})
    for name in ("vocab", *TOPICS):
        shutil.rmtree(flags.target / name, ignore_errors=True)
    id_maps = shrink_vocabularies(kept_texts(files), flags.target)
    for topic, name in files:
        write_file(topic, name, flags.target, id_maps)
    for topic in TOPICS:
        write_manifest(topic, kept[topic], flags.target)
    selections = (
        small_bigbird,
        small_core,
        small_gmat,
        small_longformer,
        small_modernbert,
        small_t5,
    )
    for selection in selections:
        kept[selection.TOPIC] = selection.write(flags.target)
    write_names(flags.target)
    (flags.target / "README.md").write_text(README, encoding="utf-8")
    size = sum(path.stat().st_size for path in flags.target.rglob("*") if path.is_file())
    print(f"{sum(map(len, kept.values()))} cases, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
