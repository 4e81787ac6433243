"""What a model is told of a batch: in words, and as the picture of who may attend to whom."""

import re

from etcmodel import atomic_files, attention_picture
from etcmodel.text import visibility

__all__ = ["Explanation"]

_EXCERPT = 32  # Characters.
_PLACE = re.compile(r"([lg])(\d+)")


class Explanation:
    """One example of a batch, explained; `str` is a table of its tokens.

    Tokens are named by input and place in the row, as in the table: "l12" is a long and "g3" a
    global token.

    Args:
        batch: `ProcessedBatch`.
        encoding: one of its encodings.
        rules: `visibility.Rules`.
    """

    def __init__(self, batch, encoding, rules):
        self.batch = batch
        self.encoding = encoding
        self.rules = rules

    def __str__(self):
        x = self.encoding
        lines = [f"example {x.example}, window {x.window}: row {x.row}, number {x.number} in it"]
        if x.cut:
            lines.append(f"cut: {x.cut.num_tokens} tokens, {x.cut.num_blocks} blocks")
        lines += ["", *_table(("global", "token", "is", "text", "relations"), self._global_rows())]
        lines += [
            "",
            *_table(("long", "token", "from", "linked to", "relations"), self._long_rows()),
        ]
        return "\n".join(lines)

    def why(self, query, key):
        """Why a token sees another one, or does not: one sentence.

        Args:
            query, key: str, such as "l12" or "g3".
        Raises:
            ValueError: if there is no such token.
        """
        ends = [self._parse(name, value) for name, value in (("query", query), ("key", key))]
        (side, place), (key_side, key_place) = ends
        names = [f"{x} {self._token(*end)!r}" for x, end in zip((query, key), ends, strict=True)]
        sees, reason = self._reason(side, place, key_side, key_place)
        return f"{names[0]} {'sees' if sees else 'does not see'} {names[1]}: {reason}."

    @property
    def global_names(self):
        """list of str. What the example's global tokens stand for: "g4 sentence: She was born."."""
        rows = self._global_rows()
        return [f"{place} {kind}{': ' * bool(text)}{text}" for place, _, kind, text, _ in rows]

    def figure(self, title="", long_range=None):
        """The picture of the row's pairs: a `matplotlib.figure.Figure`.

        Args:
            title: str.
            long_range: (first, last), last exclusive: the long tokens that are shown; None for all.
        Raises:
            ValueError: if there are no long tokens, or too many tokens to be seen.
        """
        num_long, num_global = (self.batch[name].shape[1] for name in _IDS.values())
        shown = range(num_long)[slice(*long_range or (None,))]
        attention_picture.check_sizes(len(shown), num_global)
        rules = self.rules
        numbering = visibility.numbering_of(self.batch, rules)
        names = {numbering[name]: name for name in numbering.names}
        part, everything = slice(shown.start, shown.stop), slice(None)
        labels = visibility.pair_labels(self.batch, self.encoding.row, rules)
        cuts = {piece: [part if x == "l" else everything for x in piece[::2]] for piece in labels}
        return attention_picture.draw(
            {piece: pairs[*cuts[piece]] for piece, pairs in labels.items()},
            attention_picture.Legend(numbering, names=names),
            local_radius=rules.local_radius,
            long_tokens=[self._token("l", place) for place in shown],
            global_tokens=[self._global_name(place) for place in range(num_global)],
            title=title,
        )

    def save(self, path, title="", long_range=None):
        """Writes `figure` as a PNG file."""
        figure = self.figure(title, long_range)
        with atomic_files.new_file(path) as temporary:
            figure.savefig(temporary, format="png")

    def _parse(self, name, value):
        match = _PLACE.fullmatch(value) if isinstance(value, str) else None
        sizes = {side: self.batch[key].shape[1] for side, key in _IDS.items()}
        if match is None or int(match[2]) >= sizes[match[1]]:
            raise ValueError(
                f"`{name}` must be a token of a row of {sizes['l']} long (l0, l1, …) and "
                f"{sizes['g']} global ones (g0, …). Received: {value!r}"
            )
        return match[1], int(match[2])

    def _token(self, side, place):
        return self.encoding.vocabulary[self.batch[_IDS[side]][self.encoding.row, place]]

    def _example(self, side, place):
        return int(self.batch[_EXAMPLES[side]][self.encoding.row, place])

    def _global_name(self, place):
        """What a global token stands for, in a word or two."""
        for x in self.batch.encodings:
            index = place - x.global_place
            if x.row == self.encoding.row and 0 <= index < len(x.global_ids):
                return f"g{place} {_kind_of(x, index)}"
        return self._token("g", place)

    def _reason(self, side, place, key_side, key_place):
        """(whether the one sees the other, why)."""
        examples = self._example(side, place), self._example(key_side, key_place)
        if examples[0] != examples[1]:
            if 0 in examples:
                return False, "padding"
            return False, f"examples {examples[0]} and {examples[1]} of the same row"
        named = self._relations(side, place, key_side, key_place)
        relation = f", relation {named[-1]!r}" if named else ""
        if side != key_side:
            return self._reason_across(side, place, key_place, relation)
        offset, radius = key_place - place, self.rules.local_radius
        if side == "g":
            return True, f"global tokens of one example, position {offset:+d}{relation}"
        if abs(offset) > radius:
            return False, f"{abs(offset)} places apart, beyond the radius of {radius}"
        return True, f"position {offset:+d}, within the radius of {radius}{relation}"

    def _reason_across(self, side, place, key_place, relation):
        long_place, global_place = (place, key_place) if side == "l" else (key_place, place)
        is_own = self.batch["links"][self.encoding.row, long_place] == global_place
        if is_own:
            return True, f"linked, its own {self._kind(global_place)}{relation}"
        name = "use_hard_l2g_mask" if side == "l" else "use_hard_g2l_mask"
        if getattr(self.rules, name):
            return False, f"not linked, and `{name}` is on"
        return True, f"long and global token of one example, not linked{relation}"

    def _kind(self, global_place):
        return self._global_name(global_place).partition(" ")[2]

    def _relations(self, side, place, key_side, key_place):
        """Names of the relations between two tokens, in the order of their declaration."""
        if side == key_side == "g":
            pair, form = (place, key_place), "edges/{}"
        elif side == key_side:
            pair, form = (place, key_place), "long_edges/{}"
        else:
            pair, form = (place, key_place) if side == "l" else (key_place, place), "links/{}"
        row = self.encoding.row
        keys = ((name, form.format(name)) for name in self.batch.relation_names)
        return [
            name
            for name, key in keys
            if key in self.batch and (self.batch[key][row] == pair).all(axis=1).any()
        ]

    def _global_rows(self):
        x = self.encoding
        related = self._by_first({"edges": "g"}, len(x.global_ids))
        for index, token in enumerate(x.global_tokens):
            block = x.global_blocks[index]
            text = "" if block < 0 else x.document.block_text(x.document.blocks[block])
            place = f"g{x.global_place + index}"
            yield place, token, _kind_of(x, index), _excerpt(text), related[index]

    def _long_rows(self):
        x = self.encoding
        related = self._by_first({"links": "g", "long_edges": "l"}, len(x.token_ids))
        for index, token in enumerate(x.tokens):
            text, (start, end) = int(x.texts[index]), x.offsets[index]
            origin = "" if text < 0 else f"{x.document.text_names[text]}[{start}:{end}]"
            link = x.links[index]
            linked = "" if link < 0 else f"g{x.global_place + link} {_kind_of(x, link)}"
            yield f"l{x.place + index}", token, origin, linked, related[index]

    def _by_first(self, sides, number):
        """Of each token the relations that lead from it: "row: g3, g4; header: g1"."""
        found = [{} for _ in range(number)]
        places = {"g": self.encoding.global_place, "l": self.encoding.place}
        for key, pairs in self.encoding.pairs.items():
            kind, _, name = key.partition("/")
            if side := sides.get(kind):
                for first, second in pairs:
                    found[first].setdefault(name, []).append(f"{side}{places[side] + second}")
        return ["; ".join(f"{k}: {', '.join(v)}" for k, v in x.items()) for x in found]


_IDS = {"l": "token_ids", "g": "global_token_ids"}
_EXAMPLES = {"l": "example_ids", "g": "global_example_ids"}


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


def _table(names, rows):
    """Lines of columns as wide as their widest entry."""
    rows = [names, *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(x.ljust(width) for x, width in row).rstrip() for row in cells]
