"""Sums of products in Einstein's notation, as numpy.einsum; needs a server with the family einsum.

The client reads the notation as NumPy does: it works out an output that is not written, gives the axes of an ellipsis
labels, and leaves to the server in which order operands are contracted.
"""

import re

import numpy as np

from tensord import contract, dtypes
from tensord.arguments.algebras import algebra_number
from tensord.arguments.options import check_casting, check_order, refuse_out
from tensord.tracing.lifting import promoted, result_type, show

_MESSAGE = "tensord.einsum.v1.Einsum"
_OPTIMIZERS = contract.enum_values(_MESSAGE + ".Optimizer")
_OPTIMIZER_NAMES = {
    True: "OPTIMIZER_AUTO",
    "auto": "OPTIMIZER_AUTO",
    False: "OPTIMIZER_LEFT_TO_RIGHT",
    None: "OPTIMIZER_LEFT_TO_RIGHT",
    "greedy": "OPTIMIZER_GREEDY",
    "optimal": "OPTIMIZER_OPTIMAL",
}
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=True, algebra=None):
    """The sum of products that subscripts name: einsum("ij,jk->ik", a, b), or by lists, einsum(a, [0, 1], b, [1, 2]).

    Without an output its axes are the labels that occur once, in the order of the alphabet. Beyond NumPy, parentheses fix
    the order of contraction, "(ij,jk),kl->il"; a label may be repeated in the output, "i->ii"; digits and letters of all
    alphabets are labels, and any number in lists. optimize: True chooses an order, False goes from left to right; "greedy", "optimal", a list of
    steps as NumPy and opt_einsum write them, or what td.einsum_path gave; or a pair of one of these and the most elements that an intermediate may have.
    algebra: "max_plus", "min_plus", "max_times" or "or_and" for other sums and products.
    """
    refuse_out("einsum", out)
    check_order("einsum", order)
    terms, output, separators, values = read(operands)
    chosen = order_of(optimize, len(values))
    arrays = _of_one_type(values, dtype, casting)
    labels, output = labelled_axes(terms, output, arrays)
    sizes = sizes_of(labels, arrays)
    shape = tuple(sizes[label] for label in output)
    labels, arrays = zip(*(_without_repeated_ones(*pair, sizes) for pair in zip(labels, arrays)))
    attributes = {**_notation(labels, output, separators), **chosen, "algebra": algebra_number(algebra)}
    (result,) = arrays[0].builder.extension(_MESSAGE, attributes, arrays, [(arrays[0].dtype, shape)])
    return result


# ---- Reading: a term is a list of labels, which are letters or numbers, and of Ellipsis ----


