"""The model of Joshi et al. on any encoder, and its loss.

Source: Joshi et al. 2019 (arXiv:1908.09091), section 2, who put the model of Lee et al. 2018
(arXiv:1804.05392) on BERT. Spans are of words here; in their program, of word pieces.
"""

import functools

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.layers import dense, initializers, sublayers
from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.models import padding, processed_batches, token_classifiers
from etcmodel.ops import ngrams

from .features import GENRES

__all__ = ["LABELS", "WORD_FEATURES", "CoreferenceModel", "loss", "without_crossing"]

WORD_FEATURES = ("word_ids", "speaker_ids")
LABELS = ("mention_starts", "mention_ends", "mention_clusters")
_BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # Where each bucket of distances but the first begins.
# Also above encoders whose weights begin larger: pruned spans cost nothing, and a model that begins
# with scores far from 0 may learn to prune the mentions.
_INITIALIZER_RANGE = 0.02
_LEAST_LOGIT = -60.0  # Of a head word below the text's highest: its weight must not become 0.


# Pruning: the best spans of which none cross.


def without_crossing(scores, is_span):
    """Keeps spans greedily, the best first, leaving out each that crosses a kept one.

    Two spans cross if they have words in common, and each has words that the other lacks. A span is
    kept as soon as it is better than all undecided ones that cross it, which gives the same spans
    as going through them one by one, but in a few rounds.

    Args:
        scores: float [batch, num_words, max_width], by first word and number of words minus 1.
            Of equal ones, the first is the best.
        is_span: bool, likewise. Which spans there are.
    Returns:
        bool, likewise.

    >>> from etcmodel.tasks.coreference import model
    >>> scores = tf.constant([[[1.0, 3.0], [0.0, 2.0], [0.0, 0.0]]])
    >>> is_span = tf.constant([[[True, True], [True, True], [True, False]]])
    >>> model.without_crossing(scores, is_span).numpy().astype(int)[0]  # Not words 1 and 2.
    array([[1, 1],
           [1, 0],
           [1, 0]])
    """
    shape = tf.shape(scores)
    flat = tf.reshape(tf.stop_gradient(scores), [shape[0], -1])
    order = tf.argsort(flat, direction="DESCENDING", stable=True)
    ranks = tf.shape(flat)[1] - tf.argsort(order)  # From 1, the worst.
    undecided = tf.where(is_span, tf.reshape(ranks, shape), 0)

    def decide(undecided, kept):
        is_best = undecided > _best_crossing(undecided)
        is_lost = _best_crossing(tf.cast(is_best, tf.int32)) > 0
        return tf.where(is_best | is_lost, 0, undecided), kept | is_best

    _, kept = tf.while_loop(
        lambda undecided, _: tf.reduce_any(undecided > 0),
        decide,
        [undecided, tf.zeros_like(is_span)],
    )
    return kept


def _best_crossing(values):
    """The highest value, at least 0, of the spans that cross each: int, as the values."""
    return tf.maximum(
        _best_beginning_within(values),
        _reversed(_best_beginning_within(_reversed(values))),
    )


def _best_beginning_within(values):
    """Likewise, of those that begin within the span, behind its first word, and end behind it."""
    columns = tf.unstack(values, axis=2)
    for width in reversed(range(len(columns) - 1)):  # The best of the same or greater width.
        columns[width] = tf.maximum(columns[width], columns[width + 1])
    best = [tf.zeros_like(columns[0])]
    for column in columns[1:]:  # Those that begin with the second word, and those of its rest.
        best.append(_shifted(tf.maximum(column, best[-1]), 1))
    return tf.stack(best, axis=2)


def _reversed(values):
    """The values of the spans of the text read backwards."""
    columns = tf.unstack(values[:, ::-1], axis=2)
    return tf.stack([_shifted(x, width) for width, x in enumerate(columns)], axis=2)


def _shifted(x, places, fill=0):
    """What is so many places later: [batch, length, ...]; `fill` beyond the end."""
    widths = [[0, 0], [0, places], *[[0, 0]] * (x.shape.rank - 2)]
    return tf.pad(x, widths, constant_values=fill)[:, places : places + tf.shape(x)[1]]


def _following(x, number, fill=0):
    """Each place's value and those behind it: [batch, length, number, ...]."""
    return tf.stack([_shifted(x, places, fill) for places in range(number)], axis=2)


