"""The wire's Gather and Scatter as they are, with StableHLO's attributes, checked before they are sent."""

from tensord import contract, dims
from tensord.array import Array
from tensord.tracing.lifting import as_array, normalized_axes, show

_COMBINERS = {name.removeprefix("COMBINER_").lower(): name.removeprefix("COMBINER_") for name in contract.COMBINERS}


def gather(
    x,
    start_indices,
    *,
    offset_dims,
    start_index_map,
    index_vector_dim,
    slice_sizes,
    collapsed_slice_dims=(),
    operand_batching_dims=(),
    start_indices_batching_dims=(),
):
    """StableHLO's gather: a slice of x of sizes `slice_sizes` for each index vector along `index_vector_dim`.

    Start indices are clamped so that each slice fits. A size may be a td.Dim. td.take, td.take_along_axis and x[…] are
    what most programs want. Raises ValueError or TypeError where the attributes do not fit the shapes.
    """
    x, indices = as_array(x), as_array(start_indices)
    sizes = dims.as_shape(slice_sizes)
    batch, vector_size = _index_shape("gather", indices, index_vector_dim)
    collapsed = _ascending("gather", "collapsed_slice_dims", collapsed_slice_dims, x.ndim)
    batching = _ascending("gather", "operand_batching_dims", operand_batching_dims, x.ndim)
    indices_batching = _batching("gather", x, indices, batching, start_indices_batching_dims, index_vector_dim)
    mapped = _index_map("gather", "start_index_map", start_index_map, x.ndim, batching, vector_size)
    if len(sizes) != x.ndim:
        raise ValueError(f"gather: {len(sizes)} slice sizes for an array of rank {x.ndim}")
    for axis, (size, extent) in enumerate(zip(sizes, x.shape)):
        if dims.is_static(size) and dims.is_static(extent) and size > extent:
            raise ValueError(f"gather: slices of shape {show(sizes)} do not fit into {show(x.shape)}: axis {axis}")
        if axis in collapsed + batching and size != 1:
            raise ValueError(f"gather: axis {axis} is collapsed or a batch axis, so its slice size is 1, not {size}")
    if set(collapsed) & set(batching):
        raise ValueError("gather: collapsed_slice_dims and operand_batching_dims have an axis in common")
    window = [size for axis, size in enumerate(sizes) if axis not in collapsed + batching]
    rank = len(batch) + len(window)
    offsets = _ascending("gather", "offset_dims", offset_dims, rank)
    if len(offsets) != len(window):
        raise ValueError(f"gather: {len(offsets)} offset_dims for slices with {len(window)} axes")
    batch, window = iter(batch), iter(window)
    shape = tuple(next(window if axis in offsets else batch) for axis in range(rank))
    attributes = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "operand_batching_dims": batching,
        "start_indices_batching_dims": indices_batching,
        "start_index_map": mapped,
        "index_vector_dim": index_vector_dim,
    }
    return x.builder.gather(x, indices, attributes, sizes, shape)


