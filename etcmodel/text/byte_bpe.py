"""Byte-level BPE, of RoBERTa, BART, Longformer, LED and ModernBERT (Radford et al. 2019).

A `tokenizer.json` may be of another kind, such as the sentence pieces of T5. The package
`tokenizers` does the work; it is imported when a tokenizer is created. This module adds reading
files from anywhere, errors that name them, and `FullTokenizer`'s interface.
"""

import dataclasses
import functools
import hashlib
import os

import numpy as np

from etcmodel import atomic_files, bounded_json, extras, file_systems, shown_values
from etcmodel.text import added_tokens, characters, fairseq_pieces, vocabulary

TOKENIZER_FILE = vocabulary.TOKENIZER_FILE
VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"
NAMES = (TOKENIZER_FILE, VOCAB_FILE, fairseq_pieces.FILE_NAME)  # In a folder, the first is used.
SPECIAL_FILE, _SETTINGS_FILE = "special_tokens_map.json", "tokenizer_config.json"
_MODEL_FILE, _PROCESSOR_FILE = "config.json", "processor_config.json"  # The latter is our own.
# Classes of tokenizers there, of byte-level BPE and of sentence pieces, that make their normalizer
# themselves from version 5 on; and the parts that it has.
_OF_BYTES = ("RobertaTokenizer", "LongformerTokenizer", "LEDTokenizer", "BartTokenizer")
# What that library takes for a folder whose files name no class, by the type of its model.
_OF_MODELS = {
    **dict.fromkeys(("bart", "longformer", "roberta"), "RobertaTokenizer"),
    "bert": "BertTokenizer",
    "led": "LEDTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "big_bird": "BigBirdTokenizer",
    "t5": "T5Tokenizer",
    "pegasus": "PegasusTokenizer",
}
# Of these it takes all from a `tokenizer.json`, whatever class files name.
_TAKEN_WHOLE = ("modernbert", "pegasus_x", "bigbird_pegasus")
_OF_ANY = "PreTrainedTokenizerFast"  # It takes all from a `tokenizer.json`.
_OF_PIECES = (
    *("XLMRobertaTokenizer", "CamembertTokenizer", "BigBirdTokenizer"),
    *("T5Tokenizer", "PegasusTokenizer"),
)
_OF_SENTENCE_PIECES = ("Precompiled", "Replace", "Strip", "Nmt", "NFKC", "Prepend")
_SETTINGS = ("add_prefix_space", "mask_takes_space")  # A `tokenizer.json` has its own.
_BOS, _PAD, _EOS, _UNK, _MASK = _SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
# The parts of a `tokenizer.json`, and the modules of the package that have their types.
_PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pre_tokenizers",
    "model": "models",
    "post_processor": "processors",
    "decoder": "decoders",
}
# The names of the start, padding and end in a `tokenizer.json`: of RoBERTa, ModernBERT and Gemma.
_STARTS, _PADS, _ENDS = ((_BOS, "[CLS]", "<bos>"), (_PAD, "[PAD]"), (_EOS, "[SEP]", "<eos>"))


@dataclasses.dataclass(frozen=True)
class Encoding:
    """The tokens of a text, or of a pair of texts.

    Attributes:
        ids: list of int.
        tokens: list of str. Bytes are written as characters; a space is "Ġ".
        offsets: list of (start, end). The characters of the text that a token covers, without the
            space in front of it; (0, 0) for tokens added around the texts.
    """

    ids: list
    tokens: list
    offsets: list


