"""The backward pass of a compiled program, as a program."""


def backward_program(program):
    """A CompiledProgram, on the program's client, that takes flat arguments: those of `program` and then a cotangent
    for each of its float and complex results. It returns a tuple, a cotangent for each such argument.

    Cotangents are adjoints. Raises ValueError where no argument or no result is a float or complex, td.Unimplemented
    where an operation has no derivative.
    """
    smooth = [spec for spec in program.input_specs if spec.dtype.is_inexact]
    cotangents = [spec for spec in program.output_specs if spec.dtype.is_inexact]
    if not smooth or not cotangents:
        raise ValueError(
            f"{program!r} has no derivative: it has no arguments, or no results, that are floats or complex numbers"
        )
    graph = program.client.differentiate(program.graph, "vjp")
    return program.flat(graph, program.input_specs + cotangents, smooth)
