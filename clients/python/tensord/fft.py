"""Discrete Fourier transforms, with numpy.fft's names and meaning; needs a server with the family fft.

Computed in float32 and complex64 or in float64 and complex128: integers in float64, 16-bit floats in float32. `out`, which
NumPy fills, is None here: Arrays do not change.
"""

import operator

from tensord import dims, dtypes
from tensord.arguments.integers import as_sequence
from tensord.arguments.options import check_device, refuse_out
from tensord.functions import arithmetic, creation, logic, shaping
from tensord.tracing.lifting import as_array, normalized_axis

_NORMS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}
# Norms of a transform whose direction is taken for the other one.
_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_KINDS = {"fft": 1, "ifft": 2, "rfft": 3, "irfft": 4}


def _transform(kind, x, lengths, axes, norm, out=None):
    refuse_out(kind, out)
    x = as_array(x)
    x = x.builder.convert(x, dtypes.float32 if x.dtype.bits == 16 else dtypes.inexact_of(x.dtype))
    if norm not in _NORMS:
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if kind == "rfft" and x.dtype.is_complex:
        raise TypeError(f"{kind} needs a real operand, not {x.dtype}")
    if axes is None:
        axes = range(x.ndim) if lengths is None else range(x.ndim - len(lengths), x.ndim)
    axes = [normalized_axis(axis, x.ndim) for axis in axes]
    if not axes:
        if kind in ("rfft", "irfft"):
            raise IndexError(f"{kind}n halves the last of its axes, and has none")
        return x.builder.convert(x, dtypes.complex_of(x.dtype))
    lengths = [] if lengths is None else _full_lengths(kind, lengths, axes, x.shape)
    shape = list(x.shape)
    last = len(axes) - 1
    # In the order in which they are carried out: if an axis is named twice, the last one counts.
    for place in range(len(axes)) if kind == "irfft" else reversed(range(len(axes))):
        axis = axes[place]
        length = lengths[place] if lengths else x.shape[axis]
        if kind == "rfft" and place == last:
            length = length // 2 + 1
        elif kind == "irfft" and place == last and not lengths:
            length = 2 * (length - 1)
        shape[axis] = length
    for axis in axes:
        if dims.is_static(shape[axis]) and shape[axis] < 1:
            raise ValueError(f"axis {axis} has no element to transform")
    dtype = dtypes.real_of(x.dtype) if kind == "irfft" else dtypes.complex_of(x.dtype)
    attributes = {"kind": _KINDS[kind], "axes": axes, "lengths": lengths, "norm": _NORMS[norm]}
    (result,) = x.builder.extension("tensord.fft.v1.Fft", attributes, [x], [(dtype, tuple(shape))])
    return result


def _full_lengths(kind, lengths, axes, shape):
    """One length an axis; -1 stands for the operand's own."""
    if len(lengths) != len(axes):
        raise ValueError(f"{len(lengths)} lengths for axes {axes}: one length an axis")
    result = []
    for place, (length, axis) in enumerate(zip(lengths, axes)):
        length = operator.index(length)
        if length == -1:
            length = 2 * (shape[axis] - 1) if kind == "irfft" and place == len(axes) - 1 else shape[axis]
            if not dims.is_static(length):
                raise ValueError(f"length -1 of axis {axis}, whose size {shape[axis]} is known only when the program runs")
        if length < 1:
            raise ValueError(f"length {length} of axis {axis}: a length is positive, or -1 for the operand's own")
        result.append(length)
    return result


def _along_one(kind, a, n, axis, norm, out=None):
    if n is not None and operator.index(n) < 1:
        raise ValueError(f"{kind}: the length is positive, not {n}")
    return _transform(kind, a, n if n is None else [n], [axis], norm, out)


def fft(a, n=None, axis=-1, norm=None, out=None):
    return _along_one("fft", a, n, axis, norm, out)


def ifft(a, n=None, axis=-1, norm=None, out=None):
    return _along_one("ifft", a, n, axis, norm, out)


def rfft(a, n=None, axis=-1, norm=None, out=None):
    """The transform of real numbers: the half that is not redundant."""
    return _along_one("rfft", a, n, axis, norm, out)


def irfft(a, n=None, axis=-1, norm=None, out=None):
    """The inverse of rfft; n is the length of the result, 2 * (m - 1) by default."""
    return _along_one("irfft", a, n, axis, norm, out)


def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return _transform("fft", a, s, axes, norm, out)


def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return _transform("ifft", a, s, axes, norm, out)


def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return _transform("rfft", a, s, axes, norm, out)


def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return _transform("irfft", a, s, axes, norm, out)


def fftn(a, s=None, axes=None, norm=None, out=None):
    return _transform("fft", a, s, axes, norm, out)


def ifftn(a, s=None, axes=None, norm=None, out=None):
    return _transform("ifft", a, s, axes, norm, out)


def rfftn(a, s=None, axes=None, norm=None, out=None):
    return _transform("rfft", a, s, axes, norm, out)


def irfftn(a, s=None, axes=None, norm=None, out=None):
    return _transform("irfft", a, s, axes, norm, out)


def hfft(a, n=None, axis=-1, norm=None, out=None):
    """The transform, which is real, of n numbers with Hermitian symmetry; n is 2 * (m - 1) by default."""
    return irfft(logic.conj(a), n, axis, _OPPOSITE.get(norm, norm), out)


def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """The inverse of hfft."""
    return logic.conj(rfft(a, n, axis, _OPPOSITE.get(norm, norm), out))


def fftfreq(n, d=1.0, device=None):
    """The frequencies of the elements of fft's result, for n samples d apart; n may be a symbolic size."""
    check_device("fftfreq", device)
    place = creation.arange(n)
    negative = logic.greater_equal(place, (n + 1) // 2)
    return arithmetic.divide(logic.where(negative, arithmetic.subtract(place, n), place), arithmetic.multiply(n, d))


def rfftfreq(n, d=1.0, device=None):
    """The frequencies of the elements of rfft's result."""
    check_device("rfftfreq", device)
    return arithmetic.divide(creation.arange(n // 2 + 1), arithmetic.multiply(n, d))


def fftshift(x, axes=None):
    """x with frequency zero in the middle."""
    x = as_array(x)
    axes = range(x.ndim) if axes is None else as_sequence(axes)
    return shaping.roll(x, [x.shape[axis] // 2 for axis in axes], axes)


def ifftshift(x, axes=None):
    """The inverse of fftshift."""
    x = as_array(x)
    axes = range(x.ndim) if axes is None else as_sequence(axes)
    return shaping.roll(x, [-(x.shape[axis] // 2) for axis in axes], axes)