# The model.


class CoreferenceModel(tf_keras.Model):
    """Finds mentions, and for each of them the earlier mentions that may be of the same thing.

    A span is represented by its first and last token, the mean of its tokens weighted by attention,
    and its width. The spans with the best mention scores are kept, at most `top_span_ratio` × words
    and none that cross; each is compared with the `max_top_antecedents` earlier ones for which a
    bilinear score is highest. All scores are float32.

    Args:
        encoder_config: `EncoderConfig` of a system that classifies tokens.
        max_span_width: int. Most words of a span.
        top_span_ratio: float.
        max_top_antecedents: int.
        coref_depth: int. How often antecedents are scored; before each but the first time, spans
            are refined by their antecedents (Lee et al. 2018, section 3).
        ffnn_size, feature_size: int. Units of hidden layers, and of embeddings of features.
        dropout: float. Rate above the encoder.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`).
        **kwargs: of the Keras model.
    Call args:
        features: dict of int: those of `EtcProcessor` with one document per row (long_len tokens),
            [batch, long_len] `word_ids`, from 0 without gaps, -1 for tokens of no word, and
            `speaker_ids`; [batch, 1] `genres`.
        training: bool.
    Returns:
        dict by span, in the order of the text: int32 [batch, k] `starts` and `ends`, the first and
        the last word, -1 behind the last span; and by antecedent int32 [batch, k, a] `antecedents`,
        the number of the span, and float32 `scores`, -1e9 or less for those that are none. That
        of having no antecedent is 0.
    Raises:
        ValueError: naming the config's type, if its system classifies no tokens.
    """

    def __init__(
        self,
        encoder_config,
        *,
        max_span_width=30,
        top_span_ratio=0.4,
        max_top_antecedents=50,
        coref_depth=2,
        ffnn_size=1000,
        feature_size=20,
        dropout=0.3,
        skip_padding=False,
        **kwargs,
    ):
        super().__init__(**{"name": "coreference", **kwargs})
        self._autocast = False  # Features are ids, which must not be cast.
        self.max_span_width, self.top_span_ratio = max_span_width, top_span_ratio
        self.max_top_antecedents, self.coref_depth = max_top_antecedents, coref_depth
        self.skip_padding = skip_padding
        self.encoder = token_classifiers.make_token_encoder(
            encoder_config, "Coreference is resolved"
        )
        self.dropout = RecomputingDropout(dropout, name="head_dropout", dtype="float32")
        self._make_layers(ffnn_size, feature_size)

    def _make_layers(self, ffnn_size, feature_size):
        """Makes the layers, and `_sizes`, those of their inputs."""
        config, self._sizes = self.encoder.config, {}
        initializer = initializers.default_initializer(_INITIALIZER_RANGE)
        hidden, span = config.hidden_size, 3 * config.hidden_size + feature_size

        def layer(name, units, inputs, use_bias=True):
            self._sizes[name] = inputs
            made = dense.Dense(
                units,
                use_bias=use_bias,
                kernel_initializer=initializers.fresh(initializer),
                name=name,
                dtype="float32",
            )
            setattr(self, name, made)

        layer("head_word", 1, hidden)
        # Dense layers of what is concatenated, computed as the sum of those of the parts: most
        # parts belong to many spans or pairs.
        layer("mention_start", ffnn_size, hidden)
        for name, size in (("end", hidden), ("heads", hidden), ("width", feature_size)):
            layer(f"mention_{name}", ffnn_size, size, use_bias=False)
        layer("mention_score", 1, ffnn_size)
        layer("coarse", span, span, use_bias=False)
        layer("pair_span", ffnn_size, span)
        for name, size in (("antecedent", span), ("product", span), ("features", 3 * feature_size)):
            layer(f"pair_{name}", ffnn_size, size, use_bias=False)
        layer("pair_score", 1, ffnn_size)
        if self.coref_depth > 1:
            layer("gate", span, 2 * span)
        # Embeddings, as dense layers of one-hot vectors.
        for name, number in (
            ("width", self.max_span_width),
            ("distance", len(_BUCKETS) + 1),
            ("speaker", 2),
            ("genre", len(GENRES)),
        ):
            layer(f"{name}_embedding", feature_size, number, use_bias=False)
        # Scores by width and distance alone, by which a model begins to learn.
        layer("width_prior", 1, self.max_span_width, use_bias=False)
        layer("distance_prior", 1, len(_BUCKETS) + 1, use_bias=False)

    def build(self, input_shape=None):
        sublayers.build_sublayer(self.encoder, None)
        for name, size in self._sizes.items():
            sublayers.build_sublayer(getattr(self, name), tf.TensorShape([None, size]))
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        drop = functools.partial(self.dropout, training=training)
        hidden = tf.cast(self._encode(features, training), tf.float32)
        whole_length = tf.shape(hidden)[1]
        if self.skip_padding:
            features = {**features, "hidden": hidden}
            names = ("hidden", "links", *WORD_FEATURES)
            features = padding.cut(features, features["example_ids"] > 0, names)
            hidden = features["hidden"]
        words = self._words(hidden, features)
        scores, is_span = self._mention_scores(words, drop)
        spans, mask, starts, widths = self._best_spans(scores, is_span, words["number"])
        best = tf.gather(tf.reshape(scores, [tf.shape(scores)[0], -1]), spans, batch_dims=1)
        vectors = self._vectors(words, starts, widths, drop)
        coarse, antecedents = self._antecedents(vectors, best, mask, drop)
        pairs = self._pair_features(words, features, starts, antecedents, drop)
        total = coarse + self._pair_scores(vectors, antecedents, pairs, drop)
        for _ in range(self.coref_depth - 1):
            vectors = self._refined(vectors, total, antecedents)
            total = coarse + self._pair_scores(vectors, antecedents, pairs, drop)
        outputs = {
            "starts": tf.where(mask, starts, -1),
            "ends": tf.where(mask, starts + widths, -1),
            "antecedents": antecedents,
            "scores": total,
        }
        return self._restored(outputs, whole_length) if self.skip_padding else outputs

    def _restored(self, outputs, whole_length):
        """Outputs without padding, with as many spans as those of so many tokens."""
        number = self._num_spans(whole_length)
        k, a = tf.unstack(tf.shape(outputs["scores"])[1:])
        widths = [[0, 0], [0, number - k]]
        of_pairs = [*widths, [0, tf.minimum(self.max_top_antecedents, number) - a]]
        return {
            "starts": tf.pad(outputs["starts"], widths, constant_values=-1),
            "ends": tf.pad(outputs["ends"], widths, constant_values=-1),
            "antecedents": tf.pad(outputs["antecedents"], of_pairs),
            "scores": tf.pad(outputs["scores"], of_pairs, constant_values=MASKED_LOGIT),
        }

    def _num_spans(self, num_words):
        """How many spans are kept of so many words: int32, shaped as `num_words`."""
        share = self.top_span_ratio * tf.cast(num_words, tf.float32)
        return tf.maximum(tf.cast(share, tf.int32), 1)

    def _encode(self, features, training):
        """The hidden states of all long tokens: float [batch, long_len, hidden_size]."""
        names = (*processed_batches.LONG_FEATURES, *processed_batches.GLOBAL_FEATURES)
        given = {name: features[name] for name in names}
        return token_classifiers.hidden_states(
            self.encoder, given, training=training, skip_padding=self.skip_padding
        )

    def _words(self, hidden, features):
        """What is known of the words of each text: dict of tensors [batch, long_len, ...]."""
        ids, (batch, length) = features["word_ids"], tf.unstack(tf.shape(features["word_ids"]))
        is_of_word = ids >= 0
        rows = tf.range(batch)[:, tf.newaxis] * length
        segments = tf.where(is_of_word, rows + ids, batch * length)
        places = tf.broadcast_to(tf.range(length), tf.shape(ids))

        def by_word(reduce):
            found = reduce(places, segments, batch * length + 1)[:-1]
            return tf.clip_by_value(tf.reshape(found, [batch, length]), 0, length - 1)

        first = by_word(tf.math.unsorted_segment_min)
        last = by_word(tf.math.unsorted_segment_max)
        logits = self.head_word(hidden)
        highest = tf.reduce_max(tf.stop_gradient(logits), axis=1, keepdims=True)
        weights = tf.exp(tf.maximum(logits - highest, _LEAST_LOGIT))
        sum_words = functools.partial(
            ngrams.sum_words, long_word_idx=tf.maximum(ids, 0), long_input_mask=is_of_word
        )
        number = tf.reduce_max(ids, axis=1) + 1
        is_word = tf.range(length) < number[:, tf.newaxis]
        return {
            "number": number,
            "is_word": is_word,
            "start": tf.gather(hidden, first, batch_dims=1),
            "end": tf.gather(hidden, last, batch_dims=1),
            "weight": sum_words(weights),
            "head": sum_words(weights * hidden),
            "sentence": tf.where(is_word, tf.gather(features["links"], first, batch_dims=1), -1),
            "speaker": tf.gather(features["speaker_ids"], first, batch_dims=1),
        }

    def _mention_scores(self, words, drop):
        """(float scores, bool whether there is such a span): [batch, long_len, max_span_width]."""
        number = self.max_span_width
        widths = tf.eye(number)
        following = functools.partial(_following, number=number)
        # Kernel before sum: the mean of projected words is the projected mean.
        heads = tf.cumsum(following(self.mention_heads(words["head"])), axis=2)
        weights = tf.cumsum(following(words["weight"]), axis=2)
        hidden = tf.nn.relu(
            self.mention_start(words["start"])[:, :, tf.newaxis]
            + following(self.mention_end(words["end"]))
            + tf.math.divide_no_nan(heads, weights)
            + self.mention_width(drop(self.width_embedding(widths)))
        )
        scores = self.mention_score(drop(hidden)) + self.width_prior(widths)
        is_span = tf.equal(following(words["sentence"], fill=-1), words["sentence"][..., None])
        is_span &= following(words["is_word"], fill=False) & words["is_word"][..., None]
        return scores[..., 0], is_span

    def _best_spans(self, scores, is_span, num_words):
        """The spans that are kept, by their place in [long_len * max_span_width].

        Returns:
            int32 [batch, k] places, bool [batch, k] mask, and int32 [batch, k] first words and
            widths minus 1; in the order of the text.
        """
        batch, length, number = tf.unstack(tf.shape(scores))
        is_kept = without_crossing(scores, is_span)
        flat = tf.reshape(tf.where(is_kept, scores, MASKED_LOGIT), [batch, -1])
        _, best = tf.math.top_k(tf.stop_gradient(flat), self._num_spans(length))
        mask = tf.gather(tf.reshape(is_kept, [batch, -1]), best, batch_dims=1)
        mask &= tf.range(tf.shape(best)[1]) < self._num_spans(num_words)[:, tf.newaxis]
        nowhere = length * number
        places = tf.sort(tf.where(mask, best, nowhere), axis=1)
        mask = places < nowhere
        places = tf.where(mask, places, 0)
        return places, mask, places // number, places % number

    def _vectors(self, words, starts, widths, drop):
        """The representations of spans: float [batch, k, span_size]."""
        offsets = tf.range(self.max_span_width)
        is_in = offsets <= widths[..., tf.newaxis]
        places = tf.where(is_in, starts[..., tf.newaxis] + offsets, 0)
        weights = tf.gather(words["weight"], places, batch_dims=1)  # [batch, k, max_span_width, 1]
        is_in = tf.cast(is_in, tf.float32)[..., tf.newaxis]
        heads = tf.reduce_sum(tf.gather(words["head"], places, batch_dims=1) * is_in, axis=2)
        heads = tf.math.divide_no_nan(heads, tf.reduce_sum(weights * is_in, axis=2))
        parts = [
            tf.gather(words["start"], starts, batch_dims=1),
            tf.gather(words["end"], starts + widths, batch_dims=1),
            drop(self.width_embedding(tf.one_hot(widths, self.max_span_width))),
            heads,
        ]
        return tf.concat(parts, axis=-1)

    def _antecedents(self, vectors, scores, mask, drop):
        """The best antecedents of each span, and the parts of their scores that are cheap.

        Returns:
            float [batch, k, a] scores; and int32, likewise, the numbers of the spans.
        """
        places = tf.range(tf.shape(scores)[1])
        distances = places[:, tf.newaxis] - places
        total = tf.matmul(self.coarse(drop(vectors)), drop(vectors), transpose_b=True)
        total += scores[:, :, tf.newaxis] + scores[:, tf.newaxis]
        total += self.distance_prior(_distance_buckets(distances))[..., 0]
        is_earlier = (distances > 0) & mask[:, :, tf.newaxis] & mask[:, tf.newaxis]
        total = tf.where(is_earlier, total, MASKED_LOGIT)
        number = tf.minimum(self.max_top_antecedents, tf.shape(scores)[1])
        return tf.math.top_k(total, number)

    def _pair_features(self, words, features, starts, antecedents, drop):
        """Whether the speaker is the same, distance and genre: float [batch, k, a, 3 * size]."""
        speakers = tf.gather(words["speaker"], starts, batch_dims=1)
        is_same = tf.equal(tf.gather(speakers, antecedents, batch_dims=1), speakers[..., None])
        distances = tf.range(tf.shape(starts)[1])[:, tf.newaxis] - antecedents
        genres = self.genre_embedding(tf.one_hot(features["genres"], len(GENRES)))[:, :, None]
        speaker = self.speaker_embedding(tf.one_hot(tf.cast(is_same, tf.int32), 2))
        parts = [
            speaker,
            tf.broadcast_to(genres, tf.shape(speaker)),
            self.distance_embedding(_distance_buckets(distances)),
        ]
        return drop(tf.concat(parts, axis=-1))

    def _pair_scores(self, vectors, antecedents, pairs, drop):
        """What pairs of spans say: float [batch, k, a]."""
        products = vectors[:, :, tf.newaxis] * tf.gather(vectors, antecedents, batch_dims=1)
        hidden = tf.nn.relu(
            self.pair_span(vectors)[:, :, tf.newaxis]
            + tf.gather(self.pair_antecedent(vectors), antecedents, batch_dims=1)
            + self.pair_product(products)
            + self.pair_features(pairs)
        )
        return self.pair_score(drop(hidden))[..., 0]

    def _refined(self, vectors, scores, antecedents):
        """Spans that have taken something over from their antecedents (Lee et al. 2018)."""
        shares = tf.nn.softmax(tf.concat([tf.zeros_like(scores[..., :1]), scores], axis=-1))
        others = tf.gather(vectors, antecedents, batch_dims=1)
        attended = tf.einsum("bka,bkad->bkd", shares[..., 1:], others)
        attended += shares[..., :1] * vectors
        gate = tf.sigmoid(self.gate(tf.concat([vectors, attended], axis=-1)))
        return gate * attended + (1.0 - gate) * vectors


