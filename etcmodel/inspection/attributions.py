"""How much each token contributes to a score: integrated gradients.

Source: Sundararajan, Taly, Yan 2017, "Axiomatic Attribution for Deep Networks" (arXiv:1703.01365).
"""

import dataclasses

import numpy as np
import tensorflow as tf

from etcmodel.inspection import calls
from etcmodel.ops.interception import intercept

# Allowed rounding error, relative to the sum of the attributions' magnitudes.
_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class Attributions:
    """The contributions of tokens to a score, in units of the score.

    Attributes:
        tokens: tuple of float32 [batch, len], one for each stream of tokens: (long, global) for an
            `EtcModel`; (input, decoder's) for a model with a decoder; (long,) for others, or (long,
            memory) with GMAT's `memory_ids`.
        score: float32 [batch].
        baseline_score: float32 [batch]. The score without the tokens.

    >>> from etcmodel import inspection
    >>> inspection.Attributions((np.array([[0.5, 1.5]]),), np.array([2.0]), np.array([0.0])).score
    array([2.])
    """

    tokens: tuple
    score: np.ndarray
    baseline_score: np.ndarray

    @property
    def completeness_error(self):
        """float32 [batch]. The sum of all attributions minus the difference of the scores."""
        return sum(x.sum(1) for x in self.tokens) - (self.score - self.baseline_score)


def integrated_gradients(model, inputs, score, *, num_steps=50, baseline_id=None, tolerance=0.05):
    """Integrated gradients of a score with respect to the token embeddings.

    The gradient with respect to the embeddings of all tokens, including global ones and a
    decoder's, is integrated along the straight line from the baseline to the tokens' own embeddings
    (section 3 of the paper), by Gauss-Legendre quadrature. Segments, positions, masks and labels
    stay unchanged.

    Args:
        model: `EtcModel`, Longformer, GMAT, LED, LongT5 or PEGASUS-X, or a model that holds one.
        inputs: dict. See `hidden_states`.
        score: function from the model's outputs to a float tensor [batch], such as a logit of each
            example; examples must be independent of each other.
        num_steps: int. Number of points at which the gradient is computed.
        baseline_id: int or None. Id of the token whose embedding is the baseline, such as "[MASK]".
            None: zeros.
        tolerance: float or None. Maximum relative difference between the attributions' sum and the
            difference of the scores, which should be equal (completeness, proposition 1 of the
            paper), apart from rounding. None: not checked.
    Returns:
        `Attributions`.
    Raises:
        ValueError: if the sum is outside the tolerance (use more steps); if the score has another
            shape, or its gradient does not reach the embeddings; inside a `tf.function`.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> batch, options = model.processor("Good!"), {"num_steps": 4, "tolerance": None}
    >>> found = inspection.integrated_gradients(model, batch, lambda x: x[:, 1], **options)
    >>> found.tokens[0].shape, found.score
    ((1, 4), array([3.], dtype=float32))
    """
    calls.check_eager()
    if num_steps < 1:
        raise ValueError(f"`num_steps` must be at least 1. Received: {num_steps}")
    path = _Path(model, inputs, score, baseline_id)
    scores = [path.score_at(x).numpy() for x in (1.0, 0.0)]
    points, weights = np.polynomial.legendre.leggauss(num_steps)
    sums = None
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        gradients = path.slopes(tf.constant(point, tf.float32))
        gradients = [weight * x.numpy().astype(np.float64) for x in gradients]
        sums = gradients if sums is None else [x + y for x, y in zip(sums, gradients, strict=True)]
    attributions = Attributions(tuple(x.astype(np.float32) for x in sums), *scores)
    if tolerance is not None:
        _check_completeness(attributions, tolerance, num_steps)
    return attributions


class _Path:
    """The path from the baseline (0) to the tokens' own embeddings (1)."""

    def __init__(self, model, inputs, score, baseline_id):
        self._model, self._inputs, self._score = model, inputs, score
        self._lookup, self._baseline_id = calls.token_lookup_of(model), baseline_id
        if baseline_id is not None and baseline_id not in range(self._lookup.vocab_size):
            raise ValueError(
                f"`baseline_id` must be from 0 to {self._lookup.vocab_size - 1}. "
                f"Received: {baseline_id}"
            )
        self.slopes = tf.function(self._slopes)

    def score_at(self, point):
        """float32 [batch]."""
        return self._run(point, lambda x: x, [])

    def _slopes(self, point):
        """The derivative of the score along the path, by token: list of float32 [batch, len]."""
        ways, embeddings = [], []
        with tf.GradientTape(watch_accessed_variables=False) as tape:

            def watch(x):
                tape.watch(x)
                embeddings.append(x)
                return x

            scores = self._run(point, watch, ways)
        gradients = tape.gradient(scores, embeddings)
        if all(x is None for x in gradients):
            raise ValueError("The gradient of `score` does not reach the token embeddings.")
        return [
            tf.zeros(way.shape[:2]) if gradient is None else tf.reduce_sum(gradient * way, -1)
            for gradient, way in zip(gradients, ways, strict=True)
        ]

    def _run(self, point, watch, ways):
        """The score with the embeddings at a point of the path; `watch` receives these embeddings.

        Args:
            point: float, or float32 scalar.
            watch: function from float32 [batch, len, size] to the same.
            ways: list that receives the differences from the baseline to the tokens' own
                embeddings, of the same shape.
        Returns:
            float32 [batch].
        """

        def move(lookup, call, token_ids, *args, **kwargs):
            own = call(token_ids, *args, **kwargs)
            baseline = tf.zeros_like(own, tf.float32)
            if self._baseline_id is not None:
                baseline += tf.cast(lookup(tf.constant([self._baseline_id])), tf.float32)
            ways.append(tf.cast(own, tf.float32) - baseline)
            return tf.cast(watch(baseline + point * ways[-1]), own.dtype)

        with intercept(self._lookup, by=move):
            scores = self._score(calls.call_model(self._model, self._inputs))
        if not ways:
            raise ValueError("The model did not look up any token embeddings.")
        scores = tf.convert_to_tensor(scores)
        if scores.shape.rank != 1 or scores.shape[0] != ways[0].shape[0]:
            raise ValueError(
                f"`score` must give one number for each of {ways[0].shape[0]} examples. Received "
                f"shape {scores.shape}"
            )
        return tf.cast(scores, tf.float32)


def _check_completeness(attributions, tolerance, num_steps):
    difference = attributions.score - attributions.baseline_score
    magnitude = sum(np.abs(x).sum(1) for x in attributions.tokens)
    allowed = tolerance * np.abs(difference) + _ROUNDING * magnitude
    errors = np.abs(attributions.completeness_error)
    for example in np.flatnonzero(~(errors <= allowed)):
        total = difference[example] + attributions.completeness_error[example]
        raise ValueError(
            f"The attributions of example {example} sum to {total:.6g}, and the scores differ by "
            f"{difference[example]:.6g}, which is more than `tolerance` {tolerance} apart. Take "
            f"more steps than {num_steps}, or another baseline."
        )
