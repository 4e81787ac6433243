"""Decoding of model outputs into predictions, and the official metrics."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import finetuning, preprocessing
from etcmodel.models import modeling
from etcmodel.tasks.hotpotqa import examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa.config import DecodingConfig, HotpotQaConfig, HotpotQAInputConfig
from etcmodel.tasks.hotpotqa.metrics import generate_predictions
from etcmodel.text import tokenization

WORDS = "who ? rose town the red sings , . blue sky ##ly loud"
REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "reference" / "small"
TINY_MODEL = REFERENCE / "tokenization" / "tiny_digit_comma.model"
HEAD = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]"]

# Long input: 0 [CLS] 1 who 2 ? | 3 rose | 4 the 5 red 6 rose 7 . | 8 loud 9 ##ly 10 sings 11 . | …
EXAMPLE = examples.HotpotQAExample(
    example_id="q1",
    question="Who?",
    paragraphs=(
        examples.Paragraph("Rose", ("The Red Rose.", " Loudly sings.")),
        examples.Paragraph("Town", ("Blue sky, the town.",)),
    ),
    answer="Red Rose",
    supporting_facts=(examples.SupportingFact("Rose", 0),),
)
# Global input: 0 [CLS] 1-2 question | 3 paragraph 4 title 5-6 sentences | 7 paragraph 8 title 9 …
SENTENCE_OF_ANSWER, SECOND_SENTENCE, TOWN_SENTENCE = 5, 6, 9


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(HEAD + WORDS.split()), encoding="utf-8")
    return tokenization.FullTokenizer(str(path))


@pytest.fixture(scope="module")
def features(tokenizer):
    fields = {"is_training": False, "long_seq_length": 24, "global_seq_length": 12}
    config = HotpotQAInputConfig.for_tokenizer(tokenizer, **fields)
    return hotpotqa_features.make_features(EXAMPLE, config, tokenizer).features


@pytest.fixture
def predict(tokenizer, features):
    """A function of the spans (begin, end, probabilities) and so on to the prediction."""

    def decode(begins, ends, facts=(SENTENCE_OF_ANSWER,), answer_type=0, extra=None, **config):
        supporting_facts = np.zeros(12, np.float32)
        supporting_facts[list(facts)] = 0.9
        output = {
            **{name: np.array(values) for name, values in features.items()},
            "supporting_facts_probs": supporting_facts,
            "answer_types": np.array([answer_type]),
            "answer_begin_top_indices": np.array([index for index, _ in begins]),
            "answer_begin_top_probs": np.array([prob for _, prob in begins]),
            "answer_end_top_indices": np.array([index for index, _ in ends]),
            "answer_end_top_probs": np.array([prob for _, prob in ends]),
            **(extra or {}),
        }
        return generate_predictions([output], [EXAMPLE], tokenizer, DecodingConfig(**config))

    return decode


class TestDecoding:
    def answer(self, prediction):
        return prediction["answer"]["q1"]

    def test_the_answer_is_the_raw_text_of_the_best_pair_of_ends(self, predict):
        assert self.answer(predict([(5, 0.9), (4, 0.3)], [(6, 0.8), (7, 0.1)])) == "Red Rose"

    def test_word_pieces_are_projected_onto_the_raw_words(self, predict):
        assert self.answer(predict([(8, 1.0)], [(9, 1.0)], facts=[SECOND_SENTENCE])) == "Loudly"

    def test_the_score_is_the_product_of_both_ends(self, predict):
        begins, ends = [(4, 0.9), (6, 0.5)], [(4, 0.1), (6, 0.4)]
        facts = [SENTENCE_OF_ANSWER]
        assert self.answer(predict(begins, ends, facts, max_answer_length=1)) == "Rose"
        begins, ends = [(4, 0.9), (6, 0.4)], [(4, 0.2), (6, 0.4)]
        assert self.answer(predict(begins, ends, facts, max_answer_length=1)) == "The"

    def test_an_end_before_its_begin_is_no_span(self, predict):
        assert self.answer(predict([(6, 0.9), (4, 0.1)], [(5, 0.9)])) == "The Red"

    def test_a_span_stays_within_one_sentence(self, predict):
        facts = [SENTENCE_OF_ANSWER, SECOND_SENTENCE]
        assert self.answer(predict([(5, 0.9)], [(8, 0.9), (5, 0.1)], facts)) == "Red"

    def test_a_span_has_at_most_the_given_length(self, predict):
        ends = [(7, 0.9), (5, 0.1)]
        assert self.answer(predict([(5, 0.9)], ends, max_answer_length=3)) == "Red Rose."
        assert self.answer(predict([(5, 0.9)], ends, max_answer_length=2)) == "Red"

    def test_supporting_sentences_come_first(self, predict):
        prediction = predict([(8, 0.9), (5, 0.1)], [(10, 0.9), (6, 0.1)])
        assert self.answer(prediction) == "Red Rose"

    def test_a_title_can_be_the_answer(self, predict):
        assert self.answer(predict([(3, 0.9)], [(3, 0.9)], facts=[4])) == "Rose"

    @pytest.mark.parametrize(("answer_type", "answer"), [(1, "yes"), (2, "no")])
    def test_yes_and_no_are_decided_by_the_type(self, predict, answer_type, answer):
        assert self.answer(predict([(5, 1.0)], [(6, 1.0)], answer_type=answer_type)) == answer

    def test_the_supporting_facts_are_titles_and_indices_in_the_file(self, predict):
        facts = [3, 4, SENTENCE_OF_ANSWER, TOWN_SENTENCE]
        prediction = predict([(5, 1.0)], [(6, 1.0)], facts)
        assert prediction["sp"] == {"q1": [["Rose", 0], ["Town", 0]]}

    def test_the_threshold_decides_what_supports(self, predict):
        prediction = predict([(5, 1.0)], [(6, 1.0)], supporting_fact_threshold=0.95)
        assert prediction["sp"] == {"q1": []}

    @pytest.mark.parametrize("threshold", [0.95, 0.5])
    def test_at_least_so_many_sentences_support_the_likeliest_first(self, predict, threshold):
        probs = np.zeros(12, np.float32)
        probs[[3, 4, SENTENCE_OF_ANSWER, SECOND_SENTENCE, TOWN_SENTENCE]] = [1, 1, 0.6, 0.2, 0.3]
        found = {
            least: predict(
                [(8, 0.9), (5, 0.1)],
                [(10, 0.9), (6, 0.1)],
                extra={"supporting_facts_probs": probs},
                supporting_fact_threshold=threshold,
                min_supporting_facts=least,
            )
            for least in (0, 1, 2, 9)
        }
        answer, second, town = ["Rose", 0], ["Rose", 1], ["Town", 0]
        facts = {least: prediction["sp"]["q1"] for least, prediction in found.items()}
        above = [answer] if threshold < 0.6 else []
        assert facts == {0: above, 1: [answer], 2: [answer, town], 9: [answer, second, town]}
        # Answers come from what supports.
        assert self.answer(found[1]) == "Red Rose" and self.answer(found[9]) == "Loudly sings"

    def test_bio_takes_the_run_with_the_highest_mean(self, predict):
        ids = np.full(24, 2)
        ids[[4, 5, 6, 10]] = [0, 0, 1, 1]
        probs = np.full(24, 0.99)
        probs[[4, 5, 6]] = [0.5, 0.6, 0.8]
        extra = {"answer_bio_ids": ids, "answer_bio_probs": probs}
        assert self.answer(predict([], [], extra=extra, answer_encoding_method="bio")) == "Red Rose"

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Red Rose"), (True, "")])
    def test_the_release_loses_a_bio_answer_at_the_inputs_end(self, predict, compatible, answer):
        ids = np.full(7, 2)
        ids[[5, 6]] = [0, 1]
        extra = {"answer_bio_ids": ids, "answer_bio_probs": np.ones(7)}
        options = {"answer_encoding_method": "bio", "release_compatible": compatible}
        assert self.answer(predict([], [], extra=extra, **options)) == answer

    def test_examples_without_output_get_an_empty_prediction(self, tokenizer):
        prediction = generate_predictions([], [EXAMPLE], tokenizer, DecodingConfig())
        assert prediction == {"answer": {"q1": ""}, "sp": {"q1": []}}

    def test_outputs_of_other_data_are_an_error(self, tokenizer):
        with pytest.raises(ValueError, match="the last has id 'other'"):
            outputs = [{"unique_ids": np.array([b"other"])}]
            generate_predictions(outputs, [EXAMPLE], tokenizer, DecodingConfig())

    def test_questions_with_the_same_id_are_an_error(self, tokenizer):
        other = dataclasses.replace(EXAMPLE, question="Who?")
        with pytest.raises(ValueError, match="two examples with the id 'q1'"):
            generate_predictions([], [EXAMPLE, other], tokenizer, DecodingConfig())

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"answer_encoding_method": "x"}, "`answer_encoding_method` must be"),
            (
                {"supporting_fact_threshold": 50},
                "`supporting_fact_threshold` must be between 0 and 1",
            ),
            ({"max_answer_length": 0}, "`max_answer_length` must be at least 1"),
        ],
    )
    def test_impossible_settings(self, fields, message):
        with pytest.raises(ValueError, match=message):
            DecodingConfig(**fields)


class TestFixedFaults:
    """Each with the release's behavior beside it."""

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Red"), (True, "")])
    def test_without_a_supporting_span_the_best_span_is_the_answer(
        self, predict, compatible, answer
    ):
        prediction = predict([(5, 1.0)], [(5, 1.0)], facts=[], release_compatible=compatible)
        assert prediction["answer"]["q1"] == answer

    @pytest.mark.parametrize("compatible", [False, True])
    def test_evaluation_reads_from_records_what_decoding_needs(
        self, tokenizer, features, compatible, tmp_path
    ):
        config = HotpotQaConfig(
            encoder_config=modeling.EtcConfig(vocab_size=len(tokenizer.vocab)),
            release_compatible=compatible,
            long_seq_length=24,
            global_seq_length=12,
        )
        with tf.io.TFRecordWriter(str(tmp_path / "dev")) as writer:
            writer.write(preprocessing.to_tf_example(features).SerializeToString())
        dataset = finetuning.make_eval_dataset(str(tmp_path / "dev"), config.records(), 1)
        (batch,) = dataset.unbatch().as_numpy_iterator()
        facts = np.zeros(12)
        facts[SENTENCE_OF_ANSWER] = 0.9
        output = {**batch, "supporting_facts_probs": facts, "answer_types": 0}
        for side, place in (("begin", 5), ("end", 6)):
            output[f"answer_{side}_top_indices"] = np.array([place])
            output[f"answer_{side}_top_probs"] = np.array([0.9])
        found = generate_predictions([output], [EXAMPLE], tokenizer, config.decoding())
        assert found["answer"]["q1"] == "Red Rose"

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Red"), (True, "")])
    def test_cls_is_never_the_answer(self, predict, compatible, answer):
        ends = begins = [(0, 0.9), (5, 0.1)]
        facts = [SENTENCE_OF_ANSWER, 11]  # The last global token, which is padding.
        prediction = predict(begins, ends, facts, release_compatible=compatible)
        assert prediction["answer"]["q1"] == answer

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "The"), (True, "Red")])
    def test_of_equal_spans_the_first_wins(self, predict, compatible, answer):
        begins = [(4, 0.5), (5, 0.5)]
        prediction = predict(begins, begins, release_compatible=compatible, max_answer_length=1)
        assert prediction["answer"]["q1"] == answer

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize(
        ("positions", "first", "last"),
        [
            # Begins, ends; what wins corrected; what wins as in the release.
            (([4, 9], [5, 10]), "The Red", "ly sings"),
            (([5], [5, 6]), "Red", "Red Rose"),
            (([5, 6], [6]), "Red Rose", "Rose"),
            (([5, 6], [6, 7]), "Red Rose", "Rose."),
        ],
    )
    def test_equal_spans_are_ranked_by_position_not_by_their_place_in_the_lists(
        self, predict, positions, first, last, order
    ):
        begins, ends = ([(index, 0.5) for index in side][::order] for side in positions)
        facts = [SENTENCE_OF_ANSWER, SECOND_SENTENCE]
        for compatible, answer in ((False, first), (True, last)):
            prediction = predict(begins, ends, facts, release_compatible=compatible)
            assert prediction["answer"]["q1"] == answer

    def test_a_better_span_wins_wherever_it_stands(self, predict):
        begins, ends = [(4, 0.6), (5, 0.5)], [(4, 0.5), (5, 0.5)]
        for compatible in (False, True):
            prediction = predict(begins, ends, release_compatible=compatible, max_answer_length=1)
            assert prediction["answer"]["q1"] == "The"

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Red"), (True, "")])
    def test_no_answer_goes_from_cls_into_the_padding(self, predict, compatible, answer):
        begins, ends = [(0, 0.9), (5, 0.5)], [(23, 0.9), (5, 0.5)]
        facts = [SENTENCE_OF_ANSWER, 11]  # The last global token, which is padding.
        prediction = predict(begins, ends, facts, release_compatible=compatible)
        assert prediction["answer"]["q1"] == answer

    @pytest.mark.parametrize("compatible", [False, True])
    def test_paragraphs_of_one_title_share_their_facts(self, tokenizer, compatible):
        twice = dataclasses.replace(EXAMPLE, paragraphs=EXAMPLE.paragraphs[:1] * 2)
        output = {
            "unique_ids": "q1",
            "long_sentence_ids": np.array([-1]),
            "long_token_type_ids": np.array([1]),
            "global_paragraph_ids": np.array([0, 1]),
            "global_sentence_ids": np.array([1, 1]),
            "supporting_facts_probs": np.array([0.9, 0.9]),
            "answer_types": 1,
        }
        config = DecodingConfig(release_compatible=compatible)
        prediction = generate_predictions([output], [twice], tokenizer, config)
        assert prediction["sp"]["q1"] == [["Rose", 1]] * (2 if compatible else 1)

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Ω lamp"), (True, "<unk> lamp")])
    def test_unknown_sentence_pieces_are_spelled_as_in_the_text(self, compatible, answer):
        tokenizer = tokenization.FullTokenizer(None, spm_model_file=str(TINY_MODEL))
        example = examples.HotpotQAExample(
            "q1", "?", (examples.Paragraph("river", ("bees Ω lamp",)),)
        )
        config = HotpotQAInputConfig.for_tokenizer(
            tokenizer, is_training=False, debug=True, long_seq_length=32, global_seq_length=8
        )
        features = hotpotqa_features.make_features(example, config, tokenizer).features
        tokens = features["long_tokens"]
        span = [tokens.index("▁lamp") - 1, tokens.index("▁lamp")]
        output = {
            **{name: np.array(values) for name, values in features.items()},
            "supporting_facts_probs": np.ones(8),
            "answer_types": 0,
            "answer_begin_top_indices": span[:1],
            "answer_begin_top_probs": [1.0],
            "answer_end_top_indices": span[1:],
            "answer_end_top_probs": [1.0],
        }
        config = DecodingConfig(release_compatible=compatible)
        prediction = generate_predictions([output], [example], tokenizer, config)
        assert prediction["answer"]["q1"] == answer
