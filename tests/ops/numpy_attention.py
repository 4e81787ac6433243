"""The attention of the library, token by token: slow, and plain enough to be checked by eye.

Written from the paper (Ainslie et al. 2020, section 3.1 and appendix A), without batches of
matrices: the library's blocks, skews and broadcasts have no counterpart here.
"""

import dataclasses

import numpy as np

from tests.models.numpy_side_inputs import position_label

MASKED_LOGIT = -10000.0


@dataclasses.dataclass
class Labels:
    """emb_table: [relative_vocab_size, num_heads, size]; bias_table: [.., num_heads]."""

    emb_table: np.ndarray
    bias_table: np.ndarray


@dataclasses.dataclass
class Side:
    """Keys that every query sees; shapes as `etcmodel.ops.attention.SideKeys`."""

    keys: np.ndarray
    values: np.ndarray
    att_mask: np.ndarray | None = None
    att_ids: np.ndarray | None = None


@dataclasses.dataclass
class Pairs:
    """What a structure says of all pairs: [batch, tokens, tokens], rows are queries.

    Global tokens come first. `exists` is False for long tokens beyond each other's radius, which
    are never seen; of the others `is_allowed` tells who may attend. `labels` is None without them.
    """

    exists: np.ndarray
    is_allowed: np.ndarray
    labels: np.ndarray | None


def attend(queries, keys, values, att_mask=None, att_ids=None, labels=None):
    """Every query over every key: float64 [batch, query_len, num_heads, value_size]."""

    def pairs(batch, query):
        for key in range(keys.shape[1]):
            yield _pair(batch, query, key, keys, values, key, att_mask, att_ids)

    return _attend(queries, values, pairs, labels)


def local_attend(
    queries, keys, values, local_radius, att_mask=None, att_ids=None, side=None, labels=None
):
    """Every query over the keys within the radius and all side keys, in one softmax."""
    long_len = queries.shape[1]

    def pairs(batch, query):
        for column in range(2 * local_radius + 1):
            key = query + column - local_radius
            if 0 <= key < long_len:
                yield _pair(batch, query, key, keys, values, column, att_mask, att_ids)
        for key in range(0 if side is None else side.keys.shape[1]):
            yield _pair(batch, query, key, side.keys, side.values, key, side.att_mask, side.att_ids)

    return _attend(queries, values, pairs, labels)


def structured_attend(queries, keys, values, pairs, labels=None):
    """Global and long tokens by `Pairs`; all arrays hold the global tokens first."""

    def seen(batch, query):
        for key in np.flatnonzero(pairs.exists[batch, query]):
            yield _pair(batch, query, key, keys, values, key, pairs.is_allowed, pairs.labels)

    return _attend(queries, values, seen, labels)


def pairs_of(structure, local_radius):
    """The `Pairs` of an `ops.structure.GlobalLocalStructure`."""
    batch_size, long_len = np.shape(structure.long_example_ids)
    global_len = np.shape(structure.global_example_ids)[1]
    shape = (batch_size, global_len + long_len, global_len + long_len)
    exists, is_allowed, labels = (np.zeros(shape, kind) for kind in (bool, bool, int))
    for batch, query, key in np.ndindex(shape):
        example = _Example(structure, batch, global_len)
        at = batch, query, key
        exists[at] = min(query, key) < global_len or abs(query - key) <= local_radius
        is_allowed[at] = example.sees(query, key)
        labels[at] = example.label(query, key)
    has_labels = structure.max_distance or any(
        relation.label is not None or relation.kind.endswith("Labels")
        for relation in structure.relations
    )
    return Pairs(exists, is_allowed, labels if has_labels else None)


