"""The values that users hand to programs and to the client: arguments by name, lists, copies of types, times, targets.
Needs no server."""

import copy
import math
import pickle
import unittest
import unittest.mock
import warnings

import numpy as np

from stand_in_test_case import StandInTestCase
import tensord as td


class Copies(unittest.TestCase):
    def test_types_are_equal_and_usable_after_a_copy(self):
        dims = td.spec(("n", 3)).shape[0]
        for value in (td.float32, td.bfloat16, td.complex64, dims, 2 * dims + 1, td.spec((2, "n"), "float32"), td.spec((), "complex64")):
            for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
                self.assertEqual(again, value)
                self.assertEqual(hash(again), hash(value))
        for kind in (td.float32, td.complex128):
            self.assertIs(pickle.loads(pickle.dumps(kind)), kind)
        spec = copy.deepcopy(td.spec((2,), "complex64"))
        traced = td.make_graph(lambda x: (abs(x), x.real * 2), spec)
        self.assertEqual(traced.output_specs, [td.spec((2,), "float32")] * 2)

    def test_numpy_takes_types(self):
        self.assertEqual(np.zeros(2, td.float32).dtype, np.float32)
        self.assertEqual(np.dtype(td.complex128), np.complex128)
        for shape in (np.int64(3), np.array(3), [3], np.array([3]), (np.int32(3),)):
            self.assertEqual(td.spec(shape).shape, (3,))
        with self.assertRaisesRegex(TypeError, "a shape is"):
            td.spec(2.5)

    def test_a_graph_of_a_program_travels(self):
        traced = pickle.loads(pickle.dumps(td.make_graph(lambda x, y: {"s": x + y}, td.spec("n"), y=td.spec("n"))))
        self.assertEqual(len(traced.flatten_arguments((np.ones(2),), {"y": np.ones(2)})), 2)


class ByName(StandInTestCase):
    def layer(self, x, weights, bias=0.0, *, scale=1.0):
        return (x @ weights + bias) * scale

    def test_specs_and_arguments(self):
        x, w, s = np.ones((2, 3)), np.eye(3), np.float64(2)
        wanted = self.layer(x, w, scale=s)
        for program in (
            self.compile(self.layer, td.spec((2, 3)), td.spec((3, 3)), scale=td.spec(())),
            self.compile(self.layer, scale=td.spec(()), weights=td.spec((3, 3)), x=td.spec((2, 3))),
            self.compile(self.layer, td.spec((2, 3)), scale=td.spec(()), weights=td.spec((3, 3))),
        ):
            self.assertEqual([one.name for one in program.graph.inputs], ["x", "weights", "scale"])
            for result in (program(x, w, s), program(x, w, scale=s), program(scale=s, x=x, weights=w), program(x, scale=s, weights=w)):
                np.testing.assert_array_equal(result, wanted)
        np.testing.assert_array_equal(td.evaluate(self.layer, x, weights=w, scale=s, client=self.client), wanted)

    def test_extra_arguments(self):
        program = self.compile(lambda *terms, **more: sum(terms) + more["z"], td.spec(2), td.spec(2), z=td.spec(2))
        one = np.ones(2)
        np.testing.assert_array_equal(program(one, one, z=one), 3 * one)

    def test_wrong_arguments_say_name_and_parameters(self):
        program = self.compile(self.layer, td.spec((2, 3)), td.spec((3, 3)))
        x, w = np.ones((2, 3)), np.eye(3)
        for args, named, words in (
            ((x,), {}, r"takes 2 arguments \(x, weights\), got 1: .* weights is missing"),
            ((x, w, w), {}, "got 3"),
            ((x, w), {"bias": 1.0}, "and not with bias"),
            ((x, w), {"x": x}, "two values of 'x'"),
            ((), {}, "x, weights are missing"),
        ):
            with self.assertRaisesRegex(TypeError, words) as caught:
                program(*args, **named)
            self.assertIn("layer", str(caught.exception))
            if "two values" not in words:
                self.assertIn("(x, weights)", str(caught.exception))
        for specs, named in (((td.spec(2),), {}), ((td.spec(2),) * 4, {}), ((td.spec(2),) * 2, {"nothing": td.spec(2)})):
            with self.assertRaisesRegex(TypeError, r"layer\(x, weights, bias=0.0, \*, scale=1.0\) does not take"):
                td.make_graph(self.layer, *specs, **named)
        with self.assertRaisesRegex(TypeError, r"add\(\) missing 1 required positional argument: 'x2'"):
            td.make_graph(lambda x: td.add(x), td.spec(2))


