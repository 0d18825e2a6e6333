"""Names of algebras: "max_plus", "min_plus", "max_times" and "or_and"; None is ordinary arithmetic."""

from tensord import contract

_PREFIX = "ALGEBRA_"
NAMES = tuple(name[len(_PREFIX) :].lower() for name, number in contract.ALGEBRAS.items() if number)


def algebra_number(algebra):
    """The number of an algebra on the wire, 0 for None. Raises ValueError for a name that is none."""
    if algebra is None:
        return 0
    if algebra not in NAMES:
        raise ValueError(f"algebra is one of {', '.join(map(repr, NAMES))}, or None for ordinary sums, not {algebra!r}")
    return contract.ALGEBRAS[_PREFIX + algebra.upper()]
