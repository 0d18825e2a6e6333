"""The traced array."""

from tensord import dims


class Array:
    """A value of a graph that is being traced: it has a dtype and a shape, and no numbers yet.

    Made by td.compile, td.evaluate and td.make_graph, which call a function with one Array per argument; every
    operation on Arrays adds nodes to the graph of that trace, which the builder owns. Operators, methods and the
    functions of the package mean what NumPy means by them, down to broadcasting and dtypes; NumPy's own functions
    accept Arrays too.
    An Array belongs to the thread and to the trace that made it; mixing traces raises ValueError. What needs numbers
    (a branch, float(x), NumPy's asarray) raises TypeError, since there are none before the program runs.
    """

    __slots__ = ("builder", "ref", "dtype", "shape")
    __hash__ = None

    def __init__(self, builder, ref, dtype, shape):
        self.builder, self.ref, self.dtype, self.shape = builder, ref, dtype, shape

    def __repr__(self):
        return f"Array({self.ref}: {self.dtype}[{', '.join(map(str, self.shape))}])"

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return dims.product(self.shape)

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """The bytes of its elements: an integer, or a Dim."""
        return self.size * self.itemsize

    def __len__(self):
        if not self.shape:
            raise TypeError("an Array of rank 0 has no length")
        if not dims.is_static(self.shape[0]):
            raise TypeError(f"the length {self.shape[0]} is known only when the program runs: use td.shape_of(x, 0)")
        return self.shape[0]

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def _has_no_value(self, *_, **__):
        raise TypeError(
            f"{self!r} has no value while its function is traced, so it cannot become a number, a truth value or "
            "a NumPy array. Use td.where instead of `if`, and td functions instead of functions that need NumPy arrays"
        )

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _has_no_value
    __array__ = item = tolist = _has_no_value

    def __setitem__(self, key, value):
        raise TypeError("Arrays cannot be assigned to: use x.at[key].set(values), which is a new Array")
