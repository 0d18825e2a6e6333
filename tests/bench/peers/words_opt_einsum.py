"""opt_einsum's words over another library's arrays: sums of products, and nothing else."""
import opt_einsum

from words import one_after_the_other


class OptEinsumWords:
    def __getattr__(self, name):
        raise NotImplementedError("opt_einsum has no " + name)

    def einsum(self, equation, *operands):
        return opt_einsum.contract(equation, *operands, optimize=one_after_the_other(len(operands)))

    def network(self, terms, output, path, tensors):
        return opt_einsum.contract(equation_of(terms, output), *tensors, optimize=[tuple(step) for step in path])


def equation_of(terms, output):
    def text(labels):
        return "".join(map(opt_einsum.get_symbol, labels))
    return ",".join(map(text, terms)) + "->" + text(output)
