"""GenBERT over a GMAT, slowly in NumPy: a token at a time, all pairs in one mask."""

import math

import numpy as np

from etcmodel.models.gmat import GmatForConditionalGeneration, GmatSeq2SeqConfig
from tests.models.gmat import small
from tests.models.random_weights import built, spread

START, END = 28, 29


def config(**changes):
    tokens = {"decoder_start_token_id": START, "eos_token_id": END}
    return GmatSeq2SeqConfig.of_encoder(small.config(**changes), **tokens)


def model(made_by=GmatForConditionalGeneration, policy=None, **changes):
    """A built model, whose weights depend on nothing but their shapes and order."""
    return built(made_by(config(**changes), dtype=policy), spread)


class Twin:
    """The model's function of one row, by its weights.

    Args:
        made: built `GmatForConditionalGeneration`.
    """

    def __init__(self, made):
        self.config = made.config
        self.weights = {
            x.name.partition("/")[2].removesuffix(":0"): x.numpy().astype(np.float64)
            for x in made.weights
        }

    def logits(self, ids, decoder_ids):
        """float64 [target_length, vocab_size]."""
        encoded = self.transform(self.encoded(ids), "encoder")
        decoded = self.transform(self.decoded(encoded, decoder_ids), "decoder")
        table = self.weights["encoder/gmat/embeddings/word_embeddings/embedding_table"]
        return decoded @ table.T + self.weights["logits_bias"]

    def encoded(self, ids):
        """Of tokens, then of the memory: [length + num_memory_tokens, hidden_size]."""
        config, length = self.config, len(ids)
        hidden = self.embedded(ids, 0)
        if config.num_memory_tokens:
            memory = self.table("memory")
            hidden = np.concatenate([hidden, self.norm(memory, "embeddings/layer_norm")])
        chunks = np.arange(length) // config.chunk_size
        is_seen = np.ones([len(hidden)] * 2, bool)
        is_seen[:length, :length] = chunks[:, np.newaxis] == chunks
        for index in range(config.num_hidden_layers):
            context = self.attention(index, hidden, hidden, is_seen)
            if config.has_own_memory_projections:
                of_memory = self.attention(index, hidden, hidden, is_seen, "memory_")
                context = np.concatenate([context[:length], of_memory[length:]])
            hidden = self.feed_forward(index, self.added(index, hidden, context))
        return hidden

    def decoded(self, encoded, ids):
        hidden = self.embedded(ids, 1)
        before = np.tril(np.ones([len(ids)] * 2, bool))
        everything = np.ones([len(ids), len(encoded)], bool)
        for index in range(self.config.num_hidden_layers):
            inputs = hidden
            own = self.added(index, inputs, self.attention(index, inputs, inputs, before))
            cross = self.attention(index, own, encoded, everything)
            # The input is added, not what the attention to the decoder gave.
            hidden = self.feed_forward(index, self.added(index, inputs, cross))
        return hidden

    def embedded(self, ids, token_type):
        positions = np.arange(len(ids))
        period = self.config.position_period
        hidden = self.table("word")[ids] + self.table("position")[positions % period]
        hidden += self.table("quotient")[positions // period] + self.table("token_type")[token_type]
        return self.norm(hidden, "embeddings/layer_norm")

    def attention(self, index, x, others, is_seen, own=""):
        """The context through the output's projection; `own` before the names of projections."""

        def dense(values, part):
            prefix = own if f"{self.at(index)}/{own}{part}/kernel" in self.weights else ""
            return self.dense(values, f"{self.at(index)}/{prefix}{part}")

        queries, keys, values = dense(x, "query"), dense(others, "key"), dense(others, "value")
        size, contexts = queries.shape[1] // self.config.num_attention_heads, []
        for start in range(0, queries.shape[1], size):
            part = slice(start, start + size)
            scores = queries[:, part] @ keys[:, part].T / math.sqrt(size)
            scores = np.where(is_seen, scores, -np.inf)
            probs = np.exp(scores - scores.max(-1, keepdims=True))
            contexts.append(probs / probs.sum(-1, keepdims=True) @ values[:, part])
        return dense(np.concatenate(contexts, axis=1), "output_projection")

    def added(self, index, x, context):
        return self.norm(x + context, f"layers/attention_layer_{index}/layer_norm")

    def feed_forward(self, index, x):
        at = f"layers/feed_forward_layer_{index}"
        inner = gelu(self.dense(x, f"encoder/gmat/{at}/dense_layers/layer_0"))
        outer = self.dense(inner, f"encoder/gmat/{at}/dense_layers/layer_1")
        return self.norm(x + outer, f"{at}/layer_norm")

    def transform(self, x, side):
        inner = gelu(self.dense(x, f"{side}/transform/dense"))
        return self.norm(inner, f"{side}/transform/layer_norm", prefix="")

    def dense(self, x, name):
        return x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def norm(self, x, name, prefix="encoder/gmat/"):
        centered = x - x.mean(-1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
        gamma, beta = (self.weights[f"{prefix}{name}/{part}"] for part in ("gamma", "beta"))
        return scaled * gamma + beta

    def table(self, name):
        return self.weights[f"encoder/gmat/embeddings/{name}_embeddings/embedding_table"]

    @staticmethod
    def at(index):
        return f"encoder/gmat/layers/attention_layer_{index}/attention"


def gelu(x):
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))
