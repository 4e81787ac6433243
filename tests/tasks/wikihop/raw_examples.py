"""An invented example for the tests of WikiHop."""


def raw_example(**fields):
    """A JSON object in the data set's layout; `fields` replace its own."""
    return {
        "id": "w1",
        "query": "country ember mill",
        "answer": "avaria",
        "candidates": ["avaria", "belmark", "new belmark"],
        "supports": [
            "Ember Mill is in Tarn Hollow. It has a wheel.",
            "Tarn Hollow (Avaria) is a town. New Belmark is far. Belmark is near.",
        ],
        **fields,
    }
