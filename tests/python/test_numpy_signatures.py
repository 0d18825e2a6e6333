"""Every function and method that the client has beside NumPy takes NumPy's arguments, in NumPy's places and by NumPy's names; all
of numpy.linalg, numpy.fft and numpy's einsum is there; and what NumPy refuses is refused with the same class of exception.
Whatever NumPy is installed says which functions these are. Needs no server."""

import inspect
import re
import unittest

import checkout  # noqa: F401
import numpy as np
import tensord as td

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# Parameters that have another default here, and why.
OTHER_DEFAULTS = {
    "linalg.pinv.rcond": "NumPy 1 has 1e-15 for all dtypes and sizes; here it is NumPy 2's, eps * max(m, n), which is None",
    "linalg.pinv.rtol": "NumPy 2's marks that none was given, which is None here",
    "linalg.lstsq.rcond": "NumPy 1 warns where none is given; here it is NumPy 2's, None",
    "einsum.optimize": "the server chooses the order of contraction unless told otherwise",
    "einsum.out": "NumPy's einsum hands on what it does not name itself",
    "einsum_path.optimize": "as einsum's",
    "take.mode": "traced indices cannot raise; None is NumPy's 'raise' for those that are known",
    "Array.take.mode": "as take's",
    "vecdot.axis": "NumPy's mark of none, which means -1",
    "Array.sum.initial": "None is the number that changes nothing",
    "Array.prod.initial": "None is the number that changes nothing",
    "Array.flatten.order": "as ravel's",
}
# Names that differ in NumPy 1 and NumPy 2; those of NumPy 2 stand here.
OLD_NAMES = {"reshape.newshape": "shape"}
# Parameters that are not there, and why.
NOT_THERE = {
    "extobj": "NumPy 1's way to set what happens at errors, gone in NumPy 2",
    "linalg.pinv.rcond": "in NumPy 1's place",
}
# Names in NumPy that are no function to be called on arrays.
NO_FUNCTIONS = {"test": "NumPy's own tests"}
# Names that NumPy has for something else.
OTHER_THINGS = {"compile", "spec"}
# Functions of which NumPy's docstring shows no parameters of Python's kind.
SPELLED_OUT = {
    "arange": "(start, stop=None, step=1, dtype=None, *, like=None)",
    "where": "(condition, x=None, y=None, /)",
    "concatenate": "(arrays, axis=0, out=None, *, dtype=None, casting='same_kind')",
    "divmod": "(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None)",
    "Array.dot": "(b, out=None)",
    "Array.transpose": "(*axes)",
    "Array.reshape": "(*shape, order='C')",
}
LEFT_OUT = object()  # the default of what a docstring has in brackets
# A keyword-only parameter may be given by place here too, and NumPy's mark for what was not given is one of these.
_NOT_GIVEN = (None, True, False)


def numpy_signature(name, function):
    """The inspect.Signature of a function of NumPy's: its own, or what the first line of its docstring says."""
    if name in SPELLED_OUT:
        return signature_of(SPELLED_OUT[name])
    try:
        return inspect.signature(function)
    except ValueError:
        shown = re.match(r"\s*(?:a\.|ndarray\.)?\w+(\(.*?\))\s*$", (function.__doc__ or "").strip().splitlines()[0])
        return signature_of(shown[1]) if shown else None


def signature_of(text):
    """The signature in "(x1, x2, /, out=None, *, dtype=None[, signature, extobj])": parts in brackets may be left out.
    """
    def optional(found):
        return found[1] + ", ".join(f"{name}=LEFT_OUT" for name in re.findall(r"\w+", found[2]))

    text = text.replace("<no value>", "LEFT_OUT")
    text = re.sub(r"(^\()\[([\w, ]*)\]", optional, text)
    text = re.sub(r"\[(, *)([\w, ]*)\]", optional, text)
    scope = {"LEFT_OUT": LEFT_OUT}
    exec(f"def f{text}: pass", scope)
    return inspect.signature(scope["f"])


def numpy_functions():
    """(name here, NumPy's function) of all that should be here."""
    for module in ("linalg", "fft"):
        for name, value in vars(getattr(np, module)).items():
            if callable(value) and not isinstance(value, type) and not name.startswith("_") and name not in NO_FUNCTIONS:
                yield f"{module}.{name}", value
    yield "einsum", np.einsum
    yield "einsum_path", np.einsum_path


def shared_functions():
    """(name, NumPy's function) of all that is here and in NumPy."""
    for name, value in vars(td).items():
        if inspect.isfunction(value) and callable(getattr(np, name, None)) and name not in OTHER_THINGS:
            yield name, getattr(np, name)
    for name, value in vars(td.Array).items():
        if inspect.isfunction(value) and not name.startswith("_") and hasattr(np.ndarray, name):
            if name not in ("item", "tolist"):  # which refuse whatever they are given
                yield f"Array.{name}", getattr(np.ndarray, name)


