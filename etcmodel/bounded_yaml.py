"""Reads YAML from untrusted files, within limits of size, depth and aliases.

PyYAML fails with errors other than its own on invalid values and deep nesting, and a few bytes of
aliases can stand for gigabytes. Accepted are mappings, lists, texts, numbers, true, false and null;
there are no dates: they are read as text. TensorFlow is not needed.
"""

import yaml

from etcmodel.shown_values import shortened, shown

MAX_BYTES = 256 << 10  # A file of options has a few thousand.
MAX_DEPTH = 50  # One of options has three levels.
MAX_VALUES = 10_000  # Keys included, and each alias with everything it stands for.
INTEGERS = range(-(2**63), 2**63)  # Those of signed 64 bits.

_PREFIX = "tag:yaml.org,2002:"
_TAKEN = frozenset(_PREFIX + kind for kind in ("map", "seq", "str", "int", "float", "bool", "null"))
_DATE = _PREFIX + "timestamp"


def loads(text, source, lines=None):
    """Parses a YAML text.

    Args:
        text: str, or bytes in UTF-8.
        source: str. The name of the text in errors, such as its file.
        lines: dict that gets the line of each key, from 1, by the keys down to it, a tuple of str;
            or None.
    Returns:
        dict, list, str, int, float, bool or None.
    Raises:
        ValueError: in one line that names the source and, if there is one, the line, if it exceeds
            the limits or is malformed, or a key occurs twice.
    """
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(encoded) > MAX_BYTES:
        raise ValueError(f"{source}: is longer than {MAX_BYTES >> 10} KiB.")
    try:
        return _parsed(encoded.decode("utf-8"), lines)
    except UnicodeDecodeError as error:
        raise ValueError(f"{source}: is not UTF-8: {error.reason} at byte {error.start}.") from None
    except yaml.reader.ReaderError as error:
        line = encoded.decode("utf-8").count("\n", 0, error.position) + 1
        problem = f"the character U+{error.character:04X} is not allowed"
        raise ValueError(f"{source}, line {line}: malformed YAML: {problem}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise ValueError(f"{source}{place}: malformed YAML: {shortened(problem, 400)}.") from None


def _parsed(text, lines):
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if lines is not None:
            _add_lines(lines, node, ())
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Counts the composed values, with aliases expanded, and refuses values that are not plain.

    A key that occurs twice is refused, too: YAML's loader would take the last.
    """

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text):
        super().__init__(text)
        self._depth = self._num_values = 0
        self._sizes = {}  # Node to (values in it, levels of them), itself included.

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if node not in self._sizes:
                self._refuse(f"the alias {shown(event.anchor)} stands within itself", event)
            num_values, num_levels = self._sizes[node]
            self._num_values += num_values
            self._check_bounds(event, num_levels)
            return node
        before = self._num_values
        self._num_values += 1
        self._depth += 1
        self._check_bounds(event, 0)
        node = super().compose_node(parent, index)
        self._depth -= 1
        children = _children(node)
        num_levels = 1 + max((self._sizes[child][1] for child in children), default=0)
        self._sizes[node] = self._num_values - before, num_levels
        return node

    def _check_bounds(self, event, num_levels):
        if self._depth + num_levels > MAX_DEPTH:
            self._refuse(f"nested deeper than {MAX_DEPTH} levels", event)
        if self._num_values > MAX_VALUES:
            self._refuse(f"more than {MAX_VALUES} values, those of aliases included", event)

    def _refuse(self, problem, place):
        raise yaml.composer.ComposerError(problem=problem, problem_mark=place.start_mark)

    def construct_object(self, node, deep=False):
        if node.tag not in _TAKEN:
            self._refuse(f"{shown(node.tag.removeprefix(_PREFIX))} is no kind of value here", node)
        try:
            value = super().construct_object(node, deep)
        except (ValueError, LookupError, OverflowError):
            kind = node.tag.removeprefix(_PREFIX)
            self._refuse(f"{shown(node.value)} is no value of the kind `{kind}`", node)
        if isinstance(value, int) and value not in INTEGERS:
            self._refuse(f"{shown(node.value)} does not fit into signed 64 bits", node)
        return value

    def construct_mapping(self, node, deep=False):
        keys = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                self._refuse(f"`{shortened(key.value, 200)}` stands there twice", key)
            keys.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)


def _add_lines(lines, node, keys):
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode):
            lines[(*keys, key.value)] = key.start_mark.line + 1
            _add_lines(lines, value, (*keys, key.value))


def _children(node):
    """The direct children of a node."""
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
