"""Writes `small/wikihop/`: the smaller WikiHop cases, with vocabularies of their own.

As in `make_small`, the vocabularies shrink to the pieces that the kept texts need, and the ids are
renamed in them and in the values alike.

  python -m tests.reference.make_small_wikihop
"""

import argparse
import json
import pathlib
import shutil
import sys

from etcmodel.text import tokenization
from tests.reference import cases, make_small, shrink_vocabulary

TOPIC = "wikihop"
VOCABULARIES = "vocabularies"  # Not `vocab`, which all topics share.
SENTENCES = "sentences.json"


def selected_cases(max_bytes):
    """All units, and the conversions with small files."""
    return [
        case
        for case in cases.load_cases(TOPIC)
        if case["kind"] == "unit" or cases.resolve(TOPIC, case["file"]).stat().st_size <= max_bytes
    ]


def files_of(kept):
    named = {name for case in kept for name in make_small.files_of(TOPIC, case)}
    return sorted(named | {SENTENCES, "raw/examples.json", "raw/edge.json"})


def shrink_vocabularies(texts, folder):
    """Writes the small vocabularies; returns old id to new id, by tokenizer."""
    folder.mkdir(parents=True)
    path = cases.resolve("", make_small.WORDPIECE)
    tokenizers = [tokenization.FullTokenizer(str(path), lower) for lower in (True, False)]
    needed = {piece for text in texts for t in tokenizers for piece in t.tokenize(text)}
    lines, wordpiece_map = shrink_vocabulary.shrink_wordpieces(tokenizers[0].vocab, needed)
    (folder / path.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = cases.resolve("", make_small.SENTENCEPIECE)
    tokenizer = tokenization.FullTokenizer(None, spm_model_file=str(path))
    needed = {piece for text in texts for piece in tokenizer.tokenize(text)}
    model, sentencepiece_map = shrink_vocabulary.shrink_sentencepieces(path.read_bytes(), needed)
    (folder / path.name).write_bytes(model)
    return {"wordpiece": wordpiece_map, "sentencepiece": sentencepiece_map}


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max_file_bytes", type=int, default=31_000)
    small = pathlib.Path(__file__).resolve().parent / "small"
    flags = parser.parse_args(arguments)
    if small == cases.reference_root().resolve():
        parser.error(f"{small} is the only reference folder there is")
    kept = selected_cases(flags.max_file_bytes)
    contents = {name: cases.load_json(TOPIC, name) for name in files_of(kept)}
    target = small / TOPIC
    shutil.rmtree(target, ignore_errors=True)
    texts = {text for content in contents.values() for text in make_small.strings_in(content)}
    id_maps = shrink_vocabularies(texts, target / VOCABULARIES)
    for name, content in contents.items():
        write_json(target / name, make_small.renamed(content, id_maps, name))
    manifest = json.dumps({"cases": kept}).replace('"vocab/', f'"{VOCABULARIES}/')
    write_json(target / "manifest.json", json.loads(manifest))
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{len(kept)} cases, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
