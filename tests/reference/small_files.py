"""How the small copy is written: files as they are, or with ids of small vocabularies."""

import json
import shutil

from etcmodel.text import tokenization
from tests.reference import cases, shrink_vocabulary

WORDPIECE = "vocab/bert_uncased_vocab.txt"
SENTENCEPIECE = "vocab/gpt2_sentencepiece.model"
VOCABULARIES = "vocabularies"  # Of a topic that has its own; `vocab` is that of all others.


def as_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(content) + "\n", encoding="utf-8")


def copy(topic, names, target):
    """Writes the topic's files of these names, and no others, below `target`."""
    shutil.rmtree(target / topic, ignore_errors=True)
    for name in sorted(names):
        (target / topic / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cases.resolve(topic, name), target / topic / name)


def write_manifest_of_own_vocabularies(folder, kept):
    """The manifest of a topic with the folder `VOCABULARIES`."""
    manifest = json.dumps({"cases": kept}).replace('"vocab/', f'"{VOCABULARIES}/')
    write_json(folder / "manifest.json", json.loads(manifest))


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


def shrink_vocabularies(texts, folder, also=()):
    """Writes the vocabularies of what is needed for the texts, and also of further pieces.

    Returns:
        dict of "wordpiece" and "sentencepiece" to dicts of old id to new id.
    """
    folder.mkdir(parents=True)
    path = cases.resolve("", WORDPIECE)
    tokenizers = [tokenization.FullTokenizer(str(path), lower) for lower in (True, False)]
    needed = {piece for text in texts for t in tokenizers for piece in t.tokenize(text)}
    lines, wordpiece_map = shrink_vocabulary.shrink_wordpieces(
        tokenizers[0].vocab, needed | set(also)
    )
    (folder / path.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = cases.resolve("", SENTENCEPIECE)
    tokenizer = tokenization.FullTokenizer(None, spm_model_file=str(path))
    needed = {piece for text in texts for piece in tokenizer.tokenize(text)}
    model, sentencepiece_map = shrink_vocabulary.shrink_sentencepieces(path.read_bytes(), needed)
    (folder / path.name).write_bytes(model)
    return {"wordpiece": wordpiece_map, "sentencepiece": sentencepiece_map}
