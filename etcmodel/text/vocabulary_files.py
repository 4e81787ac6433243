"""The tokenizer of a vocabulary's file, whatever kind it is."""

from etcmodel.shown_values import as_flag
from etcmodel.text import byte_bpe, processor_files, tokenization

__all__ = ["FIELDS", "of_folder", "open_tokenizer", "sha256"]

FIELDS = ("spm_model_file", "vocab_file")  # Options; the first one that is given counts.


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


def of_folder(folder, given):
    """What a model's folder says of its tokenizer, as options of a program.

    Args:
        folder: str. Any that `from_pretrained` takes, or that a processor was saved in.
        given: dict of option to value: those of the vocabulary that the user gives.
    Returns:
        dict: `vocab_file` or `spm_model_file`, and what goes with its kind, `do_lower_case` or
        `split_punctuation`. Those that are given are as they were given.
    Raises:
        ValueError: naming the flag and the file, if one that is given is another than the folder's;
            naming the folder, if it has no vocabulary, or the settings beside it are damaged.
    """
    path, settings = processor_files.vocabulary_and_settings(folder)
    has_pieces = path.endswith(".model")
    chosen = next((name for name in FIELDS if given.get(name)), None)
    if chosen and sha256(given[chosen]) != sha256(path):
        raise ValueError(
            f"--{chosen}={given[chosen]}: the model in {str(folder)!r} has another vocabulary, "
            f"{path}. Leave the flag out."
        )
    found = {} if chosen else {FIELDS[0] if has_pieces else FIELDS[1]: path}
    if not processor_files.is_byte_level(path):
        name, usual = ("split_punctuation", False) if has_pieces else ("do_lower_case", True)
        found[name] = settings.get(name, usual)
    for name, value in found.items():
        if name in given and given[name] != value and name not in FIELDS:
            raise ValueError(
                f"--{name}={as_flag(given[name])}: the vocabulary of the model in {str(folder)!r} "
                f"was made with --{name}={as_flag(value)}. Leave the flag out."
            )
    return found
