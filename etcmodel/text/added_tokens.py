"""Tokens that users add to a vocabulary, such as `[question]`: no tokenizer splits them.

They are kept in the files of Hugging Face's library: written to `tokenizer_config.json`, as
`added_tokens_decoder`, and to a `tokenizer.json` if that is the vocabulary; read from these, and
from the `added_tokens.json` and `special_tokens_map.json` of its older versions.
"""

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from etcmodel import bounded_json, shown_values
from etcmodel.text import characters, vocabulary

TOKENIZER_FILE, CONFIG_FILE = vocabulary.TOKENIZER_FILE, "tokenizer_config.json"
_OLDER, _SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"
FILES = (TOKENIZER_FILE, CONFIG_FILE, _OLDER, _SPECIAL_MAP)
_DECODER = "added_tokens_decoder"
_FURTHER = ("additional_special_tokens", "extra_special_tokens")
# Hugging Face's files list these tokens of a vocabulary, too. In a text they are ordinary words for
# BERT's own tokenizer, and for this library's.
_OWN = frozenset(
    [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
    + [f"<{name}>" for name in ("s", "/s", "pad", "unk", "mask", "cls", "sep", "bos", "eos")]
)
# Names of T5's and PEGASUS's tokens, which may be listed where a vocabulary does without them.
_OF_SYSTEM = re.compile(r"<(extra_id|unk|mask)_\d+>")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedToken:
    """A token, with the fields that it has in Hugging Face's files.

    Attributes:
        id: int.
        content: str.
        special: bool. Whether decoding may leave it out.
        normalized: bool. Whether it is looked for in the text as the vocabulary has it, such as in
            lower case.
        single_word: bool. Whether it is only found where no letter or digit is beside it.
        lstrip, rstrip: bool. Whether it includes the white space in front of it, or behind.
    """

    id: int
    content: str
    special: bool = False
    normalized: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False

    def entry(self) -> dict[str, Any]:
        """Its fields without the id: dict."""
        return {x: y for x, y in sorted(vars(self).items()) if x != "id"}


def checked(tokens: Any) -> list[str]:
    """Returns tokens to add as a list of str, each once.

    Raises:
        ValueError: naming the argument, if they are something else, or one is empty or blank.
    """
    tokens = [tokens] if isinstance(tokens, str) else tokens
    if not isinstance(tokens, (list, tuple)):
        raise ValueError(f"`tokens` must be a list of str. Received: {shown_values.shown(tokens)}")
    for place, token in enumerate(tokens):
        if not isinstance(token, str) or not token.strip():
            raise ValueError(
                f"`tokens[{place}]` must be a str that is not blank. Received: "
                f"{shown_values.shown(token)}"
            )
    return list(dict.fromkeys(tokens))


class AddedTokens:
    """Finds added tokens in texts.

    Args:
        tokens: `AddedToken`s.
        lower_case: bool. Whether the vocabulary's text is in lower case, without accents.
    """

    def __init__(self, tokens: Iterable[AddedToken] = (), lower_case: bool = False) -> None:
        self.tokens = tuple(sorted(tokens, key=lambda x: x.id))
        self.ids = {x.content: x.id for x in self.tokens}
        self.lower_case = lower_case
        spelled = [x for x in self.tokens if lower_case and x.normalized]
        self._as_is = _pattern({x.content: x for x in self.tokens if x not in spelled})
        self._normalized = _pattern({normalized(x.content)[0].strip(): x for x in spelled})

    def __bool__(self) -> bool:
        return bool(self.tokens)

    def with_more(
        self, names: Sequence[str], special: bool, vocab: Mapping[str, int], size: int
    ) -> "AddedTokens":
        """Returns these tokens with further ones, or the same object if it has them already.

        Args:
            names: of `checked`.
            special: bool.
            vocab: dict of all tokens to their ids; a token that is there keeps its id.
            size: int. The id of the first new one.
        """
        new = [name for name in names if name not in self.ids]
        ids = {x: vocab[x] for x in new if x in vocab}
        ids |= {x: size + i for i, x in enumerate(x for x in new if x not in vocab)}
        kind = {"special": special, "normalized": not special}
        more = [AddedToken(id=ids[x], content=x, **kind) for x in new]
        return AddedTokens([*self.tokens, *more], self.lower_case) if more else self

    def find(self, text: str) -> list[tuple[int, int, int]]:
        """Finds the tokens of a text: list of (first character, end, id), in order."""
        found, begin = [], 0
        for start, end, index in [*_matches(self._as_is, text), (len(text), len(text), None)]:
            if self._normalized is not None and begin < start:
                found += self._in_normalized(text[begin:start], begin)
            if index is not None:
                found.append((start, end, index))
            begin = end
        return found

    def _in_normalized(self, text: str, shift: int) -> Iterator[tuple[int, int, int]]:
        spelled, places = normalized(text)
        for start, end, index in _matches(self._normalized, spelled):
            yield shift + places[start], shift + places[end - 1] + 1, index

    def split(self, text: str) -> list[tuple[int, int, int | None]]:
        """Splits a text at these tokens: list of (start, end, id, or None for what is between)."""
        parts: list[tuple[int, int, int | None]] = []
        begin = 0
        for start, end, index in self.find(text):
            parts += [(begin, start, None)] if begin < start else []
            parts.append((start, end, index))
            begin = end
        return parts + ([(begin, len(text), None)] if begin < len(text) else [])


def pattern_of(name: str, single_word: bool) -> str:
    """Returns the regular expression of a token's name; see `AddedToken.single_word`."""
    return rf"(?<!\w){re.escape(name)}(?!\w)" if single_word else re.escape(name)


def _pattern(by_name: Mapping[str, AddedToken]) -> Any:
    """(pattern of any of these tokens, the longest first; their ids by name); None for none."""
    names = sorted(by_name, key=len, reverse=True)
    texts = [pattern_of(x, by_name[x].single_word) for x in names]
    ids = {name: token.id for name, token in by_name.items()}
    return (re.compile("|".join(texts)), ids) if names else None


def _matches(pattern: Any, text: str) -> Iterator[tuple[int, int, int]]:
    if pattern is not None:
        for match in pattern[0].finditer(text):
            yield match.start(), match.end(), pattern[1][match.group()]


def require(tokenizer: Any, tokens: Iterable[str]) -> None:
    """Checks that a vocabulary has tokens that no pretrained one has.

    Raises:
        ValueError: naming the file and the missing tokens, and how to add them.
    """
    if missing := [token for token in tokens if token not in tokenizer.vocab]:
        raise ValueError(
            f"The vocabulary {str(tokenizer.source_file)!r} lacks the tokens "
            f"{', '.join(missing)}. Add them to the model's folder: "
            "`model.processor.add_tokens`, `model.resize_token_embeddings`."
        )


def normalized(text: str) -> tuple[str, Sequence[int]]:
    """Returns (text in lower case without accents, the place in `text` of each character there)."""
    if text.isascii() and text.isprintable():
        return text.lower(), range(len(text))
    spelled, places = [], []
    for place, char in enumerate(text):
        of_char = characters.strip_accents(characters.CLEAN[ord(char)].lower())
        spelled.append(of_char)
        places += [place] * len(of_char)
    return "".join(spelled), places


# Files.


def with_entries(
    tokens: Sequence[AddedToken], entries: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the entries of a `tokenizer_config.json` with these tokens besides its own.

    Args:
        tokens: sequence of `AddedToken`.
        entries: dict of the file's other entries, or None.
    """
    entries = dict(entries or {})
    ours = {str(x.id): x.entry() for x in tokens}
    return {**entries, _DECODER: {**(entries.get(_DECODER) or {}), **ours}}


def in_tokenizer_json(content: bytes, tokens: Sequence[AddedToken]) -> bytes:
    """Returns the content of a `tokenizer.json` with these tokens among its `added_tokens`."""
    entries = json.loads(content)
    kept = [x for x in entries.get("added_tokens") or [] if x["id"] not in {y.id for y in tokens}]
    ours = [{"id": x.id, **x.entry()} for x in tokens]
    entries["added_tokens"] = sorted([*kept, *ours], key=lambda x: x["id"])
    return json.dumps(entries, ensure_ascii=False, indent=2).encode()


def digest(tokens: Sequence[AddedToken]) -> bytes:
    """Bytes that differ for different added tokens, and are empty for none."""
    return repr([sorted(x.entry().items()) for x in tokens]).encode() if tokens else b""


def beside(vocab_file: Any, vocab: Mapping[str, int] | None = None) -> tuple[AddedToken, ...]:
    """Reads the tokens that were added to a vocabulary from the files beside it.

    Args:
        vocab_file: str.
        vocab: dict of the vocabulary's tokens to their ids. None: the ids are not checked.
    Returns:
        tuple of `AddedToken`, in the order of their ids. Tokens of the vocabulary itself that a
        file lists are among them, and so are not split, except usual ones such as `[SEP]`.
    Raises:
        ValueError: naming the file and the token, if an entry is none, or an id is another token's.
    """
    found: dict[str, AddedToken] = {}
    ids = dict(vocab or {})
    names = {index: token for token, index in ids.items()}
    for path, entry in _entries(os.path.dirname(str(vocab_file))):
        token = _token(path, entry, ids, max(names, default=-1) + 1)
        is_further = "id" not in entry and token.content not in ids
        if token.content in _OWN or is_further and _OF_SYSTEM.fullmatch(token.content):
            continue
        known = ids.setdefault(token.content, token.id), names.setdefault(token.id, token.content)
        if vocab is not None and known != (token.id, token.content):
            raise ValueError(
                f"{path}: the added token {token.content!r:.80} has the id {token.id}, which is "
                f"that of {names[token.id]!r:.80}, or another one elsewhere in the folder. Make "
                "the files agree."
            )
        found.setdefault(token.content, token)
    return tuple(sorted(found.values(), key=lambda x: x.id))


def _entries(folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, fields) of all tokens that files list; a file that is read later may repeat some."""
    files = {}
    for name in FILES:
        path = os.path.join(folder, name)
        if vocabulary.exists(path):
            files[name] = path, bounded_json.load_object(vocabulary.read_bytes(path), path)
    special = [
        (path, {"content": x} if isinstance(x, str) else x)
        for name, (path, entries) in files.items()
        for field in _FURTHER
        for x in (entries.get(field) or [] if name in (CONFIG_FILE, _SPECIAL_MAP) else [])
    ]
    names = [x.get("content") if isinstance(x, Mapping) else None for _, x in special]
    for name, (path, entries) in files.items():
        if name == TOKENIZER_FILE:
            yield from ((path, x) for x in entries.get("added_tokens") or [])
        elif name == CONFIG_FILE:
            yield from (
                (path, {"id": _number(index), **x} if isinstance(x, Mapping) else x)
                for index, x in (entries.get(_DECODER) or {}).items()
            )
        elif name == _OLDER:
            for content, index in entries.items():
                kind = {"special": content in names, "normalized": content not in names}
                yield path, {"id": index, "content": content, **kind}
    for path, entry in special:
        yield path, {"special": True, **entry} if isinstance(entry, Mapping) else entry


def _number(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _token(path: str, entry: Any, ids: Mapping[str, int], next_id: int) -> AddedToken:
    """The token of an entry; without an id it has that of its name, or the next one."""
    kinds = {field.name: field.type for field in dataclasses.fields(AddedToken)}
    fields = {x: y for x, y in entry.items() if x in kinds} if isinstance(entry, Mapping) else {}
    if isinstance(name := fields.get("content"), str):
        fields = {"id": ids.get(name, next_id), **fields}
    if not fields.get("content") or any(type(x) is not kinds[name] for name, x in fields.items()):
        raise ValueError(f"{path}: this is no added token: {shown_values.shown(entry)}")
    if not 0 <= fields["id"] <= bounded_json.MAX_INT:
        raise ValueError(f"{path}: an added token has the id {fields['id']}.")
    return AddedToken(**fields)


def stale(folder: str, written: Iterable[str], known: Iterable[str]) -> list[str]:
    """Returns the names of older files of a folder that list tokens which a vocabulary lacks.

    Args:
        folder: str.
        written: names of the files that are written now.
        known: the vocabulary's added tokens, and those of its system.
    """
    known = _OWN.union(known)
    listed = [
        (os.path.basename(path), entry.get("content") if isinstance(entry, Mapping) else None)
        for path, entry in _entries(folder)
    ]
    names = {name: None for name, token in listed if token not in known}
    return [name for name in names if name not in set(written)]
