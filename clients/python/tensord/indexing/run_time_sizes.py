"""Windows at places, and sizes, that are known only when the program runs."""

from tensord import dims, dtypes
from tensord.functions import shaping
from tensord.indexing import gathering
from tensord.tracing.lifting import as_array, normalized_axis, show


def dynamic_slice(x, start_indices, slice_sizes):
    """The window of x of sizes `slice_sizes` at start indices that are computed, one an axis.

    Start indices are integers of rank 0, or one vector. They are clamped so that the window fits: an index that is
    negative means 0, one that is too large the last place where the window fits.
    """
    x = as_array(x)
    sizes = dims.as_shape(slice_sizes)
    if len(sizes) != x.ndim:
        raise ValueError(f"dynamic_slice: {len(sizes)} slice sizes for an array of rank {x.ndim}")
    _check_window("dynamic_slice", sizes, x)
    starts = _start_vector("dynamic_slice", x, start_indices)
    if dims.all_static(sizes):
        return x.builder.dynamic_slice(x, starts, sizes)
    return gathering.gathered_window(x, starts, sizes)


def dynamic_update_slice(x, update, start_indices):
    """x with the window at start indices that are computed replaced by `update`.

    Start indices are integers of rank 0, or one vector. They are clamped so that the update fits whole.
    """
    x = as_array(x)
    update = as_array(update, x.dtype)
    if update.ndim != x.ndim:
        raise ValueError(f"dynamic_update_slice: an update of rank {update.ndim} for an array of rank {x.ndim}")
    _check_window("dynamic_update_slice", update.shape, x)
    return x.builder.dynamic_update_slice(x, update, _start_vector("dynamic_update_slice", x, start_indices))


def _check_window(name, sizes, x):
    for axis, (size, extent) in enumerate(zip(sizes, x.shape)):
        if dims.is_static(size) and dims.is_static(extent) and size > extent:
            raise ValueError(f"{name}: a window of shape {show(sizes)} does not fit into {show(x.shape)}: axis {axis}")


def _start_vector(name, x, starts):
    if isinstance(starts, (list, tuple)):
        if len(starts) != x.ndim:
            raise ValueError(f"{name}: {len(starts)} start indices for an array of rank {x.ndim}")
        starts = [as_array(start) for start in starts]
        for start in starts:
            if start.ndim or not start.dtype.is_integer:
                raise TypeError(f"{name}: a start index is an integer of rank 0, not {start!r}")
        starts = shaping.stack(starts) if starts else as_array([], dtypes.int64)
    starts = as_array(starts)
    if starts.shape != (x.ndim,) or not starts.dtype.is_integer:
        raise ValueError(
            f"{name}: start indices are {x.ndim} integers, one an axis, not {starts.dtype}{show(starts.shape)}"
        )
    return starts


def dynamic_truncate(x, size, axis=0):
    """The first `size` entries of x along an axis, where `size` is computed: an int32 or int64 of rank 0.

    A size below 0 means 0, one past the end means all. The result's size along the axis, a td.Dim, is known only when
    the program runs. Results of one `size` and axes of one size have one size.
    """
    x, size = as_array(x), as_array(size)
    axis = normalized_axis(axis, x.ndim)
    if size.ndim or not size.dtype.is_integer:
        raise TypeError(f"dynamic_truncate: the size is an integer of rank 0, not {size!r}")
    return x.builder.dynamic_truncate(x, size, axis)


def pad_to_match(x, reference, axis=0):
    """x with zeros behind its last entry along an axis, up to the size that the axis has in `reference`.

    An axis that is longer already stays as it is. Of `reference`, which has the rank of x, only that size is used.
    """
    x, reference = as_array(x), as_array(reference)
    axis = normalized_axis(axis, x.ndim)
    if reference.ndim != x.ndim:
        raise ValueError(f"pad_to_match: a reference of rank {reference.ndim} for an array of rank {x.ndim}")
    if x.shape[axis] == reference.shape[axis]:
        return x
    return x.builder.pad_to_match(x, reference, axis)


def shape_of(x, axis):
    """The size of an axis as an int64 of rank 0; the way to compute with a size that is symbolic."""
    x = as_array(x)
    return as_array(x.shape[normalized_axis(axis, x.ndim)], dtypes.int64)