def _distance_buckets(distances):
    """The buckets 0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more, as one-hot vectors."""
    buckets = tf.reduce_sum(tf.cast(distances[..., tf.newaxis] >= _BUCKETS, tf.int32), axis=-1)
    return tf.one_hot(buckets, len(_BUCKETS) + 1)


def loss(outputs, features):
    """The negative marginal log-likelihood of all right antecedents, summed over each row's spans.

    Source: Lee et al. 2017 (arXiv:1707.07045), section 5. A span that is no mention, or has no
    right antecedent among those it is compared with, is to have none.

    Args:
        outputs: of `CoreferenceModel`.
        features: dict of int [batch, long_len] `mention_starts`, `mention_ends` and
            `mention_clusters`; -1 behind the last mention.
    Returns:
        dict with `loss`, float32 [], the mean over the rows.
    """
    starts, ends, mask = outputs["starts"], outputs["ends"], outputs["starts"] >= 0
    is_mention = tf.equal(starts[..., tf.newaxis], features["mention_starts"][:, tf.newaxis])
    is_mention &= tf.equal(ends[..., tf.newaxis], features["mention_ends"][:, tf.newaxis])
    clusters = tf.where(is_mention, features["mention_clusters"][:, tf.newaxis], -1)
    clusters = tf.reduce_max(clusters, axis=-1)  # [batch, k]
    of_antecedents = tf.gather(clusters, outputs["antecedents"], batch_dims=1)
    is_right = tf.equal(of_antecedents, clusters[..., tf.newaxis]) & (of_antecedents >= 0)
    is_right &= outputs["scores"] > 0.5 * MASKED_LOGIT
    has_none = tf.logical_not(tf.reduce_any(is_right, axis=-1, keepdims=True))
    logits = tf.concat([tf.zeros_like(outputs["scores"][..., :1]), outputs["scores"]], axis=-1)
    right = tf.where(tf.concat([has_none, is_right], axis=-1), logits, 2.0 * MASKED_LOGIT)
    costs = tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_logsumexp(right, axis=-1)
    return {"loss": tf.reduce_mean(tf.reduce_sum(tf.where(mask, costs, 0.0), axis=-1))}
