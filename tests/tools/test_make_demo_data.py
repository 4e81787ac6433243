"""What the invented data promises to those who train and test on it."""

import collections
import itertools
import json
import os
import pathlib
import re

import pytest

from etcmodel.models import modeling
from etcmodel.text.word_vocabulary import build_vocabulary
from etcmodel.tools.demos import hotpotqa as demo_hotpotqa
from etcmodel.tools.make_demo_data import GENERATORS, MAX_VOCAB_SIZE, make_demo_data

TRAIN = demo_hotpotqa.make_examples(split="train", num_examples=1200, seed=0)
DEV = demo_hotpotqa.make_examples(split="dev", num_examples=400, seed=0)
ALL = TRAIN + DEV
PART_LISTS = [parts for lists in demo_hotpotqa.NAME_PARTS.values() for parts in lists]
YES_OR_NO = ("yes", "no")


def words(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def sentences(example):
    return [sentence for _, paragraph in example["context"] for sentence in paragraph]


def supporting_sentences(example):
    paragraphs = dict(example["context"])
    return [paragraphs[title][index] for title, index in example["supporting_facts"]]


def entities(example):
    """Every full name in an example, with or without a paragraph of its own."""
    first, second = (
        "|".join(itertools.chain.from_iterable(PART_LISTS[start::2])) for start in (0, 1)
    )
    text = " . ".join(demo_hotpotqa.texts(example))
    return set(re.findall(rf"\b(?:{first}) (?:{second})\b", text))


def all_entities(examples):
    return set().union(*map(entities, examples))


def is_unknown(word, vocab):
    """Whether greedy longest-match WordPiece fails on a word."""
    prefix = ""
    while word:
        lengths = range(len(word), 0, -1)
        length = next((n for n in lengths if prefix + word[:n] in vocab), 0)
        if not length:
            return True
        word, prefix = word[length:], "##"
    return False


def write(folder, seed=3):
    return make_demo_data(
        dataset="hotpotqa", output_dir=str(folder), num_train=20, num_dev=10, seed=seed
    )


@pytest.mark.parametrize("module", GENERATORS.values(), ids=GENERATORS.keys())
def test_examples_depend_on_seed_and_split_alone(module):
    def made(**changes):
        return module.make_examples(**{"split": "train", "num_examples": 5, "seed": 0, **changes})

    def texts(examples):
        return [list(module.texts(example)) for example in examples]

    first = made()
    assert first == made() == made(num_examples=8)[:5]
    assert texts(first) != texts(made(seed=1)) and texts(first) != texts(made(split="dev"))
    with pytest.raises(ValueError, match="`split` must be train or dev. Received: split='test'"):
        made(split="test")


class TestExamples:
    def test_another_seed_gives_other_examples(self):
        other = demo_hotpotqa.make_examples(split="train", num_examples=30, seed=1)
        questions = {example["question"] for example in TRAIN[:30]}
        assert questions.isdisjoint(example["question"] for example in other)

    def test_layout_is_that_of_the_distractor_files(self):
        keys = ["_id", "question", "answer", "supporting_facts", "context", "type", "level"]
        for example in ALL:
            assert list(example) == keys
            assert example["type"] in ("bridge", "comparison")
            assert example["level"] in ("easy", "medium", "hard")
        assert len({example["_id"] for example in ALL}) == len(ALL)

    def test_splits_share_no_entity_whatever_the_seed(self):
        other = demo_hotpotqa.make_examples(split="dev", num_examples=300, seed=7)
        assert all_entities(TRAIN).isdisjoint(all_entities(DEV + other))

    def test_splits_share_no_question(self):
        questions = {example["question"] for example in TRAIN}
        assert questions.isdisjoint(example["question"] for example in DEV)

    def test_six_to_ten_paragraphs_of_two_to_four_sentences_with_distinct_titles(self):
        for example in ALL:
            assert 6 <= len(example["context"]) <= 10
            assert len(dict(example["context"])) == len(example["context"])
            assert all(2 <= len(paragraph) <= 4 for _, paragraph in example["context"])

    def test_two_supporting_facts_in_two_paragraphs(self):
        for example in ALL:
            assert len(supporting_sentences(example)) == 2
            assert len(dict(example["supporting_facts"])) == 2

    def test_answer_occurs_once_in_the_supporting_sentences(self):
        for example in ALL:
            if example["answer"] not in YES_OR_NO:
                text = " ".join(supporting_sentences(example)).lower()
                assert text.count(example["answer"].lower()) == 1, example
                assert len(example["answer"].split()) <= 3

    def test_bridge_leads_from_the_question_over_the_first_fact_to_the_second(self):
        for example in ALL:
            if example["type"] == "bridge":
                (start, _), (end, _) = example["supporting_facts"]
                first, second = supporting_sentences(example)
                assert start in example["question"] and end not in example["question"]
                assert end in first
                assert example["answer"] in second and example["answer"] not in first

    def test_comparison_names_both_paragraphs_in_either_order(self):
        orders = collections.Counter()
        for example in ALL:
            if example["type"] == "comparison":
                a, b = (example["question"].index(t) for t, _ in example["supporting_facts"])
                orders[a < b] += 1
        assert orders[True] == pytest.approx(orders[False], rel=0.2)

    def test_distractors_share_words_with_the_question_and_the_facts(self):
        common = {"the", "of", "is", "was", "in", "a", "from", "it", "he", "she", "and", "."}
        sharing = []
        for example in ALL:
            facts = words(" ".join([example["question"], *supporting_sentences(example)]))
            gold = dict(example["supporting_facts"])
            for title, paragraph in example["context"]:
                if title not in gold:
                    told = set(words(" ".join([title, *paragraph])))
                    sharing.append(bool(told & set(facts) - common))
        assert sum(sharing) / len(sharing) > 0.8

    def test_names_share_parts_only_where_a_distractor_is_meant_to_be_similar(self):
        similar = 0
        for example in ALL:
            titles = [title.split() for title, _ in example["context"]]
            parts = collections.Counter(itertools.chain.from_iterable(titles))
            similar += max(parts.values()) > 1
        assert 0.3 < similar / len(ALL) < 0.9

    def test_some_bridge_questions_have_a_second_chain(self):
        chains = []
        for example in ALL:
            if example["type"] == "bridge":
                titles = dict(example["context"])
                text = {title: " ".join(titles[title]) for title in titles}
                linked = {b for a in titles for b in titles if a != b and b in text[a]}
                chains.append(len(linked) > 1)
        assert 0.1 < sum(chains) / len(chains) < 0.4

    def test_kinds_of_questions_are_mixed_and_yes_and_no_balanced(self):
        answers = collections.Counter(example["answer"] for example in TRAIN)
        yes, no = (answers[answer] for answer in YES_OR_NO)
        num_bridges = sum(example["type"] == "bridge" for example in TRAIN)
        assert num_bridges / len(TRAIN) == pytest.approx(0.55, abs=0.05)
        assert (yes + no) / len(TRAIN) == pytest.approx(0.1, abs=0.03)
        assert yes == pytest.approx(no, rel=0.35)

    def test_place_of_the_facts_tells_nothing(self):
        paragraphs, firsts = collections.Counter(), 0
        for example in ALL:
            titles = [title for title, _ in example["context"]]
            for title, index in example["supporting_facts"]:
                paragraphs[titles.index(title)] += 1
                firsts += index == 0
        total = 2 * len(ALL)
        assert max(paragraphs.values()) / total < 0.2
        assert firsts / total < 0.5

    def test_no_part_of_a_name_is_in_two_lists_or_a_word_of_a_sentence(self):
        parts = [part.lower() for part in itertools.chain.from_iterable(PART_LISTS)]
        values = [value.lower() for value in itertools.chain(*demo_hotpotqa.VALUES.values())]
        patterns = [text for r in demo_hotpotqa.RELATIONS for texts in r[2:] for text in texts]
        assert len(set(parts)) == len(parts)
        assert set(parts).isdisjoint(values + words(" ".join(patterns)))


class TestVocab:
    vocab = build_vocabulary(
        (text for example in TRAIN for text in demo_hotpotqa.texts(example)),
        max_size=MAX_VOCAB_SIZE,
    )

    def test_special_pieces_have_the_ids_of_bert(self):
        assert self.vocab[0] == "[PAD]"
        assert self.vocab[1:100] == [f"[unused{i}]" for i in range(99)]
        assert self.vocab[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def test_is_small_and_has_each_piece_once(self):
        assert len(self.vocab) <= 1000
        assert len(set(self.vocab)) == len(self.vocab)

    def test_knows_every_word_of_both_splits_and_any_other_of_letters(self):
        vocab = set(self.vocab)
        texts = [text for example in ALL for text in demo_hotpotqa.texts(example)]
        seen = set(words(" ".join(texts)))
        assert not [word for word in [*seen, "quixotry", "x86"] if is_unknown(word, vocab)]

    def test_each_word_of_the_train_split_is_one_piece(self):
        texts = [text for example in TRAIN for text in demo_hotpotqa.texts(example)]
        assert set(words(" ".join(texts))) <= set(self.vocab)

    def test_leaves_out_the_rarest_words_first(self):
        whole = build_vocabulary(["often often seldom"])
        assert whole[-2:] == ["often", "seldom"]
        assert build_vocabulary(["often often seldom"], max_size=len(whole) - 1) == whole[:-1]


class TestFiles:
    def test_same_seed_gives_same_bytes(self, tmp_path):
        first, second, other = (
            [pathlib.Path(path).read_bytes() for path in write(tmp_path / name, seed).values()]
            for name, seed in (("a", 3), ("b", 3), ("c", 4))
        )
        assert first == second
        assert first != other

    def test_writes_the_four_files_and_leaves_no_temporary_ones(self, tmp_path):
        paths = write(tmp_path)
        assert sorted(os.listdir(tmp_path)) == [
            "etc_config.json",
            "hotpotqa_dev.json",
            "hotpotqa_train.json",
            "vocab.txt",
        ]
        sizes = [len(json.loads(pathlib.Path(paths[key]).read_text())) for key in ("train", "dev")]
        assert sizes == [20, 10]
        config = modeling.EtcConfig.from_json_file(paths["config"])
        vocab = pathlib.Path(paths["vocab"]).read_text().splitlines()
        assert config.vocab_size == len(vocab)

    def test_failing_write_keeps_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        train = pathlib.Path(write(tmp_path)["train"])
        old = train.read_bytes()

        def fail(source, target):
            raise OSError("disk full")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            write(tmp_path, seed=4)
        assert len(os.listdir(tmp_path)) == 4
        monkeypatch.undo()
        assert train.read_bytes() == old

    def test_names_the_datasets_it_knows(self, tmp_path):
        with pytest.raises(ValueError, match=r"one of \['classification', .*dataset='race'"):
            make_demo_data(dataset="race", output_dir=str(tmp_path), num_train=1, num_dev=1, seed=0)


@pytest.mark.parametrize(("share", "numbers"), [(0.0, {0}), (None, range(30, 90)), (1.0, {200})])
def test_so_many_questions_of_a_paragraph_have_no_answer(tmp_path, share, numbers):
    paths = make_demo_data(
        dataset="squad",
        output_dir=str(tmp_path),
        unanswerable=share,
        num_train=200,
        num_dev=1,
        seed=0,
    )
    articles = json.loads(pathlib.Path(paths["train"]).read_text())["data"]
    questions = [question for x in articles for question in x["paragraphs"][0]["qas"]]
    assert all(question["is_impossible"] == (not question["answers"]) for question in questions)
    assert sum(question["is_impossible"] for question in questions) in numbers