def counterpart(name):
    value = td
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def differences(name, theirs, ours):
    """The differences that break a right call of NumPy's function with our parameters."""
    ours_by_name = ours.parameters
    positional = [parameter for parameter in ours_by_name.values() if parameter.kind in _POSITIONAL]
    covered = set()
    for place, parameter in enumerate(theirs.parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if parameter.kind == parameter.VAR_POSITIONAL and not any(p.kind == p.VAR_POSITIONAL for p in ours_by_name.values()):
                yield f"{name} takes no *{parameter.name}"
            continue
        if parameter.name in NOT_THERE:
            continue
        shown = OLD_NAMES.get(f"{name}.{parameter.name}", parameter.name)
        mine = ours_by_name.get(shown)
        if parameter.kind in _POSITIONAL:
            if place >= len(positional):
                yield f"{name} takes no positional argument {place}, {parameter.name}"
                continue
            if parameter.kind == parameter.POSITIONAL_ONLY:
                mine = positional[place]
            elif positional[place] is not mine:
                yield f"{name}: argument {place} is {positional[place].name}, and NumPy's {parameter.name}"
                continue
        if mine is None:
            yield f"{name} has no parameter {parameter.name}"
            continue
        covered.add(mine.name)
        if parameter.kind != parameter.POSITIONAL_ONLY and mine.kind == mine.POSITIONAL_ONLY and shown == parameter.name:
            yield f"{name}: {parameter.name} cannot be given by name"
        if not same_default(parameter, mine) and f"{name}.{parameter.name}" not in OTHER_DEFAULTS:
            yield f"{name}: {parameter.name} is {mine.default!r} by default, and NumPy's {parameter.default!r}"
    for mine in ours_by_name.values():
        is_needed = mine.default is mine.empty and mine.kind not in (mine.VAR_POSITIONAL, mine.VAR_KEYWORD)
        if mine.name not in covered and is_needed:
            yield f"{name} needs {mine.name}, which NumPy has not"


def same_default(theirs, mine):
    if theirs.default in (theirs.empty, LEFT_OUT) or mine.default is theirs.default or mine.default == theirs.default:
        return True
    if theirs.default is np._NoValue:
        return mine.default in _NOT_GIVEN
    if theirs.default == (None, None):
        return mine.default is None
    return theirs.name == "dtype" and {theirs.default, mine.default} == {None, float}  # None is float there too


class Signatures(unittest.TestCase):
    def test_every_function_is_there_with_numpys_parameters(self):
        count = 0
        for name, theirs in numpy_functions():
            ours = counterpart(name)
            with self.subTest(name):
                self.assertIsNotNone(ours, f"td.{name} is missing")
                found = list(differences(name, inspect.signature(theirs), inspect.signature(ours)))
                self.assertEqual(found, [])
            count += 1
        self.assertGreaterEqual(count, 20 + 18 + 2, "linalg, fft, einsum")

    def test_what_is_in_both_takes_numpys_arguments(self):
        count = 0
        for name, theirs in shared_functions():
            ours, signature = counterpart(name), numpy_signature(name, theirs)
            with self.subTest(name):
                self.assertIsNotNone(signature, f"{(theirs.__doc__ or '').strip().splitlines()[:1]}: nothing to compare with")
                mine = inspect.signature(ours)
                if name.startswith("Array."):
                    mine = without_self(mine)
                    if "self" in signature.parameters:
                        signature = without_self(signature)
                self.assertEqual(list(differences(name, signature, mine)), [])
            count += 1
        self.assertGreater(count, 170)

    def test_signatures_are_read_from_docstrings(self):
        for text, parameters in (
            ("(x, /, out=None, *, dtype=None[, signature, extobj])", ["x", "out", "dtype", "signature", "extobj"]),
            ("([order])", ["order"]),
            ("(shape, dtype=float, order='C')", ["shape", "dtype", "order"]),
        ):
            self.assertEqual(list(signature_of(text).parameters), parameters)

    def test_the_comparison_finds_differences(self):
        def numpys(a, n=None, *, out=None):
            pass

        for ours, said in (
            (lambda a, n=None, *, out=None: a, None),
            (lambda a, n=None, out=None, more=1: a, None),
            (lambda a, n=None: a, "no parameter out"),
            (lambda x, n=None, out=None: x, "argument 0 is x"),
            (lambda a, out=None, n=None: a, "argument 1 is out"),
            (lambda a, n=0, out=None: a, "0 by default"),
            (lambda a, n=None, *, out=None, more: a, "needs more"),
            (lambda a, *, n=None, out=None: a, "no positional argument 1"),
        ):
            found = list(differences("f", inspect.signature(numpys), inspect.signature(ours)))
            self.assertEqual(found == [], said is None, found)
            self.assertIn(said or "", " ".join(found))

    def test_newer_parameters_are_there_whatever_numpy_is_installed(self):
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn",
                     "rfftn", "irfftn"):  # fmt: skip
            self.assertEqual(list(inspect.signature(getattr(td.fft, name)).parameters)[-1], "out", name)
            with self.assertRaisesRegex(TypeError, "out is not supported"):
                td.make_graph(lambda x, f=getattr(td.fft, name): f(x, out=x), td.spec((4, 4)))
        for name in ("outer", "svdvals", "vecdot", "matmul", "cross", "matrix_transpose", "diagonal", "trace", "vector_norm",
                     "matrix_norm", "tensordot"):  # fmt: skip
            self.assertTrue(callable(getattr(td.linalg, name)), name)
        with self.assertRaisesRegex(TypeError, "out is not supported"):
            td.make_graph(lambda x: td.linalg.multi_dot([x, x], out=x), td.spec((4, 4)))
        for name in ("fftfreq", "rfftfreq"):
            with self.assertRaisesRegex(ValueError, "td.compile names"):
                td.make_graph(lambda x, f=getattr(td.fft, name): f(4, device="cuda") + x, td.spec(()))
            td.make_graph(lambda x, f=getattr(td.fft, name): f(4, device="cpu") + x, td.spec(()))


