"""The attention page: a text, and what each token attends to, in one HTML file."""

import dataclasses
import html
import re

import numpy as np

from etcmodel import atomic_files, pages
from etcmodel.inspection.attention import MEAN, SIDES
from etcmodel.text import byte_letters
from etcmodel.text.vocabulary import SPIECE_UNDERLINE

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_KEYS_IN_TABLE = 3


def write_page(
    path,
    attention,
    long_tokens,
    global_tokens=(),
    *,
    title="Attention",
    attributions=None,
    sides=SIDES,
):
    """Writes the attention page; the file appears only when it is complete.

    Args:
        path: str.
        attention: list of `Attention` for one example, as returned by `attention(…, top=8)`, with
            any layers, heads and queries. The page contains all entries, so keep the list small.
        long_tokens: sequence of str, one per long token. Pieces of WordPiece ("##ing"),
            SentencePiece and byte-level BPE ("Ġword") are joined into words.
        global_tokens: sequence of str. Names of the global tokens; none for a model whose tokens
            are all long ones, such as a Longformer.
        title: str.
        attributions: pair of float [long_len] and [global_len], such as the rows for one example in
            `Attributions.tokens`; or None.
        sides: pair of str. Names for the long and the global side, such as ("input", "output") for
            `cross_attention`.
    Raises:
        ValueError: if `attention` is empty, or the number of tokens does not match it.
        OSError: if the file cannot be written.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> found = inspection.attention(model, model.processor("Good!"), heads=[0], top=4)
    >>> inspection.write_page("page.html", found, ["[CLS]", "good", "!", "[SEP]"], ["all", "Good!"])
    >>> tf.io.gfile.exists("page.html")
    True
    """
    options = {"title": title, "attributions": attributions, "sides": sides}
    page = render_page(attention, long_tokens, global_tokens, **options)
    atomic_files.write_text(path, [page])


def render_page(
    attention,
    long_tokens,
    global_tokens=(),
    *,
    title="Attention",
    attributions=None,
    sides=SIDES,
):
    """Returns the attention page as str; see `write_page`."""
    long_tokens, global_tokens = ([_clean(x) for x in y] for y in (long_tokens, global_tokens))
    _check(attention, (long_tokens, global_tokens), attributions)
    sides = [_clean(side) for side in sides]
    data = {
        "sides": sides,
        "long": _words(long_tokens)[1],
        "global": global_tokens,
        "attention": [rows for part in attention for rows in _rows(part)],
    }
    if attributions is not None:
        joined = np.concatenate([np.asarray(x, np.float64) for x in attributions])
        data["attributions"] = [float(f"{x:.6g}") for x in joined]
    return pages.render(
        "inspection",
        data,
        title=html.escape(_clean(title)),
        long_side=html.escape(sides[0]),
        global_side=html.escape(sides[1]),
        long_title=html.escape(_title(sides[0])),
        global_title=html.escape(_title(sides[1])),
        controls="\n".join(_controls(data)),
        long_tokens=_html_tokens("long", *_words(long_tokens), 0),
        global_tokens=_html_tokens(
            "global", [True] * len(global_tokens), global_tokens, len(long_tokens)
        ),
        table=_html_table(data),
    )


def _check(attention, tokens, attributions):
    if not attention:
        raise ValueError("`attention` is empty: there is nothing to show.")
    sizes = tuple(map(len, tokens))
    for part in attention:
        if part.num_keys != sizes:
            raise ValueError(
                "The page needs a word for each of {} long and {} global tokens. Received: {} and "
                "{} words".format(*part.num_keys, *sizes)
            )
    if attributions is not None and tuple(map(len, attributions)) != sizes:
        raise ValueError(
            f"`attributions` must have a number for each of {sizes} tokens. Received: "
            f"{tuple(map(len, attributions))}"
        )


