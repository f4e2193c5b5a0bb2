"""Linear layers, one file per numerics. All map float32 [rows, in] to float32 [rows, out]."""

from inference.model.linear.base import Linear
from inference.model.linear.compiled import CompiledLinear
from inference.model.linear.dense import DenseLinear
from inference.model.linear.int8 import Int8Linear
from inference.model.linear.llm_int8 import LlmInt8Linear
from inference.model.linear.nf4 import Nf4Linear

__all__ = ["CompiledLinear", "DenseLinear", "Int8Linear", "Linear", "LlmInt8Linear", "Nf4Linear"]
