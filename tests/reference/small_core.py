"""Selects the `core` cases of the small copy; their files are copied as they are."""

from tests.reference import cases, small_files
from tests.reference.small_files import as_json

TOPIC = "core"
ALWAYS = ("tasks",)  # Kinds of which every case is kept: each is another task's model.
MAX_BYTES = 2_900_000  # Of all files and of the manifest's entries.


def write(target):
    """Writes the selected cases and their files below `target / "core"`; returns the cases."""
    kept = selected_cases()
    paths = {path for case in kept for path in files_of(case)}
    folder = cases.topic_folder(TOPIC)
    small_files.copy(TOPIC, {str(path.relative_to(folder)) for path in paths}, target)
    small_files.write_json(target / TOPIC / "manifest.json", {"cases": kept})
    return kept


def selected_cases():
    """As many cases as there is room for, the small ones first.

    In any case there are all task models, and of each public name the smallest case that succeeds
    and the smallest that must fail.
    """
    all_cases = sorted(cases.load_cases(TOPIC), key=num_bytes)
    smallest = {}
    for case in all_cases:
        smallest.setdefault((case["kind"], case["api"], "raises" in case), case["name"])
    needed = set(smallest.values()) | {c["name"] for c in all_cases if c["kind"] in ALWAYS}
    kept, files, num_left = set(), set(), MAX_BYTES
    for case in sorted(all_cases, key=lambda case: case["name"] not in needed):
        new_files = set(files_of(case)) - files  # Some cases share a checkpoint.
        num_left -= total_bytes(new_files) + len(as_json(case))
        if num_left < 0:
            break
        kept.add(case["name"])
        files |= new_files
    if not needed <= kept:
        raise ValueError(f"there is no room for {sorted(needed - kept)} in {MAX_BYTES} bytes")
    return [case for case in cases.load_cases(TOPIC) if case["name"] in kept]


def num_bytes(case):
    return total_bytes(files_of(case)) + len(as_json(case))


def total_bytes(paths):
    return sum(path.stat().st_size for path in paths)


def files_of(case):
    """Paths of the arrays, and of checkpoint, config, variables and records where there are any."""
    names = [case.get(key) for key in ("file", "config", "variables")]
    names.append(case.get("records", {}).get("file"))
    paths = [cases.resolve(TOPIC, name) for name in names if name]
    if "checkpoint" in case:
        prefix = cases.resolve(TOPIC, case["checkpoint"])
        paths += prefix.parent.glob(f"{prefix.name}.*")
    return sorted(paths)
