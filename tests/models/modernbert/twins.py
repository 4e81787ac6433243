"""A twin of `EtcModernBertModel` in NumPy, and a batch with all that structures have."""

import math

import numpy as np
import tensorflow as tf

from etcmodel.checkpoints import release_names
from etcmodel.models import input_utils
from etcmodel.ops import relations
from tests.models.modernbert import small

LONG, GLOBAL, DISTANCE = 9, 3, 2
CROSS, LINKED, OTHER_SEGMENT, CITES, MENTIONS = range(2 * DISTANCE + 1, 2 * DISTANCE + 6)
LINKS = np.array([[0, 0, 0, 1, 1, 2, 2, -1, 2], [0, 1, 1, 1, 1, 1, -1, -1, -1]])
EXAMPLES = np.array([[1] * 9, [1] * 6 + [0] * 3])
GLOBAL_EXAMPLES = np.array([[1, 1, 1], [1, 1, 0]])
EDGES = [[[0, 2], [2, 1]], [[1, 0], [-1, -1]]]
PAIRS = [[[7, 0], [3, 2]], [[0, 1], [-1, -1]]]
SEGMENTS = np.array([[0, 0, 1], [0, 0, 0]])


def structure_of(use_hard_g2l_mask=False):
    made = input_utils.make_structure_from_example_ids(
        EXAMPLES, GLOBAL_EXAMPLES, LINKS, DISTANCE, use_hard_g2l_mask=use_hard_g2l_mask
    )
    cites = relations.GlobalEdges(tf.constant(EDGES), "cites", CITES)
    mentions = relations.LinkPairs(tf.constant(PAIRS), "mentions", MENTIONS)
    made = made._replace(global_segment_ids=tf.constant(SEGMENTS))
    return made.with_relations(cites, mentions)


def inputs_of(**options):
    return {
        "token_ids": small.ids(LONG, 2),
        "global_token_ids": small.ids(GLOBAL, 2, seed=1),
        "segment_ids": np.tile([0, 1, 2], [2, 3]),
        "global_segment_ids": np.array([[3, 4, 5]] * 2),
        "structure": structure_of(**options),
    }


class Twin:
    """The same model of one row of a batch, token by token and pair by pair.

    After a call, `probs` has the attention of each layer, [queries, heads, keys], and `states` what
    goes through the layers, each of both inputs, the long one first.
    """

    def __init__(self, model, row, use_hard_g2l_mask=False):
        self.config, self.row, self.is_hard = model.config, row, use_hard_g2l_mask
        self.weights = {
            name.removeprefix("etc_modernbert/"): x.numpy().astype(float)
            for name, x in release_names(model).items()
        }

    def __call__(self, token_ids, global_token_ids, segment_ids, global_segment_ids, **_):
        tokens = [*token_ids[self.row], *global_token_ids[self.row]]
        segments = [*segment_ids[self.row], *global_segment_ids[self.row]]
        table = self.weights["tok_embeddings/embedding_table"]
        hidden = table[tokens] + self.weights["segment_emb_lookup/embedding_table"][segments]
        hidden = self.normalized("embedding_norm", hidden)
        self.states, self.probs = [hidden], []
        for index, kind in enumerate(self.config.layer_kinds):
            attention = f"layers/attention_layer_{index}"
            inputs = self.normalized(f"{attention}/layer_norm", hidden) if index else hidden
            hidden = hidden + self.attended(f"{attention}/self_attention", kind, inputs)
            layer = f"layers/feed_forward_layer_{index}"
            inner = self.normalized(f"{layer}/layer_norm", hidden)
            inner = inner @ self.weights[f"{layer}/feed_forward/inner/kernel"]
            act, gate = np.split(inner, 2, axis=-1)
            act *= 0.5 * (1 + np.vectorize(math.erf)(act / math.sqrt(2)))
            hidden = hidden + act * gate @ self.weights[f"{layer}/feed_forward/output/kernel"]
            self.states.append(hidden)
        hidden = self.states[-1] = self.normalized("final_norm", hidden)
        return hidden[:LONG], hidden[LONG:]

    def normalized(self, name, x):
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered**2).mean(-1, keepdims=True)
        gamma = self.weights[f"{name}/gamma"]
        return centered / np.sqrt(variance + self.config.norm_eps) * gamma

    def attended(self, name, kind, inputs):
        heads, length = self.config.num_attention_heads, LONG + GLOBAL
        joint = (inputs @ self.weights[f"{name}/qkv/kernel"]).reshape(length, 3, heads, -1)
        probs = np.zeros([length, heads, length])
        for query, head in np.ndindex(length, heads):
            seen = [key for key in range(length) if self.sees(kind, query, key)]
            logits = [self.logit(name, kind, joint[:, :, head], head, query, x) for x in seen]
            weights = np.exp(logits - np.max(logits))
            probs[query, head, seen] = weights / weights.sum()
        self.probs.append(probs)
        mixed = np.einsum("qhk,khs->qhs", probs, joint[:, 2])
        return mixed.reshape(length, -1) @ self.weights[f"{name}/output/kernel"]

    def sees(self, kind, query, key):
        examples = [*EXAMPLES[self.row], *GLOBAL_EXAMPLES[self.row]]
        if examples[query] != examples[key]:
            return False
        if query < LONG and key < LONG:
            return kind == "full_attention" or abs(key - query) <= self.config.radius
        if query >= LONG > key and self.is_hard:
            return self.label(query, key) == LINKED or LINKS[self.row][key] == query - LONG
        return True

    def label(self, query, key):
        """The label of a pair with a global token."""
        if query >= LONG and key >= LONG:
            query, key = query - LONG, key - LONG
            if [query, key] in EDGES[self.row]:
                return CITES
            if SEGMENTS[self.row][query] != SEGMENTS[self.row][key]:
                return OTHER_SEGMENT
            distance = min(abs(key - query), DISTANCE)
            return distance + DISTANCE * (key < query)
        long, global_ = min(query, key), max(query, key) - LONG
        if [long, global_] in PAIRS[self.row]:
            return MENTIONS
        return LINKED if LINKS[self.row][long] == global_ else CROSS

    def logit(self, name, kind, joint, head, query, key):
        queries, keys = joint[query, 0], joint[key, 1]
        if query < LONG and key < LONG:
            theta = self.config.thetas[kind]
            return self.turned(queries, query, theta) @ self.turned(keys, key, theta) / 2
        side, label = "long" if query < LONG else "global", self.label(query, key)
        vector = self.weights[f"{name}/{side}_labels/relative_emb_table"][label, head]
        bias = self.weights[f"{name}/{side}_labels/relative_bias_table"][label, head]
        return (queries @ (keys + vector) + bias) / 2  # The root of the size of a head.

    def turned(self, x, position, theta):
        first, second = np.split(x, 2)
        angles = position * theta ** (-2.0 * np.arange(len(first)) / len(x))
        points = (first + 1j * second) * np.exp(1j * angles)
        return np.concatenate([points.real, points.imag])
