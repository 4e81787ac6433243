"""Features of tasks, bit by bit, as a processor makes them of a document with blocks of one's own.

HotpotQA's are in tests/checkpoints/test_released_processors.py.
"""

import numpy as np

from etcmodel import EtcProcessor
from etcmodel.tasks.openkp import config as openkp_config
from etcmodel.tasks.openkp import examples as openkp_examples
from etcmodel.tasks.openkp import features as openkp
from etcmodel.tasks.openkp import vdom
from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tasks.wikihop import examples as wikihop_examples
from etcmodel.tasks.wikihop import features as wikihop
from etcmodel.text import documents
from etcmodel.text.sentence_splitting import sentence_splitter
from tests.tasks.openkp import pages
from tests.tasks.wikihop import tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

PLAIN = {"whole_token": False, "special_tokens": False, "separators": False}


tokenizer = tokenizers.fixture


def wikihop_document(raw):
    """Candidates, words of the query, documents with their sentences, and the mentions."""
    builder = documents.Builder(sentence_splitter("simple"))
    for candidate in raw["candidates"]:
        block = builder.add_whole("candidate", candidate, candidate)
        builder.mention("mentions", documents.Mention(block, 0, len(candidate), block))
    query, start = builder.add_text(raw["query"], "query"), 0
    for word in raw["query"].split():
        builder.add("query", query, start, start + len(word))
        start += len(word) + 1
    for support in raw["supports"]:
        parent = builder.add("document")
        builder.add_sentences(support, "support", parent)
    mentioned = {"Avaria": 0, "New Belmark": 2, "Belmark is": 1}
    for words, candidate in mentioned.items():
        start = raw["supports"][1].index(words)
        start = raw["supports"][1].rindex(words) if candidate == 1 else start
        end = start + len(words.removesuffix(" is"))
        place = documents.Mention(query + len(raw["supports"]), start, end, candidate)
        builder.mention("mentions", place)
    return builder.document()


def test_wikihop_s_whose_query_is_of_words_in_one_piece(tokenizer):
    raw = raw_example()
    lengths = {"long_seq_length": 64, "global_seq_length": 13, "max_num_sentences": 20}
    config = wikihop_config.WikiHopInputConfig(**lengths)
    converted = wikihop.make_features(wikihop_examples.parse_example(raw), config, tokenizer)
    features, length = converted.features, converted.num_long_tokens
    processor = EtcProcessor(
        tokenizer,
        relation_names=("part_of", "mentions"),
        global_token_id=config.sentence_global_token_id,
        global_tokens={"candidate": "[unused3]", "query": "[unused2]", "document": "[unused4]"},
        segment_id=config.sentence_token_type_id,
        segments={"candidate": 4, "query": 3},
        global_segments={"candidate": 6, "query": 5, "document": 7},
        **PLAIN,
    )
    batch = processor([wikihop_document(raw)])
    for name, of_task in {
        "token_ids": "long_token_ids",
        "segment_ids": "long_token_type_ids",
        "links": "long_sentence_ids",
    }.items():
        assert batch[name][0].tolist() == features[of_task][:length], name
    assert batch["global_token_ids"][0].tolist() == features["global_token_ids"]
    assert batch["global_segment_ids"][0].tolist() == features["global_token_type_ids"]
    mentioned = np.full(length, -1)
    mentioned[batch["links/mentions"][0, :, 0]] = batch["links/mentions"][0, :, 1]
    assert mentioned.tolist() == features["l2g_linked_ids"][:length]
    document_of = dict(batch["edges/part_of"][0].tolist())
    found = [document_of.get(sentence, -1) for sentence in batch["links"][0].tolist()]
    assert found == features["long_paragraph_ids"][:length]


def test_openkp_s_words_of_visual_elements(tokenizer):
    raw = pages.page("Ember Mill", "is in Tarn Hollow .", "a wheels")
    config = openkp_config.OpenKpInputConfig(
        long_seq_length=32, global_seq_length=4, is_training=False
    )
    example = openkp_examples.parse_example(raw)
    converted = openkp.make_features(example, config, openkp.word_tokenizer(tokenizer))
    features, length = converted.features, converted.num_long_tokens
    builder, start = documents.Builder(None), 0
    text = builder.add_text(" ".join(example.words), "page")
    for element in vdom.parse(example.vdom, example.words):
        size = len(" ".join(example.words[element.begin : element.end]))
        builder.add("element", text, start, start + size)
        start += size + 1
    batch = EtcProcessor(tokenizer, global_token_id=config.global_token_id, **PLAIN)(
        [builder.document()]
    )
    assert batch["token_ids"][0].tolist() == features["long_token_ids"][:length]
    assert batch["links"][0].tolist() == features["long_vdom_idx"][:length]
    num_globals = converted.num_global_tokens
    assert batch["global_token_ids"][0].tolist() == features["global_token_ids"][:num_globals]
    assert num_globals == 3 and length > len(example.words)  # "wheels" is of several pieces.
