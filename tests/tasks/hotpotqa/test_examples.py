"""From typed HotpotQA examples to features: the layout, the fixed faults, the errors."""

import pathlib
import unicodedata

import pytest

from etcmodel.tasks.hotpotqa import examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from etcmodel.text import tokenization
from tests import vocabularies
from tests.tasks.hotpotqa.raw_examples import raw_example

ROOT = pathlib.Path(__file__).resolve().parents[3]
REAL_FILE = ROOT.parent / "shared" / "real" / "hotpotqa_10.json"
BERT_VOCAB = ROOT.parent / "shared" / "reference" / "vocab" / "bert_uncased_vocab.txt"

TEXT_WORDS = (
    "what is red green blue the a note no yes norm rose song sings of it and title one two "
    "three ? . , ##s ##rm nor"
)
HEAD = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]"]


tokenizer = vocabularies.fixture(HEAD + TEXT_WORDS.split())


def convert(tokenizer, raw, **fields):
    fields = {"long_seq_length": 64, "global_seq_length": 32, **fields}
    config = HotpotQAInputConfig.for_tokenizer(tokenizer, **fields)
    return hotpotqa_features.make_features(examples.parse_example(raw), config, tokenizer)


def answer_tokens(tokenizer, features):
    begin, end = features["answer_begins"][0], features["answer_ends"][0]
    return tokenizer.convert_ids_to_tokens(features["long_token_ids"][begin : end + 1])


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def test_an_unlabeled_example_is_fine():
    raw = {name: raw_example()[name] for name in ("_id", "question", "context")}
    example = examples.parse_example(raw)
    assert (example.answer, example.supporting_facts, example.type) == (None, None, "")


class TestFeatures:
    def test_layout_of_an_example(self, tokenizer):
        features = convert(tokenizer, raw_example(), is_training=False, long_seq_length=30).features
        assert tokenizer.convert_ids_to_tokens(features["long_token_ids"])[:6] == (
            ["[CLS]", "what", "is", "red", "?", "two"]
        )
        cls, question, paragraph, sentence = 7, 3, 5, 1
        assert features["global_token_ids"][:14] == (
            [cls]
            + [question] * 4
            + [paragraph]
            + [sentence] * 3
            + [paragraph]
            + [sentence] * 3
            + [0]
        )
        assert features["long_sentence_ids"] == (
            [-1, 1, 2, 3, 4] + [6] + [7] * 4 + [8] * 5 + [10] + [11] * 4 + [12] * 5 + [-1] * 5
        )
        assert features["global_sentence_ids"][5:14] == [-1, -1, 0, 1, -1, -1, 0, 1, -1]
        assert features["global_paragraph_ids"][4:15] == [-1, 0, 0, 0, 0, 1, 1, 1, 1, -1, -1]
        breaks = [i for i, value in enumerate(features["long_paragraph_breakpoints"]) if value]
        assert breaks == [0, 4, 14, 24]

    def test_labels_name_the_sentence_its_title_its_paragraph_and_the_answer(self, tokenizer):
        features = convert(tokenizer, raw_example()).features
        assert [i for i, value in enumerate(features["supporting_facts"]) if value] == [9, 10, 12]
        assert features["answer_types"] == [0]
        assert answer_tokens(tokenizer, features) == ["rose"]

    def test_bio_labels_mark_every_answer(self, tokenizer):
        raw = raw_example(answer="red rose", supporting_facts=[["one", 0], ["one", 1]])
        raw["context"][1][1] = ["the red rose", "a red rose ."]
        ids = convert(tokenizer, raw, answer_encoding_method="bio").features["answer_bio_ids"]
        assert len(ids) == 64
        assert [(i, value) for i, value in enumerate(ids) if value != 2] == (
            [(17, 0), (18, 1), (20, 0), (21, 1)]
        )


