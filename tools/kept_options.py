"""Stores the options that determine a program's results, and checks them when it resumes."""

import dataclasses
import json

from etcmodel import atomic_files, bounded_json, shown_values

__all__ = ["FILE", "keep"]

FILE = "options.json"
_NOT_GIVEN = (None, [])


def keep(folder, options, apart, digests=None, output="--output_dir"):
    """Writes the options that determine a folder's results; rejects different existing ones.

    Args:
        folder: pathlib.Path. Created if missing.
        options: dataclass, for JSON.
        apart: collection of str. Options that may differ, as each result records them.
        digests: dict from an option that names files to the digest of their contents (str), which
            is stored in its place.
        output: str. The flag that names the results, for errors.
    Raises:
        ValueError: naming the option, its stored value and the requested one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, values, digests = folder / FILE, dataclasses.asdict(options), digests or {}
    files = {f"{name}_sha256": (name, values.pop(name)) for name in digests}
    values = {name: value for name, value in values.items() if name not in apart}
    values |= {kept: digests[name] for kept, (name, _) in files.items()}
    if not path.exists():
        atomic_files.write_json(str(path), values)
        return
    kept = bounded_json.read_object(str(path), f"Give another {output}.")
    for name, value in json.loads(json.dumps(values)).items():
        if name in kept and _plain(kept[name]) != _plain(value):
            told = _told(name, kept[name], value)
            if name in files:
                told = _told_of_files(*files[name], kept[name])
            raise ValueError(f"{folder} {told} another {output}.")


def _plain(value):
    """The value without the slash that shells add to the names of folders."""
    return value.rstrip("/") or value if isinstance(value, str) else value


def _told(name, kept, value):
    """With what value of an option the results were made, and what to do."""
    if kept in _NOT_GIVEN:
        return f"has results without --{name}. Leave the flag out, or give"
    told = f"has results with --{name}={shown_values.as_flag(kept)}"
    if value not in _NOT_GIVEN:
        told += f", not {shown_values.as_flag(value)}"
    return f"{told}. Give that, or"


def _told_of_files(name, files, kept):
    """Likewise of an option that names files, of which `kept` is a digest."""
    if not kept:
        return _told(name, None, files)
    if not files:
        return f"has results with --{name}, which is left out now. Give it, or"
    return f"has results of other data than those of --{name}={files}. Give those, or"
