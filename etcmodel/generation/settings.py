"""Settings of text generation."""

import dataclasses
import math

__all__ = ["GenerationSettings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """Settings of a search, with the names and defaults of Hugging Face's `generate`.

    Attributes:
        max_length: int. The most tokens of a sequence, including the start token or the prompt.
        min_length: int, at most `max_length`. There is no end token before so many tokens,
            including the start token or the prompt.
        num_beams: int. 1 for greedy search or sampling.
        num_return_sequences: int, at most `num_beams`. Sequences returned per input.
        length_penalty: float. Scores of beams are divided by (tokens without the start token or
            the prompt) to the power of it.
        early_stopping: True: an input is done once it has `num_beams` finished beams; False: once
            no running beam would be better if it ended now; "never": once none can become better.
        no_repeat_ngram_size: int. No n-gram of this size may repeat; 0 for no such rule.
        forced_bos_token_id: int or None. The token forced after the start token.
        forced_eos_token_id: int or None. The token forced at `max_length`.
        do_sample: bool. Whether to draw tokens at random instead of the most probable; with one
            beam.
        temperature: float. Logits are divided by it before sampling.
        top_k: int. Samples from the k most probable tokens; 0 for all.
        top_p: float. Samples from the fewest tokens with at least this total probability; 1 for
            all.
        seed: int, or int32 scalar in a graph. Equal seeds draw equal tokens.
        decoder_start_token_id: int or None. The first token; None for the config's.
        eos_token_id, pad_token_id: int or None. The end token, and the one after it; likewise.
    Raises:
        ValueError: naming the setting, if one is out of range, or settings contradict each other.

    >>> from etcmodel.generation import GenerationSettings
    >>> settings = GenerationSettings(max_length=64, num_beams=4)
    >>> settings.num_beams, settings.length_penalty
    (4, 1.0)
    """

    max_length: int = 21
    min_length: int = 0
    num_beams: int = 1
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    no_repeat_ngram_size: int = 0
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    seed: int = 0
    decoder_start_token_id: int | None = None
    eos_token_id: int | None = None
    pad_token_id: int | None = None

    def __post_init__(self):
        least = {
            "max_length": 2,
            "min_length": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "no_repeat_ngram_size": 0,
            "top_k": 0,
        }
        for name, number in least.items():
            if not getattr(self, name) >= number:
                raise ValueError(
                    f"`{name}` must be at least {number}. Received: {getattr(self, name)}"
                )
        if self.min_length > self.max_length:
            raise ValueError(
                "`min_length` must be at most `max_length`, or no sequence could end. Received: "
                f"{self.min_length}, {self.max_length}. Both count the start token, which "
                "`min_new_tokens` and `max_new_tokens` do not."
            )
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(
                "`early_stopping` must be True, False or 'never'. Received: "
                f"{self.early_stopping!r}"
            )
        for name in ("length_penalty", "temperature", "top_p"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(
                    f"`{name}` must be a finite number. Received: {getattr(self, name)}"
                )
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                "`temperature` must be above 0, and `top_p` above 0 and at most 1. Received: "
                f"{self.temperature}, {self.top_p}"
            )
        if self.num_return_sequences > self.num_beams and not self.do_sample:
            raise ValueError(
                "`num_return_sequences` must be at most `num_beams`. Received: "
                f"{self.num_return_sequences}, {self.num_beams}"
            )
        if self.do_sample and self.num_beams > 1:
            raise ValueError(
                f"`do_sample` goes with one beam. Received: num_beams={self.num_beams}"
            )
