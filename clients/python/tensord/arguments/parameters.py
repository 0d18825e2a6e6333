"""The arguments of a traced function: which it takes by position and by name, and what a call gives it."""

import inspect

import numpy as np

from tensord import dtypes
from tensord.arguments.numpy_arrays import numpy_array


class Parameters:
    """The names of the arguments that a function was traced with, in the order of its own parameters.

    Those that the function takes as *args have names of their own, argument_2, by which they cannot be given.
    """

    def __init__(self, title, names, keywords):
        self._title, self.names, self._keywords = title, names, keywords

    def in_order(self, args, keywords):
        """The arguments of a call, a tuple in the order of the names. Raises TypeError where they are not these."""
        if not keywords and len(args) == len(self.names):
            return args
        values = dict(zip(self.names, args))
        for name, value in keywords.items():
            if name in values:
                raise TypeError(f"{self._title} was given two values of {name!r}")
            values[name] = value
        missing = [name for name in self.names if name not in values]
        unknown = [name for name in values if name not in self.names]
        if missing or unknown or len(args) > len(self.names):
            raise TypeError(self._wrong(len(args) + len(keywords), missing, unknown))
        return tuple(values[name] for name in self.names)

    def _wrong(self, count, missing, unknown):
        names = ", ".join(self.names)
        wants = f"{len(self.names)} argument{'' if len(self.names) == 1 else 's'}"
        said = f"{self._title} takes {wants} ({names}), got {count}: it was traced with arguments ({names})"
        if missing:
            said += f", and {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        return said + (f", and not with {', '.join(unknown)}" if unknown else "")

    def call(self, function, values, static):
        """The function of values in the order of the names."""
        positional = [value for name, value in zip(self.names, values) if name not in self._keywords]
        named = {name: value for name, value in zip(self.names, values) if name in self._keywords}
        return function(*positional, **named, **static)


def parameters_of(function, title, specs, keywords, static):
    """(Parameters, the specs in their order). Raises TypeError where the function does not take as many, or not these."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions that are not written in Python
        names = [f"argument_{place}" for place in range(len(specs))] + list(keywords)
        return Parameters(title, names, set(keywords)), specs + tuple(keywords.values())
    try:
        bound = signature.bind(*specs, **keywords, **static)
    except TypeError as failure:
        count = len(specs) + len(keywords) + len(static)
        raise TypeError(f"{title}{signature} does not take what it was given, {count} arguments: {failure}") from None
    parameters = signature.parameters.values()
    by_place = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][: len(specs)]
    by_place += [f"argument_{place}" for place in range(len(by_place), len(specs))]
    given = {**dict(zip(by_place, specs)), **keywords}
    order = [name for name in bound.arguments if name in given]
    order += [name for name in given if name not in order]
    return Parameters(title, order, set(keywords)), tuple(given[name] for name in order)


def with_lists_as_arrays(value):
    """Arguments in which a list of numbers, or of such lists, is a NumPy array; what holds arrays stays as it is."""
    if isinstance(value, list) and value and _holds_numbers(value):
        return numpy_array(value)
    if isinstance(value, dict):
        return {key: with_lists_as_arrays(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(with_lists_as_arrays, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(with_lists_as_arrays, value))
    return value


def _holds_numbers(values):
    return all(
        _holds_numbers(value) if isinstance(value, list) else dtypes.is_weak(value) or isinstance(value, np.generic)
        for value in values
    )
