"""One function that is differentiated here and by JAX, and the arguments of such functions."""

import dataclasses
import typing
import zlib

import numpy as np


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What an argument is drawn from: a shape, and the bounds of a number or of a complex one's two parts."""

    shape: tuple
    low: float = -2.0
    high: float = 2.0

    def draw(self, random, is_complex):
        """Values in double precision that single precision has too."""

        def part(low, high):
            return random.uniform(low, high, self.shape).astype(np.float32).astype(np.float64)

        return part(self.low, self.high) + (1j * part(-0.9, 0.9) if is_complex else 0)


def any_of(*shape):
    return Numbers(shape)


def positive(*shape):
    return Numbers(shape, 0.3, 2.0)


def within(*shape):
    """Strictly between -1 and 1."""
    return Numbers(shape, -0.9, 0.9)


@dataclasses.dataclass(frozen=True)
class DerivativeCase:
    """`function(p, *arguments)` is made of p's functions, where p is td or a package of JAX's functions under td's names.

    Kinds are the types: f, d for float32 and float64, c, z for complex64 and complex128. `order` is the highest order of
    derivatives in which both packages have one.
    """

    name: str
    function: typing.Callable
    arguments: tuple
    kinds: str = "fd"
    order: int = 2

    def draw(self, is_complex):
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [numbers.draw(random, is_complex) for numbers in self.arguments]


def case(name, function, *arguments, kinds="fd", order=2):
    return DerivativeCase(name, function, arguments, kinds, order)
