"""Explains a model's inputs: a table of tokens, who attends to whom and why, and a picture.

Every system has a table of the tokens of a row, a sentence on why one of them attends to another,
and a picture; its class defines its specifics. Pairs of tokens have labels: -1 where the query may
not attend to the key, else one from the explanation's legend. `g2g`, `g2l`, `l2g` and `l2l` are the
pieces of the attention, the query's side first; a model without global tokens besides those of the
text has only `l2l`.
"""

import abc
import copy
import dataclasses
import functools
import re

import numpy as np

from etcmodel import atomic_files, attention_picture, shown_values
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = [
    "BigBirdExplanation",
    "Explanation",
    "GmatExplanation",
    "LongT5Explanation",
    "LongformerExplanation",
    "ModernBertExplanation",
    "PatternExplanation",
    "PegasusXExplanation",
    "RowExplanation",
    "Rules",
    "encoding_of",
    "of_seq2seq",
]

_MASKED = attention_picture.MASKED
_EXCERPT = 32  # Characters.
_MOST_LINES = 100  # In a table with a line for each token.
_READABLE = 25  # Tokens whose names all fit into a picture.
_USUAL_WINDOW, _USUAL_CHUNK = 512, 512
_USUAL_BLOCK, _USUAL_LONGEST_FULL = 64, 704
_PLACE = re.compile(r"([lg])(\d+)")
_IDS = {"l": "token_ids", "g": "global_token_ids"}
_EXAMPLES = {"l": "example_ids", "g": "global_example_ids"}
_SAME, _FIRST = 0, RelationLabels(0).num_reserved  # Labels of a row: in its window, and others.
_PAIRS = {"g2g": "edges", "g2l": "links", "l2g": "links", "l2l": "long_edges"}


