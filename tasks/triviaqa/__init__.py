"""TriviaQA: questions with several documents each, which may or may not tell the answer."""
