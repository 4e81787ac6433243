"""`etcmodel.text.tokenization` under its module name in the release."""

from etcmodel.text.tokenization import *  # noqa: F403
from etcmodel.text.tokenization import __all__ as __all__
