"""Computes a vector of each text of a file, by an encoder.

    python -m etcmodel.tools.embed docs.jsonl --model=all-MiniLM-L6-v2 --output=vectors.npy
    python -m etcmodel.tools.embed docs.csv --model=hf:sentence-transformers/all-MiniLM-L6-v2 \\
        --text_field=body --output=vectors.npy

Writes float32 [num_texts, size] in the order of the texts, and beside it vectors.ids.jsonl, with
the id of each row in its line, a JSON string. Texts are in any format that `etcmodel fit` reads.
The same command goes on where it was stopped: finished parts are in vectors.npy.parts until all are
there, and vectors.npy appears when it is whole.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import shutil

import numpy as np

from etcmodel import atomic_files, shown_values
from etcmodel.options import TableOptions, option, run_program
from etcmodel.tools import kept_options

__all__ = ["EmbedOptions", "embed"]

_PART = 512  # Texts of a part: what is lost when the program is stopped.
_IDS = "ids.jsonl"
_APART = ("data", "output", "batch_size")
_POOLINGS = ("mean", "first", "first_global", "max", "mean_sqrt_len", "weighted_mean", "last")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedOptions(TableOptions):
    """The texts, the model and the file of the vectors."""

    data: str = option(
        "",
        "Texts, in a format that preprocess reads, such as JSON lines or CSV; a pattern for "
        "several files; or a folder of .txt files. The flag's name may be left out.",
        group="data",
    )
    text_field: str = option("text", "Field or column with the text.", group="data")
    id_field: str = option(
        "id",
        "Field or column with the text's id. Without it, the id is the file name and line number.",
        group="data",
    )
    model: str = option(
        "",
        "Folder of an encoder, such as one of sentence-transformers; or hf: and its name on the "
        "Hugging Face Hub.",
        is_needed=True,
    )
    output: str = option("", "File to write the vectors to, on a local disk.", is_needed=True)
    pooling: str | None = option(
        None,
        "What becomes of the outputs of a text's tokens. None: what the folder says; without "
        "that, their mean.",
        choices=_POOLINGS,
    )
    normalize: bool | None = option(
        None, "Whether vectors get length 1. None: what the folder says."
    )
    prompt: str | None = option(
        None, "Name of one of the folder's prompts, to put before each text. None: its default one."
    )
    max_length: int | None = option(
        None,
        "The most tokens of a text, the rest of which is cut off. None: what the folder says, or "
        "all that the encoder can read.",
        lower_bound=1,
    )
    batch_size: int = option(32, "Texts that are computed together.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        if "://" in self.output:
            raise ValueError(f"--output={self.output} must be a file on a local disk.")

    @property
    def ids_file(self):
        """The file of the ids."""
        return f"{self.output.removesuffix('.npy')}.{_IDS}"


def embed(options):
    """Computes the vectors.

    Args:
        options: `EmbedOptions`.
    Raises:
        ValueError: naming the text that cannot be read; or if there are none, the output is there
            already, or its parts are of another run.
    """
    folder = pathlib.Path(f"{options.output}.parts")
    if os.path.exists(options.output):
        raise ValueError(f"{options.output} is there already. Remove it, or give another --output.")
    atomic_files.check_writable(options.output)
    with atomic_files.held(f"{options.output}.lock"):
        _embed(options, folder)


def _embed(options, folder):
    number, digest = _told(options)
    from etcmodel.checkpoints import sources, text_encoder  # TensorFlow takes seconds.

    digests = {"data": digest, "model": _digest_of(sources.settled_folder(options.model))}
    kept_options.keep(folder, options, _APART, digests, output="--output")
    encoder = text_encoder.TextEncoder(
        options.model, pooling=options.pooling, max_length=options.max_length
    )
    texts = (text for _, text in _texts(options))
    with text_encoder.counted(number) as count:
        for path in _parts(folder, number):
            part = list(itertools.islice(texts, _PART))
            if path.exists():
                count(len(part))
                continue
            vectors = encoder.encode(
                part,
                options.batch_size,
                normalize=options.normalize,
                show_progress=count,
                prompt=options.prompt,
            )
            with atomic_files.new_file(str(path)) as temporary, open(temporary, "wb") as file:
                np.save(file, vectors)
    _join(options, folder, [number, encoder.size])
    print(f"{number} vectors of {encoder.size} numbers are in {options.output}, their ids in")
    print(options.ids_file)


def _told(options):
    """Reads all texts: (their number, a digest of them and their ids)."""
    digest, number = hashlib.sha256(), 0
    for named in _texts(options):
        number += 1
        digest.update(json.dumps(named).encode())
    if not number:
        raise ValueError(f"--data={options.data} holds no texts.")
    return number, digest.hexdigest()


def _digest_of(model):
    """A digest of all files of a model's folder: other weights under its name are another model."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(model).rglob("*")):
        if path.is_file():
            of_file = hashlib.sha256()
            with open(path, "rb") as file:
                while block := file.read(1 << 20):
                    of_file.update(block)
            digest.update(f"{path.relative_to(model)} {of_file.hexdigest()}\n".encode())
    return digest.hexdigest()


def _texts(options):
    """Yields the (id, text) of each text; raises ValueError at the first that cannot be read."""
    from etcmodel.preprocessing import input_files, raw_files  # Imports TensorFlow.
    from etcmodel.preprocessing.json_fields import identified

    for path in input_files(options.data):
        for row in raw_files.read_text_rows(path, options.table(), tells=False):
            try:
                raw = raw_files.fields_of(row, text=options.text_field, label="label")
                fields = identified(raw, options.id_field, default=row["id"])
                named = fields.example_id, fields.text(options.text_field)
                fields.check_utf8(options.text_field, named[1])
            except ValueError as error:
                raise ValueError(f"{path}: {row['place']}: {error}") from None
            yield named


def _parts(folder, number):
    """The paths of all parts, in order."""
    return [folder / f"{start // _PART:06d}.npy" for start in range(0, number, _PART)]


def _join(options, folder, shape):
    """Writes the files of the ids and of the vectors from the parts, which are removed."""
    lines = (json.dumps(name, ensure_ascii=False) + "\n" for name, _ in _texts(options))
    atomic_files.write_text(options.ids_file, lines)
    with atomic_files.new_file(options.output) as temporary:
        joined = np.lib.format.open_memmap(temporary, "w+", np.float32, tuple(shape))
        for number, path in enumerate(_parts(folder, shape[0])):
            joined[number * _PART : (number + 1) * _PART] = np.load(path, mmap_mode="r")
        joined.flush()
        del joined
    shutil.rmtree(folder)


def main(options, words):
    """Runs the program with its flags and words."""
    if len(words) + bool(options.data) != 1:
        given = [*filter(None, [options.data]), *words]
        received = shown_values.named(given) or "none"
        raise ValueError(f"The data are one file, folder or pattern. Received: {received}")
    embed(dataclasses.replace(options, data=options.data or words[0]))


if __name__ == "__main__":
    run_program(EmbedOptions, main, section="embed", has_others_flags=True, has_words=True)
