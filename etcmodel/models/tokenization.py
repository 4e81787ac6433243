"""`etcmodel.text.tokenization` under its module name in the release."""

from etcmodel.text.tokenization import *  # noqa: F403
