"""Settings of a processor: what its batches contain, and what is truncated."""

import dataclasses
import math
import typing
from collections.abc import Mapping

from typing_extensions import Self

from etcmodel import bounded_json, shown_values, signatures
from etcmodel.text import sentence_splitting, truncation

CONFIG_FILENAME = "processor_config.json"
MENTIONS = "mentions"  # Words that refer to a block, such as those of a link.

_CHOICES = {
    "sentence_splitter": sentence_splitting.SENTENCE_SPLITTERS,
    "question_globals": ("block", "tokens"),
    "pad_to": ("longest", "max"),
    "truncation": ("tokens", "blocks", "error"),
    "give_way": truncation.GIVE_WAY,
}
_LEAST = {
    "max_long_len": 1,
    "max_global_len": 0,
    "pad_to_multiple_of": 1,
    "stride": 0,
    "global_token_id": 0,
    "segment_id": 0,
    "long_radius": 1,
    "question_separators": 1,
}
_NEVER_NONE = ("pad_to_multiple_of", "long_radius", "question_separators")
_NAMES = ("relation_names", "mention_names", "long_relation_names")
_MOST_PADDING = 1 << 16  # Every row gets up to that many tokens of padding.
_MOST_SEGMENTS = 2**31 - 1  # Batches are of int32.
_DICTS = {"global_tokens": str, "segments": int, "global_segments": int}