class _Explained(abc.ABC):
    """Explains one row of a batch: the base of all systems' explanations.

    A subclass defines the table's columns, and which tokens attend to which.

    Args:
        length: int. Long tokens of the row, including padding.
        num_global: int. Further tokens, of the batch or the model.
        num_blocks: int. The number of blocks for `zoomed`, counted from 0.
        encoding: `Encoding` of the text in the table; None if it is not known.
    """

    columns = ()  # Of the table.
    local_radius = None

    def __init__(self, length, num_global, num_blocks, encoding=None):
        self.encoding = encoding
        self._sizes = {"g": num_global, "l": length}
        self._shown = {side: np.arange(size) for side, size in self._sizes.items()}
        self._num_blocks = num_blocks

    def __str__(self):
        lines = self._head()
        if any(len(self._shown[side]) < size for side, size in self._sizes.items()):
            told = (f"{len(self._shown[x])} of {n} {y}tokens" for x, n, y in self._named_sizes())
            lines.append(f"shown: {', '.join(told)}")
        return "\n".join([*lines, *self._tables()])

    def zoomed(self, tokens=None, blocks=None):
        """Returns the explanation of a part of the row, with a table and picture of that part.

        Args:
            tokens: range, or sequence of int: positions of long tokens. All global tokens are
                shown.
            blocks: range, or sequence of int, instead of `tokens`: blocks as numbered in the table.
                For ETC they are the global tokens, "g3" is 3, with the long tokens linked to them;
                for GMAT the chunks; for LongT5 and PEGASUS-X the blocks; for Longformer the texts,
                the question first.
        Raises:
            ValueError: naming the option and its possible values.
        """
        if tokens is not None and blocks is not None:
            raise ValueError("Give `tokens` or `blocks`, one of the two.")
        if tokens is not None:
            return self._part("tokens", tokens)
        part = copy.copy(self)
        if blocks is not None:
            part._shown = self._in_blocks(_chosen("blocks", blocks, self._num_blocks))
            if not len(part._shown["l"]):
                raise ValueError(
                    f"`blocks` must have tokens of the text. Received: {shown_values.shown(blocks)}"
                )
        return part

    def _part(self, option, tokens):
        """The explanation of some long tokens, given by the option of this name."""
        part = copy.copy(self)
        part._shown = {**self._shown, "l": _chosen(option, tokens, self._sizes["l"])}
        return part

    def why(self, query, key):
        """Explains in a sentence why a token attends to another one, or does not.

        Args:
            query, key: the names of tokens in the table: for ETC str, such as "l12" or "g3", for
                other systems int.
        Raises:
            ValueError: if there is no such token.
        """
        ends = [self._parse(name, value) for name, value in (("query", query), ("key", key))]
        names = [f"{x} {self._token(*end)!r}" for x, end in zip((query, key), ends, strict=True)]
        (side, place), (key_side, key_place) = ends
        piece = f"{side}2{key_side}"
        label = int(self._labels(piece, np.array([place]), np.array([key_place]))[0, 0])
        verb = "does not attend to" if label == _MASKED else "attends to"
        return f"{names[0]} {verb} {names[1]}: {self._reason(piece, place, key_place, label)}."

    def pair_labels(self):
        """Returns the labels of all pairs shown: dict of int [queries, keys] by piece."""
        sides = [side for side, shown in self._shown.items() if len(shown)]
        pieces = (f"{query}2{key}" for query in sides for key in sides)
        return {x: self._labels(x, *(self._shown[side] for side in x[::2])) for x in pieces}

    def figure(self, title="", long_range=None, theme="light"):
        """Draws which tokens attend to which: a `matplotlib.figure.Figure`.

        If a row has more tokens than fit, only some names are written, and a row or a column of the
        picture may stand for several tokens: see `zoomed`.

        Args:
            title: str.
            long_range: (first, last), last exclusive: the long tokens shown; None for all.
            theme: str. The background: "light", "dark", or "neutral" for a transparent one.
        """
        if long_range is not None:
            part = self._part("long_range", range(self._sizes["l"])[slice(*long_range)])
            return part.figure(title, theme=theme)
        return attention_picture.draw(
            self._labels,
            self._legend(),
            local_radius=self.local_radius,
            long_tokens=[self._name("l", place) for place in self._shown["l"].tolist()],
            global_tokens=[self._name("g", place) for place in self._shown["g"].tolist()],
            title=title,
            places=self._shown,
            hint=f"To see a part, call {self._zooms(min(self._sizes['l'], _READABLE))}.",
            theme=style.named(theme),
        )

    def save(self, path, title="", long_range=None, theme="light"):
        """Saves `figure` as a PNG file."""
        figure = self.figure(title, long_range, theme)
        with atomic_files.new_file(path) as temporary:
            figure.savefig(temporary, format="png")

    def _named_sizes(self):
        """(side, number of tokens, their name) of the sides that have tokens."""
        names = (("l", "long " * bool(self._sizes["g"])), ("g", "global "))
        return [(side, self._sizes[side], name) for side, name in names if self._sizes[side]]

    def _zooms(self, length):
        """How to show a part of so many tokens: the first of those shown now."""
        shown = np.intersect1d(self._own("l"), self._shown["l"])
        first = int(shown[0]) if len(shown) else 0
        last, block = min(first + length, self._sizes["l"]), self._first_block()
        blocks = f" or `blocks=[{block}, {block + 1}]`" if block + 1 < self._num_blocks else ""
        return f"`explain` with `tokens=range({first}, {last})`{blocks}"

    def _own(self, side):
        """The positions of the explained example's tokens: list of int."""
        return list(range(self._sizes[side]))

    def _first_block(self):
        """The first of the example's blocks."""
        return 0

    def _in_blocks(self, blocks):
        """The tokens shown for some blocks: dict of int arrays by side."""
        long_places = np.arange(self._sizes["l"])
        return {**self._shown, "l": long_places[np.isin(self._blocks_of(long_places), blocks)]}

    def _long_table(self, places, prefix=""):
        """Lines of the table of long tokens; `prefix` names what a line of several stands for."""
        rows = _rows(places, self._alike, lambda run: (_named(run, prefix), *self._long_row(run)))
        zooms = self._zooms(min(self._sizes["l"], _MOST_LINES))
        told = f"A line is a run of tokens. To see each, call {zooms}."
        return [*([told] if len(places) > _MOST_LINES else []), *_table(self.columns, rows)]

    def _long_row(self, run):
        """The table's entries for a run of tokens, mostly one, besides their positions."""
        tokens = _excerpt(" ".join(self._name("l", place) for place in run))
        origin = [] if self.encoding is None else [self._origin(run)]
        return tokens, *origin, *self._cells(run[0])

    def _alike(self, place):
        """What tokens in one line of a long table have in common."""
        text = 0 if self.encoding is None else int(self.encoding.texts[self._index(place)])
        return text, *self._cells(place)

    def _origin(self, run):
        """Where tokens come from: "document 1[3:7]"; "" for special ones."""
        x, first, last = self.encoding, self._index(run[0]), self._index(run[-1])
        if (text := int(x.texts[first])) < 0:
            return ""
        return f"{x.document.text_names[text]}[{x.offsets[first][0]}:{x.offsets[last][1]}]"

    def _index(self, place):
        """The index of the encoding's token at a position of the row."""
        return place - self.encoding.place

    @abc.abstractmethod
    def _head(self):
        """The first lines: which row it is, and what was truncated."""

    @abc.abstractmethod
    def _tables(self):
        """The lines that follow."""

    @abc.abstractmethod
    def _cells(self, place):
        """The table's entries for a long token, besides its name and origin: tuple."""

    @abc.abstractmethod
    def _parse(self, name, value):
        """Converts an argument of `why`: (side, position)."""

    @abc.abstractmethod
    def _token(self, side, place):
        """The token at a position: str."""

    @abc.abstractmethod
    def _name(self, side, place):
        """The name of a token in a picture; for a long one the token itself."""

    @abc.abstractmethod
    def _reason(self, piece, query, key, label):
        """Why the pair of tokens at these positions has its label, which may be masked: str."""

    @abc.abstractmethod
    def _blocks_of(self, places):
        """The number of the block of each long token, -1 for none: int array."""

    @abc.abstractmethod
    def _legend(self):
        """`attention_picture.Legend`."""

    @abc.abstractmethod
    def _labels(self, piece, queries, keys):
        """Labels of pairs of tokens at these places: int [queries, keys]."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """The entries of an ETC's config that determine which tokens attend to which.

    Attributes:
        local_radius: int. Long tokens attended to on each side.
        relative_pos_max_distance: int. Relative positions are clipped to it.
        use_hard_g2l_mask, use_hard_l2g_mask: bool. Whether global (long) tokens attend only to the
            long (global) tokens that they are linked to.
    """

    local_radius: int = 84
    relative_pos_max_distance: int = 12
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False

    @classmethod
    def of(cls, config):
        """Returns the rules of a model or its config, or the defaults for None."""
        names = (field.name for field in dataclasses.fields(cls))
        config = _config_of(config, "local_radius")
        return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})

    @staticmethod
    def check_relations(model, names):
        """Raises ValueError if a model, or its config, has other relations, or too few labels.

        A config, or an encoder, does not name relations; it only has a number of labels.
        """
        ours = getattr(model, "relation_names", None)
        if ours is not None and tuple(ours) != tuple(names):
            raise ValueError(
                f"The model's `relation_names` are {list(ours)}, those of the batch {list(names)}; "
                "explain a batch of the model's own processor"
            )
        config = _config_of(model)
        if names and hasattr(config, "relation_labels"):
            config.relation_labels(*names)


class Explanation(_Explained):
    """Explains one example of a batch for ETC; `str` is a table of its tokens.

    Tokens are named by input and position in the row, as in the table: "l12" is a long and "g3" a
    global token. Labels are those of `config.relation_labels`, by the rules of
    `ops.structure.GlobalLocalStructure`. The picture shows all examples of the row.

    Args:
        batch: `ProcessedBatch`.
        encoding: one of its encodings.
        config: a model or its config, such as `EtcConfig`; None for the default `Rules`.
    Raises:
        ValueError: if the model has other relations than the batch, or too few labels.
    """

    columns = ("long", "token", "from", "linked to", "relations")

    def __init__(self, batch, encoding, config=None):
        Rules.check_relations(config, batch.relation_names)
        num_long, num_global = (batch[_IDS[side]].shape[1] for side in "lg")
        super().__init__(num_long, num_global, num_global, encoding)
        self.batch, self.rules = batch, Rules.of(config)
        self.local_radius = self.rules.local_radius
        names = tuple(batch.relation_names)
        self._numbering = RelationLabels(self.rules.relative_pos_max_distance, names=names)

    @property
    def global_names(self):
        """list of str. What the example's global tokens stand for: "g4 sentence: She was born."."""
        rows = (self._global_row([place]) for place in self._own("g"))
        return [f"{place} {kind}{': ' * bool(text)}{text}" for place, _, kind, text, _ in rows]

    def _own(self, side):
        """The positions of the example's tokens in the row: list of int."""
        x = self.encoding
        first, ids = (x.place, x.token_ids) if side == "l" else (x.global_place, x.global_ids)
        return list(range(first, first + len(ids)))

    def _first_block(self):
        return self.encoding.global_place

    def _head(self):
        x = self.encoding
        lines = [f"example {x.example}, window {x.window}: row {x.row}, number {x.number} in it"]
        if x.cut:
            lines.append(f"cut: {x.cut.num_tokens} tokens, {x.cut.num_blocks} blocks")
        return lines

    def _tables(self):
        shown = {x: sorted(set(self._own(x)) & set(self._shown[x].tolist())) for x in "gl"}
        rows = _rows(
            shown["g"], lambda x: (x := self._global_row([x]))[1:3] + x[4:], self._global_row
        )
        table = _table(("global", "token", "is", "text", "relations"), rows)
        return ["", *table, "", *self._long_table(shown["l"], "l")]

    def _global_row(self, run):
        x = self.encoding
        first, last = (place - x.global_place for place in (run[0], run[-1]))
        blocks = [block for block in x.global_blocks[first : last + 1] if block >= 0]
        text = " ".join(x.document.block_text(x.document.blocks[block]) for block in blocks)
        related = self._related["g"][first]
        return _named(run, "g"), x.global_tokens[first], _kind_of(x, first), _excerpt(text), related

    def _cells(self, place):
        index = self._index(place)
        link = self.encoding.links[index]
        place = self.encoding.global_place + link
        linked = "" if link < 0 else f"g{place} {_kind_of(self.encoding, link)}"
        return linked, self._related["l"][index]

    @functools.cached_property
    def _related(self):
        """The relations that lead from each token, by side: "row: g3, g4; header: g1"."""
        x = self.encoding
        places = {"g": x.global_place, "l": x.place}
        found = {"g": [{} for _ in x.global_ids], "l": [{} for _ in x.token_ids]}
        for key, pairs in x.pairs.items():
            kind, _, name = key.partition("/")
            ends = next((p[::2] for p in ("g2g", "l2g", "l2l") if _PAIRS[p] == kind and name), ())
            for first, second in pairs if ends else ():
                related = found[ends[0]][first].setdefault(name, [])
                related.append(f"{ends[1]}{places[ends[1]] + second}")
        return {
            side: ["; ".join(f"{k}: {', '.join(v)}" for k, v in x.items()) for x in of_tokens]
            for side, of_tokens in found.items()
        }

    def _parse(self, name, value):
        match = _PLACE.fullmatch(value) if isinstance(value, str) else None
        if match is None or int(match[2]) >= self._sizes[match[1]]:
            raise ValueError(
                f"`{name}` must be a token of a row of {self._sizes['l']} long (l0, l1, …) and "
                f"{self._sizes['g']} global ones (g0, …). Received: {value!r}"
            )
        return match[1], int(match[2])

    def _token(self, side, place):
        return self.encoding.vocabulary[self.batch[_IDS[side]][self.encoding.row, place]]

    def _name(self, side, place):
        if side == "l":
            return self._token("l", place)
        for x in self.batch.encodings:
            index = place - x.global_place
            if x.row == self.encoding.row and 0 <= index < len(x.global_ids):
                return f"g{place} {_kind_of(x, index)}"
        return self._token("g", place)

    def _reason(self, piece, query, key, label):
        (side, key_side), row = piece[::2], self.encoding.row
        one = int(self.batch[_EXAMPLES[side]][row, query])
        other = int(self.batch[_EXAMPLES[key_side]][row, key])
        if one != other:
            is_padding = 0 in (one, other)
            return "padding" if is_padding else f"examples {one} and {other} of the same row"
        is_named = label >= self._numbering.num_reserved
        relation = f", relation {self._numbering.name_of(label)!r}" if is_named else ""
        if side != key_side:
            return self._reason_across(side, query, key, label) + relation
        if side == "g":
            return f"global tokens of one example, position {key - query:+d}{relation}"
        if label == _MASKED:
            return f"{abs(key - query)} places apart, beyond the radius of {self.local_radius}"
        return f"position {key - query:+d}, within the radius of {self.local_radius}{relation}"

    def _reason_across(self, side, place, key_place, label):
        long_place, global_place = (place, key_place) if side == "l" else (key_place, place)
        if self.batch["links"][self.encoding.row, long_place] == global_place:
            return f"linked, its own {self._name('g', global_place).partition(' ')[2]}"
        if label == _MASKED:
            return f"not linked, and `use_hard_{'l2g' if side == 'l' else 'g2l'}_mask` is on"
        return "long and global token of one example, not linked"

    def _relations(self, piece):
        """(name, pairs of query and key: int [number, 2]) of relations, in order of declaration."""
        for name in self.batch.relation_names:
            if (key := f"{_PAIRS[piece]}/{name}") in self.batch:
                pairs = self.batch[key][self.encoding.row]
                pairs = pairs[pairs[:, 0] >= 0]
                yield name, pairs[:, ::-1] if piece == "g2l" else pairs

    def _blocks_of(self, places):
        return self.batch["links"][self.encoding.row][places]

    def _in_blocks(self, blocks):
        return {**super()._in_blocks(blocks), "g": blocks}

    def _legend(self):
        names = {self._numbering[name]: name for name in self._numbering.names}
        return attention_picture.Legend(self._numbering, names=names)

    def _labels(self, piece, queries, keys):
        sides, row = piece[::2], self.encoding.row
        ends = (queries[:, np.newaxis], keys)
        examples = [self.batch[_EXAMPLES[x]][row][y] for x, y in zip(sides, ends, strict=True)]
        may_attend = examples[0] == examples[1]
        if sides[0] == sides[1]:
            labels = _positions(ends[1] - ends[0], self._numbering.max_distance)
            if sides[0] == "l":
                may_attend &= abs(ends[1] - ends[0]) <= self.rules.local_radius
        else:
            long_places, global_places = ends if sides[0] == "l" else ends[::-1]
            is_linked = self.batch["links"][row][long_places] == global_places
            labels = np.where(is_linked, self._numbering.linked, self._numbering.cross)
            if getattr(self.rules, f"use_hard_{piece}_mask"):
                may_attend &= is_linked
        shown = [
            _inverse(x, self._sizes[side]) for x, side in zip((queries, keys), sides, strict=True)
        ]
        for name, pairs in self._relations(piece):
            rows, columns = (index[x] for index, x in zip(shown, pairs.T, strict=True))
            is_shown = (rows >= 0) & (columns >= 0)
            labels[rows[is_shown], columns[is_shown]] = self._numbering[name]
        return np.where(may_attend, labels, _MASKED)


