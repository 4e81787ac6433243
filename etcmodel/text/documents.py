"""Documents, before they are tokenized: texts in blocks, and relations between the blocks.

A block is a part with its own global token: a sentence, a cell, a node, or a section, which
contains others and has no text of its own. Readers (`etcmodel.text.readers`) create documents from
all kinds of input.
"""

import dataclasses
from typing import NamedTuple

QUESTION = "question"  # The kind of block that comes first and is never truncated.


class Block(NamedTuple):
    """A part of a document.

    Attributes:
        kind: str, such as "sentence", "section", "cell".
        text: int. Index of its text among the document's; -1 for a block without text.
        start, end: int. Its characters there, `text[start:end]`.
        parent: int. The block that it is part of, which comes before it; -1 for none.
        name: str. A name, such as the id of a node; '' for none.
    """

    kind: str
    text: int = -1
    start: int = 0
    end: int = 0
    parent: int = -1
    name: str = ""


class Mention(NamedTuple):
    """Characters that refer to a block, such as the words of a link.

    Attributes:
        text, start, end: int. As in `Block`.
        block: int.
    """

    text: int
    start: int
    end: int
    block: int


class Cell(NamedTuple):
    """A block's position in a table.

    Attributes:
        table, block: int. Number of the table, and index of the cell's block.
        rows, columns: (int, int). The first and the last one that it spans.
        is_header: bool.
    """

    table: int
    block: int
    rows: tuple
    columns: tuple
    is_header: bool = False


@dataclasses.dataclass(frozen=True)
class Document:
    """One example, before tokenization.

    Attributes:
        texts: tuple of str. Offsets count their characters.
        text_names: tuple of str, one per text: its place in the input.
        blocks: tuple of `Block`, in the order of the long input; questions first.
        edges: dict of relation name to tuple of (from block, to block).
        mentions: dict of relation name to tuple of `Mention`.
        cells: tuple of `Cell`.
        example_id: str.
        extra: dict. Other fields of the input: labels, answers.

    Raises:
        ValueError: if a block, edge, mention or cell refers to something that does not exist.
    """

    texts: tuple
    text_names: tuple
    blocks: tuple
    edges: dict = dataclasses.field(default_factory=dict)
    mentions: dict = dataclasses.field(default_factory=dict)
    cells: tuple = ()
    example_id: str = ""
    extra: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        is_content = False
        for index, block in enumerate(self.blocks):
            self._check_place(f"blocks[{index}]", block)
            if not -1 <= block.parent < index:
                raise ValueError(
                    f"`blocks[{index}].parent` must be a block before it, or -1. Received: "
                    f"{block.parent}"
                )
            is_content |= block.kind != QUESTION
            if is_content and block.kind == QUESTION:
                raise ValueError(f"`blocks[{index}]` is a question behind other blocks.")
        for name, pairs in self.edges.items():
            for index, pair in enumerate(pairs):
                self._check_blocks(f"edges[{name!r}][{index}]", pair)
        for name, mentions in self.mentions.items():
            for index, mention in enumerate(mentions):
                self._check_place(f"mentions[{name!r}][{index}]", mention)
                self._check_blocks(f"mentions[{name!r}][{index}].block", [mention.block])
        self._check_blocks("cells", [cell.block for cell in self.cells])

    def block_text(self, block):
        """Returns the text of a `Block`, '' if it has none."""
        return "" if block.text < 0 else self.texts[block.text][block.start : block.end]

    def _check_place(self, field, place):
        if place.text == -1:
            return
        if not 0 <= place.text < len(self.texts):
            raise ValueError(
                f"`{field}.text` must be one of {len(self.texts)} texts. Received: {place.text}"
            )
        if not 0 <= place.start <= place.end <= len(self.texts[place.text]):
            raise ValueError(
                f"`{field}` must lie within its text of {len(self.texts[place.text])} characters. "
                f"Received: start={place.start}, end={place.end}"
            )

    def _check_blocks(self, field, indices):
        for index in indices:
            if not 0 <= index < len(self.blocks):
                raise ValueError(
                    f"`{field}` must be one of {len(self.blocks)} blocks. Received: {index}"
                )


class Builder:
    """Builds a `Document`, block by block.

    Args:
        split_sentences: function of str to list of str.
        main_only: bool. Whether to read only the main text of web pages.
    """

    def __init__(self, split_sentences, main_only=False):
        self.split_sentences, self.main_only = split_sentences, main_only
        self.blocks = []
        self.cells = []
        self._texts = []
        self._names = []
        self._edges = {}
        self._mentions = {}
        self._num_tables = 0

    def add_text(self, text, name):
        """Adds a text without blocks; returns its number."""
        self._texts.append(text)
        self._names.append(name)
        return len(self._texts) - 1

    def replace_text(self, number, text):
        """Sets the content of an added text, before it gets blocks, which are checked."""
        self._texts[number] = text

    def add(self, kind, text=-1, start=0, end=0, parent=-1, name=""):
        """Adds a block; returns its index."""
        self.blocks.append(Block(kind, text, start, end, parent, name))
        return len(self.blocks) - 1

    def add_whole(self, kind, text, where, parent=-1, name=""):
        """Adds a text as one block; returns its index, or None if it is blank."""
        number = self.add_text(text, where)
        if not text.strip():
            return None
        return self.add(kind, number, 0, len(text), parent, name)

    def add_sentences(self, text, where, parent=-1):
        """Adds a text, with a block for each sentence."""
        number, end = self.add_text(text, where), 0
        for sentence in self.split_sentences(text):
            start = text.index(sentence, end)
            end = start + len(sentence)
            self.add("sentence", number, start, end, parent)

    def connect(self, name, start, end):
        """Adds an edge from one block to another, once."""
        self._edges.setdefault(name, {})[start, end] = None

    def mention(self, name, mention):
        self._mentions.setdefault(name, []).append(mention)

    def new_table(self):
        """Returns the number of a new table."""
        self._num_tables += 1
        return self._num_tables - 1

    def document(self, example_id="", extra=None):
        return Document(
            texts=tuple(self._texts),
            text_names=tuple(self._names),
            blocks=tuple(self.blocks),
            edges={name: tuple(pairs) for name, pairs in self._edges.items()},
            mentions={name: tuple(spans) for name, spans in self._mentions.items()},
            cells=tuple(self.cells),
            example_id=example_id,
            extra=extra or {},
        )