class TestFixedFaults:
    """Each with the release's behavior beside it."""

    @pytest.mark.parametrize(("compatible", "numbers"), [(False, [1]), (True, [0])])
    def test_a_left_out_sentence_does_not_shift_the_next_ones_number(
        self, tokenizer, compatible, numbers
    ):
        raw = raw_example(context=[["one", ["it " * 50, "red ."]]])
        features = convert(
            tokenizer, raw, long_seq_length=20, is_training=False, release_compatible=compatible
        ).features
        assert [n for n in features["global_sentence_ids"] if n >= 0] == numbers

    @pytest.mark.parametrize(("compatible", "number"), [(False, 0), (True, -1)])
    def test_sentence_numbers_do_not_depend_on_the_type_ids(self, tokenizer, compatible, number):
        features = convert(
            tokenizer,
            raw_example(),
            is_training=False,
            sentence_global_token_id=2,
            release_compatible=compatible,
        ).features
        assert features["global_sentence_ids"][7] == number

    @pytest.mark.parametrize("compatible", [False, True])
    def test_no_span_in_text_that_was_left_out(self, tokenizer, compatible):
        raw = raw_example(
            context=[["one", ["rose " + "it " * 50, "red ."]]],
            supporting_facts=[["one", 0], ["one", 1]],
        )
        converted = convert(tokenizer, raw, long_seq_length=20, release_compatible=compatible)
        if compatible:
            assert answer_tokens(tokenizer, converted.features) == ["red"]
        else:
            assert (converted.features, converted.drop_reason) == (None, "no_answer_in_input")

    def test_yes_and_no_have_no_span_where_their_letters_stand(self, tokenizer):
        raw = raw_example(answer="no", context=[["one", ["red .", "it is a blue note ."]]])
        features = convert(tokenizer, raw).features
        assert features["answer_types"] == [2]
        assert features["answer_begins"] == features["answer_ends"] == [-1]
        features = convert(tokenizer, raw, release_compatible=True).features
        assert features["answer_types"] == [2]
        assert answer_tokens(tokenizer, features) == ["note"]

    @pytest.mark.parametrize(("compatible", "begin"), [(False, -1), (True, 0)])
    def test_no_span_on_the_cls_token(self, tokenizer, compatible, begin):
        raw = raw_example(answer="yes")
        features = convert(tokenizer, raw, release_compatible=compatible).features
        assert features["answer_types"] == [1]
        assert features["answer_begins"] == features["answer_ends"] == [begin]

    def test_yes_and_no_mark_no_token_as_answer(self, tokenizer):
        raw = raw_example(answer="no", supporting_facts=[["one", 0]])
        raw["context"][1][1][0] = "no note"
        features = convert(tokenizer, raw, answer_encoding_method="bio").features
        assert set(features["answer_bio_ids"]) == {2}

    @pytest.mark.parametrize(("compatible", "places"), [(False, [17, 19]), (True, [17])])
    def test_in_the_release_bio_labels_stop_at_the_first_answer_that_passes_the_inputs_end(
        self, tokenizer, compatible, places
    ):
        raw = raw_example(supporting_facts=[["one", i] for i in range(3)])
        raw["context"][1][1] = ["a rose", "it " * 8 + "rose", "a rose"]
        features = convert(
            tokenizer,
            raw,
            long_seq_length=22,
            answer_encoding_method="bio",
            release_compatible=compatible,
        ).features
        assert [i for i, value in enumerate(features["answer_bio_ids"]) if value == 0] == places

    @pytest.mark.parametrize(("compatible", "next_token"), [(False, "."), (True, "##s")])
    def test_whole_words_win_over_letters_within_words(self, tokenizer, compatible, next_token):
        raw = raw_example(answer="song", supporting_facts=[["one", 0], ["one", 1]])
        raw["context"][1][1] = ["songs of red .", "a song ."]
        features = convert(tokenizer, raw, release_compatible=compatible, debug=True).features
        assert answer_tokens(tokenizer, features) == ["song"]
        assert features["long_tokens"][features["answer_ends"][0] + 1] == next_token

    def test_letters_within_words_are_the_last_resort(self, tokenizer):
        raw = raw_example(answer="song")
        raw["context"][1][1][1] = "red songs ."
        assert answer_tokens(tokenizer, convert(tokenizer, raw).features) == ["song"]

    @pytest.mark.parametrize("text_form", ["NFC", "NFD"])
    @pytest.mark.parametrize("answer_form", ["NFC", "NFD"])
    @pytest.mark.parametrize("answer", ["Rosé", "sé"])  # A word, and letters within one.
    @pytest.mark.parametrize("encoding", ["span", "bio"])
    def test_accents_may_be_written_in_either_way(
        self, tokenizer, answer, text_form, answer_form, encoding
    ):
        raw = raw_example(answer=unicodedata.normalize(answer_form, answer))
        raw["context"][1][1][1] = unicodedata.normalize(text_form, " the Rosé is red .")
        fields = {"answer_encoding_method": encoding, "debug": True}
        found = convert(tokenizer, raw, **fields)
        if encoding == "span":
            assert answer_tokens(tokenizer, found.features) == ["rose"]
        else:
            assert [x for x in found.features["answer_bio_ids"] if x != 2] == [0]
        release = convert(tokenizer, raw, release_compatible=True, **fields)
        assert release.drop_reason == (None if text_form == answer_form else "no_answer_in_input")

    def test_white_space_in_the_answer_does_not_matter(self, tokenizer):
        raw = raw_example(answer="the rose")
        raw["context"][1][1][1] = " the  rose is red ."
        assert answer_tokens(tokenizer, convert(tokenizer, raw).features) == ["the", "rose"]
        assert convert(tokenizer, raw, release_compatible=True).features is None

    @pytest.mark.parametrize("compatible", [False, True])
    def test_the_paragraph_alone_is_no_supporting_fact(self, tokenizer, compatible):
        raw = raw_example(answer="yes", context=[["one", ["red .", "it " * 60]]])
        converted = convert(tokenizer, raw, release_compatible=compatible)
        reason = None if compatible else "no_supporting_fact_in_input"
        assert converted.drop_reason == reason

    def test_a_question_that_does_not_fit_is_an_error(self, tokenizer):
        with pytest.raises(ValueError, match="example 'q1': the CLS token and the question need 5"):
            convert(tokenizer, raw_example(), global_seq_length=4)
        features = convert(
            tokenizer,
            raw_example(),
            global_seq_length=4,
            is_training=False,
            release_compatible=True,
        ).features
        assert features["global_token_ids"] == [7, 3, 3, 3]