class RowExplanation(_Explained):
    """Explains one row of tokens of a batch; `str` is a table of its tokens.

    Tokens are named by their positions: 0, 1, …. Which of them attend to which is asked of the
    model's own patterns, `ops.reach.Reach`.

    Args:
        tokens: sequence of str. The tokens of the row.
        reaches: dict of label to a list of `ops.reach.Reach`. A pair has the first label of which
            a reach has it.
        length, num_global, encoding: see `_Explained`.
        num_blocks: likewise; None for the texts of the encoding.
    """

    columns = ("place", "token", "from")
    global_name = ""  # Of tokens that the model adds, in a picture.
    global_label = _FIRST  # Of pairs with them.
    meanings = {}  # Of the labels of pairs.

    def __init__(self, tokens, reaches, length, num_global=0, num_blocks=None, encoding=None):
        if num_blocks is None:
            num_blocks = int(max(encoding.texts, default=-1)) + 1
        super().__init__(length, num_global, num_blocks, encoding)
        self._tokens, self._reaches = tuple(tokens), reaches

    def _head(self):
        x = self.encoding
        cut = [f"cut: {x.cut.num_tokens} tokens"] if x.cut else []
        return [f"example {x.example}, window {x.window}: row {x.row}", *cut]

    def _tables(self):
        return self._long_table([x for x in self._shown["l"].tolist() if x < len(self._tokens)])

    def _cells(self, place):
        return ()

    def _index(self, place):
        return place

    def _parse(self, name, value):
        length = self._sizes["l"]
        if type(value) is not int or not 0 <= value < length:
            raise ValueError(
                f"`{name}` must be a place in a row of {length} tokens. Received: {value!r}"
            )
        return "l", value

    def _token(self, side, place):
        return self._tokens[place] if place < len(self._tokens) else "<pad>"

    def _name(self, side, place):
        return self._token(side, place) if side == "l" else f"{self.global_name} {place}"

    def _reason(self, piece, query, key, label):
        if max(query, key) >= len(self._tokens):
            return "padding"
        return self._reason_of_tokens(query, key, label)

    @abc.abstractmethod
    def _reason_of_tokens(self, query, key, label):
        """See `_reason`; for tokens that are not padding."""

    def _blocks_of(self, places):
        return np.where(places < len(self._tokens), self._numbers(places), -1)

    def _numbers(self, places):
        """The number of the block of each token, any number for padding."""
        return np.append(self.encoding.texts, -1)[np.minimum(places, len(self._tokens))]

    def _labels(self, piece, queries, keys):
        labels = self._labels_of_tokens(piece, queries[:, np.newaxis], keys)
        is_real = [
            places < len(self._tokens) if side == "l" else np.full(len(places), True)
            for side, places in zip(piece[::2], (queries, keys), strict=True)
        ]
        return np.where(is_real[0][:, np.newaxis] & is_real[1], labels, _MASKED)

    def _labels_of_tokens(self, piece, queries, keys):
        """Labels, broadcastable to [queries, keys], of positions [queries, 1] and [keys]."""
        if piece != "l2l":
            return np.array(self.global_label)
        labels = np.array(_MASKED)
        for label, reaches in reversed(self._reaches.items()):
            for reach in reaches:
                labels = np.where(_sees(reach, queries, keys), label, labels)
        return labels

    def _legend(self):
        return attention_picture.Legend(RelationLabels(0), names=self.meanings)


