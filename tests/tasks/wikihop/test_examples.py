"""From typed examples to features; the reference cases have the release's behavior."""

import pytest

from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tasks.wikihop import examples, features
from tests.tasks.wikihop import tokenizers
from tests.tasks.wikihop.raw_examples import raw_example

tokenizer = tokenizers.fixture


def config(**fields):
    lengths = {"long_seq_length": 64, "global_seq_length": 24, "max_num_sentences": 20}
    return wikihop_config.WikiHopInputConfig(**{**lengths, **fields})


def convert(tokenizer, raw=None, **fields):
    example = examples.parse_example(raw or raw_example())
    return features.make_features(example, config(**fields), tokenizer)


def test_candidates_query_and_documents_follow_each_other(tokenizer):
    converted = convert(tokenizer)
    features = converted.features
    tokens = tokenizer.convert_ids_to_tokens(features["long_token_ids"])
    num_long, num_global = converted.num_long_tokens, converted.num_global_tokens
    assert " ".join(tokens[:num_long]) == (
        "avaria belmark new belmark country ember mill ember mill is in tarn hollow . it has a "
        "wheel . tarn hollow ( avaria ) is a town . new belmark is far . belmark is near ."
    )
    assert set(tokens[num_long:]) == {"[PAD]"}
    # Three candidates, three query tokens, then a document of two and one of three sentences.
    ids = features["global_token_ids"]
    assert ids == [4, 4, 4, 3, 3, 3, 5, 1, 1, 5, 1, 1, 1] + [0] * 11 and num_global == 13
    types = features["global_token_type_ids"][:num_global]
    assert types == [6, 6, 6, 5, 5, 5, 7, 0, 0, 7, 0, 0, 0]
    breaks = features["global_paragraph_breakpoints"][:num_global]
    assert breaks == [1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    sentence_of = features["long_sentence_ids"]
    assert sentence_of[:8] == [0, 1, 2, 2, 3, 4, 5, 7] and sentence_of[num_long - 1] == 12
    document_of = features["long_paragraph_ids"]
    assert document_of[:8] == [-1] * 7 + [6] and document_of[num_long - 1] == 9
    assert set(document_of[num_long:]) == set(sentence_of[num_long:]) == {-1}
    assert sum(features["long_paragraph_breakpoints"]) == 3 + 1 + 2
    assert (features["label_id"], features["is_real_example"]) == ([0.0], [1])


def test_mentions_are_linked_to_their_candidates(tokenizer):
    converted = convert(tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(converted.features["long_token_ids"])
    links = converted.features["l2g_linked_ids"]
    linked = [(token, link) for token, link in zip(tokens, links, strict=True) if link >= 0]
    in_candidates = [("avaria", 0), ("belmark", 1), ("new", 2), ("belmark", 2)]
    in_documents = [("avaria", 0), ("new", 2), ("belmark", 2), ("belmark", 1)]
    assert linked == in_candidates + in_documents
    assert converted.num_mentions == 3


def test_an_unlabeled_example_has_no_label(tokenizer):
    raw = raw_example()
    del raw["answer"]
    features = convert(tokenizer, raw).features
    with_label = convert(tokenizer).features
    assert set(with_label) - set(features) == {"label_id", "ground_truth_answer"}
    assert features.items() <= with_label.items()


def test_answers_are_spelled_as_in_the_file_unless_compatible(tokenizer):
    raw = raw_example(candidates=["Avaria ", "belmark"], answer="AVARIA")
    for compatible, spelled in ((False, ["Avaria ", "AVARIA"]), (True, ["avaria", "avaria"])):
        features = convert(tokenizer, raw, release_compatible=compatible).features
        assert [features["candidates"][0], *features["ground_truth_answer"]] == spelled


class TestTruncation:
    def test_sentences_are_dropped_until_the_long_input_fits(self, tokenizer):
        for length in (40, 30, 20, 10, 7):
            converted = convert(tokenizer, long_seq_length=length)
            assert converted.num_long_tokens <= length
            assert len(converted.features["long_token_ids"]) == length
        assert converted.num_sentences_left_out == 5  # All: candidates and query need 7.

    def test_sentences_are_dropped_until_the_global_input_fits(self, tokenizer):
        for length, left_out in ((13, 0), (12, 1), (8, 5)):
            converted = convert(tokenizer, global_seq_length=length)
            assert converted.num_sentences_left_out == left_out
            assert len(converted.features["global_token_ids"]) == length
        with pytest.raises(ValueError, match="'w1': .* need 8 global tokens, more than .*=7"):
            convert(tokenizer, global_seq_length=7)

    def test_a_long_global_input_is_an_error_if_compatible(self, tokenizer):
        with pytest.raises(ValueError, match="'w1': .* need 13 global tokens, more than .*=12"):
            convert(tokenizer, global_seq_length=12, release_compatible=True)

    @pytest.mark.parametrize("compatible", [False, True])
    def test_a_query_that_does_not_fit_is_an_error(self, tokenizer, compatible):
        with pytest.raises(ValueError, match="'w1': the candidates and the query need 7 long"):
            convert(tokenizer, long_seq_length=6, release_compatible=compatible)


class TestShuffling:
    def order(self, tokenizer, **fields):
        raw = raw_example(supports=list("abcdefgh"))
        fields = {"shuffle_docs_within_example": True, **fields}
        ids = convert(tokenizer, raw, **fields).features["long_token_ids"]
        return "".join(tokenizer.convert_ids_to_tokens(ids[7:15]))

    def test_it_keeps_the_documents_and_depends_on_the_seed_alone(self, tokenizer):
        orders = [self.order(tokenizer, random_seed=seed) for seed in (0, 0, 1)]
        assert orders[0] == orders[1] != orders[2]
        assert {"".join(sorted(order)) for order in orders} == {"abcdefgh"}
        assert self.order(tokenizer, shuffle_docs_within_example=False) == "abcdefgh"


class TestErrors:
    def test_a_candidate_without_tokens(self, tokenizer):
        with pytest.raises(ValueError, match="'w1': field `candidates`: '' has no tokens"):
            convert(tokenizer, raw_example(candidates=["avaria", " "]))

    def test_a_query_without_tokens(self, tokenizer):
        with pytest.raises(ValueError, match="'w1': field `query`: ' ' has no tokens"):
            convert(tokenizer, raw_example(query=" "))

    def test_an_example_to_train_on_needs_an_answer(self, tokenizer):
        raw = raw_example(answer=None)
        assert "label_id" not in convert(tokenizer, raw).features
        with pytest.raises(ValueError, match="'w1': field `answer` is missing"):
            convert(tokenizer, raw, is_training=True)


def test_there_are_no_more_sentences_than_the_limit(tokenizer, monkeypatch):
    monkeypatch.setattr(features.sentence_splitting, "sentence_splitter", lambda name: str.split)
    converted = convert(tokenizer)
    words = sum(len(text.split()) for text in raw_example()["supports"])
    assert converted.num_sentences_left_out + words > 20  # More than the limit of sentences.
    assert converted.features["global_token_ids"].count(1) == 24 - 8
