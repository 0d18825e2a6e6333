"""Tensor networks in files as the Einsum Benchmark collects them: sums of products in Einstein's notation with the sizes of
all tensors and good orders of contraction. Read from a folder; none is part of the project."""
import glob
import json
import math
import os

import numpy

# Bytes of operands and result of one step: fewer stay in the last cache.
CACHED_BYTES = 16 << 20


class Network:
    """terms, output: labels as numbers; shapes: of row-major arrays; path: steps, each two places among the live tensors,
    the result at the end; mean: of the elements, so that results are neither huge nor tiny."""

    def __init__(self, description):
        inputs, output = description["format_string"].split("->")
        number = {label: i for i, label in enumerate(dict.fromkeys(inputs.replace(",", "")))}
        self.terms = [[number[label] for label in term] for term in inputs.split(",")]
        self.output = [number[label] for label in output]
        self.shapes = description["shapes"]
        self.path = description["paths"]["opt_flops"]["path"]
        self.sizes = {label: size for term, shape in zip(self.terms, self.shapes) for label, size in zip(term, shape)}
        summed = math.prod(size for label, size in self.sizes.items() if label not in self.output)
        self.mean = math.exp(-math.log(summed) / len(self.terms))

    def write(self, file):
        """For bench_graphs, whose axes run the other way."""
        lines = ["%d %r" % (len(self.terms), self.mean)]
        for term, shape in zip(self.terms, self.shapes):
            lines.append(" ".join(map(str, [len(term)] + term[::-1] + shape[::-1])))
        lines.append(" ".join(map(str, [len(self.output)] + self.output[::-1])))
        with open(file, "w") as f:
            f.write("\n".join(lines) + "\n")

    def for_peers(self):
        return {"terms": self.terms, "output": self.output, "path": self.path}

    def steps(self):
        """Each step of the path: places of its operands, their labels, and those of its result."""
        live = list(self.terms)
        for step in self.path:
            places = sorted(step, reverse=True)
            terms = [live.pop(place) for place in places]
            later = set(self.output).union(*live) if live else set(self.output)
            labels = list(dict.fromkeys(label for term in terms for label in term))
            result = [label for label in labels if label in later] if live else self.output
            live.append(result)
            yield places, terms, result

    def flops_and_bytes(self):
        """Flops and bytes of each step: two operations a product if it sums, else one; operands and result once each.
        """
        for _, terms, result in self.steps():
            labels = set().union(*terms)
            products = math.prod(self.sizes[label] for label in labels)
            elements = sum(math.prod(self.sizes[label] for label in term) for term in terms + [result])
            yield products * (2 if labels - set(result) else 1), 8 * elements

    def contracted(self, tensors):
        """The result, step by step by products of matrices."""
        live = list(tensors)
        for places, terms, result in self.steps():
            operands = [live.pop(place) for place in places]
            live.append(contracted_pair(operands, terms, result) if len(operands) == 2
                        else permuted_sum(operands[0], terms[0], result))
        return live[0]


def permuted_sum(x, term, result):
    """Summed over the labels that the result lacks, with its axes in the result's order."""
    kept = [label for label in dict.fromkeys(term) if label in result]
    if len(set(term)) < len(term):
        number = {label: i for i, label in enumerate(dict.fromkeys(term))}
        x = numpy.einsum(x, [number[label] for label in term], [number[label] for label in kept])
    else:
        x = x.sum(tuple(i for i, label in enumerate(term) if label not in result))
    return x.transpose([kept.index(label) for label in result if label in kept])


def contracted_pair(operands, terms, result):
    shared = set(terms[0]) & set(terms[1])
    for i in (0, 1):  # what one side alone has and nobody needs
        kept = [label for label in dict.fromkeys(terms[i]) if label in result or label in shared]
        operands[i] = permuted_sum(operands[i], terms[i], kept)
        terms = [kept if j == i else term for j, term in enumerate(terms)]
    sizes = {label: size for x, term in zip(operands, terms) for label, size in zip(term, x.shape)}
    batch = [label for label in terms[0] if label in shared and label in result]
    summed = [label for label in terms[0] if label in shared and label not in result]
    free = [[label for label in term if label not in shared] for term in terms]

    def matrices(x, term, rows, columns):
        x = x.transpose([term.index(label) for label in batch + rows + columns])
        return x.reshape([math.prod(sizes[label] for label in group) for group in (batch, rows, columns)])

    product = matrices(operands[0], terms[0], free[0], summed) @ matrices(operands[1], terms[1], summed, free[1])
    order = batch + free[0] + free[1]
    return product.reshape([sizes[label] for label in order]).transpose([order.index(label) for label in result])


def networks_in(folder):
    """Networks by name; none where there is no such folder."""
    found = {}
    for file in sorted(glob.glob(os.path.join(folder, "*.json"))) if folder else []:
        with open(file, encoding="utf-8") as f:
            description = json.load(f)
        if isinstance(description, dict) and {"format_string", "shapes", "paths"} <= set(description):
            name = os.path.basename(file)[:-len(".json")]
            found["G24_" + name] = Network(description)
    return found


def step_floor_ms(network, machine):
    """The least time step by step: for each the longer of computing and of moving its operands and its result."""
    total = 0
    for flops, moved in network.flops_and_bytes():
        rate = machine["cached_gb_per_s"] if moved <= CACHED_BYTES else machine["copy_gb_per_s"]
        total += max(flops / machine["f64_gflops"], moved / rate)
    return total / 1e6
