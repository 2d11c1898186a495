"""The public face of a model: what a model of one's own is written with. The rest of this package is the built-in one.

Belongs here: names alone, each from the file that defines it.
"""

from .contract import (
    Action,
    ActionTable,
    Argument,
    Choice,
    DescribedModel,
    FairModel,
    Model,
    Property,
    Range,
    Refusal,
    SetupModel,
    TableModel,
    WeightedModel,
)
from .errors import OutlivesError

__all__ = [
    "Action",
    "ActionTable",
    "Argument",
    "Choice",
    "DescribedModel",
    "FairModel",
    "Model",
    "OutlivesError",
    "Property",
    "Range",
    "Refusal",
    "SetupModel",
    "TableModel",
    "WeightedModel",
]
