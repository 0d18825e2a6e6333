"""A function that is called in a trace with stand-ins of its arguments, so that it can be differentiated."""

import inspect

from tensord.arguments import tree
from tensord.arguments.integers import as_sequence, is_integer
from tensord.array import Array
from tensord.derivatives.derivative import Derivative
from tensord.derivatives.region import Region
from tensord.functions.creation import zeros_like
from tensord.tracing.graph_builder import active_builder
from tensord.tracing.lifting import as_array


class TracedCall:
    """One call of a function in the trace that is under way. Confined to the thread that traces.

    The arguments of the places `argnums` are differentiated: their leaves, `values`, are Arrays of the trace, in the
    Structure `arguments`. The function sees stand-ins in their place, so that a value which it finds elsewhere, in a
    closure, is a constant even if it is the same Array. `outputs`: the leaves of its result, of the Structure
    `results`; `aux`: the second of a pair that it returned.
    """

    def __init__(self, title, function, args, keywords, argnums, has_aux=False):
        self._builder = active_builder()
        if self._builder is None:
            raise RuntimeError(
                f"{title} builds a graph, and works only inside a function that td.compile or td.evaluate traces: "
                f"td.evaluate({title}(function), x), or td.compile({title}(function), td.spec(…)) for many calls"
            )
        self.title, self.name = title, name_of(function)
        numbers = _numbers(title, argnums)
        args, keywords = _by_position(function, args, keywords, numbers)
        places = _places(title, numbers, len(args))
        leaves, structure = tree.flatten([args[place] for place in places])
        self.arguments = structure.children[0] if is_integer(argnums) else tree.as_tuple(structure)
        self.values = [self._checked(leaf) for leaf in leaves]
        names = [name for place, child in zip(places, structure.children) for name in child.leaf_names(f"argument_{place}")]
        self._stand_ins = [
            self._builder.stand_in(f"{name}_of_{self.name}", value)
            for name, value in zip(names, self.values)
        ]
        for place, argument in zip(places, structure.build(iter(self._stand_ins))):
            args[place] = argument
        self._backward = None  # the Derivative of all outputs, once it was asked for
        self._trace(lambda: function(*args, **keywords), has_aux)

    def _checked(self, leaf):
        """A leaf of an argument as an Array of this trace. Raises TypeError if it cannot be differentiated."""
        try:
            value = as_array(leaf)
        except TypeError as failure:
            raise TypeError(f"{self.title}: an argument that is differentiated holds {leaf!r}: {failure}") from None
        self._builder.check_owns(value)
        if not value.dtype.is_inexact:
            raise TypeError(
                f"{self.title} differentiates with respect to floats and complex numbers, and an argument of {self.name} is "
                f"{describe(value)}: convert it with astype, or leave it out of argnums"
            )
        return value

    def _trace(self, call, has_aux):
        """Calls the function. Its nodes read the values themselves from then on; the region still reads stand-ins."""
        start, self.aux = len(self._builder.graph.nodes), None
        try:
            result = call()
            if has_aux:
                if not isinstance(result, (tuple, list)) or len(result) != 2:
                    raise TypeError(f"{self.title} with has_aux: {self.name} returns a pair (result, others), not {result!r}")
                result, self.aux = result
            leaves, self.results = tree.flatten(result)
            outputs = [as_array(leaf) for leaf in leaves]
            for output in outputs:
                self._builder.check_owns(output)
            self._region = Region(self._builder, start, self._stand_ins, outputs)
        finally:
            self._actual = {one.ref: value for one, value in zip(self._stand_ins, self.values)}
            self._builder.replace_stand_ins(start, self._actual)
        self.outputs = [self._own(output) for output in outputs]
        others, structure = tree.flatten(self.aux)
        self.aux = structure.build(iter([self._own(other) for other in others]))

    def _own(self, leaf):
        return self._actual.get(leaf.ref, leaf) if isinstance(leaf, Array) else leaf

    def derivative(self, mode, wrt=None, outputs=None):
        """The Derivative with respect to values, of outputs: by their places, None for all."""
        names = self._region.wrt if wrt is None else [self._region.wrt[place] for place in wrt]
        return Derivative(self._builder, self._region, mode, self.values, names, outputs)

    def backward(self, cotangents):
        """The cotangent of each value, given one for each differentiable output."""
        if not self.values or not cotangents:
            return [zeros_like(value) for value in self.values]
        if self._backward is None:
            self._backward = self.derivative("vjp")
        return self._backward.apply(cotangents, types_of(self.values))

    def for_each_value(self, items):
        """Items, one for each value, in the structure of the arguments that are differentiated."""
        return self.arguments.build(iter(items))

    def for_each_output(self, items):
        return self.results.build(iter(items))

    def value(self):
        """The result in its structure."""
        return self.for_each_output(self.outputs)


def name_of(function):
    return getattr(function, "__name__", type(function).__name__).strip("<>")


def describe(value):
    """An Array's type, for people: float64[3, n]."""
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def types_of(values):
    return [(value.dtype, value.shape) for value in values]


def as_directions(title, given, structure, values):
    """Tangents or cotangents, as Arrays of the values' types and in their structure. Raises TypeError and ValueError."""
    try:
        leaves = structure.leaves_of(given)
    except TypeError as failure:
        raise TypeError(f"{title} takes one of each value, in their structure: {failure}") from None
    directions = []
    for leaf, value in zip(leaves, values):
        if not value.dtype.is_inexact:
            continue
        direction = as_array(leaf, None if isinstance(leaf, Array) else value.dtype)
        if (direction.dtype, direction.shape) != (value.dtype, value.shape):
            problem = TypeError if direction.dtype is not value.dtype else ValueError
            raise problem(f"{title}: a {describe(value)} takes one of the same type, not {describe(direction)}")
        directions.append(direction)
    return directions


def _numbers(title, argnums):
    numbers = as_sequence(argnums)
    if not all(map(is_integer, numbers)):
        raise TypeError(f"{title}: argnums is an integer or a sequence of integers, not {argnums!r}")
    return [number.__index__() for number in numbers]


def _by_position(function, args, keywords, numbers):
    """The arguments as a list, and the keywords; those that argnums names are moved to their places."""
    if max(numbers, default=-1) < len(args) or not keywords:
        return list(args), keywords
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except (TypeError, ValueError):  # the call itself says it better
        return list(args), keywords
    return list(bound.args), bound.kwargs


def _places(title, numbers, count):
    for number in numbers:
        if not -count <= number < count:
            raise ValueError(f"{title}: argnums is {number}, and the function was given {count} arguments by position")
    places = [number % count for number in numbers]
    if len(set(places)) != len(places):
        raise ValueError(f"{title}: argnums {numbers} names an argument twice")
    return places
