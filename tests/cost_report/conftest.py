"""What holds for all tests of this folder."""

from tests.quick_rivals import few_rounds

__all__ = ["few_rounds"]
