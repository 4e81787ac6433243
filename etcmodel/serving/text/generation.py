"""Writes a generating model and its sentence pieces as a SavedModel from texts to texts."""

import numpy as np
import tensorflow as tf

from etcmodel import extras
from etcmodel.models import text_data
from etcmodel.serving import export
from etcmodel.serving.generation import GenerationModule
from etcmodel.serving.text import sequences, tokenizers
from etcmodel.serving.text.text_module import check_some
from etcmodel.text import added_tokens
from etcmodel.text.seq2seq_processor import Seq2SeqProcessor

with extras.needed("serve"):
    import tensorflow_text


def export_text_generation(
    model, directory, processor=None, *, assets=None, weights="float32", **settings
):
    """Writes a SavedModel that generates texts of texts; it needs TensorFlow and tensorflow-text.

    Its signatures `serving_default` and `generate_text` take string `texts` [batch], which are
    tokenized and truncated as by the processor; the second one also takes the numbers of the
    signature `generate`, which takes ids, as `export_generation` describes it. Both return what
    that one does, and string `texts` [batch * num_return_sequences], the decoded sequences.

    Args:
        model: built encoder-decoder with a vocabulary of sentence pieces: LongT5, PEGASUS-X or
            BigBird-Pegasus.
        directory: str. Where to write; must not exist. It appears only when it is complete.
        processor: `Seq2SeqProcessor`; by default the model's own.
        assets, weights, **settings: see `export_generation`.
    Returns:
        `directory`.
    Raises:
        ValueError: if there is no processor, or one without a `spiece.model`; see also
            `export_generation`.

    >>> from etcmodel import serving
    >>> config = etcmodel.LongT5Config(d_model=8, num_layers=1, decoder_start_token_id=0)
    >>> model = etcmodel.LongT5Model(config)
    >>> model.build(None)
    >>> processor = etcmodel.Seq2SeqProcessor("spiece.model")
    >>> serving.export_text_generation(model, "text_summarizer", processor, max_length=4)
    'text_summarizer'
    """
    processor = processor or model.processor
    if processor is None:
        raise ValueError("`processor` must be given: the model has none of its own.")
    if getattr(processor.tokenizer, "sp_model", None) is None or not isinstance(
        processor, Seq2SeqProcessor
    ):
        raise ValueError(
            "Texts are generated in a graph with sentence pieces (spiece.model) alone; "
            f"tensorflow-text has no tokenizer for {processor!r}. Export a signature of ids "
            "instead: `serving.export_generation`."
        )
    text_data.check_vocabulary(model, processor)
    settings = model.generation_settings(**settings)
    return export.write_saved_model(
        directory, assets or {}, lambda: _TextModule(model, settings, processor), weights
    )


class _TextModule(GenerationModule):
    def __init__(self, model, settings, processor):
        super().__init__(model, settings)
        self._pieces = _Pieces(processor.tokenizer)
        self._limit = processor.config.max_length

    def signatures(self):
        by_ids = super().signatures()["generate"]

        def run(given, numbers):
            with tf.control_dependencies([check_some("texts", tf.size(given["texts"]))]):
                ids = self._pieces.encode(tf.identity(given["texts"]), self._limit)
            mask = tf.sequence_mask(ids.row_lengths(), dtype=tf.int32)
            ids = ids.to_tensor(self._pieces.pad_id)
            outputs = by_ids(input_ids=ids, attention_mask=mask, **numbers)
            return {**outputs, "texts": self._pieces.decode(outputs["sequences"])}

        texts = {"texts": tf.TensorSpec([None], tf.string, "texts")}
        serve, generate = self.with_numbers(texts, run)
        return {"serving_default": serve, "generate_text": generate, "generate": by_ids}


class _Pieces(tf.Module):
    """The graph's twin of a `text.seq2seq_tokenizer.Seq2SeqTokenizer` of sentence pieces."""

    def __init__(self, tokenizer):
        super().__init__()
        names = tokenizer.special_ids.items()
        of_words = {x.content for x in tokenizer.added.tokens if x.single_word}
        special = [
            added_tokens.AddedToken(id=index, content=name, single_word=name in of_words)
            for name, index in names
        ]
        self._model = tensorflow_text.SentencepieceTokenizer(
            tokenizer.sp_model.serialized_model_proto()
        )
        self._shift = tokenizer.id_offset
        self._parts = tokenizers.AroundTokens(self._own, added_tokens.AddedTokens(special))
        self.pad_id, self._eos = tokenizer.pad_id, tokenizer.eos_id
        # What decoding makes of each id: a piece, or an added token, or nothing.
        self._piece = np.full([tokenizer.vocab_size], -1, np.int32)
        left_out = (tokenizer.eos_id, tokenizer.sp_model.unk_id())
        own = [x for x in range(2, len(tokenizer.vocab)) if x not in left_out]
        self._piece[np.add(own, self._shift)] = own
        self._name = np.full([tokenizer.vocab_size], "", object)
        for token in tokenizer.added.tokens:
            self._piece[token.id], self._name[token.id] = -1, "" if token.special else token.content

    def _own(self, texts):
        ids = self._model.tokenize(tf.strings.unicode_encode(texts, "UTF-8"))
        flat, rows = ids.flat_values, tf.cast(ids.value_rowids(), tf.int32)
        flat = tf.where(flat > 1, flat + self._shift, flat)
        return tokenizers.Pieces(flat, rows, tf.zeros_like(rows), tf.zeros_like(rows))

    def encode(self, texts, limit):
        """Ragged int32 [batch, (length)]: the ids of texts with the end token."""
        pieces = self._parts(tf.strings.unicode_decode(texts, "UTF-8"))
        size = tf.size(texts, tf.int64)
        ids = tf.RaggedTensor.from_value_rowids(pieces.ids, tf.cast(pieces.texts, tf.int64), size)
        ids = ids if limit is None else ids[:, : limit - 1]
        return tf.concat([ids, tf.fill([size, 1], self._eos)], axis=1)

    def decode(self, ids):
        """string [rows]: the texts of ids, int32 [rows, length]."""
        rows = tf.shape(ids)[0]
        row_of = tf.repeat(tf.range(rows), tf.shape(ids)[1])
        ids = tf.reshape(ids, [-1])
        known = ids < len(self._piece)
        safe = tf.where(known, ids, 0)
        pieces, names = tf.gather(self._piece, safe), tf.gather(tf.constant(self._name), safe)
        is_name = known & tf.not_equal(names, "")
        kept = tf.where(known & ((pieces >= 0) | is_name))[:, 0]
        row_of, pieces, names, is_name = (
            tf.gather(x, kept) for x in (row_of, pieces, names, is_name)
        )
        # An added token is a part of its own.
        after = tf.concat([tf.zeros_like(is_name[:1]), is_name[:-1]], 0)
        is_first = sequences.firsts_of_runs(row_of) | is_name | after
        part_of = tf.cumsum(tf.cast(is_first, tf.int64)) - 1
        firsts = tf.where(is_first)[:, 0]
        size = tf.size(firsts, tf.int64)
        spelled = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(pieces, ~is_name), tf.boolean_mask(part_of, ~is_name), size
        )
        texts = tf.where(
            tf.gather(is_name, firsts), tf.gather(names, firsts), self._model.detokenize(spelled)
        )
        there = tf.not_equal(texts, "")
        of_row = tf.boolean_mask(tf.gather(row_of, firsts), there)
        texts = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(texts, there), tf.cast(of_row, tf.int64), tf.cast(rows, tf.int64)
        )
        return tf.strings.reduce_join(texts, axis=1, separator=" ")
