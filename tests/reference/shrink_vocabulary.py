"""Makes small vocabularies of big ones, for the small copy of the reference cases."""

NUM_KEPT = 104  # The first ids: special and unused tokens, in both public vocabularies.

# Fields of SentencePiece's `ModelProto`, of its pieces and of its `NormalizerSpec`.
_PIECES, _NORMALIZER = 1, 3
_PIECE_TEXT, _CHARS_MAP = 1, 2


def shrink_wordpieces(vocab, needed):
    """Keeps the first ids and the `needed` pieces.

    Returns:
        list of str, the new lines; dict of old id to new id.
    """
    kept = [token for token, index in vocab.items() if index < NUM_KEPT or token in needed]
    return kept, {vocab[token]: index for index, token in enumerate(kept)}


def shrink_sentencepieces(model, needed):
    """Keeps the first ids, the `needed` pieces, and all pieces that they may be merged from.

    Returns:
        bytes, the new model; dict of old id to new id.
    """
    pieces = [_piece_text(value) for field, value in _fields(model) if field == _PIECES]
    closed = set()
    for piece in needed & set(pieces):
        _close(piece, set(pieces), closed)
    id_map, content, index = {}, b"", 0
    for field, value in _fields(model):
        if field == _PIECES:
            index += 1
            if index > NUM_KEPT and pieces[index - 1] not in closed:
                continue
            id_map[index - 1] = len(id_map)
        content += _encoded(field, value)
    return without_normalization(content), id_map


def without_normalization(model):
    """The model without the table of characters that it would normalize, its biggest part."""
    content = b""
    for field, value in _fields(model):
        if field == _NORMALIZER:
            kept = [pair for pair in _fields(value) if pair[0] != _CHARS_MAP]
            value = b"".join(_encoded(*pair) for pair in kept)
        content += _encoded(field, value)
    return content


def _close(piece, pieces, closed):
    """Adds `piece` and, by every split into two pieces, what it is made of."""
    if piece in closed:
        return
    closed.add(piece)
    for middle in range(1, len(piece)):
        left, right = piece[:middle], piece[middle:]
        if left in pieces and right in pieces:
            _close(left, pieces, closed)
            _close(right, pieces, closed)


def _piece_text(value):
    return next(content for field, content in _fields(value) if field == _PIECE_TEXT).decode()


# Protocol buffers, as far as a SentencePiece model needs them: bytes, whole numbers, floats.


def _fields(message):
    """Yields (field number, bytes or int or 4-byte memoryview) of a serialized message."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        if key & 7 == 0:
            value, position = _read_varint(message, position)
        elif key & 7 == 5:
            value, position = memoryview(message[position : position + 4]), position + 4
        elif key & 7 == 2:
            length, position = _read_varint(message, position)
            value, position = message[position : position + length], position + length
        else:
            raise ValueError(f"Unknown wire type in key {key}.")
        yield key >> 3, value


def _read_varint(message, position):
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _varint(value):
    content = b""
    while value > 127:
        content += bytes([value & 127 | 128])
        value >>= 7
    return content + bytes([value])


def _encoded(field, value):
    if isinstance(value, int):
        return _varint(field << 3) + _varint(value)
    if isinstance(value, memoryview):
        return _varint(field << 3 | 5) + bytes(value)
    return _varint(field << 3 | 2) + _varint(len(value)) + value