class PatternExplanation(RowExplanation):
    """Explains one row of a batch for any system, by the patterns of its layers.

    Args:
        batch: `RowBatch`.
        encoding: one of its encodings.
        config: a config, or a model with one, whose `reaches` are a sequence of `ops.reach.Reach`,
            one for each layer.
    Raises:
        ValueError: if there is no such config.
    """

    meanings = {_SAME: "within the reach of a layer"}

    def __init__(self, batch, encoding, config=None):
        config = _config_of(config, "reaches")
        if config is None:
            raise ValueError("Give the `config`, whose `reaches` say who attends to whom.")
        reaches = {_SAME: config.reaches}
        super().__init__(encoding.tokens, reaches, batch.long_shape[1], encoding=encoding)

    def _reason_of_tokens(self, query, key, label):
        seen = [bool(_sees(reach, query, key)) for reach in self._reaches[_SAME]]
        told = f"within the reach of {sum(seen)} of {len(seen)} layers"
        return f"{abs(query - key)} places apart, {told}"


class LongformerExplanation(RowExplanation):
    """Explains one row of a batch for a Longformer; `str` is a table of its tokens.

    Args:
        batch: `LongformerBatch`.
        encoding: one of its encodings.
        config: `LongformerConfig`, a model with one, or None for windows of 512.
    Raises:
        ValueError: if the batch does not give the global tokens, or the model is autoregressive and
            the row has global tokens, which it refuses.
    """

    columns = ("place", "token", "from", "global")
    meanings = {_SAME: "within half the window", _FIRST: "from or to a global token"}

    def __init__(self, batch, encoding, config=None):
        if "global_attention_mask" not in batch:
            raise ValueError(
                "Which tokens are global is the model's to say (`global_tokens` is 'model'): "
                "explain a batch of a processor that says it."
            )
        config = _config_of(config, "radii")
        self._windows = _windows(config)
        reaches = {_SAME: self._windows}
        super().__init__(encoding.tokens, reaches, batch.long_shape[1], encoding=encoding)
        self._is_global = batch["global_attention_mask"][encoding.row] > 0
        if getattr(config, "autoregressive", False) and any(self._is_global):
            raise ValueError(
                "An autoregressive model takes no global tokens, which this batch has: make it by "
                "a processor with `global_tokens='none'`."
            )

    def global_reason(self, place):
        """Explains why a token is global: str, "" for one that is not.

        Args:
            place: int. The token's position in its row.
        """
        if place >= self._sizes["l"] or not self._is_global[place]:
            return ""
        return "of the question" if self.encoding.texts[place] >= 0 else "the first token"

    def _cells(self, place):
        return (self.global_reason(place),)

    def _reason_of_tokens(self, query, key, label):
        for name, place in (("the query", query), ("the key", key)):
            if reason := self.global_reason(place):
                return f"{name} is global, {reason}"
        distance = abs(query - key)
        if key > query and not any(x.right for x in self._windows):
            return f"{distance} places later, and tokens attend only to what is before them"
        told = _span([x.left for x in self._windows], "layer")
        dilations = [x.dilation for x in self._windows]
        if max(dilations) > 1:
            told += f", with dilation {_span(dilations, 'layer or head')}"
        where = "within" if label == _SAME else "beyond"
        if label == _MASKED and distance <= max(x.farthest_before for x in self._windows):
            where = "in a gap of"
        return f"{distance} places apart, {where} half the window, {told}"

    def _labels_of_tokens(self, piece, queries, keys):
        is_global = self._is_global[queries] | self._is_global[keys]
        return np.where(is_global, _FIRST, super()._labels_of_tokens(piece, queries, keys))


