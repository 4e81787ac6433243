"""Small windows, and what is read from them."""

SETTINGS = {
    "long_seq_length": 40,
    "global_seq_length": 16,
    "stride": 8,
    "question_len": 8,
    "is_training": False,
}


def one_window(converted):
    (window,) = converted.windows
    return window


def answer_of(window):
    return {
        name: window[name][0]
        for name in ("la_start", "la_end", "sa_start", "sa_end", "answer_type", "la_global")
    }