class TestErrors:
    def test_a_question_without_tokens(self, tokenizer):
        with pytest.raises(ValueError, match="'q1': field `question`: '\\\\u200b' has no tokens"):
            convert(tokenizer, raw_example(question="\u200b"))

    def test_training_needs_labels(self, tokenizer):
        with pytest.raises(ValueError, match="example 'q1': field `answer` is missing, and train"):
            convert(tokenizer, raw_example(answer=None))

    def test_a_fact_that_names_no_paragraph_is_an_error_in_training(self, tokenizer):
        raw = raw_example(supporting_facts=[["three", 0]])
        with pytest.raises(
            ValueError, match="names no paragraph of the context. Received: 'three'"
        ):
            convert(tokenizer, raw)
        assert convert(tokenizer, raw, is_training=False).num_unmatched_facts == 1

    def test_a_sentence_index_out_of_range_is_counted(self, tokenizer):
        converted = convert(tokenizer, raw_example(supporting_facts=[["one", 1], ["one", 9]]))
        assert converted.features is not None
        assert converted.num_unmatched_facts == 1


@pytest.mark.skipif(
    not (REAL_FILE.is_file() and BERT_VOCAB.is_file()),
    reason=f"needs {REAL_FILE} and {BERT_VOCAB}, which are not part of the repository",
)
def test_ten_real_examples_convert_with_the_answer_where_the_labels_say():
    tokenizer = tokenization.FullTokenizer(str(BERT_VOCAB))
    config = HotpotQAInputConfig.for_tokenizer(tokenizer)
    read = list(examples.read_examples(REAL_FILE))
    assert len(read) == 10
    for example in read:
        features = hotpotqa_features.make_features(example, config, tokenizer).features
        assert features is not None, example.example_id
        if example.answer not in ("yes", "no"):
            assert answer_tokens(tokenizer, features) == tokenizer.tokenize(example.answer)
