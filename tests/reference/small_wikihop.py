"""Selects the smaller WikiHop cases, with vocabularies of their own.

As in `make_small`, the vocabularies shrink to the pieces that the kept texts need, and the ids are
renamed in them and in the values alike.
"""

from tests.reference import cases, small_files

TOPIC = "wikihop"
MAX_FILE_BYTES = 31_000
_OTHERS = ("sentences.json", "raw/examples.json", "raw/edge.json")


def is_kept(case):
    """All units are kept, and the conversions with small files."""
    file = cases.resolve(TOPIC, case["file"])
    return case["kind"] == "unit" or file.stat().st_size <= MAX_FILE_BYTES


def write(target):
    """Writes the selected cases and their files below `target / "wikihop"`; returns the cases."""
    kept = list(filter(is_kept, cases.load_cases(TOPIC)))
    names = {*_OTHERS, *(name for case in kept for name in small_files.files_of(TOPIC, case))}
    small_files.copy(TOPIC, names, target)
    folder = target / TOPIC
    contents = {name: cases.load_json(TOPIC, name) for name in sorted(names)}
    texts = {text for content in contents.values() for text in small_files.strings_in(content)}
    id_maps = small_files.shrink_vocabularies(texts, folder / small_files.VOCABULARIES)
    for name, content in contents.items():
        small_files.write_json(folder / name, small_files.renamed(content, id_maps, name))
    small_files.write_manifest_of_own_vocabularies(folder, kept)
    return kept
