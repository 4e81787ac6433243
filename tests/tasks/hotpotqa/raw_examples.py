"""An invented example for the tests of HotpotQA."""


def raw_example(**fields):
    """A JSON object in the authors' layout; `fields` replace its own."""
    return {
        "_id": "q1",
        "question": "what is red ?",
        "answer": "rose",
        "supporting_facts": [["one", 1]],
        "context": [
            ["two", ["the song sings .", " a song of it ."]],
            ["one", ["green and blue .", " the rose is red ."]],
        ],
        "type": "bridge",
        "level": "easy",
        **fields,
    }