_SPECIAL_TOKENS = ("cls_token", "sep_token", "pad_token")
_FIXED = (
    *("do_lower_case", "split_punctuation", "global_token_id", "global_tokens"),
    *_SPECIAL_TOKENS,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessorConfig:
    """Settings of `EtcProcessor`, saved in `processor_config.json`.

    Attributes:
        do_lower_case: bool. For word pieces: lower-case text and strip accents.
        split_punctuation: bool. For sentence pieces: see `tokenization.FullTokenizer`.
        sentence_splitter: str, one of `sentence_splitting.SENTENCE_SPLITTERS`. For texts that come
            without sentences.
        main_only: bool. Whether to read only the main text of web pages, without navigation,
            headers and footers of the page, asides, and lists of links.
        relation_names: tuple of str. Relations that batches contain, in the order in which the
            model numbers their labels. See `relations` for those that every document has.
        mention_names: tuple of str. Relations between long and global tokens; all others are
            between global tokens.
        long_relation_names: tuple of str. Relations between global tokens that also hold among long
            tokens: between each token of a block and each of a related one, at most `long_radius`
            positions apart, such as the words of two cells of a row.
        long_radius: int. At most the model's `local_radius`.
        whole_token: bool. Whether the first global token stands for the whole example.
        question_globals: str. Whether the question has one global token ("block") or one for each
            of its tokens ("tokens"), as in NQ, HotpotQA and WikiHop. The latter have the ids of the
            question's tokens, unless `global_tokens` names one for the kind "question", as the
            tasks do.
        special_tokens: bool. Whether the long input begins with [CLS], and [SEP] ends the question
            and the text.
        separators: bool. False: no [SEP], as in HotpotQA and WikiHop.
        question_separators: int. How many [SEP] end a question that a text follows: 2 in RoBERTa
            and Longformer.
        position_ids: bool. Whether batches contain positions, from 0 in each example.
        cls_token, sep_token, pad_token: str or None. None for the vocabulary's own.
        global_token_id: int or None. The id of blocks' global tokens, None for that of the CLS
            token. The authors' checkpoints were trained with 1 (in BERT's vocabulary, [unused0]).
        global_tokens: dict of str to str. The token whose id global tokens of a kind of block have
            instead; "whole" is the kind of the first one, by default the CLS token.
        segment_id: int or None. `segment_ids` of all long tokens. None: 1 for the text after a
            question, else 0, as in BERT. The authors' checkpoints were trained with 1.
        segments: dict of str to int. `segment_ids` by kind of block; as above for others.
        global_segments: dict of str to int. `global_segment_ids` by kind of block, 0 for others.
        max_long_len, max_global_len: int or None. The most tokens of an example.
        truncation: str. How an example that is too long is truncated: "blocks" keeps blocks whole,
            "tokens" may cut the last one, "error" refuses to truncate.
        give_way: str. Which part is truncated: the "end", the "start" or, with several documents,
            the end of the "longest". The question never is.
        stride: int or None. With a number, what does not fit goes into further windows, which
            repeat about as many tokens; nothing is truncated.
        pad_to: str. Pads to the "longest" example of the batch, or to the "max" lengths above.
        pad_to_multiple_of: int. Lengths, and numbers of edges, are rounded up to it.
        pack: bool. Whether to put several examples into a row of the max lengths, if they fit.

    Raises:
        ValueError: naming the setting and its value.
    """

    do_lower_case: bool = True
    split_punctuation: bool = False
    sentence_splitter: str = "multilingual"
    main_only: bool = False
    relation_names: tuple = ()
    mention_names: tuple = (MENTIONS,)
    long_relation_names: tuple = ()
    long_radius: int = 84
    whole_token: bool = True
    question_globals: str = "block"
    special_tokens: bool = True
    separators: bool = True
    question_separators: int = 1
    position_ids: bool = False
    cls_token: str | None = None
    sep_token: str | None = None
    pad_token: str | None = None
    global_token_id: int | None = None
    global_tokens: dict = dataclasses.field(default_factory=dict)
    segment_id: int | None = None
    segments: dict = dataclasses.field(default_factory=dict)
    global_segments: dict = dataclasses.field(default_factory=dict)
    max_long_len: int | None = None
    max_global_len: int | None = None
    truncation: str = "tokens"
    give_way: str = "end"
    stride: int | None = None
    pad_to: str = "longest"
    pad_to_multiple_of: int = 1
    pack: bool = False

    def __post_init__(self) -> None:
        for name in _NAMES:
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is bool and not isinstance(value, bool):
                _fail(field.name, "True or False", value)
            is_token = field.name in _SPECIAL_TOKENS
            if is_token and not (value is None or isinstance(value, str)):
                _fail(field.name, "a token (str) or None", value)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                _fail(name, f"one of {choices}", getattr(self, name))
        for name, least in _LEAST.items():
            value = getattr(self, name)
            is_open = value is None and name not in _NEVER_NONE
            if not is_open and (type(value) is not int or value < least):
                _fail(name, f"an int of at least {least}", value)
            most = _MOST_PADDING if name == "pad_to_multiple_of" else bounded_json.MAX_INT
            if not is_open and value > most:
                _fail(name, f"at most {most}", value)
        for name, kind in _DICTS.items():
            _check_dict(name, getattr(self, name), kind)
        for name in ("segments", "global_segments"):
            if any(not 0 <= x <= _MOST_SEGMENTS for x in getattr(self, name).values()):
                what = f"a dict of str to int, from 0 to {_MOST_SEGMENTS}"
                _fail(name, what, getattr(self, name))
        self._check_lengths()

        edges = [x for x in self.relation_names if x not in self.mention_names]
        if not set(self.long_relation_names) <= set(edges):
            _fail("long_relation_names", f"names among {edges}", self.long_relation_names)

    def _check_lengths(self) -> None:
        are_given = self.max_long_len is not None and self.max_global_len is not None
        for name, is_on in (("pad_to='max'", self.pad_to == "max"), ("pack=True", self.pack)):
            if is_on and not are_given:
                raise ValueError(f"`{name}` needs `max_long_len` and `max_global_len`.")
        if self.stride is not None:
            if self.max_long_len is None:
                raise ValueError("`stride` needs `max_long_len`, the length of a window.")
            if self.stride >= self.max_long_len:
                _fail("stride", f"below `max_long_len` {self.max_long_len}", self.stride)

    @property
    def long_limit(self) -> float:
        return math.inf if self.max_long_len is None else self.max_long_len

    @property
    def global_limit(self) -> float:
        return math.inf if self.max_global_len is None else self.max_global_len

    def num_special(self, has_question: bool, has_text: typing.Any) -> tuple:
        """How many special tokens a long input has: in front, behind its question, behind its text.

        Processors and the graphs of exports both read this, and `num_fixed_global`.

        Args:
            has_question: bool.
            has_text: bool, or int tensor of 0 and 1.
        Returns:
            (int, int, int); tensors of the shape of `has_text` for the latter two.
        """
        num_ends = int(self.special_tokens and self.separators)
        question_ends = (1 + has_text * (self.question_separators - 1)) * int(has_question)
        return int(self.special_tokens), question_ends * num_ends, has_text * num_ends

    def num_fixed_global(self, num_questions: int, num_tokens: typing.Any) -> typing.Any:
        """How many global tokens are in front of those of the text's blocks.

        Args:
            num_questions: int.
            num_tokens: int, or int tensor. Tokens of the questions.
        """
        is_by_token = self.question_globals == "tokens"
        return int(self.whole_token) + (num_tokens if is_by_token else num_questions)

    def with_call_settings(self, settings: Mapping[str, typing.Any]) -> Self:
        """Returns the settings of one call.

        Args:
            settings: dict. Overrides these settings; not those that the tokenizer is created with.
        Raises:
            ValueError: naming the setting, if it is unknown, invalid or fixed.
        """
        known = {field.name for field in dataclasses.fields(self)}
        for name in settings:
            if name not in known or name in _FIXED:
                raise ValueError(
                    f"`settings` has {name!r}, which is none of those of a call: "
                    f"{sorted(known - set(_FIXED))}"
                )
        return dataclasses.replace(self, **settings)

    @classmethod
    def from_dict(cls, given: Mapping[str, typing.Any], source: str = "config") -> Self:
        """Creates settings from a dict, such as JSON's.

        Raises:
            ValueError: naming the source, if a setting is unknown or invalid.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(given) - known):
            raise ValueError(
                f"{source}: unknown settings of a processor: {shown_values.named(unknown)}"
            )
        try:
            return cls(**given)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None


class Configured:
    """The base of processors: `help` shows their settings, and `repr` those that were given.

    Attributes:
        config_class: dataclass of the processor's settings, which are the arguments that a subclass
            takes besides `vocab`, and its `config`.
        vocab_size: int.
    """

    config_class: typing.Any = None
    config: typing.Any
    __signature__ = signatures.ClassSignature(
        lambda cls: signatures.settings("vocab", cls.config_class)
    )

    def __repr__(self) -> str:
        usual = vars(type(self.config)())
        given = {x: value for x, value in vars(self.config).items() if value != usual[x]}
        settings = (f", {name}={value!r}" for name, value in given.items())
        size: int = typing.cast(typing.Any, self).vocab_size
        return f"{type(self).__name__}({size:,} tokens{''.join(settings)})"


def _names(name: str, value: typing.Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(x, str) and x for x in value):
        _fail(name, "a list of names", value)
    if len(set(value)) < len(value):
        _fail(name, "a list of different names", value)
    return tuple(value)


def _check_dict(name: str, value: typing.Any, kind: type) -> None:
    if not isinstance(value, dict) or not all(
        isinstance(key, str) and type(entry) is kind for key, entry in value.items()
    ):
        _fail(name, f"a dict of str to {kind.__name__}", value)


def _fail(name: str, wish: str, value: typing.Any) -> typing.NoReturn:
    raise ValueError(f"`{name}` must be {wish}. Received: {shown_values.shown(value)}")
