"""Opens the tokenizer of a vocabulary file of any kind."""

import os
import shlex

from etcmodel import bounded_json, hub
from etcmodel.shown_values import as_flag, shown
from etcmodel.text import byte_bpe, processor_files, tokenization, vocabulary

FIELDS = ("spm_model_file", "vocab_file")  # Options; the first one given takes precedence.
RUN_CONFIG_FILE = "run_config.json"  # In the folder of a training.


def open_tokenizer(vocab_file, spm_model_file=None, *, do_lower_case=True, split_punctuation=False):
    """Opens the tokenizer of a program's vocabulary files.

    Args:
        vocab_file: str or None. See `processor_files.make_tokenizer`; no sentence pieces but those
            that fairseq numbers. Ignored with `spm_model_file`.
        spm_model_file, do_lower_case, split_punctuation: see `tokenization.FullTokenizer`.
    Returns:
        `byte_bpe.ByteLevelTokenizer` or `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the file, if it cannot be read as such, or an option does not apply to
            its kind.
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


def require_pieces(tokenizer, otherwise=""):
    """Checks that a tokenizer has word pieces or a SentencePiece model.

    Features with the global tokens of ETC's data sets are made for these: their tokens have fixed
    ids, and their words are split one by one, so that byte-level BPE would miss the space in front.

    Args:
        tokenizer: see `open_tokenizer`.
        otherwise: str. What else there is to do: an option of the task, as a command says it.
    Raises:
        ValueError: naming the file and what to do, if it is byte-level BPE or any other tokenizer
            of the package `tokenizers`.

    >>> from etcmodel.text import vocabulary_files
    >>> vocabulary_files.require_pieces(vocabulary_files.open_tokenizer("vocab.json"))
    Traceback (most recent call last):
    ValueError: The vocabulary 'vocab.json' is byte-level BPE or the like, which these features ...
    """
    if isinstance(tokenizer, byte_bpe.ByteLevelTokenizer):
        also = f", or {otherwise}, which takes any" if otherwise else ""
        raise ValueError(
            f"The vocabulary {str(tokenizer.source_file)!r} is byte-level BPE or the like, which "
            "these features are not made for. Give a vocabulary of word pieces, and a model that "
            f"has it{also}."
        )


def sha256(path):
    """Returns the hexadecimal digest of a vocabulary: the `source_sha256` of its tokenizer."""
    if processor_files.is_byte_level(path):
        return open_tokenizer(path).source_sha256()
    return tokenization.file_sha256(path)


def of_folder(folder, given, of_records=()):
    """Finds the tokenizer of a model's folder, as options of a program.

    Args:
        folder: str. Any folder that `from_pretrained` takes, or that a processor was saved to; or
            that of a training, or its best, which notes its vocabulary.
        given: dict of option to value: the vocabulary options given by the user.
        of_records: collection of digests (`sha256`) of the vocabularies that records were made
            with. If a folder has byte-level BPE in two forms, the one among these is used.
    Returns:
        dict: `vocab_file` or `spm_model_file`, and its kind's options, `do_lower_case` or
        `split_punctuation`. Empty if the vocabulary is given: then how text is tokenized is up to
        the user, too.
    Raises:
        ValueError: naming the flag and the file, if a given one differs from the folder's; naming
            the folder, if it has no vocabulary, or the settings beside it are damaged; or if it is
            of a training whose vocabulary is not known, gone or changed.
    """
    folder = hub.local_folder(os.fspath(folder), with_weights=False)
    run = None if processor_files.has_vocabulary(folder) else run_folder(folder)
    if run is not None:
        return _of_run(run, folder, given)
    path, settings = processor_files.vocabulary_and_settings(folder)
    if chosen := _first(given):
        _check_same(folder, path, chosen, given[chosen])
        return {}
    if processor_files.is_byte_level(path):
        forms = [x for x in processor_files.BYTE_LEVEL if processor_files.is_there(folder, x)]
        paths = (os.path.join(folder, name) for name in forms if of_records and len(forms) > 1)
        return {"vocab_file": next((x for x in paths if sha256(x) in of_records), path)}
    file, name, usual = "vocab_file", "do_lower_case", True
    if path.endswith(".model"):
        file, name, usual = "spm_model_file", "split_punctuation", False
    value = settings.get(name, usual)
    _check_setting(folder, name, value, given)
    return {file: path, name: value}


def run_folder(folder):
    """The folder of the training whose folder, or its best, this is: str; None for no training."""
    folders = [folder, os.path.dirname(folder.rstrip("/")) or "."]
    return next((x for x in folders if processor_files.is_there(x, RUN_CONFIG_FILE)), None)


def of_notes(run, notes, known):
    """The vocabulary that a training notes, which must still be in place and unchanged.

    Args:
        run: str. Its folder, for messages.
        notes: dict. What it notes.
        known: collection of digests (`sha256`) of its records' vocabularies; None: not known.
    Returns:
        dict from `vocab_file` or `spm_model_file` to its path; empty if it notes none.
    Raises:
        ValueError: if the file is missing or has changed.
    """
    name = _first(notes)
    if name is None:
        return {}
    path, problem = notes[name], ""
    if not processor_files.is_there(*os.path.split(path)):
        problem = "is not there any more"
    elif known and sha256(path) not in known:
        problem = "is another one now"
    if problem:
        raise ValueError(
            f"{run}: the vocabulary of the run, {path!r}, {problem}. Put it back, or give its "
            "place by --vocab_file or --spm_model_file, which `etcmodel fit` has not."
        )
    return {name: path}


def _of_run(run, folder, given):
    """The vocabulary options that a training was begun with: see `of_folder`."""
    described = bounded_json.read_object(os.path.join(run, RUN_CONFIG_FILE))
    notes, options = ((described.get(part) or {}) for part in ("notes", "task"))
    known = options.get("vocab_sha256")
    chosen = _first(given)
    if chosen and known:
        if sha256(given[chosen]) not in known:
            raise ValueError(
                f"--{chosen}={given[chosen]}: the run in {run} was trained with another "
                "vocabulary. Leave the flag out."
            )
        return {}
    found = of_notes(run, notes, known)
    if not found:
        raise ValueError(
            f"{folder!r} holds a training's checkpoints, and no vocabulary. After a pre-training, "
            f"`etcmodel save_pretrained pretraining --output_dir={shlex.quote(run)}` writes a "
            "folder with both. Give that."
        )
    ((file, path),) = found.items()
    if chosen:
        _check_same(folder, path, chosen, given[chosen])
        return {}
    if processor_files.is_byte_level(path):
        return found
    name = "split_punctuation" if file == "spm_model_file" else "do_lower_case"
    value = options.get(name, notes.get(name))
    if value is None:  # Runs may lack it; then a flag may tell it.
        usual = name == "do_lower_case" and not vocabulary.is_cased(path)
        value = given.get(name, usual)
    _check_setting(folder, name, value, given)
    return {file: path, name: value}


def _first(values):
    """The option of a vocabulary that counts among these values: str or None."""
    return next((name for name in FIELDS if values.get(name)), None)


def _check_setting(folder, name, value, given):
    """Raises ValueError if the setting of a folder's vocabulary is no bool, or a flag differs."""
    if not isinstance(value, bool):
        raise ValueError(f"{folder}: `{name}` must be true or false. Received: {shown(value)}")
    if given.get(name, value) != value:
        raise ValueError(
            f"--{name}={as_flag(given[name])}: the vocabulary of the model in {str(folder)!r} was "
            f"made with --{name}={as_flag(value)}. Leave the flag out."
        )


def _check_same(folder, path, name, given):
    """Raises ValueError if the file of an option is not the vocabulary of a model's folder."""
    # Byte-level BPE may be there in both forms, whose digests differ.
    namesake = os.path.basename(str(given))
    if namesake != os.path.basename(path) and processor_files.is_there(folder, namesake):
        path = os.path.join(folder, namesake)
    if sha256(given) != sha256(path):
        raise ValueError(
            f"--{name}={given}: the model in {str(folder)!r} has another vocabulary, {path}. Leave "
            "the flag out."
        )
