"""Selects a few Natural Questions cases of each kind, with vocabularies of their own.

The preprocessing cases keep a few pages only. As in `make_small`, the vocabularies shrink to the
pieces that the kept texts need, and the ids are renamed in them and in the values alike.
"""

import json

from tests.reference import cases, small_files

TOPIC = "nq"
RAW = "raw_examples.jsonl"
CASES = (
    "preproc_wp_dev",
    "preproc_wp_train_rate0",
    "preproc_wp_train_default_unanswerable_is_4x",
    "preproc_wp_fixed_blocks",
    "preproc_wp_no_html",
    "preproc_wp_cased_input",
    "preproc_sp_train_rate0_predict_la",
    "preproc_sp_fixed_blocks",
    "program_preproc",
    "inference_hand_made",
    "evaluator_hand_made",
    "metrics_mixed",
    "metrics_tied_scores",
    "metrics_vote_threshold_1",
    "model_plain",
)
PAGES = (90071, 90074, 90076, 90077)  # Yes; a nested answer; no answer; accents and CJK.
IDS = ("token_ids", "question_ids")  # Global tokens have low ids, which all stay.
_TOKENIZERS = {"BERT": "wordpiece", "ALBERT": "sentencepiece"}
HTML_TOKENS = {"[unused102]", "[unused103]"}
READ_FIELDS = (
    "example_id",
    "question_text",
    "document_tokens",
    "long_answer_candidates",
    "annotations",
)


def kept_pages():
    """The raw pages, with the fields that are read."""
    lines = cases.resolve(TOPIC, RAW).read_text(encoding="utf-8").splitlines()
    pages = [json.loads(line) for line in lines]
    return [
        {name: page[name] for name in READ_FIELDS} for page in pages if page["example_id"] in PAGES
    ]


def small_preprocess(case, id_maps):
    """The entries of the kept pages with new ids; the case gets its new counts and ids."""
    id_map = id_maps[_TOKENIZERS[case["init"]["tokenizer_type"]]]
    entries = [e for e in cases.load_json(TOPIC, case["file"]) if e["example_id"] in PAGES]
    for entry in entries:
        for features in (entry["record"], *entry["windows"]):
            features.update({name: [id_map[i] for i in features[name]] for name in IDS})
    case["examples"] = len(entries)
    case["windows"] = sum(len(entry["windows"]) for entry in entries)
    case["special_ids"] = {name: id_map[i] for name, i in case["special_ids"].items()}
    return entries


def small_program(case):
    """The page of each window of the kept pages by shard; all windows go to the shards in turn."""
    content = cases.load_json(TOPIC, case["file"])
    for split, shards in content["unique_ids_by_shard"].items():
        (windows_case,) = [
            other
            for other in cases.load_cases(TOPIC)
            if other["name"] == case["same_windows_as"][split]
        ]
        entries = cases.load_json(TOPIC, windows_case["file"])
        ids = [entry["example_id"] for entry in entries for _ in entry["windows"]]
        if list(shards.values()) != dealt(ids, len(shards)):
            raise ValueError(f"{split}: the windows do not go to the shards in turn")
        kept = dealt([example_id for example_id in ids if example_id in PAGES], len(shards))
        shards.update(zip(shards, kept, strict=True))
    return content


def dealt(items, num_hands):
    """`items` in turn to so many hands."""
    return [items[hand::num_hands] for hand in range(num_hands)]


def write(target):
    """Writes the selected cases and their files below `target / "nq"`; returns the cases."""
    kept = [case for case in cases.load_cases(TOPIC) if case["name"] in CASES]
    small_files.copy(TOPIC, {case["file"] for case in kept}, target)
    folder, pages = target / TOPIC, kept_pages()
    texts = [page["question_text"] for page in pages]
    texts += [token["token"] for page in pages for token in page["document_tokens"]]
    own = folder / small_files.VOCABULARIES
    id_maps = small_files.shrink_vocabularies(texts, own, also=HTML_TOKENS)
    lines = "".join(f"{small_files.as_json(page)}\n" for page in pages)
    (folder / RAW).write_text(lines, encoding="utf-8")
    for case in kept:
        if case["kind"] == "preprocess":
            small_files.write_json(folder / case["file"], small_preprocess(case, id_maps))
        elif case["kind"] == "program":
            small_files.write_json(folder / case["file"], small_program(case))
        elif case["file"].endswith(".json"):
            small_files.write_json(folder / case["file"], cases.load_json(TOPIC, case["file"]))
    small_files.write_manifest_of_own_vocabularies(folder, kept)
    return kept
