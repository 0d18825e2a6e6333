"""Sizes as the wire has them, in nodes that are moved from one graph to another."""

from tensord import dims


def sizes_in(node):
    """The contract.DimExprs of a node's attributes."""
    kind = node.WhichOneof("op")
    if kind == "iota":
        return list(node.iota.type.shape)
    if kind == "gather_dynamic_slice_sizes":
        return list(node.gather_dynamic_slice_sizes.slice_sizes)
    return list(getattr(node, kind).shape) if kind in ("reshape", "broadcast_in_dim") else []


def symbols_in(size):
    """Names of the symbols that a contract.DimExpr depends on."""
    kind = size.WhichOneof("expr")
    if kind == "binary":
        return symbols_in(size.binary.lhs) | symbols_in(size.binary.rhs)
    return {size.symbol} if kind == "symbol" else set()


def replace_symbols(size, sizes, operand_of):
    """Puts sizes, integers or Dims, in the place of symbols of a contract.DimExpr. operand_of: as of dims.to_wire."""
    kind = size.WhichOneof("expr")
    if kind == "binary":
        replace_symbols(size.binary.lhs, sizes, operand_of)
        replace_symbols(size.binary.rhs, sizes, operand_of)
    elif kind == "symbol" and size.symbol in sizes:
        size.CopyFrom(dims.to_wire(sizes[size.symbol], operand_of))
