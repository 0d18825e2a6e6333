"""Every function of numpy.linalg, numpy.fft and numpy's einsum has its counterpart here, with NumPy's parameters; and what NumPy
refuses is refused with the same class of exception. Whatever NumPy is installed says which functions these are. Needs no
server."""

import inspect
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
}
# What NumPy has in these places and is no function to be called on arrays.
NO_FUNCTIONS = {"test": "NumPy's own tests"}


def numpy_functions():
    """(name here, NumPy's function)."""
    for module in ("linalg", "fft"):
        for name, value in vars(getattr(np, module)).items():
            if callable(value) and not isinstance(value, type) and not name.startswith("_") and name not in NO_FUNCTIONS:
                yield f"{module}.{name}", value
    yield "einsum", np.einsum
    yield "einsum_path", np.einsum_path


def counterpart(name):
    value = td
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def differences(name, theirs, ours):
    """What a call that is right for NumPy's parameters would find wrong with ours."""
    ours_by_name = ours.parameters
    positional = [parameter for parameter in ours_by_name.values() if parameter.kind in _POSITIONAL]
    covered = set()
    for place, parameter in enumerate(theirs.parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if parameter.kind == parameter.VAR_POSITIONAL and not any(p.kind == p.VAR_POSITIONAL for p in ours_by_name.values()):
                yield f"{name} takes no *{parameter.name}"
            continue
        mine = ours_by_name.get(parameter.name)
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
        if parameter.kind != parameter.POSITIONAL_ONLY and mine.kind == mine.POSITIONAL_ONLY:
            yield f"{name}: {parameter.name} cannot be given by name"
        same = mine.default is parameter.default or mine.default == parameter.default
        if not same and f"{name}.{parameter.name}" not in OTHER_DEFAULTS:
            yield f"{name}: {parameter.name} is {mine.default!r} by default, and NumPy's {parameter.default!r}"
    for mine in ours_by_name.values():
        is_needed = mine.default is mine.empty and mine.kind not in (mine.VAR_POSITIONAL, mine.VAR_KEYWORD)
        if mine.name not in covered and is_needed:
            yield f"{name} needs {mine.name}, which NumPy has not"


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


SQUARE, TALL, VECTOR = np.eye(3), np.ones((4, 3)), np.ones(3)


class Refusals(unittest.TestCase):
    """What NumPy's function of the same name refuses, in the class that NumPy has for it."""

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
