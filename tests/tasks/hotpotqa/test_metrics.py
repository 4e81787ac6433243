"""The official metrics, and counts by kind of answer."""

import dataclasses

import pytest

from etcmodel.tasks.hotpotqa import examples, metrics


class TestMetrics:
    def gold(self, answer="the Red Rose", facts=(("Rose", 0), ("Town", 0))):
        return [
            examples.HotpotQAExample(
                "q1", "?", (), answer, tuple(examples.SupportingFact(*fact) for fact in facts)
            )
        ]

    def test_a_perfect_prediction_scores_one_everywhere(self):
        prediction = {"answer": {"q1": "red rose!"}, "sp": {"q1": [["Town", 0], ["Rose", 0]]}}
        assert set(metrics.metrics(self.gold(), prediction).values()) == {1.0}

    def test_partial_overlap(self):
        prediction = {"answer": {"q1": "red"}, "sp": {"q1": [["Rose", 0]]}}
        scores = metrics.metrics(self.gold(), prediction)
        assert (scores["em"], scores["prec"], scores["recall"]) == (0, 1, 0.5)
        assert (scores["sp_em"], scores["sp_prec"], scores["sp_recall"]) == (0, 1, 0.5)
        assert scores["joint_recall"] == 0.25
        assert scores["joint_f1"] == pytest.approx(2 * 0.25 / 1.25)

    def test_missing_predictions_score_zero(self):
        scores = metrics.metrics(self.gold(), {"answer": {"q1": "red rose"}, "sp": {}})
        assert (scores["em"], scores["sp_em"], scores["joint_em"]) == (1, 0, 0)

    def test_yes_is_not_partly_right(self):
        assert metrics.f1_score("yes it is", "yes") == (0, 0, 0)

    def test_metrics_need_labeled_examples(self):
        with pytest.raises(ValueError, match="no gold example"):
            metrics.metrics([], {"answer": {}, "sp": {}})
        unlabeled = examples.HotpotQAExample("q1", "?", ())
        without_facts = dataclasses.replace(unlabeled, answer="rose")
        for example, field in ((unlabeled, "answer"), (without_facts, "supporting_facts")):
            message = f"example 'q1': field `{field}` is missing, and evaluation needs it"
            for gold in ([example], [*self.gold(), example]):
                with pytest.raises(ValueError, match=message):
                    metrics.metrics(gold, {"answer": {}, "sp": {}})
                with pytest.raises(ValueError, match=message):
                    metrics.exact_match_counts(gold, {"answer": {}})

    def test_counts_by_kind(self):
        gold = self.gold() + self.gold() + self.gold(answer="no")
        counts = metrics.exact_match_counts(gold, {"answer": {"q1": "yes"}})
        assert counts == {
            "counts/A_Y": 2.0,
            "counts/N_Y": 1.0,
            "percentages/A_Y": 1.0,
            "percentages/N_Y": 1.0,
        }

    @pytest.mark.parametrize(
        ("answer", "predicted", "kinds"),
        [
            # Without its articles nothing is left of the true answer: it still is a span.
            ("The The", "the", "A_A"),
            ("The The", "", "A_A"),
            ("A", "rock", "A_B"),
            ("A", "no", "A_N"),
            ("!", "Yes.", "A_Y"),
            ("Red Rose", "the red rose!", "A_A"),
            ("Red Rose", "rose", "A_B"),
            ("Red Rose", "the", "A_E"),
            ("Red Rose", None, "A_E"),
            ("noanswer", "noanswer", "A_A"),
            ("Yes", "yes!", "Y_Y"),
            ("Yes", "the no", "Y_N"),
            ("Yes", "rose", "Y_A"),
            ("Yes", "an", "Y_E"),
            ("no", "no", "N_N"),
            ("no", "no way", "N_A"),
        ],
    )
    def test_kinds_of_answers(self, answer, predicted, kinds):
        answers = {} if predicted is None else {"q1": predicted}
        counts = metrics.exact_match_counts(self.gold(answer=answer), {"answer": answers})
        assert counts == {f"counts/{kinds}": 1.0, f"percentages/{kinds}": 1.0}