def scatter(
    x,
    scatter_indices,
    updates,
    *,
    update_window_dims,
    scatter_dims_to_operand_dims,
    index_vector_dim,
    inserted_window_dims=(),
    input_batching_dims=(),
    scatter_indices_batching_dims=(),
    combiner="add",
):
    """StableHLO's scatter: x with a window of `updates` combined into it for each index vector along
    `index_vector_dim`.

    combiner: "add", "set", "multiply", "minimum" or "maximum". A window that does not fit into x at its indices is
    skipped whole; with "set" and equal indices the last update in column-major order of the indices wins.
    td.put_along_axis and x.at[…] are what most programs want. Raises ValueError or TypeError where the attributes do
    not fit the shapes.
    """
    x, indices = as_array(x), as_array(scatter_indices)
    updates = updates if isinstance(updates, Array) else as_array(updates, x.dtype)
    if combiner not in _COMBINERS:
        raise ValueError(f"scatter: the combiner is one of {', '.join(sorted(_COMBINERS))}, not {combiner!r}")
    if updates.dtype is not x.dtype:
        raise TypeError(f"scatter: updates of {updates.dtype} for an array of {x.dtype}")
    batch, vector_size = _index_shape("scatter", indices, index_vector_dim)
    inserted = _ascending("scatter", "inserted_window_dims", inserted_window_dims, x.ndim)
    batching = _ascending("scatter", "input_batching_dims", input_batching_dims, x.ndim)
    indices_batching = _batching("scatter", x, indices, batching, scatter_indices_batching_dims, index_vector_dim)
    mapped = _index_map(
        "scatter", "scatter_dims_to_operand_dims", scatter_dims_to_operand_dims, x.ndim, batching, vector_size
    )
    if set(inserted) & set(batching):
        raise ValueError("scatter: inserted_window_dims and input_batching_dims have an axis in common")
    window_axes = [axis for axis in range(x.ndim) if axis not in inserted + batching]
    windows = _ascending("scatter", "update_window_dims", update_window_dims, updates.ndim)
    if len(windows) != len(window_axes):
        raise ValueError(f"scatter: {len(windows)} update_window_dims for windows with {len(window_axes)} axes")
    found = tuple(size for axis, size in enumerate(updates.shape) if axis not in windows)
    if found != batch:
        raise ValueError(f"scatter: updates of batch shape {show(found)} for indices of batch shape {show(batch)}")
    for place, axis in zip(windows, window_axes):
        size, extent = updates.shape[place], x.shape[axis]
        if dims.is_static(size) and dims.is_static(extent) and size > extent:
            raise ValueError(f"scatter: windows of size {size} do not fit into axis {axis} of size {extent}")
    attributes = {
        "update_window_dims": windows,
        "inserted_window_dims": inserted,
        "input_batching_dims": batching,
        "scatter_indices_batching_dims": indices_batching,
        "scatter_dims_to_operand_dims": mapped,
        "index_vector_dim": index_vector_dim,
    }
    return x.builder.scatter(x, indices, updates, attributes, _COMBINERS[combiner])


def _index_shape(name, indices, index_vector_dim):
    """The shape of the index vectors' batch, and their length."""
    if not indices.dtype.is_integer:
        raise TypeError(f"{name}: indices are int32 or int64, not {indices.dtype}")
    if not 0 <= index_vector_dim <= indices.ndim:
        raise ValueError(f"{name}: index_vector_dim {index_vector_dim} for indices of rank {indices.ndim}")
    if index_vector_dim == indices.ndim:
        return indices.shape, 1
    shape = indices.shape
    return shape[:index_vector_dim] + shape[index_vector_dim + 1 :], shape[index_vector_dim]


def _ascending(name, field, axes, rank):
    try:
        result = list(normalized_axes(tuple(axes), rank))
    except ValueError as failure:
        raise ValueError(f"{name}: {field}: {failure}") from None
    if result != sorted(result):
        raise ValueError(f"{name}: {field} {result} are not in ascending order")
    return result


def _batching(name, x, indices, batching, indices_batching, index_vector_dim):
    result = list(normalized_axes(tuple(indices_batching), indices.ndim))
    if len(result) != len(batching) or index_vector_dim in result:
        raise ValueError(f"{name}: batch axes {batching} of the array do not pair with axes {result} of the indices")
    for axis, other in zip(batching, result):
        if x.shape[axis] != indices.shape[other]:
            raise ValueError(
                f"{name}: batch axes {axis} of the array and {other} of the indices have sizes "
                f"{x.shape[axis]} and {indices.shape[other]}"
            )
    return result


def _index_map(name, field, axes, rank, batching, vector_size):
    result = list(normalized_axes(tuple(axes), rank))
    if set(result) & set(batching):
        raise ValueError(f"{name}: {field} {result} names a batch axis")
    if len(result) != vector_size:
        raise ValueError(f"{name}: {field} names {len(result)} axes for index vectors of size {vector_size}")
    return result
