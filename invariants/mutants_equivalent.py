"""Mutants that survive for a reason: what was changed makes no difference that any run could show.

Belongs here: data, keyed by function and expression, as `mutants` names them.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EQUIVALENT"]

EQUIVALENT: Mapping[str, str] = MappingProxyType({})
"""Mutant -> why nothing can tell it from the original."""
