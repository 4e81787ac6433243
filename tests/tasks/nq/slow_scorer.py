"""The official scorer's verdicts (`nq_eval`), written out slowly: the judge of `evaluate`."""

UNITS = ("token", "byte")


def verdicts(gold, predictions, threshold):
    """Of raw annotations (by example id) and raw predictions.

    Returns:
        dict of example id to ((has gold, predicted, correct, score) of the long answer, the same of
        the short one).

    Raises:
        ValueError: where the scorer refuses a prediction.
    """
    predicted = {prediction["example_id"]: prediction for prediction in predictions}
    for prediction in predicted.values():
        check(prediction)
    return {
        example_id: (
            long_verdict(notes, predicted[example_id], threshold),
            short_verdict(notes, predicted[example_id], threshold),
        )
        for example_id, notes in gold.items()
    }


def check(prediction):
    for span in [prediction["long_answer"], *prediction["short_answers"]]:
        for unit in UNITS:
            start, end = span[f"start_{unit}"], span[f"end_{unit}"]
            if (start < 0 <= end) or (end < 0 <= start):
                raise ValueError("half a span")
            if start >= 0 and end >= 0 and start >= end:
                raise ValueError("a backward span")
    if prediction["yes_no_answer"].lower() not in ("yes", "no", "none"):
        raise ValueError("neither yes nor no nor none")
    if says_yes_no(prediction) and real(prediction["short_answers"]):
        raise ValueError("yes or no beside a short answer")


def long_verdict(notes, prediction, threshold):
    answers = real([note["long_answer"] for note in notes])
    has_gold, predicted = len(answers) >= threshold, exists(prediction["long_answer"])
    correct = False
    if has_gold and predicted:
        for answer in answers:
            if same(answer, prediction["long_answer"]):
                correct = True
    return has_gold, predicted, correct, prediction["long_answer_score"]


def short_verdict(notes, prediction, threshold):
    spans = real(prediction["short_answers"])
    has_gold = sum(bool(real(n["short_answers"]) or says_yes_no(n)) for n in notes) >= threshold
    predicted, correct = bool(spans) or says_yes_no(prediction), False
    if has_gold and predicted:
        for note in notes:
            if says_yes_no(prediction):
                correct |= note["yes_no_answer"].lower() == prediction["yes_no_answer"].lower()
                continue
            answers = real(note["short_answers"])
            missing = [s for s in spans if not any(same(s, answer) for answer in answers)]
            left = [answer for answer in answers if not any(same(s, answer) for s in spans)]
            correct |= not missing and not left
    return has_gold, predicted, correct, prediction["short_answers_score"]


def says_yes_no(answers):
    return answers["yes_no_answer"].lower() != "none"


def real(spans):
    return [span for span in spans if exists(span)]


def exists(span):
    return any(span[f"start_{unit}"] >= 0 for unit in UNITS)


def same(span, other):
    for unit in UNITS:
        names = f"start_{unit}", f"end_{unit}"
        ends, other_ends = ([s[name] for name in names] for s in (span, other))
        if min(*ends, *other_ends) >= 0 and ends == other_ends:
            return True
    return False
