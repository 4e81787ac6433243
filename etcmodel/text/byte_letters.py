"""Byte-level BPE's letters for bytes (Radford et al. 2019, section 2.2; as in GPT-2)."""

import codecs


def _byte_letters():
    """Printable bytes are written as themselves, others as the letters from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTES = _byte_letters()
SPACE = next(letter for letter, byte in BYTES.items() if byte == 0x20)


def readable(tokens):
    """Returns the readable text of each token.

    Args:
        tokens: sequence of str, as in the vocabulary.
    Returns:
        list of str. A character whose bytes span several tokens belongs to the last of them.
    """
    decoder, texts = codecs.getincrementaldecoder("utf-8")("replace"), []
    for token in tokens:
        if all(letter in BYTES for letter in token):
            texts.append(decoder.decode(bytes(BYTES[letter] for letter in token)))
        else:
            texts.append(token)
    return texts