class Lists(StandInTestCase):
    def test_numbers_are_an_array(self):
        np.testing.assert_array_equal(td.evaluate(lambda x: x * 2, [1.0, 2.5], client=self.client), [2.0, 5.0])
        np.testing.assert_array_equal(td.evaluate(lambda x: x.T + 1, [[1, 2], [3, 4]], client=self.client), [[2, 4], [3, 5]])
        np.testing.assert_array_equal(td.evaluate(lambda p: p["w"] + 1, {"w": [1, 2]}, client=self.client), [2, 3])
        program = self.compile(lambda x: x + 1, td.spec("n", "int32"))
        self.assertEqual(program([]).tolist(), [])
        self.assertEqual(program(x=[1, 2]).tolist(), [2, 3])

    def test_arrays_in_a_list_stay_a_list(self):
        result = td.evaluate(lambda x: x[0] + x[1].sum(), [np.float64(1) * np.ones(()), np.ones(3)], client=self.client)
        self.assertEqual(float(result), 4.0)

    def test_what_has_rules_of_its_own_is_refused(self):
        masked = np.ma.array([1.0, 2.0], mask=[0, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a class that NumPy would rather not have
            matrix = np.matrix([[1.0, 2.0]])
        for value, words in ((masked, "masked"), (matrix, "np.matrix")):
            for call in (
                lambda v: td.evaluate(lambda x: x, v, client=self.client),
                lambda v: self.compile(lambda x: x, td.spec(np.shape(v)))(v),
                lambda v: td.make_graph(lambda x: x + v, td.spec(2)),
                lambda v: td.make_graph(lambda x: td.where(x > 0, v, x), td.spec(2)),
                lambda v: td.make_graph(lambda x: x.at[0].set(v), td.spec((2, 2))),
                lambda v: self.client.session().put(v),
            ):
                with self.assertRaisesRegex(TypeError, words):
                    call(value)


class Refusals(unittest.TestCase):
    def test_words_and_classes_for_what_is_no_axis(self):
        axis_error = getattr(np, "exceptions", np).AxisError
        for kind, words, function in (
            (axis_error, "axis 5 is out of bounds", lambda x: x.sum(5)),
            (axis_error, "axis -3 is out of bounds", lambda x: np.flip(x, -3)),
            (TypeError, "integers are wanted, not 1.0", lambda x: x.sum(1.0)),
            (TypeError, "integers are wanted, not 1.5", lambda x: np.roll(x, 1.5)),
            (TypeError, "integers are wanted, not 2.5", lambda x: x.reshape(2.5)),
            (ValueError, "casting is one of", lambda x: np.add(x, x, casting="any")),
            (ValueError, "order is 'K'", lambda x: np.add(x, x, order="Z")),
            (TypeError, "use td.where", lambda x: np.exp(x, where=x > 0)),
            (TypeError, "out is not supported", lambda x: np.exp(x, out=np.zeros((2, 3)))),
            (ValueError, "needs initial", lambda x: np.max(x, where=x > 0)),
            (ValueError, "mean the same", lambda x: td.std(x, ddof=1, correction=2)),
            (ValueError, "mean the same", lambda x: td.clip(x, 0, 1, min=2)),
            (TypeError, "does not become", lambda x: np.add(x, 1.5, dtype=int)),
            (TypeError, "does not become", lambda x: x.astype(int, casting="safe")),
        ):
            with self.assertRaisesRegex(kind, words):
                td.make_graph(function, td.spec((2, 3)))


class Times(StandInTestCase):
    def test_no_end(self):
        for timeout in (math.inf, 1e300, 1e12):
            self.assertEqual(float(td.evaluate(lambda x: x + 1, 1.0, client=self.client, timeout=timeout)), 2.0)
        with td.Client(self.server.target, timeout=math.inf) as client:
            client.wait_until_ready(math.inf)
            client.server_info()
            with client.session(timeout=math.inf) as session:
                self.assertEqual(session.put(np.ones(2), timeout=math.inf).fetch(timeout=math.inf).tolist(), [1, 1])
                with session.pipeline(timeout=math.inf):
                    pass

    def test_what_is_no_time(self):
        for timeout, kind in ((-1, ValueError), (math.nan, ValueError), ("1", TypeError)):
            with self.assertRaisesRegex(kind, "seconds from 0 on"):
                self.client.server_info(timeout=timeout)
        for lease in (math.inf, math.nan):
            with self.assertRaisesRegex(ValueError, "a lease is"):
                self.client.session(lease=lease)


class Nobody(StandInTestCase):
    def test_the_first_call_says_so_at_once_and_why(self):
        with unittest.mock.patch("time.sleep") as slept:
            for target, words in ((self.server.target + "-absent", "No such file"), ("127.0.0.1:1", "refused")):
                with td.Client(target, timeout=30) as client:
                    with self.assertRaisesRegex(td.Unavailable, words):
                        td.evaluate(lambda x: x, 1.0, client=client)
        self.assertEqual(slept.call_count, 0, "it is not tried again")

    def test_connecting_without_a_timeout_says_so(self):
        with self.assertRaisesRegex(td.Unavailable, "-absent.*No such file"):
            td.connect(self.server.target + "-absent")
        with td.connect(self.server.target + "-absent", timeout=30) as client:  # its server may be starting
            self.assertEqual(client.timeout, 30)
        with td.connect(self.server.target) as client:
            client.server_info()
        with self.assertRaisesRegex(TypeError, "a target is text"):
            td.connect(5)

    def test_who_waits_is_told_why(self):
        with td.Client(self.server.target + "-absent") as client:
            with self.assertRaisesRegex(td.Unavailable, "within 0.1 s .*No such file"):
                client.wait_until_ready(0.1)


if __name__ == "__main__":
    unittest.main()
