"""Structures of values: tuples, lists and dicts, nested as the user likes; None is a structure without leaves."""


class Structure:
    """The structure that holds the leaves of a value. Immutable; compares by its parts."""

    __slots__ = ("kind", "keys", "children")

    def __init__(self, kind, keys, children):
        self.kind, self.keys, self.children = kind, keys, children

    def __eq__(self, other):
        return isinstance(other, Structure) and (self.kind, self.keys, self.children) == (
            other.kind,
            other.keys,
            other.children,
        )

    def __repr__(self):
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is dict:
            return "{" + ", ".join(f"{key!r}: {child!r}" for key, child in zip(self.keys, self.children)) + "}"
        return ("(%s)" if issubclass(self.kind, tuple) else "[%s]") % ", ".join(map(repr, self.children))

    def leaves_of(self, value):
        """The leaves of a value of this structure; where the structure has a leaf, the value is one, whatever it is.

        Raises TypeError where the value is built otherwise.
        """
        if self.kind is None:
            return [value]
        if self.kind is type(None):
            fits, items = value is None, ()
        elif self.kind is dict:
            fits = isinstance(value, dict) and set(value) == set(self.keys)
            items = [value[key] for key in self.keys] if fits else ()
        else:
            fits = isinstance(value, (tuple, list)) and len(value) == len(self.children)
            items = value if fits else ()
        if not fits:
            raise TypeError(f"{self!r} is expected, not {flatten(value)[1]!r}")
        return [leaf for child, item in zip(self.children, items) for leaf in child.leaves_of(item)]

    def leaf_names(self, prefix):
        """A name for each leaf, in order: the keys on the way to it, joined by '_'."""
        if self.kind is None:
            return [prefix]
        return [
            name
            for key, child in zip(self.keys, self.children)
            for name in child.leaf_names(f"{prefix}_{key}" if prefix else str(key))
        ]

    def build(self, leaves):
        """The structure with its leaves taken from an iterator."""
        if self.kind is None:
            return next(leaves)
        if self.kind is type(None):
            return None
        values = [child.build(leaves) for child in self.children]
        if self.kind is dict:
            return dict(zip(self.keys, values))
        if hasattr(self.kind, "_fields"):
            return self.kind(*values)
        return self.kind(values)


_LEAF = Structure(None, (), ())


def leaves_in_tuple(count):
    """The structure of a tuple of so many leaves."""
    return Structure(tuple, tuple(range(count)), (_LEAF,) * count)


def as_tuple(structure):
    """The structure of a list as that of a tuple."""
    return Structure(tuple, structure.keys, structure.children)


def flatten(value):
    """(leaves, structure). Dicts are walked in their own order."""
    if value is None:
        return [], Structure(type(None), (), ())
    if isinstance(value, dict):
        keys, items, kind = tuple(value.keys()), list(value.values()), dict
    elif isinstance(value, (tuple, list)):
        keys, items, kind = tuple(range(len(value))), list(value), type(value)
    else:
        return [value], _LEAF
    leaves, children = [], []
    for item in items:
        item_leaves, child = flatten(item)
        leaves += item_leaves
        children.append(child)
    return leaves, Structure(kind, keys, tuple(children))
