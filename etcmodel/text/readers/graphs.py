"""Reads graphs: nodes with texts, and edges of named types between them."""

from etcmodel.text.readers import fields

__all__ = ["FIELDS", "add_graph"]

FIELDS = ("nodes", "edges")
_NODE = ("id", "text", "kind")
_EDGE = ("from", "to", "type")


def add_graph(builder, graph, where, parent=-1):
    """Adds a graph: a block for each node, and an edge between blocks for each edge.

    Args:
        builder: `documents.Builder`.
        graph: dict. `nodes`: list of {"id", "text", "kind"} (the text is optional, the kind is
            "node" by default), or dict of text by id. `edges`: list of {"from", "to", "type"} or
            [from, to, type]; the type is "edge" by default.
        where, parent: as in `sections.add_sections`.
    """
    blocks = {}
    for name, node in _nodes(graph["nodes"], f"{where}.nodes"):
        fields.known_fields(fields.mapping(node, name), name, _NODE)
        identifier = _identifier(node.get("id"), f"{name}.id")
        if identifier in blocks:
            raise ValueError(f"`{name}.id` is there twice: {identifier!r}.")
        kind = fields.string(fields.given(node, "kind", "node"), f"{name}.kind")
        text = fields.string(fields.given(node, "text", ""), f"{name}.text")
        number = builder.add_text(text, f"{name}.text")
        place = (number, 0, len(text)) if text.strip() else (-1, 0, 0)
        blocks[identifier] = builder.add(kind, *place, parent, str(identifier))
    edges = fields.sequence(fields.given(graph, "edges", []), f"{where}.edges")
    for index, edge in enumerate(edges):
        _add_edge(builder, blocks, edge, f"{where}.edges[{index}]")


def _nodes(nodes, where):
    """(name in errors, dict) of each node."""
    if isinstance(nodes, dict):
        for identifier, text in nodes.items():
            yield f"{where}[{identifier!r}]", {"id": identifier, "text": text}
        return
    for index, node in enumerate(fields.sequence(nodes, where, "a list of nodes")):
        yield f"{where}[{index}]", node


def _add_edge(builder, blocks, edge, where):
    if isinstance(edge, (list, tuple)) and len(edge) in (2, 3):
        edge = dict(zip(_EDGE, edge, strict=False))
    fields.mapping(edge, where, "[from, to], [from, to, type] or an object with these fields")
    fields.known_fields(edge, where, _EDGE)
    kind = fields.string(fields.given(edge, "type", "edge"), f"{where}.type")
    ends = []
    for side in ("from", "to"):
        identifier = _identifier(edge.get(side), f"{where}.{side}")
        if identifier not in blocks:
            raise ValueError(f"`{where}.{side}` names no node: {identifier!r}.")
        ends.append(blocks[identifier])
    builder.connect(kind, *ends)


def _identifier(value, where):
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        fields.fail(where, "the id of a node, a string or an int", value)
    return value
