"""TriviaQA: questions with several documents each, which may or may not contain the answer."""
