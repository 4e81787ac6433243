"""The house keeps its own rules: which room may use which, and how long its functions are."""

import ast
import collections
import functools
import itertools
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).parents[1]
# From the ground up; a room uses those below it, and rooms of one floor do not use each other.
FLOORS = (
    {"extras", "posix_only", "shown_values", "signatures"},
    {
        "autograph",
        "bounded_json",
        "bounded_yaml",
        "durations",
        "file_systems",
        "format_versions",
        "hub",
        "lazy_imports",
        "moved_modules",
        "onednn",
        "path_checks",
    }
    | {"program_end", "quiet"},
    {"json_stream", "program_start", "progress_bar"},
    {"opener"},
    {"atomic_files", "feature_checks", "ops", "options", "pages", "pictures"},
    {"attention_picture", "autotuning", "record_files"},
    {"text"},
    {"tensor_utils"},
    {"feature_utils"},
    {"layers"},
    {"generation"},
    {"models"},
    {"checkpoints", "keras3", "preprocessing", "serving"},
    {"inspection"},
    {"training"},
    {"reports"},
    {"finetuning"},
    {"tasks", "pretrain", "cli"},
    {"tools", "__main__"},
    {"benchmarks"},
)
MODULES = [
    path
    for top in ("etcmodel", "tasks", "pretrain", "tools", "benchmarks")
    for path in sorted((ROOT / top).rglob("*.py"))
]


def room(name):
    """The room of a dotted name, or None if it is none of ours."""
    top, *rest = name.split(".")
    if top == "benchmarks":
        return top
    return rest[0] if top == "etcmodel" and rest else None


def own_room(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "etcmodel" else parts[0]


def floor(name):
    return next((i for i, rooms in enumerate(FLOORS) if name in rooms), None)


@functools.cache
def statements(path):
    """(statements that import, [(name, arguments, lines)] of all definitions) of a module."""
    importing, definitions = [], []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            importing.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            definitions.append((node.name, node.args, node.end_lineno - node.lineno + 1))
    return importing, definitions


def imports(path):
    for node in statements(path)[0]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def functions():
    """(module, name, arguments, lines) of all definitions."""
    return [(path.relative_to(ROOT), *found) for path in MODULES for found in statements(path)[1]]


def test_no_arrow_points_up():
    wrong = [
        f"{path.relative_to(ROOT)} uses {used}"
        for path in MODULES
        if floor(own_room(path)) is not None
        for used in sorted({room(name) for name in imports(path)} - {None, own_room(path)})
        if floor(used) is not None and floor(used) >= floor(own_room(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_room_has_a_floor():
    names = {own_room(path) for path in MODULES} - {"__init__"}
    assert not sorted(names - set().union(*FLOORS))


def test_the_page_of_rooms_lists_every_folder_from_the_top_down():
    page = (ROOT / "etcmodel" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.M)
    listed = [re.findall(r"`(\w+)`", row) for row in rows]
    folders = {path.parent.name for path in MODULES if path.name == "__init__.py"}
    assert set().union(*listed) - {"keras3"} == {x for x in folders if floor(x) is not None}
    floors = [{floor(name) for name in names} for names in listed]
    assert all(min(above) > max(below) for above, below in itertools.pairwise(floors))


def test_the_page_of_rooms_names_what_is_there():
    page = (ROOT / "etcmodel" / "README.md").read_text(encoding="utf-8")
    ways = page[page.index("## The way of a tensor") :]
    files = set(re.findall(r"`([\w/]+\.py)`", ways))
    tops = {path.relative_to(ROOT).as_posix() for path in MODULES}
    assert len(files) > 20
    for file in files:
        assert any(known.endswith(f"/{file}") for known in tops), file


def own_imports(path):
    """The dotted names that a module imports, relative ones and those in functions too."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    for node in statements(path)[0]:
        if isinstance(node, ast.ImportFrom):
            base = f"{package}.{node.module or ''}".rstrip(".") if node.level else node.module
            yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base
    yield from imports(path)


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    top = () if parts[0] in ("etcmodel", "benchmarks") else ("etcmodel",)
    return ".".join((*top, *parts)).removesuffix(".__init__")


def test_small_modules_have_more_than_one_user():
    """A module of few lines for its neighbor alone is a part of it, unless it is of a kind.

    The kinds: a task's modules, which all tasks have; benchmarks, which are not installed; the
    subjects of `draw_attention`, which have the same functions each; what processes without
    TensorFlow import, such as the configs of systems.
    """
    users = collections.defaultdict(set)
    for path in MODULES:
        for name in own_imports(path):
            users[name].add(path)
    of_a_kind = re.compile(
        r"^(tasks|pretrain|benchmarks)/|^tools/\w+_subjects\.py|/turn_loop\.py"
        r"|^etcmodel/models/\w+/config\.py"
    )
    small = [
        (path, next(iter(users[dotted(path)])))
        for path in MODULES
        if path.name != "__init__.py"
        and len(path.read_text(encoding="utf-8").splitlines()) < 120
        and len(users[dotted(path)]) == 1
        and not of_a_kind.search(path.relative_to(ROOT).as_posix())
    ]
    wrong = [
        f"{path.relative_to(ROOT)} is for {user.name} alone"
        for path, user in small
        if user.parent == path.parent and user.name != "__init__.py"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_task_uses_another():
    for path in (ROOT / "tasks").rglob("*.py"):
        own = path.relative_to(ROOT).parts[1]
        others = {
            name.split(".")[2] for name in imports(path) if name.startswith("etcmodel.tasks.")
        }
        assert others <= {own}, path


def test_definitions_are_short():
    sizes = [lines for *_, lines in functions()]
    long = [f"{path}: {name} has {lines}" for path, name, _, lines in functions() if lines > 60]
    assert not long, "\n".join(long)
    assert statistics.median(sizes) <= 8


def test_no_boolean_chooses_a_pattern_in_the_ops():
    """Those there say how an operation is computed or what a relation is, or are the release's."""
    allowed = {"by_heads", "ignore_direction", "is_hard", "training", "transpose"}
    allowed |= {"use_one_hot_lookup"}
    found = set()
    for path, _, given, _ in functions():
        if path.parts[:2] == ("etcmodel", "ops"):
            arguments = [*given.args[::-1], *given.kwonlyargs[::-1]]
            defaults = [*given.defaults[::-1], *[None] * len(given.args)]
            defaults = [*defaults[: len(given.args)], *given.kw_defaults[::-1]]
            for argument, default in zip(arguments, defaults, strict=True):
                if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                    found.add(argument.arg)
    assert found <= allowed