class ByteLevelTokenizer:
    """Byte-level BPE: text to tokens to ids, and back; no text is unknown.

    A text becomes `<s> A </s>`, a pair `<s> A </s></s> B </s>`, or what a `tokenizer.json` says.
    The names of special tokens in a text are read as these tokens, as are those of added tokens:
    see `tokenization.FullTokenizer`.

    Args:
        vocab_file: str. A `vocab.json`; or a `tokenizer.json`, which holds all settings; or a
            `sentencepiece.bpe.model` of XLM-RoBERTa or CamemBERT, which becomes one.
        merges_file: str or None. By default `merges.txt` beside `vocab.json`.
        add_prefix_space: bool. Whether a text is read as if it began with a space.
        mask_takes_space: bool. Whether `<mask>` includes the white space in front of it, as in
            Hugging Face's tokenizers before version 5.
    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming the file, if one is damaged or lacks special tokens.
    """

    needed = (_STARTS, _PADS, _ENDS)  # A vocabulary must have one token of each.
    sp_model = None  # It has no SentencePiece model.
    split_punctuation = False

    def __init__(
        self, vocab_file, merges_file=None, *, add_prefix_space=False, mask_takes_space=False
    ):
        self.source_file = str(vocab_file)
        self._settings = {
            "add_prefix_space": add_prefix_space,
            "mask_takes_space": mask_takes_space,
        }
        self._files = contents(self.source_file)
        if self.is_whole(self.source_file):
            self._tokenizer = _whole(self.source_file, *self._files.values())
        else:
            merges_file = merges_file or os.path.join(
                os.path.dirname(self.source_file), MERGES_FILE
            )
            self._files[os.path.basename(str(merges_file))] = vocabulary.read_bytes(merges_file)
            self._tokenizer = _of_merges(
                *zip((self.source_file, str(merges_file)), self._files.values(), strict=True),
                add_prefix_space=add_prefix_space,
                mask_takes_space=mask_takes_space,
            )
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._own = self._tokenizer.get_vocab(with_added_tokens=True)
        found, in_file = added_tokens.beside(self.source_file, self._own), self.of_system
        self._set_added(added_tokens.AddedTokens(x for x in found if x.content not in in_file))
        # A `tokenizer.json` may say what stands around texts, whatever its name.
        told = (_STARTS, _ENDS) if any(self.around()) else ()
        unknown = [x for x in self.needed if self.vocab.keys().isdisjoint(x) and x not in told]
        self.require_tokens([names[0] for names in unknown])
        self.pad_token = next(x for x in _PADS if x in self.vocab)
        self._cutting = functools.lru_cache(maxsize=64)(self._cutting_to)

    @staticmethod
    def is_whole(path):
        """Returns whether a file holds all settings, so that what is beside it adds none: bool."""
        return str(path).endswith(TOKENIZER_FILE) or fairseq_pieces.is_of(path)

    @property
    def file_name(self):
        """str. The name of the vocabulary in a folder that it is saved to."""
        return next(iter(self._files))

    @classmethod
    def from_pretrained(cls, folder, **settings):
        """Loads the tokenizer of a folder in Hugging Face's layout.

        Args:
            folder: str. With `tokenizer.json`, or `vocab.json` and `merges.txt`, and optionally
                `tokenizer_config.json`; or the `sentencepiece.bpe.model` of XLM-RoBERTa or
                CamemBERT.
            **settings: arguments of the class.
        Raises:
            ValueError: see the class; also naming the folder, if it has no such files.
        """
        atomic_files.settle(folder)
        found = [x for name in NAMES if vocabulary.exists(x := os.path.join(folder, name))]
        if not found:
            raise ValueError(f"{str(folder)!r} has none of {', '.join(NAMES)}.")
        return cls.of_file(found[0], **settings)

    @classmethod
    def of_file(cls, path, **settings):
        """Loads the tokenizer of a file, with the settings stored beside a `vocab.json`.

        Args:
            path: str. See the class; beside a `vocab.json` there may be a
                `tokenizer_config.json` and a `special_tokens_map.json`.
            **settings: arguments of the class.
        Raises:
            FileNotFoundError, ValueError: see the class; also if the settings beside a
                `tokenizer.json` contradict it.
        """
        folder = os.path.dirname(path)
        given, entries = os.path.join(folder, _SETTINGS_FILE), _read(folder, _SETTINGS_FILE)
        if cls.is_whole(path):
            _check_as_rebuilt(path, given, entries)
        else:
            taken = {**_mask_settings(folder, entries), **entries}
            found = {name: x for name in _SETTINGS if (x := taken.get(name)) is not None}
            for name, value in found.items():
                if type(value) is not bool:
                    raise ValueError(
                        f"{given}: `{name}` must be true or false. Received: {value!r:.80}"
                    )
            settings = {**found, **settings}
        return cls(path, **settings)

    @property
    def of_system(self):
        """set of str: the tokens that are not split, those of the file itself among them."""
        return {x.content for x in self._tokenizer.get_added_tokens_decoder().values()}

    def _listed(self):
        """list of `AddedToken`: the tokens that are not split."""
        names = [x.name for x in dataclasses.fields(added_tokens.AddedToken) if x.name != "id"]
        return [
            added_tokens.AddedToken(id=index, **{x: getattr(token, x) for x in names})
            for index, token in self._tokenizer.get_added_tokens_decoder().items()
        ]

    def _set_added(self, added):
        import tokenizers

        known = self.of_system
        new = [tokenizers.AddedToken(**x.entry()) for x in added.tokens if x.content not in known]
        self._tokenizer.add_tokens(new)
        self.added = added
        self.vocab = self._tokenizer.get_vocab(with_added_tokens=True)
        self.inv_vocab = {index: token for token, index in self.vocab.items()}
        for token in added.tokens:
            if self.vocab[token.content] != token.id:
                raise ValueError(
                    f"The vocabulary {self.source_file!r} has {len(self._own)} tokens: the added "
                    f"token {token.content!r} cannot have the id {token.id}. The ids of added "
                    "tokens must follow one another."
                )

    def add_tokens(self, tokens, special_tokens=False):
        """Adds tokens that are then not split: see `tokenization.FullTokenizer.add_tokens`."""
        names, size = added_tokens.checked(tokens), max(self.vocab.values()) + 1
        before = len(self.vocab)
        self._set_added(self.added.with_more(names, special_tokens, self.vocab, size))
        self._cutting.cache_clear()
        return len(self.vocab) - before

    @property
    def is_of_pieces(self):
        """bool. Whether it has sentence pieces, from a `tokenizer.json`."""
        return type(self._tokenizer.model).__name__ == "Unigram"

    @functools.cached_property
    def offsets_begin_at_spaces(self):
        """bool. Whether the characters of a piece include the white space in front, as its bytes.

        A `tokenizer.json` says so for ModernBERT, but not for RoBERTa.
        """
        ((_, offsets),) = self.pieces_of(["a a"])
        return any(start == 1 for start, _ in offsets)

    @property
    def vocabulary(self):
        """list of str: the tokens."""
        return list(self.vocab)

    def tokenize(self, text):
        """Returns the tokens of `text` (str or bytes), a list of str, without special ones."""
        text = vocabulary.convert_to_unicode(text)
        # The package's own names of tokens have the space in front that "[MASK]" includes.
        return self.convert_ids_to_tokens(
            self._tokenizer.encode(text, add_special_tokens=False).ids
        )

    def tokenize_words(self, text):
        """Returns (ids, 1 for each that starts a word and 0 for others): two lists of int.

        Words are the parts into which the pattern splits a text, before any merges.
        """
        text = characters.replace_surrogates(text)
        found = self._tokenizer.encode(text, add_special_tokens=False)
        words = found.word_ids
        pairs = zip([None, *words], words, strict=False)
        # A special token belongs to no word.
        return found.ids, [int(word is None or word != before) for before, word in pairs]

    def pieces_of(self, texts):
        """Returns the pieces of each text without special tokens: a list of (ids, offsets).

        Args:
            texts: list of str. Halves of surrogate pairs, which UTF-8 lacks, are read as U+FFFD.
        """
        texts = list(map(characters.replace_surrogates, texts))
        found = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [(x.ids, x.offsets) for x in found]

    def convert_tokens_to_ids(self, tokens):
        """Returns the ids of `tokens`; raises KeyError for an unknown one."""
        return vocabulary.convert_by_vocab(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids):
        """Returns the tokens of `ids` (a sequence of int)."""
        return vocabulary.convert_by_vocab(self.inv_vocab, map(int, ids))

    def encode(self, text, pair=None, max_length=None, truncation="longest_first"):
        """Returns the `Encoding` of a text, or of a pair, with special tokens around them.

        Args:
            text: str.
            pair: str or None.
            max_length: int or None. The most tokens, including those around the texts.
            truncation: 'longest_first', 'only_first' or 'only_second': which text is truncated.
        Raises:
            ValueError: if the text to truncate is too short.
        """
        tokenizer = self._tokenizer if max_length is None else self._cutting(max_length, truncation)
        try:
            found = tokenizer.encode(text, pair)
        except Exception as error:  # The package has no error class of its own.
            raise ValueError(
                f"The texts cannot be cut to {max_length} tokens ({truncation}): {error}"
            ) from None
        return Encoding(found.ids, self.convert_ids_to_tokens(found.ids), found.offsets)

    def around(self):
        """Returns the ids put in front of and behind a text: two lists, empty if unknown."""
        found = self._tokenizer.encode("a")
        own = [place for place, added in enumerate(found.special_tokens_mask) if not added]
        return (found.ids[: own[0]], found.ids[own[-1] + 1 :]) if own else ([], [])

    def _cutting_to(self, max_length, truncation):
        """A tokenizer that truncates; the original one is unchanged for other threads."""
        cutting = type(self._tokenizer).from_str(self._tokenizer.to_str())
        cutting.enable_truncation(max_length, strategy=truncation)
        return cutting

    def __call__(
        self, texts, pairs=None, *, max_length=None, truncation="longest_first", multiple_of=1
    ):
        """Tokenizes texts, or pairs, into a batch for `LongformerModel`.

        Args:
            texts: list of str.
            pairs: list of str, as many, or None.
            max_length: see `encode`.
            truncation: see `encode`.
            multiple_of: int. The length of the batch is padded to a multiple of it.
        Returns:
            dict of int32 [batch, length]: `input_ids`, padded with the token for this, and
        `attention_mask`.
        """
        pairs = [None] * len(texts) if pairs is None else pairs
        rows = [
            self.encode(text, pair, max_length, truncation).ids
            for text, pair in zip(texts, pairs, strict=True)
        ]
        length = -(-max(map(len, rows), default=0) // multiple_of) * multiple_of
        ids = np.full([len(rows), length], self.vocab[self.pad_token], np.int32)
        mask = np.zeros([len(rows), length], np.int32)
        for number, row in enumerate(rows):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        return {"input_ids": ids, "attention_mask": mask}

    def decode(self, ids, skip_special_tokens=False):
        """Returns the text of `ids`; bytes that are not UTF-8 become U+FFFD."""
        return self._tokenizer.decode(list(map(int, ids)), skip_special_tokens=skip_special_tokens)

    def source_sha256(self):
        """Returns a hexadecimal digest of the files: the same for the same vocabulary."""
        added = [x for x in self.added.tokens if x.content not in self._own]
        content = b"".join(self._files.values()) + added_tokens.digest(added)
        return hashlib.sha256(content).hexdigest()

    def require_tokens(self, tokens):
        """Raises ValueError, naming file and tokens, if the vocabulary lacks given tokens."""
        if missing := [token for token in tokens if token not in self.vocab]:
            raise ValueError(
                f"The vocabulary {self.source_file!r} lacks the tokens {', '.join(missing)}."
            )

    def save_pretrained(self, folder):
        """Writes the files to a folder as they were read, and settings that are not defaults.

        Added tokens are written, too: see `added_tokens`.
        """
        *_, last = self._files
        settings = self._settings if any(self._settings.values()) else {}
        if self._settings["mask_takes_space"]:  # Hugging Face's library looks for it here.
            kinds = {"lstrip": True, "normalized": False, "rstrip": False, "single_word": False}
            settings = {
                **settings,
                "mask_token": {"__type": "AddedToken", "content": _MASK, **kinds},
            }
        whole = self._files.get(TOKENIZER_FILE)
        beside = _read(os.path.dirname(self.source_file), _SETTINGS_FILE)
        if whole:
            entries = bounded_json.load_object(whole, self.source_file)
            if _prefix_space(entries):
                settings = {**settings, "add_prefix_space": True}
            if _lost(entries, self.is_of_pieces):
                kind = {"tokenizer_class": beside.get("tokenizer_class") or _OF_ANY}
                settings = {**beside, **settings, **kind}
        if self.added:
            settings = {**beside, **settings}
            # That library takes all tokens that are not split from here, if it finds this entry.
            tokens = self._listed() if whole else self.added.tokens
            settings = added_tokens.with_entries(tokens, settings)
        with atomic_files.scratch_folder(os.path.join(folder, last)) as scratch:
            if settings:
                atomic_files.write_json(os.path.join(scratch, _SETTINGS_FILE), settings)
            for name, content in self._files.items():
                if name == TOKENIZER_FILE and self.added:
                    content = added_tokens.in_tokenizer_json(content, self.added.tokens)
                vocabulary.write_bytes(os.path.join(scratch, name), content)
            names = file_systems.file_system(scratch).names(scratch)
            atomic_files.move_all(scratch, last, added_tokens.stale(folder, names, self.of_system))


def contents(path):
    """Returns a vocabulary's file as it is in a model's folder: dict of its name to its bytes."""
    content = vocabulary.read_bytes(path)
    if not fairseq_pieces.is_of(path):
        return {os.path.basename(path): content}
    made = fairseq_pieces.tokenizer_json(content, fairseq_pieces.model_type_of(path), path)
    return {TOKENIZER_FILE: made.encode()}


def _read(folder, name):
    """The entries of a file of a folder: dict, empty without that file."""
    path = os.path.join(folder, name)
    if not vocabulary.exists(path):
        return {}
    return bounded_json.load_object(vocabulary.read_bytes(path), path)


def _mask_settings(folder, entries):
    """What Hugging Face's files say of the white space in front of `<mask>`: dict of settings."""
    listed = entries.get("added_tokens_decoder")
    if isinstance(listed, dict):
        named = (x for x in listed.values() if isinstance(x, dict) and x.get("content") == _MASK)
        token = next(named, entries.get("mask_token"))
    else:
        token = {**entries, **_read(folder, SPECIAL_FILE)}.get("mask_token")
    takes_space = isinstance(token, dict) and token.get("lstrip") is True
    return {"mask_takes_space": True} if takes_space else {}


def _check_as_rebuilt(path, given, entries):
    """Checks that a `tokenizer.json` means what Hugging Face's library makes of both files.

    The classes of some systems take the pieces alone from it, and all else from `given`.
    """
    if fairseq_pieces.is_of(path):
        return
    kind, told = class_of(os.path.dirname(path), entries)
    value = entries.get("add_prefix_space", False if kind in _OF_BYTES else None)
    if not isinstance(value, bool) and kind not in _OF_PIECES:
        return
    whole = bounded_json.load_object(vocabulary.read_bytes(path), path)
    own = _prefix_space(whole) if isinstance(value, bool) else None
    if own not in (None, value):
        default = "" if "add_prefix_space" in entries else f", the default of {kind}"
        raise ValueError(
            f"{given}: `add_prefix_space` is {value}{default}, that of the `pre_tokenizer` in "
            f"{path!r} is {own}. Make the files agree."
        )
    if kind not in (*_OF_BYTES, *_OF_PIECES):
        return
    if lost := _lost(whole, kind in _OF_PIECES):
        raise ValueError(
            f"{given}: {told} leaves out the `normalizer` of type {shown_values.shown(lost[0])} in "
            f"{path!r} from transformers 5 on. If it is meant, write there "
            f'"tokenizer_class": "{_OF_ANY}".'
        )


def class_of(folder, entries):
    """Finds the class that Hugging Face's library reads a folder's tokenizer with.

    Args:
        folder: str.
        entries: dict. Those of its `tokenizer_config.json`.
    Returns:
        (str, without "Fast", "" if none is known; str that says where it is told).
    """
    kind = entries.get("tokenizer_class")
    told = f"its `tokenizer_class`, {kind},"
    config = _read(folder, _MODEL_FILE)
    model_type = config.get("model_type")
    if model_type in _TAKEN_WHOLE:
        return "", ""
    if kind is None and not vocabulary.exists(os.path.join(folder, _PROCESSOR_FILE)):
        kind = config.get("tokenizer_class")
        told = f"the `tokenizer_class` of {_MODEL_FILE}, {kind},"
        if kind is None and isinstance(model_type, str):
            kind = _OF_MODELS.get(model_type)
            told = f"without a `tokenizer_class`, that of `model_type` {model_type!r}, {kind},"
    return (kind.removesuffix("Fast") if isinstance(kind, str) else ""), told


def _lost(whole, is_of_pieces):
    """The types of normalizers in a `tokenizer.json` that a class with its own leaves out: list."""
    kept = _OF_SENTENCE_PIECES if is_of_pieces else ()
    return [x for x in _kinds(whole.get("normalizer")) if x not in kept]


def _kinds(part):
    """The types of a part, or of those that it is a sequence of: list."""
    if not isinstance(part, dict):
        return []
    inner = part.get("normalizers") if part.get("type") == "Sequence" else None
    return [x for y in inner for x in _kinds(y)] if isinstance(inner, list) else [part.get("type")]


def _prefix_space(entries):
    """Whether a `tokenizer.json` begins texts with a space: bool; None if it is no RoBERTa's."""
    splitter, around = (entries.get(x) or {} for x in ("pre_tokenizer", "post_processor"))
    is_robertas = (splitter.get("type"), around.get("type")) == ("ByteLevel", "RobertaProcessing")
    return bool(splitter.get("add_prefix_space")) if is_robertas else None


def _whole(path, content):
    with extras.needed("text"):
        import tokenizers

    entries = bounded_json.load_object(content, path)
    for name, module in _PARTS.items():
        if unknown := _unknown_kinds(entries.get(name), getattr(tokenizers, module)):
            raise ValueError(
                f"{path!r}: there is no `{name}` of type {shown_values.shown(unknown[0])}. Save "
                "the tokenizer with one of the package `tokenizers`."
            )
    try:
        return tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # The package has no error class of its own.
        raise ValueError(f"{path!r} holds no tokenizer: {error}") from None


def _unknown_kinds(part, known):
    """The types of a part, and of those that it is a sequence of, which a module has not: list."""
    if not isinstance(part, dict):
        return []
    kind = part.get("type")
    inner = next((x for x in part.values() if isinstance(x, list)), [])
    inner = inner if kind == "Sequence" else []
    is_known = kind is None or (isinstance(kind, str) and hasattr(known, kind))
    return [kind] * (not is_known) + [x for one in inner for x in _unknown_kinds(one, known)]


def _of_merges(vocab_file, merges_file, *, add_prefix_space, mask_takes_space):
    """A tokenizer of (path, content) of both files."""
    with extras.needed("text"):
        import tokenizers
        from tokenizers import decoders, models, pre_tokenizers, processors

    vocab = bounded_json.load_object(vocab_file[1], vocab_file[0])
    if not all(type(index) is int for index in vocab.values()):
        raise ValueError(f"{vocab_file[0]!r} must map tokens to numbers.")
    if missing := [token for token in _SPECIAL if token not in vocab]:
        raise ValueError(f"The vocabulary {vocab_file[0]!r} lacks the tokens {', '.join(missing)}.")
    try:
        model = models.BPE(vocab, _merges(*merges_file))
    except Exception as error:  # The package has no error class of its own.
        raise ValueError(f"{merges_file[0]!r} does not fit {vocab_file[0]!r}: {error}") from None
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    around = ((_EOS, vocab[_EOS]), (_BOS, vocab[_BOS]))
    tokenizer.post_processor = processors.RobertaProcessing(
        *around, add_prefix_space=add_prefix_space
    )
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(
                token, special=True, normalized=False, lstrip=mask_takes_space and token == _MASK
            )
            for token in _SPECIAL
        ]
    )
    return tokenizer


def _merges(path, content):
    """list of pairs; the first line may name the version."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} is not UTF-8: {error}") from None
    if not content.strip():
        raise ValueError(f"{path!r} is empty: copy it again from where the vocabulary is from.")
    pairs = []
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = tuple(line.rstrip("\r").split(" "))
        if len(pair) != 2:
            raise ValueError(f"{path}, line {number}: two tokens are needed. Received: {line!r}")
        pairs.append(pair)
    return pairs