@dataclasses.dataclass
class _Example:
    """One row of a structure; tokens are counted with the global ones first."""

    structure: object
    batch: int
    global_len: int

    def sees(self, query, key):
        structure = self.structure
        if min(query, key) >= self.global_len:
            return self._same("long_segment_ids", query, key) and self._is_led(query, key)
        if self._id("example_ids", query) != self._id("example_ids", key):
            return False
        if max(query, key) < self.global_len:
            return self._is_led(query, key)
        is_hard, ignored = structure.use_hard_g2l_mask, structure.ignore_hard_g2l_mask
        if query >= self.global_len:
            is_hard, ignored = structure.use_hard_l2g_mask, structure.ignore_hard_l2g_mask
        if not is_hard:
            return True
        if ignored is not None and ignored[self.batch, self._place(query)]:
            return True
        return self._are_linked(structure.links, query, key) or any(
            self._related(x, query, key) is not None for x in structure.relations if x.is_hard
        )

    def _is_led(self, query, key):
        """Within one of the inputs: whether hard relations of edges, if there are any, allow it."""
        kinds = ("GlobalEdges", "GlobalLabels"), ("LongEdges", "LongLabels")
        hard = [
            relation
            for relation in self.structure.relations
            if relation.is_hard and relation.kind in kinds[query >= self.global_len]
        ]
        if not hard or query == key:
            return True
        return any(self._related(relation, query, key) is not None for relation in hard)

    def label(self, query, key):
        label = self._first_label(query, key)
        for relation in self.structure.relations:
            other = self._related(relation, query, key)
            if other is not None and other != -1:
                label = other
        return label

    def _related(self, relation, query, key):
        """None if the relation does not hold, or else the label, -1 for none."""
        sides = ["global" if token < self.global_len else "long" for token in (query, key)]
        place, other = self._place(query), self._place(key)
        ids = relation.ids[self.batch]
        label = -1 if relation.label is None else relation.label
        if relation.kind.startswith("Link"):
            if sides == ["global", "long"]:
                place, other = other, place
            if sides[0] == sides[1]:
                return None
            if relation.kind == "LinkIds":
                return label if ids[place] == other else None
            return label if [place, other] in ids.tolist() else None
        if sides != 2 * [relation.kind.removesuffix("Edges").removesuffix("Labels").lower()]:
            return None
        if relation.kind.endswith("Edges"):
            return label if [place, other] in ids.tolist() else None
        column = other
        if sides[0] == "long":
            column += ids.shape[1] // 2 - place
            if not 0 <= column < ids.shape[1]:
                return None
        return ids[place, column] if ids[place, column] >= 0 else None

    def _first_label(self, query, key):
        """Without named relations."""
        structure = self.structure
        k = structure.max_distance
        if max(query, key) < self.global_len:
            if structure.global_segment_ids is not None and not self._same(
                "global_segment_ids", query, key
            ):
                return 2 * k + 3
            return position_label(query, key, k)
        if min(query, key) >= self.global_len:
            return position_label(query, key, k)
        links = (*structure.links, *structure.label_links)
        return 2 * k + 2 if self._are_linked(links, query, key) else 2 * k + 1

    def _are_linked(self, links, one, other):
        global_token, long_token = sorted([one, other])
        place = self._place(long_token)
        return any(ids[self.batch, place] == global_token for ids in links)

    def _same(self, field, query, key):
        ids = getattr(self.structure, field)[self.batch]
        return ids[self._place(query)] == ids[self._place(key)]

    def _id(self, field, token):
        side = "global" if token < self.global_len else "long"
        return getattr(self.structure, f"{side}_{field}")[self.batch, self._place(token)]

    def _place(self, token):
        """Its index within its own input."""
        return token if token < self.global_len else token - self.global_len


def _pair(batch, query, key, keys, values, column, att_mask, att_ids):
    """Key and value [num_heads, size], whether they may be seen, and the label (or None)."""
    is_allowed = att_mask is None or bool(att_mask[batch, query, column])
    label = None if att_ids is None else att_ids[batch, query, column]
    return keys[batch, key], values[batch, key], is_allowed, label


def _attend(queries, values, pairs, labels):
    batch_size, query_len, num_heads, _ = queries.shape
    output = np.zeros([batch_size, query_len, num_heads, values.shape[-1]])
    for batch, query, head in np.ndindex(batch_size, query_len, num_heads):
        seen = list(pairs(batch, query))
        logits = [_logit(queries[batch, query], pair, head, labels) for pair in seen]
        weights = np.exp(np.array(logits) - max(logits))
        probs = weights / weights.sum()
        output[batch, query, head] = sum(
            prob * value[head] for prob, (_, value, _, _) in zip(probs, seen, strict=True)
        )
    return output


def _logit(query, pair, head, labels):
    key, _, is_allowed, label = pair
    logit = np.dot(query[head].astype(float), key[head])
    if label is not None and labels is not None:
        logit += np.dot(query[head], labels.emb_table[label, head])
        logit += labels.bias_table[label, head]
    logit /= np.sqrt(len(query[head]))
    return logit if is_allowed else logit + MASKED_LOGIT
