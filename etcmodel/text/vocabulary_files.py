"""The tokenizer of a vocabulary's file, whatever kind it is."""

from etcmodel.text import byte_bpe, processor_files, tokenization

__all__ = ["open_tokenizer", "sha256"]


def open_tokenizer(vocab_file, spm_model_file=None, *, do_lower_case=True, split_punctuation=False):
    """The tokenizer of the files that a program is given.

    Args:
        vocab_file: str or None. A `tokenizer.json`, or a `vocab.json` with `merges.txt` beside it,
            of byte-level BPE; or word pieces, one a line. Ignored with `spm_model_file`.
        spm_model_file, do_lower_case, split_punctuation: see `tokenization.FullTokenizer`.
    Returns:
        `byte_bpe.ByteLevelTokenizer` or `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the file, if it cannot be read as such, or an option is none of its kind.
    """
    if spm_model_file or not processor_files.is_byte_level(vocab_file):
        return tokenization.FullTokenizer(
            vocab_file,
            do_lower_case,
            spm_model_file=spm_model_file or None,
            split_punctuation=split_punctuation,
        )
    if split_punctuation:
        raise ValueError(
            "`split_punctuation` is for SentencePiece models: byte-level BPE splits text in its "
            f"own way. Leave it out for {str(vocab_file)!r}."
        )
    return byte_bpe.ByteLevelTokenizer.of_file(str(vocab_file))


def sha256(path):
    """Hexadecimal digest of a vocabulary: the `source_sha256` of its tokenizer."""
    if processor_files.is_byte_level(path):
        return open_tokenizer(path).source_sha256()
    return tokenization.file_sha256(path)