class ModernBertExplanation(RowExplanation):
    """Explains one row of a batch for a ModernBERT; `str` is a table of its tokens.

    Args:
        batch: `ModernBertBatch`.
        encoding: one of its encodings.
        config: `ModernBertConfig`, a model with one, or None for 64 tokens on each side, and layers
            of full attention.
    """

    meanings = {_SAME: "within the window", _FIRST: "in layers of full attention"}

    def __init__(self, batch, encoding, config=None):
        from etcmodel.ops.reach import ALL, Window  # Slow to import.

        config = _config_of(config, "layer_types")
        self._radius = getattr(config, "radius", 64)
        kinds = getattr(config, "layer_kinds", ("full_attention",))
        reaches = {_SAME: [Window(self._radius, self._radius)]}
        reaches[_FIRST] = [ALL] * ("full_attention" in kinds)
        super().__init__(encoding.tokens, reaches, batch.long_shape[1], encoding=encoding)

    def _reason_of_tokens(self, query, key, label):
        told = f"{'within' if label == _SAME else 'beyond'} the window of {self._radius}"
        told = f"{abs(query - key)} places apart, {told} on each side"
        return f"{told}: only in the layers of full attention" if label == _FIRST else told


class BigBirdExplanation(RowExplanation):
    """Explains one row of a batch for a BigBird; `str` is a table of its tokens and their blocks.

    Random blocks, which there are in training, and with `is_seeded_always` in evaluation, too, are
    left out: they differ by layer.

    Args:
        batch: `BigBirdBatch`.
        encoding: one of its encodings.
        config: `BigBirdConfig`, a model with one, or None for blocks of 64.
    """

    columns = ("place", "token", "from", "block")
    meanings = {_SAME: "of one block, or of neighbors", _FIRST: "from or to an end"}

    def __init__(self, batch, encoding, config=None):
        from etcmodel.ops.block_sparse import BlockWindow  # Slow to import.
        from etcmodel.ops.reach import ALL

        config = _config_of(config, "longest_full")
        self._size = getattr(config, "block_size", _USUAL_BLOCK)
        length = batch.long_shape[1]
        is_own = getattr(config, "pattern_by_length", False)
        longest, decisive = len(encoding.token_ids), "the text" if is_own else "the batch"
        longest = longest if is_own else length
        self._ends = (0, (longest - 1) // self._size)
        most = getattr(config, "longest_full", _USUAL_LONGEST_FULL)
        self._full = f"{decisive} has {longest} tokens, at most {most}: all attend to all"
        if most is None:
            self._full = "`attention_type` is 'original_full': all attend to all"
        elif longest > most:
            self._full = ""
        has_random = getattr(config, "is_seeded_always", False) and config.num_random_blocks
        self._aside = " (random blocks aside, which differ by layer)" if has_random else ""
        reaches = {_SAME: [ALL if self._full else BlockWindow(self._size)]}
        num_blocks = self._numbers(length - 1) + 1
        super().__init__(encoding.tokens, reaches, length, 0, num_blocks, encoding)

    def _cells(self, place):
        return (str(self._numbers(place)),)

    def _numbers(self, places):
        return places // self._size

    def _reason_of_tokens(self, query, key, label):
        if self._full:
            return self._full
        query, key = map(self._numbers, (query, key))
        for name, block in (("the query", query), ("the key", key)):
            if block in self._ends:
                end = "last" if self._ends.index(block) else "first"
                return f"{name} is in the {end} block, of {self._size} tokens"
        told = f"blocks {query} and {key}, of {self._size} tokens"
        return told if label == _SAME else f"{told}, are no neighbors{self._aside}"

    def _labels_of_tokens(self, piece, queries, keys):
        labels = super()._labels_of_tokens(piece, queries, keys)
        is_end = [np.isin(self._numbers(x), self._ends) for x in (queries, keys)]
        return np.where((is_end[0] | is_end[1]) & (labels == _MASKED), _FIRST, labels)


class GmatExplanation(RowExplanation):
    """Explains one row of a batch for a GMAT; `str` is a table of its tokens and their chunks.

    Args:
        batch: `GmatBatch`.
        encoding: one of its encodings.
        config: `GmatConfig`, a model with one, or None for chunks of 512 and a learned memory,
            which is then not in the picture.
    """

    columns = ("place", "token", "from", "chunk")
    global_name = "memory"
    meanings = {_SAME: "in one chunk", _FIRST: "from or to the memory"}

    def __init__(self, batch, encoding, config=None):
        from etcmodel.ops.reach import Chunk  # Slow to import.

        config = _config_of(config, "chunk_size")
        self._chunk = Chunk(getattr(config, "chunk_size", _USUAL_CHUNK))
        self._num_memory = getattr(config, "num_memory_tokens", None)
        self._num_compression = getattr(config, "num_compression_layers", 0)
        self._memory_ids = batch.get("memory_ids")
        if self._memory_ids is not None:
            self._num_memory = int(batch["memory_mask"][encoding.row].sum())
        reaches, length = {_SAME: [self._chunk]}, batch.long_shape[1]
        num_chunks = self._numbers(len(encoding.token_ids) - 1) + 1
        num_memory = self._num_memory or 0
        super().__init__(encoding.tokens, reaches, length, num_memory, num_chunks, encoding)

    @property
    def global_reason(self):
        """Explains the memory, which attends to all tokens and they to it: one sentence."""
        if self._num_memory == 0:
            return "There is no memory: no token attends beyond its chunk."
        if self._memory_ids is None:
            number = "" if self._num_memory is None else f", {self._num_memory} vectors"
            own = f"The memory is the model's own{number}"
            return f"{own}: every token attends to it, and it attends to all."
        ids = self._memory_ids[self.encoding.row][: self._num_memory]
        tokens = " ".join(self.encoding.vocabulary[x] for x in ids)
        return (
            f"The memory is the first tokens of the question, {tokens!r}: every token attends to "
            "it, and it attends to all."
        )

    def _head(self):
        return [*super()._head(), self.global_reason]

    def _cells(self, place):
        return (str(self._numbers(place)),)

    def _numbers(self, places):
        return self._chunk.numbers(places)

    def _reason_of_tokens(self, query, key, label):
        query, key, size = *map(self._numbers, (query, key)), self._chunk.size
        if label != _MASKED:
            return f"both are in chunk {query}, of {size} tokens"
        told = f"chunks {query} and {key}, of {size} tokens"
        if self._num_memory == 0:
            return f"{told}, and there is no memory"
        told += "; what it needs goes through the memory"
        layers = self._num_compression
        return f"{told}, in the first {layers} layers" if layers else told


class _Seq2SeqExplanation(RowExplanation):
    """Explains one row of a batch for an encoder-decoder; `str` is a table of its tokens.

    Args:
        batch: `Seq2SeqBatch`.
        tokens: sequence of str. The tokens of the row.
        row: int.
        config: the model's config.
        reaches, num_global, num_blocks: see `RowExplanation`.
    """

    columns = ("place", "token", "block")

    def __init__(self, batch, tokens, row, config, reaches, num_global, num_blocks):
        super().__init__(tokens, reaches, batch["input_ids"].shape[1], num_global, num_blocks)
        self._row, self._config = row, config
        self._num_cut = batch.num_cut[row] if batch.num_cut else 0

    def _head(self):
        cut = [f"cut: {self._num_cut} tokens"] if self._num_cut else []
        return [f"row {self._row}", *cut, self.global_reason]


class LongT5Explanation(_Seq2SeqExplanation):
    """Explains one row of a batch for a LongT5; `str` is a table of its tokens and their blocks.

    Source: Guo et al. 2022 (arXiv:2112.07916), section 3.1.

    Args: see `of_seq2seq`.
    """

    global_name = "block"
    meanings = {
        _SAME: "within the radius",
        _FIRST: "token to the sum of a block",
        _FIRST + 1: "block, made of these tokens",
    }

    def __init__(self, batch, tokens, row, config):
        from etcmodel.ops import reach, transient_blocks  # Slow to import.

        mask = np.arange(batch["input_ids"].shape[1])[np.newaxis] < len(tokens)
        size = config.blocks_of or mask.size + 1
        self._block_numbers = transient_blocks.block_numbers(mask, size)[0].numpy()
        number = int(self._block_numbers.max()) + 1
        window = reach.Window(config.local_radius, config.local_radius)
        super().__init__(batch, tokens, row, config, {_SAME: [window]}, number, number)
        self.local_radius = config.local_radius

    @property
    def global_reason(self):
        """Explains the global tokens: one sentence."""
        if self._config.blocks_of is None:
            return "Nothing is global: the attention is local."
        number, size = self._num_blocks, self._config.global_block_size
        if not number:
            return f"Nothing is global: no block of {size} tokens is full."
        return (
            f"Each of {number} full blocks of {size} tokens is one more key, the sum of its tokens "
            "in that layer, to which every token attends; it attends to nothing, and no other "
            "layer has it."
        )

    def _cells(self, place):
        return (str(self._numbers(place)) if self._num_blocks else "",)

    def _numbers(self, places):
        return self._block_numbers[places]

    def _in_blocks(self, blocks):
        return {**super()._in_blocks(blocks), "g": blocks}

    def _reason_of_tokens(self, query, key, label):
        is_near = label != _MASKED
        told = f"{'within' if is_near else 'beyond'} the radius of {self.local_radius}"
        told = f"{abs(query - key)} places apart, {told}"
        if is_near or not self._num_blocks:
            return told
        return f"{told}; but it attends to block {self._numbers(key)}, whose sum has it"

    def _labels_of_tokens(self, piece, queries, keys):
        if piece == "g2l":  # The parts of the block, which is no query.
            return np.where(self._numbers(keys) == queries, _FIRST + 1, _MASKED)
        if piece == "g2g":
            return np.array(_MASKED)
        return super()._labels_of_tokens(piece, queries, keys)


class PegasusXExplanation(_Seq2SeqExplanation):
    """Explains one row of a batch for a PEGASUS-X; `str` is a table of its tokens and blocks.

    Source: Phang et al. 2022 (arXiv:2208.04347), section 3.

    Args: see `of_seq2seq`.
    """

    global_name = "global"
    meanings = {
        _SAME: "in one block in all layers",
        _FIRST: "in one block in even layers",
        _FIRST + 1: "in one block in odd layers, whose blocks are staggered",
        _FIRST + 2: "from or to a global token",
    }

    global_label = _FIRST + 2

    def __init__(self, batch, tokens, row, config):
        from etcmodel.ops.reach import Chunk  # Slow to import.

        self._chunks = [Chunk(config.block_size, config.shift(layer)) for layer in (0, 1)]
        self._is_staggered = self._chunks[0] != self._chunks[1]
        number = self._numbers(len(tokens) - 1) + 1
        reaches = {_FIRST: self._chunks[:1], _FIRST + 1: self._chunks[1:]}
        super().__init__(batch, tokens, row, config, reaches, config.num_global_tokens, number)

    @property
    def columns(self):
        """tuple of str: the columns of the table."""
        return (*super().columns, *["staggered block"] * self._is_staggered)

    @property
    def global_reason(self):
        """Explains the global tokens: one sentence."""
        return (
            f"The model has {self._config.num_global_tokens} global tokens of its own, none of the "
            "text: every token attends to them, and they attend to all."
        )

    def _cells(self, place):
        chunks = self._chunks[: 1 + self._is_staggered]
        return tuple(str(chunk.numbers(place)) for chunk in chunks)

    def _numbers(self, places):
        return self._chunks[0].numbers(places)

    def _reason_of_tokens(self, query, key, label):
        size = f"of {self._config.block_size} tokens"
        if label == _SAME:
            return f"both are in block {self._numbers(query)}, {size}"
        if label == _MASKED:
            return f"in no layer in one block {size}; what it needs goes through global tokens"
        layers = "even layers" if label == _FIRST else "odd layers, whose blocks are staggered"
        return f"both are in one block {size} in {layers}"

    def _labels_of_tokens(self, piece, queries, keys):
        labels = super()._labels_of_tokens(piece, queries, keys)
        if piece != "l2l":
            return labels
        in_all = [chunk.sees(queries, keys) for chunk in self._chunks]
        return np.where(np.all(in_all, axis=0), _SAME, labels)


def encoding_of(batch, example, window):
    """Returns the encoding of a window of an example.

    Raises:
        ValueError: if the batch has none.
    """
    for encoding in batch.encodings:
        if (encoding.example, encoding.window) == (example, window):
            return encoding
    raise ValueError(
        f"The batch has no window {window} of an example {example}: it has "
        f"{len({x.example for x in batch.encodings})} examples, counted from 0."
    )


def of_seq2seq(batch, tokens, row, config):
    """Creates the explanation of a row for an encoder-decoder, by the kind of model.

    Args:
        batch: `Seq2SeqBatch`.
        tokens: sequence of str. The tokens of the row.
        row: int.
        config: `LongT5Config`, `PegasusXConfig`, or a model with one.
    Raises:
        ValueError: if the config is of another model.
    """
    kinds = {"longt5": LongT5Explanation, "pegasus_x": PegasusXExplanation}
    config = _config_of(config)
    kind = kinds.get(getattr(config, "model_type", None))
    if kind is None:
        raise ValueError(
            "`config` must be that of a LongT5 or PEGASUS-X, or such a model, which decides who "
            f"attends to whom. Received: {type(config).__name__}"
        )
    return kind(batch, tokens, row, config)


def _config_of(model, needs=""):
    """Returns the config of an encoder of a model, of a model, or the config itself.

    Args:
        model: one of these, or None.
        needs: str. An entry that the config must have.
    Raises:
        ValueError: if the config lacks it, as the model attends in another way.
    """
    for name in ("encoder", "config"):
        model = getattr(model, name, model)
    if model is not None and needs and not hasattr(model, needs):
        kind = getattr(model, "model_type", None) or type(model).__name__
        raise ValueError(
            f"`config` must have `{needs}`, which decides who attends to whom in batches of this "
            f"processor. Received: one of {shown_values.shown(kind)}. Explain a batch of the "
            "processor of that model."
        )
    return model


def _chosen(name, numbers, size):
    """The numbers given by an option: int array, each once, in order."""
    is_range = isinstance(numbers, range)
    given = [numbers[0], numbers[-1]] if is_range and numbers else numbers
    is_sequence = isinstance(given, (range, list, tuple)) or getattr(given, "ndim", 0) == 1
    is_sequence = is_sequence and len(given) > 0
    if not is_sequence or not all(_is_number(x) and 0 <= x < size for x in given):
        allowed = (
            f"be a range or a list of numbers from 0 to {size - 1}" if size else "be None here"
        )
        raise ValueError(f"`{name}` must {allowed}. Received: {shown_values.shown(numbers)}")
    return np.unique(np.array(numbers, np.int64))


def _is_number(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _sees(reach, queries, keys):
    """Whether pairs exist: bool, or bool array."""
    seen = reach.sees(queries, keys)
    return True if seen is None else seen


def _windows(config):
    """The windows of all layers and heads: list of `ops.reach.Window`, each once."""
    from etcmodel.ops.reach import Window  # Slow to import, and processors do not need it.

    radii = getattr(config, "radii", (_USUAL_WINDOW // 2,))
    dilations = getattr(config, "dilations", (1,) * len(radii))
    is_causal = getattr(config, "autoregressive", False)
    found = {}
    for radius, dilation in zip(radii, dilations, strict=True):
        for by_head in dilation if isinstance(dilation, tuple) else (dilation,):
            found[Window(radius, 0 if is_causal else radius, by_head)] = None
    return list(found)


def _span(numbers, by):
    """The number, or the range."""
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}, by {by}"


def _positions(offsets, max_distance):
    """The labels of relative positions, those of keys minus those of queries."""
    offsets = np.clip(offsets, -max_distance, max_distance)
    return np.where(offsets >= 0, offsets, max_distance - offsets)


def _inverse(places, size):
    """The index in `places` of each position of a row, or -1: int array."""
    found = np.full(size, -1)
    found[places] = np.arange(len(places))
    return found


def _kind_of(encoding, index):
    """What a global token stands for."""
    block = encoding.global_blocks[index]
    if block < 0:
        return "whole"
    value = encoding.document.blocks[block]
    return f"{value.kind} {value.name}".strip()


def _excerpt(text):
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"


def _rows(places, alike, row_of):
    """The rows of a table, each for a run of tokens; for one token if the table is short.

    Args:
        places: sequence of int.
        alike: function of a position: tokens with equal results may share a row.
        row_of: function of a run, list of int, that returns a tuple of str.
    """
    is_long = len(places) > _MOST_LINES
    runs = _runs(places, alike) if is_long else [[place] for place in places]
    rows = [row_of(run) for run in runs]
    if len(rows) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = (f"… {len(rows) - 2 * half} lines …", *[""] * (len(rows[0]) - 1))
        rows = [*rows[:half], left_out, *rows[-half:]]
    return rows


def _runs(places, alike):
    """Groups consecutive positions that are alike: list of lists."""
    runs, previous = [], None
    for place in places:
        kind = alike(place)
        if runs and runs[-1][-1] == place - 1 and kind == previous:
            runs[-1].append(place)
        else:
            runs.append([place])
        previous = kind
    return runs


def _named(run, prefix):
    """The name of a run of positions: "l12", or "l12-l40"."""
    return "-".join(f"{prefix}{place}" for place in dict.fromkeys((run[0], run[-1])))


def _table(names, rows):
    """Lines of columns as wide as their widest entry."""
    rows = [names, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(x.ljust(width) for x, width in row).rstrip() for row in cells]
