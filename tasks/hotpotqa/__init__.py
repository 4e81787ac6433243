"""HotpotQA: questions that need several paragraphs, with supporting facts."""
