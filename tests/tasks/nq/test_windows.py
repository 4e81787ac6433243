"""Where an answer lies in the windows of a page whose words are cut into pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.tasks.nq import examples, features
from etcmodel.tasks.nq.config import NqInputConfig
from etcmodel.text import tokenization
from tests.tasks.nq import raw_examples
from tests.tasks.nq.raw_examples import annotation, raw_example

# Words of one, two and three tokens.
PIECES = {"in": 1, "ins": 2, "inses": 3}


@pytest.fixture(scope="module")
def convert_pieces(tmp_path_factory):
    """As `convert`, with a vocabulary that cuts the words of `PIECES`."""
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join([*raw_examples.HEAD, "in", "##s", "##es"]) + "\n")
    tokenizer = tokenization.FullTokenizer(str(path))
    word_ids = features.make_word_tokenizer(tokenizer)

    def converted(words, note, **changes):
        raw = raw_example(
            document_text=" ".join(words),
            question_text="in",
            long_answer_candidates=[raw_examples.span(0, len(words))],
            annotations=[note],
        )
        config = NqInputConfig.for_tokenizer(
            tokenizer, global_seq_length=16, is_training=False, **changes
        )
        return features.make_windows(examples.parse_example(raw), config, word_ids).windows

    return converted


class TestWordsAcrossTheBorder:
    """CLS, a question of one token and SEP are before the page, SEP is after it."""

    sizes = {"long_seq_length": 8, "stride": 3, "question_len": 1}
    released = {**sizes, "release_compatible": True}

    def test_in_the_release_the_part_in_the_window_is_the_end(self, convert_pieces):
        words = ["in", "in", "inses", "in"]  # in in in|##s ##es in: windows 0-3 and 3-5.
        note = annotation((0, 4), ((1, 3),))
        first, second = convert_pieces(words, note, **self.released)
        assert first["token_pos"][3:7] == [0, 1, 2, 2] and second["token_pos"][3:6] == [2, 2, 3]
        assert (first["sa_start"], first["sa_end"]) == ([4], [6])
        assert (second["sa_start"], second["sa_end"]) == ([0], [4])
        note = annotation((0, 4), ((2, 4),))
        first, second = convert_pieces(words, note, **self.released)
        assert (first["sa_start"], first["sa_end"]) == ([5], [0])
        assert (second["sa_start"], second["sa_end"]) == ([3], [5])

    def test_by_default_an_end_is_a_words_own_first_or_last_token(self, convert_pieces):
        words = ["in", "in", "inses", "in"]
        first, second = convert_pieces(words, annotation((0, 4), ((1, 3),)), **self.sizes)
        assert (first["sa_start"], first["sa_end"]) == ([4], [0])
        assert (second["sa_start"], second["sa_end"]) == ([0], [4])
        first, second = convert_pieces(words, annotation((0, 4), ((2, 4),)), **self.sizes)
        assert (first["sa_start"], first["sa_end"]) == ([5], [0])
        assert (second["sa_start"], second["sa_end"]) == ([0], [5])

    @given(
        st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=8),
        st.tuples(st.integers(0, 7), st.integers(0, 7)),
        st.integers(6, 12),
        st.integers(1, 5),
    )
    @settings(derandomize=True, deadline=None, max_examples=150)
    def test_every_window_equals_a_slow_search(self, convert_pieces, words, ends, length, stride):
        start, last = sorted(end % len(words) for end in ends)
        note = annotation((start, last + 1), (), candidate_index=-1)
        sizes = {**self.sizes, "long_seq_length": length, "stride": stride}
        pos = [i for i, word in enumerate(words) for _ in range(PIECES[word])]
        for release_compatible in (False, True):
            windows = convert_pieces(words, note, **sizes, release_compatible=release_compatible)
            step = stride if release_compatible else min(stride, length - 4)
            for number, window in enumerate(windows):
                begin = number * step
                shown = range(begin, min(begin + length - 4, len(pos)))
                firsts = [i for i in shown if pos[i] == start]
                lasts = [i for i in shown if pos[i] == last]
                if not release_compatible:
                    firsts = [i for i in firsts if i == 0 or pos[i - 1] != start]
                    lasts = [i for i in lasts if i + 1 == len(pos) or pos[i + 1] != last]
                expected = (
                    [3 + firsts[0] - begin if firsts else 0],
                    [3 + lasts[-1] - begin if lasts else 0],
                )
                assert (window["la_start"], window["la_end"]) == expected
