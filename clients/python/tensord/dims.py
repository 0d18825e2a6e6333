"""Sizes that are known only when a program runs: polynomials over the symbols of a program's input shapes."""

import operator

from tensord import contract
from tensord.arguments.integers import as_sequence, is_integer

_FUNCTIONS = {"floor_divide": operator.floordiv, "min": min, "max": max}
_KINDS = {"floor_divide": "KIND_FLOOR_DIVIDE", "min": "KIND_MINIMUM", "max": "KIND_MAXIMUM"}


class Dim:
    """An immutable symbolic size, such as n, 2*n + 1 or max(n, m).

    Arithmetic gives a Dim, or an int where no symbol is left. Equal polynomials are equal and hash alike, so that
    shapes compare as tuples. A Dim has no order and no truth
    value beyond equality: what depends on the size itself cannot be decided while a function is traced.
    """

    __slots__ = ("_terms",)

    def __init__(self, terms):
        # {monomial: coefficient}; a monomial is a sorted tuple of (atom, power); an atom is a symbol, an AxisSize or a
        # _Call.
        self._terms = terms

    @staticmethod
    def symbol(name):
        return Dim({((name, 1),): 1})

    def __add__(self, other):
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other):
        return _combine(self, other, -1)

    def __rsub__(self, other):
        return _combine(other, self, -1)

    def __mul__(self, other):
        other_terms = _terms_of(other)
        if other_terms is None:
            return NotImplemented
        terms = {}
        for left, left_factor in self._terms.items():
            for right, right_factor in other_terms.items():
                powers = dict(left)
                for atom, power in right:
                    powers[atom] = powers.get(atom, 0) + power
                monomial = tuple(sorted(powers.items(), key=repr))
                terms[monomial] = terms.get(monomial, 0) + left_factor * right_factor
        return _simplified(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        if _terms_of(other) is None:
            return NotImplemented
        exact = exact_quotient(self, other)
        return _call("floor_divide", self, other) if exact is None else exact

    def __rfloordiv__(self, other):
        return NotImplemented if _terms_of(other) is None else _call("floor_divide", other, self)

    def __pow__(self, exponent):
        return product([self] * exponent) if isinstance(exponent, int) and exponent >= 0 else NotImplemented

    def __mod__(self, other):
        return NotImplemented if _terms_of(other) is None else remainder(self, other)

    def __rmod__(self, other):
        return NotImplemented if _terms_of(other) is None else remainder(other, self)

    def __neg__(self):
        return 0 - self

    def __eq__(self, other):
        return isinstance(other, Dim) and self._terms == other._terms

    def __hash__(self):
        return hash(frozenset(self._terms.items()))

    def __bool__(self):
        raise TypeError(f"the size {self} is known only when the program runs: a traced function cannot branch on it")

    def __index__(self):
        raise TypeError(f"the size {self} is known only when the program runs and cannot be used as an integer")

    def __repr__(self):
        ordered = sorted(self._terms.items(), key=lambda term: (term[1] < 0, -len(term[0]), repr(term[0])))
        text = ""
        for monomial, factor in ordered:
            product = "*".join(str(atom) if power == 1 else f"{atom}^{power}" for atom, power in monomial)
            body = str(abs(factor)) if not product else product if abs(factor) == 1 else f"{abs(factor)}*{product}"
            text += (" - " if factor < 0 else " + ") + body if text else ("-" if factor < 0 else "") + body
        return text

    @staticmethod
    def of_axis(array, axis):
        """The size of an axis of a traced value whose shape is known only when the program runs."""
        return Dim({((AxisSize(array, axis), 1),): 1})

    def leaves(self):
        """The leaves that the size depends on: names of symbols, and AxisSizes."""
        found = set()
        for monomial in self._terms:
            for atom, _ in monomial:
                found |= atom.leaves() if isinstance(atom, _Call) else {atom}
        return found

    def evaluate(self, sizes, functions=None):
        """The size given the leaves' sizes: an int, or whatever `sizes` and `functions` compute with."""
        functions = functions or _FUNCTIONS
        total = None
        for monomial, factor in self._terms.items():
            term = None if monomial else factor
            for atom, power in monomial:
                value = atom.evaluate(sizes, functions) if isinstance(atom, _Call) else sizes[atom]
                for _ in range(power):
                    term = value if term is None else term * value
            if monomial and factor != 1:
                term = term * factor
            total = term if total is None else total + term
        return total


class AxisSize:
    """The size that an axis of a traced value has at run time: an atom that no symbol of an input stands for."""

    __slots__ = ("array", "axis")

    def __init__(self, array, axis):
        self.array, self.axis = array, axis

    def __eq__(self, other):
        return isinstance(other, AxisSize) and self.array is other.array and self.axis == other.axis

    def __hash__(self):
        return hash((self.array.ref, self.axis))

    def __repr__(self):
        return f"size({self.array.ref}, {self.axis})"


class _Call:
    """floor_divide, min or max of two sizes: an atom of a polynomial."""

    __slots__ = ("kind", "left", "right")

    def __init__(self, kind, left, right):
        self.kind, self.left, self.right = kind, left, right

    def __eq__(self, other):
        return isinstance(other, _Call) and (self.kind, self.left, self.right) == (other.kind, other.left, other.right)

    def __hash__(self):
        return hash((self.kind, self.left, self.right))

    def __repr__(self):
        return (
            f"({self.left})//({self.right})"
            if self.kind == "floor_divide"
            else f"{self.kind}({self.left}, {self.right})"
        )

    def leaves(self):
        return leaves_of(self.left) | leaves_of(self.right)

    def evaluate(self, sizes, functions):
        return functions[self.kind](evaluate(self.left, sizes, functions), evaluate(self.right, sizes, functions))


def is_static(size):
    return not isinstance(size, Dim)


def all_static(shape):
    return all(is_static(size) for size in shape)


def leaves_of(size):
    return size.leaves() if isinstance(size, Dim) else set()


def evaluate(size, sizes, functions=None):
    return size.evaluate(sizes, functions) if isinstance(size, Dim) else size


def product(shape):
    total = 1
    for size in shape:
        total = total * size
    return total


def minimum(left, right):
    if left == right:
        return left
    return min(left, right) if is_static(left) and is_static(right) else _call("min", left, right)


def maximum(left, right):
    if left == right:
        return left
    return max(left, right) if is_static(left) and is_static(right) else _call("max", left, right)


def remainder(dividend, divisor):
    """dividend mod divisor of two sizes; 0 where the divisor turns out to be 0."""
    if is_static(dividend) and is_static(divisor):
        return dividend % divisor if divisor else 0
    divisor = maximum(divisor, 1)
    return dividend - divisor * (dividend // divisor)


def signed_parts(number):
    """(positive, negative): sizes whose difference is an integer or a Dim, of which terms may be negative."""
    if is_static(number):
        number = operator.index(number)
        return max(number, 0), max(-number, 0)
    positive = _simplified({monomial: factor for monomial, factor in number._terms.items() if factor > 0})
    return positive, positive - number


def exact_quotient(dividend, divisor):
    """dividend / divisor where that is a whole size for every value of the symbols, else None."""
    if is_static(dividend) and is_static(divisor):
        return dividend // divisor if divisor and dividend % divisor == 0 else None
    divisor_terms = _terms_of(divisor)
    if dividend == divisor:
        return 1
    if len(divisor_terms) != 1:
        return None
    ((divisor_monomial, divisor_factor),) = divisor_terms.items()
    terms = {}
    for monomial, factor in _terms_of(dividend).items():
        powers = dict(monomial)
        for atom, power in divisor_monomial:
            powers[atom] = powers.get(atom, 0) - power
        if factor % divisor_factor or any(power < 0 for power in powers.values()):
            return None
        terms[tuple(sorted(((a, p) for a, p in powers.items() if p), key=repr))] = factor // divisor_factor
    return _simplified(terms)


def as_shape(shape):
    """A shape as a tuple of ints and Dims; a bare size stands for a shape of one axis, a name for a symbol."""
    if not isinstance(shape, (Dim, str)) and not is_integer(shape) and not hasattr(shape, "__iter__"):
        raise TypeError(f"a shape is a sequence of sizes, or one size, not {shape!r}")
    sizes = (shape,) if isinstance(shape, (Dim, str)) else as_sequence(shape)
    return tuple(as_size(size) for size in sizes)


def as_size(size):
    if isinstance(size, Dim):
        return size
    if isinstance(size, str):
        if not size.isidentifier():
            raise ValueError(f"a symbolic size is named like a Python variable, not {size!r}")
        return Dim.symbol(size)
    try:
        size = operator.index(size)
    except TypeError:
        raise TypeError(f"a size is an integer or a symbol's name, not {size!r}") from None
    if size < 0:
        raise ValueError(f"a size is not negative: {size}")
    return size


def to_wire(size, operand_of=None):
    """The contract.DimExpr of a size. `operand_of` gives the index among a node's operands of an AxisSize's array.

    Without it, which is where there are no operands, an AxisSize is a TypeError.
    """
    if is_static(size):
        return contract.DimExpr(size=size)
    # Positive terms first: every partial result is then a size itself wherever the whole is one.
    ordered = sorted(size._terms.items(), key=lambda term: (term[1] < 0, -len(term[0]), repr(term[0])))
    result = None
    for monomial, factor in ordered:
        term = None if abs(factor) == 1 and monomial else contract.DimExpr(size=abs(factor))
        for atom, power in monomial:
            for _ in range(power):
                value = _atom_to_wire(atom, operand_of)
                term = value if term is None else _binary("KIND_MULTIPLY", term, value)
        if result is None:
            result = term if factor > 0 else _binary("KIND_SUBTRACT", contract.DimExpr(size=0), term)
        else:
            result = _binary("KIND_ADD" if factor > 0 else "KIND_SUBTRACT", result, term)
    return result


def _atom_to_wire(atom, operand_of):
    if isinstance(atom, _Call):
        return _binary(_KINDS[atom.kind], to_wire(atom.left, operand_of), to_wire(atom.right, operand_of))
    if not isinstance(atom, AxisSize):
        return contract.DimExpr(symbol=atom)
    if operand_of is None:
        raise TypeError(f"{atom} is computed by the program itself: no new array can be counted up to such a size")
    expression = contract.DimExpr()
    expression.operand.operand, expression.operand.axis = operand_of(atom.array), atom.axis
    return expression


def _binary(kind, lhs, rhs):
    expression = contract.DimExpr()
    expression.binary.kind = contract.DIM_KINDS[kind]
    expression.binary.lhs.CopyFrom(lhs)
    expression.binary.rhs.CopyFrom(rhs)
    return expression


def _call(kind, left, right):
    return Dim({((_Call(kind, left, right), 1),): 1})


def _terms_of(size):
    if isinstance(size, Dim):
        return size._terms
    try:
        value = operator.index(size)
    except TypeError:
        return None
    return {(): value} if value else {}


def _combine(left, right, sign):
    left_terms, right_terms = _terms_of(left), _terms_of(right)
    if left_terms is None or right_terms is None:
        return NotImplemented
    terms = dict(left_terms)
    for monomial, factor in right_terms.items():
        terms[monomial] = terms.get(monomial, 0) + sign * factor
    return _simplified(terms)


def _simplified(terms):
    terms = {monomial: factor for monomial, factor in terms.items() if factor}
    if not terms:
        return 0
    if set(terms) == {()}:
        return terms[()]
    return Dim(terms)
