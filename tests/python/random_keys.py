"""Keys of x[key] and x.at[key] drawn at random, with what NumPy makes of them."""

import warnings

import numpy as np

import checkout  # noqa: F401
from function_cases import Case

_OPERATIONS = {"set": None, "add": np.add, "max": np.maximum}


class RandomKey:
    """A key for an array of `shape`: each index array is traced (its number stands in the key) or known."""

    def __init__(self, random, shape):
        self.random, self.arrays = random, []
        count = random.integers(0, len(shape) + 1)
        self.block = tuple(random.integers(1, 4, random.integers(0, 3)))
        self.items = [self.item(size) for size in shape[:count]]
        if random.random() < 0.3:
            self.items.insert(random.integers(0, count + 1), Ellipsis)
        elif count == len(shape) and count and random.random() < 0.2:
            self.items[random.integers(0, count)] = Ellipsis
        for _ in range(random.integers(0, 2)):
            self.items.insert(random.integers(0, len(self.items) + 1), None)

    def item(self, size):
        kind = self.random.choice(["slice", "integer", "known", "traced", "mask"], p=[0.4, 0.15, 0.15, 0.25, 0.05])
        if kind == "integer" and size:
            return int(self.random.integers(-size, size))
        if kind in ("known", "traced") and size:
            block = tuple(n if self.random.random() < 0.8 else 1 for n in self.block)
            block = block[self.random.integers(0, len(block) + 1) :] if self.random.random() < 0.3 else block
            values = self.random.integers(-size, size, block, dtype=self.random.choice([np.int32, np.int64]))
            if kind == "known":
                return np.asarray(values)
            self.arrays.append(np.asarray(values))
            return TracedPlace(len(self.arrays) - 1)
        if kind == "mask" and not self.block:
            return self.random.random(size) < 0.5
        bounds = [None if self.random.random() < 0.4 else int(b) for b in self.random.integers(-size - 2, size + 3, 2)]
        return slice(*bounds, self.random.choice([None, 1, -1, 2, -2, 3]))

    def of(self, arrays):
        return tuple(arrays[item.number] if isinstance(item, TracedPlace) else item for item in self.items)


class TracedPlace:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"traced_{self.number}"


def cases(seed, count):
    """For each of `count` keys a Case that reads with it and writes with it, or the key, x and the exception of NumPy."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        shape = tuple(int(n) for n in random.integers(0 if random.random() < 0.1 else 1, 6, random.integers(0, 4)))
        key = RandomKey(random, shape)
        x = random.integers(-9, 9, shape).astype(random.choice(["float64", "int32"]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                taken = x[key.of(key.arrays)]
        except (IndexError, DeprecationWarning):
            yield key, x, IndexError
            continue
        values = random.integers(-9, 9, taken.shape).astype(x.dtype)
        yield key, x, _case(key, x, values)


def _case(key, x, values):
    def traced(x, values, *arrays):
        place = x.at[key.of(arrays)]
        return [x[key.of(arrays)], *(getattr(place, name)(values) for name in _OPERATIONS)]

    def reference(x, values, *arrays):
        results = [x[key.of(arrays)]]
        for operation in _OPERATIONS.values():
            results.append(x.copy())
            if operation is None:
                results[-1][key.of(arrays)] = values
            else:
                operation.at(results[-1], key.of(arrays), values)
        return results

    return Case(f"{x.shape}[{key.items}]", traced, reference, x, values, *key.arrays)
