"""From WikiHop's files to typed examples, and the errors."""

import pytest

from etcmodel.tasks.wikihop import examples, metrics
from tests.tasks.wikihop.raw_examples import raw_example


class TestReading:
    def test_an_unlabeled_example_and_empty_documents_are_fine(self):
        raw = raw_example(supports=["", "  "])
        del raw["answer"]
        example = examples.parse_example(raw)
        assert (example.answer, example.documents) == (None, ("", "  "))
        assert examples.parse_example(raw_example(supports=[])).documents == ()


class TestAnswer:
    def index(self, answer, *candidates, **options):
        raw = raw_example(answer=answer, candidates=list(candidates))
        return examples.parse_example(raw).answer_index(**options)

    def test_it_is_compared_stripped_and_in_lower_case(self):
        assert self.index(" B", "a", "b ") == 1
        assert self.index("A", "a", "A") == 0

    @pytest.mark.parametrize(("answer", "candidate"), [("Zoë", "Zoe\u0308"), ("ZOE\u0308 ", "zoë")])
    def test_accents_may_be_written_in_either_way(self, answer, candidate):
        assert self.index(answer, "zoe", candidate) == 1
        with pytest.raises(ValueError, match="is not one of the 2 candidates"):
            self.index(answer, "zoe", candidate, release_compatible=True)
        example = examples.parse_example(raw_example(answer=answer, candidates=[candidate, "zoe"]))
        assert metrics.metrics([example], {"w1": candidate}) == {"accuracy": 1.0}
        assert metrics.metrics([example], {"w1": "zoe"}) == {"accuracy": 0.0}

    def test_it_is_not_stripped_if_compatible(self):
        assert self.index("B", "a", " b", release_compatible=True) == 1
        with pytest.raises(ValueError, match="'b ' is not one of the 2 candidates: 'a', 'b'"):
            self.index("b ", "a", "b", release_compatible=True)

    def test_an_answer_that_is_no_candidate_is_an_error(self):
        with pytest.raises(ValueError, match="example 'w1': field `answer`: 'd' is not one of"):
            self.index("d", "a", "b")