def _clean(text):
    """Replaces characters that cannot be stored or displayed."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def _title(side):
    """Unlike `str.capitalize`, keeps other capitals."""
    return side[:1].upper() + side[1:]


def _words(tokens):
    """Whether each token follows a space, and its displayed text."""
    if any(token.startswith(SPIECE_UNDERLINE) for token in tokens):
        begins = [token.startswith(SPIECE_UNDERLINE) for token in tokens]
        return begins, [
            token.removeprefix(SPIECE_UNDERLINE) or SPIECE_UNDERLINE for token in tokens
        ]
    if any(token.startswith(byte_letters.SPACE) for token in tokens):
        begins = [token.startswith(byte_letters.SPACE) for token in tokens]
        return begins, list(map(_shown_bytes, tokens, byte_letters.readable(tokens)))
    begins = [not token.startswith("##") or token == "##" for token in tokens]
    return begins, [x if y else x.removeprefix("##") for x, y in zip(tokens, begins, strict=True)]


def _shown_bytes(token, text):
    """The text of a byte-level token; the token itself if its text would be invisible."""
    text = text.removeprefix(" ")
    is_unseen = text.isspace() or _CONTROL.search(text)
    return token if is_unseen else text or "…"


def _rows(part):
    """The page's data for an `Attention`, by head; keys are numbered with the long ones first."""
    keys = part.key + part.key_side * part.num_keys[0]
    for head in np.unique(part.head):
        here = np.flatnonzero(part.head == head)
        here = here[np.argsort(part.query[here], kind="stable")]
        queries, starts = np.unique(part.query[here], return_index=True)
        yield {
            "layer": part.layer,
            "head": int(head),
            "side": part.query_side,
            "queries": queries.tolist(),
            "starts": [*starts.tolist(), len(here)],
            "keys": keys[here].tolist(),
            "probabilities": [float(f"{x:.6g}") for x in part.probability[here]],
        }


def _controls(data):
    for name in ("layer", "head"):
        options = {row[name]: None for row in data["attention"]}
        names = ("mean of all" if name == "head" and x == MEAN else x for x in options)
        yield _html_choice(name, dict(zip(options, names, strict=True)))
    if "attributions" in data:
        # Who has attributions opens the page for them.
        names = {"attributions": "integrated gradients", "attention": "attention"}
        yield _html_choice("view", names)


def _html_choice(name, options):
    lines = (f'<option value="{value}">{shown}</option>' for value, shown in options.items())
    return f'<label>{name} <select id="{name}" autocomplete="off">{"".join(lines)}</select></label>'


def _html_tokens(side, begins, words, start):
    """The tokens of one side as running text."""
    parts = []
    for number, (begins_word, word) in enumerate(zip(begins, words, strict=True)):
        parts.append(
            f'{" " if begins_word else ""}<span class="token {side}" '
            f'data-token="{start + number}">{html.escape(word)}</span>'
        )
    return "".join(parts)


def _html_table(data):
    """What each query attends to most, for the first layer and head; works without a script."""
    layer, head = (data["attention"][0][name] for name in ("layer", "head"))
    words = data["long"] + data["global"]
    shown = "mean of all heads" if head == MEAN else f"head {head}"
    lines = [
        f"<table><caption>Layer {layer}, {shown}</caption>",
        '<thead><tr><th scope="col">token</th><th scope="col">attends to most</th></tr></thead>',
        "<tbody>",
    ]
    for rows in data["attention"]:
        if (rows["layer"], rows["head"]) != (layer, head):
            continue
        for query, start, end in zip(
            rows["queries"], rows["starts"], rows["starts"][1:], strict=False
        ):
            number = query if rows["side"] == "long" else len(data["long"]) + query
            seen = (
                f"{_html_name(data, words, rows['keys'][i])} {rows['probabilities'][i]:.2f}"
                for i in range(start, min(end, start + _KEYS_IN_TABLE))
            )
            name = _html_name(data, words, number)
            lines.append(f'<tr><th scope="row">{name}</th><td>{", ".join(seen)}</td></tr>')
    return "\n".join([*lines, "</tbody></table>"])


def _html_name(data, words, number):
    num_long = len(data["long"])
    is_long = number < num_long
    side, position = data["sides"][not is_long], number if is_long else number - num_long
    return f"{html.escape(words[number])} ({html.escape(side)} {position})"


@dataclasses.dataclass(frozen=True)
class ShownPage:
    """A page that a notebook shows in a frame, as the value of a cell.

    Attributes:
        html: str. The complete page.
        height: int. Height of the frame, in pixels.
    """

    html: str = dataclasses.field(repr=False)
    height: int = 480

    def _repr_html_(self):
        return (
            '<iframe title="Attention" sandbox="allow-scripts" '
            f'style="width: 100%; border: 1px solid #888" height="{self.height}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def show_page(attention, long_tokens, global_tokens=(), *, height=480, **options):
    """Shows the page of `write_page` in a notebook.

    Args:
        attention, long_tokens, global_tokens: see `write_page`.
        height: int. Height of the frame, in pixels.
        **options: `title`, `attributions`, `sides`: see `write_page`.
    Returns:
        `ShownPage`.
    Raises:
        ValueError: as in `write_page`.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> found = inspection.attention(model, model.processor("Good!"), heads=[0], top=4)
    >>> inspection.show_page(found, ["[CLS]", "good", "!", "[SEP]"], ["[CLS]", "Good!"])
    ShownPage(height=480)
    """
    return ShownPage(render_page(attention, long_tokens, global_tokens, **options), height)