def without_self(signature):
    return signature.replace(parameters=list(signature.parameters.values())[1:])


SQUARE, TALL, VECTOR = np.eye(3), np.ones((4, 3)), np.ones(3)


class Refusals(unittest.TestCase):
    """The refusals of NumPy's function of the same name, in NumPy's classes."""

    def test_classes_are_numpys(self):
        for call in (
            lambda p: p.linalg.inv(p.asarray(TALL)),
            lambda p: p.linalg.inv(p.asarray(VECTOR)),
            lambda p: p.linalg.det(p.asarray(TALL)),
            lambda p: p.linalg.slogdet(p.asarray(VECTOR)),
            lambda p: p.linalg.solve(p.asarray(TALL), p.asarray(VECTOR)),
            lambda p: p.linalg.solve(p.asarray(SQUARE), p.asarray(TALL)),
            lambda p: p.linalg.cholesky(p.asarray(TALL)),
            lambda p: p.linalg.eig(p.asarray(TALL)),
            lambda p: p.linalg.eigvals(p.asarray(VECTOR)),
            lambda p: p.linalg.eigh(p.asarray(TALL)),
            lambda p: p.linalg.eigh(p.asarray(SQUARE), "X"),
            lambda p: p.linalg.eigvalsh(p.asarray(TALL)),
            lambda p: p.linalg.svd(p.asarray(VECTOR)),
            lambda p: p.linalg.qr(p.asarray(VECTOR)),
            lambda p: p.linalg.pinv(p.asarray(VECTOR)),
            lambda p: p.linalg.lstsq(p.asarray(TALL), p.asarray(VECTOR), rcond=None),
            lambda p: p.linalg.matrix_power(p.asarray(TALL), 2),
            lambda p: p.linalg.matrix_power(p.asarray(SQUARE), 2.5),
            lambda p: p.linalg.multi_dot([p.asarray(SQUARE)]),
            lambda p: p.linalg.multi_dot([p.asarray(SQUARE), p.asarray(VECTOR), p.asarray(SQUARE)]),
            lambda p: p.linalg.multi_dot([p.asarray(SQUARE), p.asarray(TALL)]),
            lambda p: p.linalg.tensorinv(p.asarray(TALL), ind=1),
            lambda p: p.linalg.tensorinv(p.asarray(TALL), ind=0),
            lambda p: p.linalg.tensorsolve(p.asarray(TALL), p.asarray(VECTOR)),
            lambda p: p.linalg.norm(p.asarray(SQUARE), "nothing"),
            lambda p: p.linalg.norm(p.asarray(SQUARE), 3),
            lambda p: p.linalg.norm(p.asarray(VECTOR), "fro"),
            lambda p: p.linalg.norm(p.asarray(SQUARE), axis=(0, 1, 2)),
            lambda p: p.linalg.cond(p.asarray(np.ones((0, 3)))),
            lambda p: p.fft.fft(p.asarray(VECTOR), 0),
            lambda p: p.fft.fft(p.asarray(VECTOR), norm="both"),
            lambda p: p.fft.fft2(p.asarray(TALL), s=(3,)),
            lambda p: p.fft.rfftn(p.asarray(TALL), axes=()),
            lambda p: p.einsum("ij,jk", p.asarray(TALL)),
            lambda p: p.einsum("ij,jk", p.asarray(TALL), p.asarray(TALL)),
            lambda p: p.einsum("ijk", p.asarray(TALL)),
            lambda p: p.einsum("ij->k", p.asarray(TALL)),
            lambda p: p.einsum("i$", p.asarray(TALL)),
            lambda p: p.einsum("ii", p.asarray(TALL)),
        ):
            with self.subTest(call.__code__.co_firstlineno):
                with self.assertRaises(Exception) as numpys, np.errstate(all="ignore"):
                    call(np)
                kind = next(k for k in (np.linalg.LinAlgError, IndexError, TypeError, ValueError) if isinstance(numpys.exception, k))
                with self.assertRaises(kind) as context:
                    td.make_graph(lambda x: call(td), td.spec(()))
                self.assertGreater(len(str(context.exception)), 10)
                if kind is np.linalg.LinAlgError:
                    self.assertIsInstance(context.exception, ValueError, "as in NumPy 2")
                    self.assertIsInstance(context.exception, td.linalg.LinAlgError)


if __name__ == "__main__":
    unittest.main()
