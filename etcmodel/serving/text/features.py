"""The features of rows, padded: ids, segments, masks, relations, as `text.encoding` has them."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import sequences

# In place of an index of a piece or a block.
CLS, SEP = -1, -2
WHOLE, QUESTION = -1, -2
NONE = -1


class Codes(NamedTuple):
    """The meaning of the tokens of rows.

    Attributes:
        pieces: ragged int32 [num_rows, (long_len)]. The piece of each token, an index in the
            `Source`; or `CLS` or `SEP`.
        links: likewise, the global token of each token, or -1.
        blocks: ragged int32 [num_rows, (global_len)]. The block of each global token; or `WHOLE`,
            `QUESTION`, or `QUESTION` - 1 - piece for a question's token.
        num_before: int32 [num_rows]. Tokens in front of those of the text.
        has_both: int32 [num_rows]. 1 where there are a question and a text.
    """

    pieces: tf.RaggedTensor
    links: tf.RaggedTensor
    blocks: tf.RaggedTensor
    num_before: tf.Tensor
    has_both: tf.Tensor


class Kept(NamedTuple):
    """The blocks that are in, of all rows: int32 [num_kept] each.

    Attributes:
        rows: which row each is in.
        blocks: index in the `Source`.
        firsts, counts: their first piece that is in, and how many are.
        places: their global token.
    """

    rows: tf.Tensor
    blocks: tf.Tensor
    firsts: tf.Tensor
    counts: tf.Tensor
    places: tf.Tensor


class Padding:
    """Makes features as a processor does.

    Args:
        processor: `EtcProcessor`.
    """

    def __init__(self, processor):
        self._config = processor.config
        self._special = processor._special

    def features(self, source, codes):
        """The features of tokens by name, in the processor's order; int32 tensors."""
        pieces, links, blocks, num_before, has_both = codes
        long_len, global_len = self._long_len(pieces), self._global_len(blocks)
        ids = tf.where(tf.equal(pieces.flat_values, CLS), self._special.cls, self._special.sep)
        known = sequences.gathered(source.ids, pieces.flat_values)
        ids = pieces.with_flat_values(tf.where(pieces.flat_values >= 0, known, ids))
        token_ids = sequences.padded(ids, self._special.pad, long_len)
        positions, is_token = _positions(pieces, token_ids)
        is_second = is_token & (positions >= num_before[:, tf.newaxis])
        global_ids, segments = self._global_values(source, blocks.flat_values)
        global_ids = blocks.with_flat_values(global_ids)
        global_ids = sequences.padded(global_ids, self._special.pad, global_len)
        global_positions, is_global = _positions(blocks, global_ids)
        features = {
            "token_ids": token_ids,
            "segment_ids": self._segments(source, pieces, is_token, is_second, has_both),
            "global_token_ids": global_ids,
            "global_segment_ids": sequences.padded(
                blocks.with_flat_values(segments), 0, global_len
            ),
            "links": sequences.padded(links, NONE, long_len),
            "example_ids": tf.cast(is_token, tf.int32),
            "global_example_ids": tf.cast(is_global, tf.int32),
        }
        if self._config.position_ids:
            features["position_ids"] = positions * features["example_ids"]
            features["global_position_ids"] = global_positions * features["global_example_ids"]
        return features

    def _segments(self, source, pieces, is_token, is_second, has_both):
        if self._config.segment_id is None:
            segments = tf.cast(is_second, tf.int32) * has_both[:, tf.newaxis]
        else:
            segments = tf.cast(is_token, tf.int32) * self._config.segment_id
        if not self._config.segments:
            return segments
        # Tokens are of a question or of a sentence.
        of_kind = [self._config.segments.get(kind, NONE) for kind in ("question", "sentence")]
        is_of_text = tf.cast(sequences.gathered(source.texts, pieces.flat_values) >= 0, tf.int32)
        own = tf.where(pieces.flat_values >= 0, tf.gather(of_kind, is_of_text), NONE)
        own = sequences.padded(pieces.with_flat_values(own), NONE, tf.shape(is_token)[1])
        return tf.where(own >= 0, own, segments)

    def _global_values(self, source, blocks):
        """(ids, segments) of global tokens."""
        of_kind, segment_of = self._special.of_kind, self._config.global_segments
        is_document = sequences.gathered(source.is_document, blocks)
        kinds = {
            "whole": tf.equal(blocks, WHOLE),
            "question": blocks <= QUESTION,
            "document": (blocks >= 0) & is_document,
            "sentence": (blocks >= 0) & ~is_document,
        }
        ids = segments = tf.zeros_like(blocks)
        for kind, holds in kinds.items():
            ids = tf.where(holds, of_kind(kind), ids)
            segments = tf.where(holds, segment_of.get(kind, 0), segments)
        if "question" not in self._special.by_kind:
            token_ids = sequences.gathered(source.ids, QUESTION - 1 - blocks)
            ids = tf.where(blocks < QUESTION, token_ids, ids)
        return ids, segments

    def relations(self, source, kept, num_rows):
        """Features of relations by name, of which texts have `part_of` and `has_part` alone."""
        is_part = tf.gather(source.parents, kept.blocks) >= 0
        # The document of a sentence is the latest one before it in the same row.
        owners = tf.maximum(sequences.previous_true(~is_part), 0)
        pairs = tf.stack([kept.places, tf.gather(kept.places, owners)], axis=1)
        pairs = tf.boolean_mask(pairs, is_part)
        rows = tf.boolean_mask(kept.rows, is_part)
        edges = {"part_of": pairs, "has_part": pairs[:, ::-1]}
        features = {}
        for name in self._config.relation_names:
            is_mention = name in self._config.mention_names
            found = pairs[:0] if is_mention else edges.get(name, pairs[:0])
            ragged = sequences.of_rows(found, rows[: tf.shape(found)[0]], num_rows)
            length = self._rounded(sequences.longest(ragged))
            kind = "links" if is_mention else "edges"
            features[f"{kind}/{name}"] = sequences.padded(ragged, NONE, length)
            if name in self._config.long_relation_names:
                # Both blocks of a pair must have tokens of their own; documents have none.
                features[f"long_edges/{name}"] = tf.fill([num_rows, 0, 2], NONE)
        return features

    def _long_len(self, pieces):
        if self._config.pad_to == "max":
            return self._rounded(self._config.max_long_len)
        return self._rounded(tf.maximum(sequences.longest(pieces), 1))

    def _global_len(self, blocks):
        if self._config.pad_to == "max":
            return self._rounded(self._config.max_global_len)
        return self._rounded(sequences.longest(blocks))

    def _rounded(self, length):
        multiple = self._config.pad_to_multiple_of
        return -(-length // multiple) * multiple


def _positions(ragged, padded):
    """(int32 [len] of 0, 1, 2 …, bool [num_rows, len]: which are no padding)."""
    positions = tf.range(tf.shape(padded)[1])
    return positions, positions < sequences.lengths(ragged)[:, tf.newaxis]
