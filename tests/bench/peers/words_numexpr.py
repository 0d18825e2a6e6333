"""numexpr's words: elementwise expressions as text. Other words are not there, and such graphs are not numexpr's."""
import numpy



class Constants:
    """Numbers by name: those that stand in a text would make a computation in 32 bits one in 64."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.values = {}

    def name_of(self, value):
        if self.dtype == numpy.float64:
            return repr(float(value))
        name = "c%s" % repr(float(value)).replace("-", "m").replace(".", "p").replace("+", "")
        self.values[name] = numpy.array(value, self.dtype)
        return name


class Expression:
    def __init__(self, text, constants):
        self.text = text
        self.constants = constants

    def __gt__(self, other):
        return combined(self, ">", other)

    def __neg__(self):
        return joined("(-%s)", self)


def joined(form, *values):
    constants = next(v.constants for v in values if isinstance(v, Expression))
    return Expression(form % tuple(v.text if isinstance(v, Expression) else constants.name_of(v) for v in values),
                      constants)


def combined(left, operator, right):
    return joined("(%s " + operator + " %s)", left, right)


for _name, _operator in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**")):
    setattr(Expression, "__%s__" % _name, lambda self, other, o=_operator: combined(self, o, other))
    setattr(Expression, "__r%s__" % _name, lambda self, other, o=_operator: combined(other, o, self))


class NumExprWords:
    FUNCTIONS = {"exp", "log", "sin", "cos", "tanh", "expm1", "log1p", "sqrt", "abs", "where"}

    def __getattr__(self, name):
        if name not in self.FUNCTIONS:
            raise NotImplementedError("numexpr has no " + name)
        return lambda *x: joined(name + "(" + ", ".join(["%s"] * len(x)) + ")", *x)

    def pow(self, x, y):
        return x ** y

    def rsqrt(self, x):
        return 1 / self.sqrt(x)

    def sign(self, x):
        return self.where(x > 0, 1, self.where(-x > 0, -1, 0))

    def clip(self, x, low, high):
        return self.where(low - x > 0, low, self.where(x > high, high, x))

    def gelu(self, x):
        inner = x + x * x * x * 0.044715
        return x * 0.5 * (self.tanh(inner * 0.7978845608) + 1)

    def adamw(self, p, m, v, g, step):
        new_m = m * 0.9 + g * (1 - 0.9)
        new_v = v * 0.999 + g * g * (1 - 0.999)
        ratio = new_m / (1 - 0.9 ** step) / (self.sqrt(new_v / (1 - 0.999 ** step)) + 1e-8)
        return {"p": p - (ratio + p * 0.01) * 1e-3, "m": new_m, "v": new_v}
