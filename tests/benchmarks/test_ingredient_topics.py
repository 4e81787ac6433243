"""What the documents on topics tell, and what they do not."""

import numpy as np

from benchmarks import ingredient_topics as topics

COUNT = 400
FIRST_WORD, WORDS_PER_TOPIC = 35, 32  # Of the topics; ids below are those of common words.


def rng(seed=0):
    return np.random.default_rng(seed)


def topics_of(words):
    return [(word - FIRST_WORD) // WORDS_PER_TOPIC for word in words if word >= FIRST_WORD]


def test_only_topics_tell_the_sentence_that_does_not_belong():
    features, labels = topics.odd_sentence(COUNT, rng())
    tokens = features["token_ids"].reshape([COUNT, topics.NUM_SENTENCES, topics.SENTENCE_LENGTH])
    assert (features["links"].reshape(tokens.shape) == np.arange(8)[:, np.newaxis]).all()
    assert (features["global_token_ids"] == 1).all()
    guesses = []
    for sentences, odd in zip(tokens, labels, strict=True):
        found = [topics_of(words) for words in sentences]
        assert all(len(of_words) == 3 and len(set(of_words)) == 1 for of_words in found)
        (topic,) = {of_words[0] for i, of_words in enumerate(found) if i != odd}
        assert found[odd][0] != topic and 0 <= found[odd][0] < 8
        of_topics = sentences[sentences >= FIRST_WORD]
        assert len(set(of_topics)) == len(of_topics) == 24
        rest = [np.delete(sentences, i, axis=0).flat for i in range(len(sentences))]
        overlaps = [len(set(x) & set(others)) for x, others in zip(sentences, rest, strict=True)]
        guesses.append(int(np.argmin(overlaps)))
    # The sentence that shares the fewest words with the others is any sentence.
    chance = 1 / topics.NUM_SENTENCES
    assert abs(np.mean(guesses == labels) - chance) < 4 * np.sqrt(chance * (1 - chance) / COUNT)
    assert np.bincount(labels).max() / COUNT < chance + 4 * np.sqrt(chance * (1 - chance) / COUNT)


def test_windows_are_two_documents_of_one_topic_each():
    made = topics.windows(20, rng())
    assert all(x.dtype == np.int32 and len(x) == 20 for x in made.values())
    assert (made["long_word_starts"] == 1).all() and (made["global_token_ids"] == 1).all()
    for row in range(20):
        tokens = made["long_token_ids"][row]
        assert all(len(set(topics_of(half))) == 1 for half in (tokens[:48], tokens[48:]))
        assert made["sentence_ids"][row].tolist() == [i for i in range(16) for _ in range(6)]
        assert np.flatnonzero(made["long_breakpoints"][row]).tolist() == [47, 95]
        assert np.flatnonzero(made["global_breakpoints"][row]).tolist() == [7, 15]
    assert made["long_token_ids"].max() < topics.vocabulary()
    assert made["long_token_ids"].min() > topics.MASK_TOKEN_ID


def test_the_same_seed_makes_the_same_documents():
    same, other = topics.windows(3, rng(5)), topics.windows(3, rng(6))
    for name, x in topics.windows(3, rng(5)).items():
        np.testing.assert_array_equal(x, same[name])
    assert (same["long_token_ids"] != other["long_token_ids"]).any()
    one, two = (topics.odd_sentence(9, rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one[0]["token_ids"], two[0]["token_ids"])
    np.testing.assert_array_equal(one[1], two[1])