def read(operands):
    """(terms, output or None, what stands around the terms, values)."""
    if not operands:
        raise ValueError("einsum needs subscripts and operands")
    if isinstance(operands[0], str):
        terms, output, separators = _read_equation(operands[0])
        values = operands[1:]
        if len(values) != len(terms):
            raise ValueError(f"einsum: {operands[0]!r} has {len(terms)} terms for {len(values)} operands")
    else:
        values = operands[: len(operands) // 2 * 2 : 2]
        terms = [_read_list(labels) for labels in operands[1::2]]
        output = _read_list(operands[-1]) if len(operands) % 2 else None
        separators = [""] + [","] * (len(terms) - 1) + [""]
    if not terms:
        raise ValueError("einsum needs at least one operand with its labels")
    for term in [*terms, output or []]:
        if term.count(Ellipsis) > 1:
            raise ValueError("einsum: a term has at most one ellipsis")
    return terms, output, separators, values


def _read_list(labels):
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise TypeError(f"einsum: behind each operand stands the list of its labels, not {labels!r}")
    return [label if label is Ellipsis else _number(label) for label in labels]


def _number(label):
    if isinstance(label, (bool, np.bool_)) or not hasattr(label, "__index__") or label.__index__() < 0:
        raise TypeError(f"einsum: a label in a list is a number from 0 on or Ellipsis, not {label!r}")
    return label.__index__()


def _read_equation(equation):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms, separators, depth = [], [""], 0
    pieces = re.split(r"([(),])", inputs)
    for place in range(0, len(pieces), 2):
        before, text, after = pieces[place - 1] if place else "", pieces[place], "".join(pieces[place + 1 : place + 2])
        separators[-1] += before
        depth += (before == "(") - (before == ")")
        if depth < 0:
            raise ValueError(f"einsum: a parenthesis of {equation!r} closes none")
        if before == ")" or after == "(":  # beside a group stands a comma or another parenthesis, and no term
            if text:
                raise ValueError(f"einsum: a comma is missing beside a parenthesis of {equation!r}")
        else:
            terms.append(_read_term(text, equation))
            separators.append("")
    if depth:
        raise ValueError(f"einsum: a parenthesis of {equation!r} is not closed")
    if depth == 0 and "(" in inputs and not arrow:
        raise ValueError(f"einsum: with parentheses the output is written, as in '(ij,jk),kl->il', not {equation!r}")
    return terms, _read_term(output, equation) if arrow else None, separators


def _read_term(text, equation):
    before, dots, after = text.partition("...")
    for sign in before + after:
        if not (sign.isalnum() if sign.isascii() else sign.isprintable()):
            raise ValueError(f"einsum: {sign!r} of {equation!r} is no label")
    return [*before, *([Ellipsis] if dots else []), *after]


# ---- Axes: every axis has a label, those of an ellipsis are counted from the right ----


class _Broadcast:
    """The label of an ellipsis's axis."""

    def __init__(self, place):
        self.place = place

    def __eq__(self, other):
        return isinstance(other, _Broadcast) and self.place == other.place

    def __hash__(self):
        return hash((_Broadcast, self.place))


def labelled_axes(terms, output, arrays):
    labels = [_spelled_out(term, array.ndim - len(term) + 1) for term, array in zip(terms, arrays)]
    for term, axes, array in zip(terms, labels, arrays):
        if len(axes) != array.ndim:
            raise ValueError(f"einsum: {_show(term)} has {len(axes)} labels for an operand of shape {show(array.shape)}")
    broadcast = max((label.place for axes in labels for label in axes if isinstance(label, _Broadcast)), default=0)
    if output is None:
        named = [label for term in terms for label in term if label is not Ellipsis]
        output = [Ellipsis] + sorted(label for label in set(named) if named.count(label) == 1)
    elif broadcast and Ellipsis not in output:
        raise ValueError("einsum: an ellipsis stands for axes of an operand, and the output has none")
    output = _spelled_out(output, broadcast)
    known = {label for axes in labels for label in axes}
    for label in output:
        if label not in known:
            raise ValueError(f"einsum: no operand has the label {label!r} of the output")
    return labels, output


def _spelled_out(term, hidden):
    """The labels of a term whose ellipsis stands for `hidden` axes."""
    result = []
    for label in term:
        result += [_Broadcast(hidden - axis) for axis in range(hidden)] if label is Ellipsis else [label]
    return result


def _show(term):
    return "".join("..." if label is Ellipsis else label for label in term) if _is_text(term) else str(term)


def _is_text(term):
    return all(label is Ellipsis or isinstance(label, str) for label in term)


def _of_one_type(values, dtype, casting):
    if dtype is None:
        return promoted(*values)
    dtype, found = dtypes.as_dtype(dtype), result_type(*values)
    check_casting("einsum", found, dtype, casting)
    return promoted(*values, to=lambda _: dtype)


def sizes_of(labels, arrays):
    """The size of each label; a size 1 of one operand goes with any size of another one."""
    sizes = {}
    for axes, array in zip(labels, arrays):
        own = {}
        for label, size in zip(axes, array.shape):
            if own.setdefault(label, size) != size:
                raise ValueError(f"einsum: label {label!r} has sizes {own[label]} and {size} in one operand")
        for label, size in own.items():
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                named = "an axis of the ellipsis" if isinstance(label, _Broadcast) else f"label {label!r}"
                raise ValueError(f"einsum: {named} has sizes {known} and {size}")
    return sizes


def _without_repeated_ones(axes, array, sizes):
    """An operand without the axes of size 1 that are repeated: a product with it needs no such axis."""
    kept = [place for place, label in enumerate(axes) if array.shape[place] == sizes[label]]
    return [axes[place] for place in kept], array.builder.reshape(array, tuple(array.shape[place] for place in kept))


# ---- What is sent ----


def letters_of(labels):
    """A letter for each of the labels, its own where it has one, as far as the letters suffice."""
    letters = {label: label for label in labels if isinstance(label, str) and label in _LETTERS}
    letters.update({label: _LETTERS[label] for label in labels if isinstance(label, int) and label < len(_LETTERS)})
    free = iter([letter for letter in reversed(_LETTERS) if letter not in letters.values()])
    letters.update(zip([label for label in labels if label not in letters], free))
    return letters


def _notation(labels, output, separators):
    """An equation where the letters suffice, else lists of numbers."""
    found = list(dict.fromkeys(label for axes in labels for label in axes))
    letters = letters_of(found)
    if len(letters) == len(found):
        texts = ["".join(letters[label] for label in axes) for axes in labels]
        inputs = separators[0] + "".join(text + separator for text, separator in zip(texts, separators[1:]))
        return {"equation": f"{inputs}->{''.join(letters[label] for label in output)}"}
    if any("(" in separator for separator in separators):
        raise ValueError("einsum: too many labels for an equation with parentheses; give the order by `optimize`")
    numbers = {label: number for number, label in enumerate(found)}
    as_labels = contract.message_class(_MESSAGE + ".Labels")
    lists = [as_labels(labels=[numbers[label] for label in axes]) for axes in [*labels, output]]
    return {"operands": lists[:-1], "output": lists[-1]}


def order_of(optimize, count):
    """The attributes that say in which order operands are contracted."""
    attributes = {}
    if isinstance(optimize, (tuple, list)) and len(optimize) == 2 and _is_count(optimize[1]):
        optimize, attributes["largest_intermediate"] = optimize[0], int(optimize[1])
        if attributes["largest_intermediate"] < 1:
            raise ValueError(f"einsum: an intermediate has at least one element, not {optimize[1]}")
    if optimize is None or isinstance(optimize, (bool, str)):
        if optimize not in _OPTIMIZER_NAMES:
            raise ValueError(f"einsum: optimize is a bool, 'auto', 'greedy', 'optimal' or a path, not {optimize!r}")
        return {**attributes, "optimizer": _OPTIMIZERS[_OPTIMIZER_NAMES[optimize]]}
    if not isinstance(optimize, (tuple, list)):
        raise TypeError(f"einsum: optimize is a bool, a name or a path, not {type(optimize).__name__}")
    steps = [[_number(place) for place in step] for step in (optimize[1:] if "einsum_path" in optimize[:1] else optimize)]
    left = count
    for step in steps:
        if not step or len(set(step)) != len(step) or max(step) >= left:
            raise ValueError(f"einsum: step {tuple(step)} of the path does not fit {left} operands")
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"einsum: the path leaves {left} of {count} operands")
    contraction = contract.message_class(_MESSAGE + ".Step")
    return {**attributes, "path": [contraction(operands=step) for step in steps if len(step) > 1]}


def _is_count(value):
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
