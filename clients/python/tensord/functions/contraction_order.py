"""In which order einsum contracts its operands, as numpy.einsum_path; needs a server with the family einsum."""

import math

from tensord import dims, errors
from tensord.array import Array
from tensord.client import default_client
from tensord.functions.einstein_sum import einsum, labelled_axes, letters_of, order_of, read, sizes_of
from tensord.program import Spec, make_graph, spec_of

# The size that counts for one known only when the program runs: the server's own guess.
_SIZE_OF_SYMBOL = 64


def einsum_path(*operands, optimize="greedy", einsum_call=False, sizes=None, client=None):
    """(path, report): the order in which td.einsum contracts these operands, planned by the server, and NumPy's text on it.

    Works in a traced function and outside of one: operands are Arrays, NumPy arrays or td.specs, of which only the types
    count. The path is a list that begins with "einsum_path", for `optimize` of td.einsum and of np.einsum. optimize: as
    td.einsum's; a path is reported as it is. In the report operations are counted as NumPy counts them, and `sizes`
    ({"n": 1000}) says what symbols count as, others are taken as 64; each run plans for its own sizes. Raises
    ResourceExhausted where no path keeps to the most elements that an intermediate may have.
    """
    if einsum_call:
        raise TypeError("einsum_path: einsum_call is for NumPy's own einsum")
    terms, output, separators, values = read(operands)
    specs = [_type_of(value, sizes or {}) for value in values]
    order_of(optimize, len(values))
    labels, output = labelled_axes(terms, output, specs)
    steps = _known_steps(optimize, len(values), any("(" in separator for separator in separators))
    if steps is None:
        plans = (client or default_client()).plan_contractions(_graph_of(operands, specs, optimize))
        if len(plans) != 1:
            raise errors.Unimplemented("einsum_path: the server does not say how it plans an einsum")
        steps = [tuple(step.operands) for step in plans[0].path]
    letters = _letters_for_all(dict.fromkeys(label for axes in labels for label in axes))
    extents = {letters[label]: size for label, size in sizes_of(labels, specs).items()}
    inputs = ["".join(letters[label] for label in axes) for axes in labels]
    report = _report(inputs, "".join(letters[label] for label in output), steps, extents)
    return ["einsum_path", *steps], report


class _Type(Spec):
    __slots__ = ()

    @property
    def ndim(self):
        return len(self.shape)


def _type_of(value, sizes):
    known = value if isinstance(value, Array) else spec_of(value)
    counted = {leaf: sizes.get(leaf, _SIZE_OF_SYMBOL) for size in known.shape for leaf in dims.leaves_of(size)}
    return _Type(tuple(dims.evaluate(size, counted) for size in known.shape), known.dtype)


def _known_steps(optimize, count, has_parentheses):
    """The steps, where there is nothing to plan."""
    if has_parentheses:
        return None
    if isinstance(optimize, (tuple, list)) and "einsum_path" in optimize[:1]:
        return [tuple(step) for step in optimize[1:]]
    # NumPy's way to say that there is no order: all at once.
    return [tuple(range(count))] if optimize is None or optimize is False or count < 3 else None


def _graph_of(operands, specs, optimize):
    if isinstance(operands[0], str):
        return make_graph(lambda *arrays: einsum(operands[0], *arrays, optimize=optimize), *specs).graph

    def with_lists(*arrays):
        given = list(operands)
        given[: 2 * len(arrays) : 2] = arrays
        return einsum(*given, optimize=optimize)

    return make_graph(with_lists, *specs).graph


def _letters_for_all(labels):
    """Letters, and characters of other alphabets where these do not suffice."""
    letters = letters_of(labels)
    others = iter(range(0xC0, 0x110000))
    for label in labels:
        if label not in letters:
            letters[label] = next(chr(code) for code in others if chr(code).isalpha())
    return letters


# ---- NumPy's report ----


def _size(labels, extents):
    return math.prod(float(extents[label]) for label in labels)


def _operations(labels, sums, terms, extents):
    """A product of each element with the next term counts one, and so does adding it to a sum."""
    return _size(labels, extents) * (max(1, terms - 1) + bool(sums))


def _report(inputs, output, steps, extents):
    every = set("".join(inputs))
    naive = _operations(every, sum(len(set(term)) for term in inputs) > len(every), len(inputs), extents)
    left, sets, rows = list(inputs), [set(term) for term in inputs], []
    total, largest = 1.0, 0.0
    for number, step in enumerate(steps):
        places = sorted(step, reverse=True)
        taken, visited = [left.pop(place) for place in places], set().union(*[sets.pop(place) for place in places])
        kept = visited & set(output).union(*sets)
        total += _operations(visited, visited - kept, len(places), extents)
        largest = max(largest, _size(kept, extents))
        is_last = number == len(steps) - 1
        made = output if is_last else "".join(sorted(kept, key=lambda label: (extents[label], label)))
        left.append(made)
        sets.append(kept)
        rows.append((len(visited), f"{','.join(taken)}->{made}", f"{','.join(left)}->{output}"))
    line = "-" * 74
    return "\n".join(
        [
            f"  Complete contraction:  {','.join(inputs)}->{output}",
            f"         Naive scaling:  {len(every)}",
            f"     Optimized scaling:  {max(row[0] for row in rows)}",
            f"      Naive FLOP count:  {naive:.3e}",
            f"  Optimized FLOP count:  {total:.3e}",
            f"   Theoretical speedup:  {naive / total:3.3f}",
            f"  Largest intermediate:  {largest:.3e} elements",
            line,
            f"{'scaling':>6} {'current':>24} {'remaining':>40}",
            line,
            *(f"{scaling:4d}    {current:>24} {remaining:>40}" for scaling, current, remaining in rows),
        ]
    )
