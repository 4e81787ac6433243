"""Documents in a graph: texts in blocks, in pieces. What `text.encoding.TokenizedDocument` is."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import sequences, tokenizers
from etcmodel.text import sentence_splitting

# Sentences in a graph: the splitters of `text.sentence_splitting` that are rules of characters.


SPLITTERS = ("multilingual", "simple", "whole")


class Sentences(NamedTuple):
    """Sentences of several texts, one after the other.

    Attributes:
        code_points: ragged int32 [num_sentences, (num_chars)].
        texts, starts: int32 [num_sentences]. Which text each is from, and its first character.
    """

    code_points: tf.RaggedTensor
    texts: tf.Tensor
    starts: tf.Tensor


def splitter_of(config):
    """The splitter of an export: that of its `ProcessorConfig`, or 'simple' in its place."""
    return config.sentence_splitter if config.sentence_splitter in SPLITTERS else "simple"


def split(texts, splitter):
    """Splits texts as `text.sentence_splitting.sentence_splitter` does.

    Args:
        texts: ragged int32 code points [num_texts, (num_chars)].
        splitter: one of `SPLITTERS`.
    Returns:
        `Sentences`, none of which is blank.
    """
    if splitter == "whole":
        return whole(texts)
    chars, text_of = texts.flat_values, tf.cast(texts.value_rowids(), tf.int32)
    is_text = ~tokenizers.has(tokenizers.properties()(chars), tokenizers.SPACE)
    text_before = sequences.previous_true(tf.concat([is_text, [False]], 0))
    before = tf.maximum(text_before[:-1], 0)
    is_first = (text_before[:-1] < 0) | tf.not_equal(tf.gather(text_of, before), text_of)
    is_end = _is_of(tf.gather(chars, before), sentence_splitting.ENDS)
    is_after_space = before < tf.range(tf.size(chars)) - 1
    begins = is_first | (is_end & is_after_space)
    if splitter == "multilingual":
        begins |= _is_after_end(chars, text_of, before, is_after_space)
    starts = tf.cast(tf.where(is_text & begins)[:, 0], tf.int32)
    # Each ends with the last character before the next one, or before the end.
    ends = tf.gather(text_before, tf.concat([starts[1:], tf.shape(chars)], 0)) + 1
    return _sentences(texts, starts, ends - starts)


def _is_after_end(chars, text_of, before, is_after_space):
    """bool: before a character is an end that needs no white space, with all that goes with it."""
    is_end = _is_of(chars, sentence_splitting.ENDS_WITHOUT_SPACE)
    goes_along = is_end | _is_of(chars, sentence_splitting.ENDS + sentence_splitting.CLOSING)
    # Of the characters up to each: the latest end, and the latest one that does not go along.
    latest = [tf.concat([x, [False]], 0) for x in (is_end, ~goes_along)]
    end, other = (tf.gather(sequences.previous_true(flags), before + 1) for flags in latest)
    is_same_text = tf.equal(tf.gather(text_of, tf.maximum(end, 0)), text_of)
    return (end > other) & is_same_text & (is_after_space | ~goes_along)


def _is_of(chars, characters):
    """bool: whether code points are of some characters, a str."""
    return tf.reduce_any(tf.equal(chars[:, tf.newaxis], [*map(ord, characters)]), axis=1)


def whole(texts):
    """As `split`, but each text that is not blank is one sentence, white space included."""
    is_text = ~tokenizers.has(tokenizers.properties()(texts.flat_values), tokenizers.SPACE)
    has_text = tf.reduce_any(texts.with_flat_values(is_text), axis=1)
    lengths = tf.where(has_text, texts.row_lengths(), 0)
    kept = tf.where(lengths > 0)[:, 0]
    starts = tf.cast(tf.gather(texts.row_starts(), kept), tf.int32)
    return _sentences(texts, starts, tf.cast(tf.gather(lengths, kept), tf.int32))


def _sentences(texts, starts, counts):
    """`Sentences` of these many characters from the given places on, among all characters."""
    text_of = tf.gather(tf.cast(texts.value_rowids(), tf.int32), starts)
    places, _ = sequences.parts(starts, counts)
    chars = tf.gather(texts.flat_values, places)
    found = tf.RaggedTensor.from_row_lengths(chars, tf.cast(counts, tf.int64))
    shifts = tf.gather(tf.cast(texts.row_starts(), tf.int32), text_of)
    return Sentences(found, text_of, starts - shifts)


# Documents.


NONE = -1


class Texts(NamedTuple):
    """Texts of several examples, one after the other, without questions.

    Attributes:
        code_points: ragged int32 [num_texts, (num_chars)].
        examples: int32 [num_texts], in order.
        opens_document: bool [num_texts]. Whether a block for a document comes before the text.
        are_sentences: bool. Whether each text is one sentence; else it is split.
    """

    code_points: tf.RaggedTensor
    examples: tf.Tensor
    opens_document: tf.Tensor
    are_sentences: bool


class Source(NamedTuple):
    """Blocks and pieces of several examples; blocks are documents and sentences, in order.

    Attributes:
        num_examples: int32 scalar.
        ids, starts, ends, texts: int32 [num_pieces]. Of each piece its token id, its characters
            `[start, end)` and the text that these are of; those of questions, of the text -1, come
            first.
        questions: ragged int32 [num_examples, (num_question_pieces)]. Indices of pieces.
        examples, parents, block_texts: int32 [num_blocks]. `parents` are blocks, or -1.
        block_starts, block_ends: int32 [num_blocks]. Characters of the text; 0, 0 for documents.
        is_document: bool [num_blocks].
        firsts: int32 [num_blocks + 1]. The first piece of each block, and the number of pieces.
    """

    num_examples: tf.Tensor
    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    texts: tf.Tensor
    questions: tf.RaggedTensor
    examples: tf.Tensor
    parents: tf.Tensor
    block_texts: tf.Tensor
    block_starts: tf.Tensor
    block_ends: tf.Tensor
    is_document: tf.Tensor
    firsts: tf.Tensor


def decode(strings):
    """Ragged int32 code points [num_texts, (num_chars)] of strings [num_texts] in UTF-8.

    Each sequence of bytes that is none becomes U+FFFD, one character, of which no piece is made.
    """
    return tf.strings.unicode_decode(strings, "UTF-8", errors="replace")


def of_texts(texts):
    """`Texts` of strings [batch], an example each."""
    never = tf.zeros_like(texts, tf.bool)
    return Texts(decode(texts), tf.range(tf.size(texts)), never, False)


def of_documents(documents):
    """`Texts` of strings [batch, num_documents]; "" at the end of a row is padding."""
    is_given = _up_to_last(tf.not_equal(documents, ""))
    examples = _rows(documents)
    return Texts(decode(tf.reshape(documents, [-1])), examples, tf.reshape(is_given, [-1]), False)


def of_sentences(sentences_):
    """`Texts` of strings [batch, num_documents, num_sentences]; "" is padding."""
    has_any = tf.reduce_any(tf.not_equal(sentences_, ""), axis=2)
    is_given = _up_to_last(has_any)[:, :, tf.newaxis]
    opens = is_given & tf.equal(tf.range(tf.shape(sentences_)[2]), 0)
    examples = _rows(sentences_)
    return Texts(decode(tf.reshape(sentences_, [-1])), examples, tf.reshape(opens, [-1]), True)


def _up_to_last(flags):
    """bool [batch, num]: True up to the last True of a row."""
    return tf.cumsum(tf.cast(flags, tf.int32), axis=1, reverse=True) > 0


def _rows(strings):
    """int32 [number of strings]: the row of each."""
    shape = tf.shape(strings)
    return tf.repeat(tf.range(shape[0]), tf.reduce_prod(shape[1:]))


def read(texts, questions, num_examples, tokenizer, splitter):
    """The `Source` of examples.

    Args:
        texts: `Texts`.
        questions: ragged int32 code points [num_examples, (num_chars)], or None.
        num_examples: int32 scalar.
        tokenizer: `tokenizers.GraphTokenizer`.
        splitter: one of `SPLITTERS`.
    """
    points = texts.code_points
    found = whole(points) if texts.are_sentences else split(points, splitter)
    joined, num_questions = found.code_points, 0
    if questions is not None:
        joined, num_questions = tf.concat([questions, joined], 0), num_examples
    pieces = tokenizer(joined)
    owners = pieces.texts - num_questions  # Sentences; below 0 are questions.
    is_question = owners < 0
    places = tf.maximum(owners, 0)
    shifts = tf.where(is_question, 0, _gathered(found.starts, places))
    rows = tf.boolean_mask(pieces.texts, is_question)
    question_pieces = tf.RaggedTensor.from_value_rowids(
        tf.range(tf.size(rows)), tf.cast(rows, tf.int64), nrows=tf.cast(num_examples, tf.int64)
    )
    return Source(
        num_examples=num_examples,
        ids=pieces.ids,
        starts=pieces.starts + shifts,
        ends=pieces.ends + shifts,
        texts=tf.where(is_question, NONE, _gathered(found.texts, places)),
        questions=question_pieces,
        **_blocks(texts, found, tf.boolean_mask(owners, ~is_question), tf.size(rows)),
    )


def _blocks(texts, found, owners, num_question_pieces):
    """The fields of blocks by name: each text's sentences, behind the document that it opens."""
    num_texts, num_sentences = texts.code_points.nrows(tf.int32), tf.size(found.texts)
    opens = tf.cast(texts.opens_document, tf.int32)
    counts = tf.math.bincount(found.texts, minlength=num_texts, maxlength=num_texts) + opens
    block_texts = tf.repeat(tf.range(num_texts), counts)
    is_document = tf.gather(texts.opens_document, block_texts)
    is_document &= sequences.firsts_of_runs(block_texts)
    is_sentence = tf.cast(~is_document, tf.int32)
    sentence = tf.minimum(tf.cumsum(is_sentence, exclusive=True), tf.maximum(num_sentences - 1, 0))
    lengths = tf.cast(found.code_points.row_lengths(), tf.int32)
    starts = _gathered(found.starts, sentence) * is_sentence
    num_pieces = tf.math.bincount(owners, minlength=num_sentences, maxlength=num_sentences)
    pieces_of = _gathered(num_pieces, sentence) * is_sentence
    documents = tf.concat([tf.cast(tf.where(is_document)[:, 0], tf.int32), [NONE]], 0)
    latest = tf.cumsum(1 - is_sentence) - 1
    latest = tf.gather(documents, tf.where(latest < 0, tf.size(documents) - 1, latest))
    return {
        "examples": tf.gather(texts.examples, block_texts),
        "parents": tf.where(is_document, NONE, latest),
        "block_texts": block_texts,
        "block_starts": starts,
        "block_ends": (starts + _gathered(lengths, sentence)) * is_sentence,
        "is_document": is_document,
        "firsts": num_question_pieces + tf.cumsum(tf.concat([[0], pieces_of], 0)),
    }


def _gathered(values, places):
    """As `tf.gather`, but of no values it is 0 that is there."""
    return tf.gather(tf.concat([values, tf.zeros([1], values.dtype)], 0), places)
