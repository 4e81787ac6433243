"""The served demo: its documents and questions, the targets of evidence, and its scores."""

import json
import re

import numpy as np
import pytest

from etcmodel.models import encoders
from etcmodel.text.answers import widened
from etcmodel.text.processor import EtcProcessor
from etcmodel.tools import served_demo
from etcmodel.tools.demos import region


def make(split="train", num_examples=100, seed=0, **sizes):
    return region.make_examples(split=split, num_examples=num_examples, seed=seed, **sizes)


@pytest.fixture(scope="module")
def processor(tmp_path_factory):
    vocabulary = tmp_path_factory.mktemp("region") / "vocab.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in region.vocabulary()))
    return EtcProcessor(vocabulary, **served_demo.PROCESSOR)


def test_the_answer_stands_in_the_last_sentence_of_its_evidence():
    for example in make():
        answer, evidence = example["extra"]["answer"], example["extra"]["evidence"]
        *before, last = evidence
        assert last["text"] == answer["text"]
        assert last["start"] <= answer["start"] < answer["end"] <= last["end"]
        for place in evidence:
            assert re.fullmatch(r"[A-Z][^.!?]*\.", region.content(example, place))
        (subject,) = (name for name in example["extra"]["names"] if name in example["question"])
        sentence = region.content(example, last)
        assert bool(before) == sentence.startswith(("It ", "He ", "She "))
        assert subject in region.content(example, evidence[0])
        assert region.content(example, answer) not in example["question"]


def test_documents_have_hundreds_of_words_in_paragraphs():
    numbers = [sum(len(text.split()) for text in x["documents"]) for x in make()]
    assert min(numbers) >= 250 and max(numbers) <= 600
    assert {len(x["documents"]) for x in make()} == {1, 2}
    assert all(text.count("\n\n") >= 3 for x in make() for text in x["documents"])


def test_the_splits_share_no_name():
    train, dev = (
        {name for x in make(split) for name in x["extra"]["names"]} for split in ("train", "dev")
    )
    assert len(dev) > 200 and not train & dev
    words = {word for x in make() for text in x["documents"] for word in re.findall(r"\w+", text)}
    assert not {name for name in dev if " " not in name} & words
    assert {region.split_of(name) for name in dev} == {"dev"}


def test_the_same_seed_gives_the_same_examples():
    assert json.dumps(make(seed=3)) == json.dumps(make(seed=3)) != json.dumps(make(seed=4))
    assert make(num_examples=9)[:5] == make(num_examples=5)


def test_a_model_reads_all_of_a_document_in_known_pieces(processor):
    for example in make(num_examples=20):
        (encoding,) = processor(example).encodings
        assert "[UNK]" not in encoding.tokens and not encoding.cut
        answer = example["extra"]["answer"]
        text = next(
            number
            for number, name in enumerate(encoding.document.text_names)
            if name.endswith(answer["text"])
        )
        first, last = encoding.token_span(answer["start"], answer["end"], text)
        found = encoding.char_span(first, last)[1:]
        assert found == widened(encoding.document.texts[text], *found)
        assert found == (answer["start"], answer["end"])


def test_the_targets_of_evidence_are_its_sentences(processor):
    batch = processor(examples := make(num_examples=8))
    targets = served_demo.evidence_targets(batch)
    for encoding, example in zip(batch.encodings, examples, strict=True):
        blocks = encoding.document.blocks
        of_row = dict(zip(encoding.global_blocks.tolist(), targets[encoding.row], strict=False))
        told = [encoding.document.block_text(blocks[x]) for x, y in of_row.items() if y == 1]
        assert sorted(told) == sorted(
            region.content(example, place) for place in example["extra"]["evidence"]
        )
        sentences = {x for x, block in enumerate(blocks) if block.kind == "sentence"}
        assert {x for x, target in of_row.items() if target >= 0} == sentences


def test_the_config_is_that_of_a_model():
    config = encoders.config_from_dict({**served_demo.ETC_CONFIG, "vocab_size": 200})
    assert config.num_hidden_layers == 3


EXAMPLE = {
    "question": "Who founded Selwick?",
    "documents": ["A road. Selwick was founded by Ada Korrin. It lies on the Orren."],
    "extra": {
        "answer": {"text": "documents[0].text", "start": 31, "end": 41},
        "evidence": [{"text": "documents[0].text", "start": 8, "end": 42}],
    },
}


def test_scores_are_those_of_answers_and_of_sets_of_sentences():
    found = served_demo.scores(
        [EXAMPLE, EXAMPLE], ["Ada Korrin", "by Ada"], [{(0, 8)}, {(0, 8), (0, 43)}]
    )
    assert found == pytest.approx(
        # Half of the words are right in the second; one sentence of two is.
        {"em": 0.5, "f1": (1 + 1 / 2) / 2, "evidence_em": 0.5, "evidence_f1": (1 + 2 / 3) / 2}
    )
    assert served_demo.scores([EXAMPLE], ["nobody"]) == {"em": 0.0, "f1": 0.0}


def test_the_guess_is_a_name_of_the_sentence_most_like_the_question():
    assert served_demo.guess(EXAMPLE) == "Ada Korrin"
    asked = {**EXAMPLE, "question": "On which river does it lie?"}
    assert served_demo.guess(asked) == "Orren"


def test_guessing_is_no_way_to_answer():
    dev = make("dev", num_examples=200)
    em = served_demo.scores(dev, [served_demo.guess(x) for x in dev])["em"]
    assert 0.2 < em < 0.6
    assert np.mean([len(x["extra"]["evidence"]) == 2 for x in dev]) > 0.1


def test_examples_for_the_page_are_of_names_not_trained_on():
    found = served_demo.examples(seed=0)
    assert [sorted(example) for example in found] == [["documents", "question"]] * 3
    names = {name for x in make(num_examples=300) for name in x["extra"]["names"]}
    for example in found:
        assert not [name for name in names if name in " ".join(example["documents"])]
