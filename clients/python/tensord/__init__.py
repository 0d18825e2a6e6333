"""tensord: evaluate tensor graphs on a tensord server, with NumPy arrays in and out.

    import numpy as np
    import tensord as td

    with td.connect():
        program = td.compile(lambda x, w: td.tanh(x @ w), td.spec(("n", 64), "float32"), td.spec((64, 8), "float32"))
        y = program(np.ones((1000, 64), np.float32), np.ones((64, 8), np.float32))

A function is traced: it is called once with td.Array values, whose operations become the nodes of a graph. The
functions of this package have NumPy's names and meaning, and NumPy's own functions work on Arrays too.
"""

from tensord import fft, linalg  # noqa: F401
from tensord.access import Access  # noqa: F401
from tensord.array import Array  # noqa: F401
from tensord.bridges.jax_function import to_jax  # noqa: F401
from tensord.bridges.torch_function import to_torch  # noqa: F401
from tensord.client import Client, connect, default_client, default_target  # noqa: F401
from tensord.derivatives.checkpoints import checkpoint  # noqa: F401
from tensord.derivatives.directions import hvp, jvp, vjp  # noqa: F401
from tensord.derivatives.gradients import grad, value_and_grad  # noqa: F401
from tensord.derivatives.jacobians import hessian, jacfwd, jacrev  # noqa: F401
from tensord.dims import Dim  # noqa: F401
from tensord.dtypes import (  # noqa: F401
    DType,
    bfloat16,
    bool_,
    complex128,
    complex64,
    float16,
    float32,
    float64,
    int32,
    int64,
)
from tensord.errors import (  # noqa: F401
    Error,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from tensord.functions.activations import elu, gelu, relu, silu, softplus  # noqa: F401
from tensord.functions.arithmetic import (  # noqa: F401
    abs,
    absolute,
    add,
    around,
    ceil,
    clip,
    divide,
    divmod,
    float_power,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    isclose,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    positive,
    power,
    reciprocal,
    remainder,
    rint,
    round,
    sign,
    square,
    subtract,
    true_divide,
    trunc,
)
from tensord.functions.contraction import dot, inner, matmul, outer, tensordot, vdot, vecdot  # noqa: F401
from tensord.functions.contraction_order import einsum_path  # noqa: F401
from tensord.functions.creation import (  # noqa: F401
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    iota,
    linspace,
    ones,
    ones_like,
    tri,
    zeros,
    zeros_like,
)
from tensord.functions.diagonals import (  # noqa: F401
    diag,
    diag_indices_from,
    diagflat,
    diagonal,
    embed_diag,
    extract_diag,
    trace,
    tril,
    tril_indices_from,
    triu,
    triu_indices_from,
)
from tensord.functions.einstein_sum import einsum  # noqa: F401
from tensord.functions.inspection import (  # noqa: F401
    allclose,
    array_equal,
    copy,
    iscomplexobj,
    isrealobj,
    ndim,
    shape,
    size,
)
from tensord.functions.logic import (  # noqa: F401
    astype,
    bitwise_and,
    bitwise_invert,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    complex,
    conj,
    conjugate,
    equal,
    greater,
    greater_equal,
    imag,
    invert,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    real,
    where,
)
from tensord.functions.norms import norm  # noqa: F401
from tensord.functions.reductions import (  # noqa: F401
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    prod,
    ptp,
    softmax,
    std,
    sum,
    var,
)
from tensord.functions.shaping import (  # noqa: F401
    atleast_1d,
    atleast_2d,
    broadcast_arrays,
    broadcast_to,
    concat,
    concatenate,
    expand_dims,
    flip,
    hstack,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    transpose,
    vstack,
)
from tensord.functions.transcendental import (  # noqa: F401
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    cos,
    cosh,
    deg2rad,
    degrees,
    erf,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log10,
    log1p,
    log2,
    logaddexp,
    logistic,
    rad2deg,
    radians,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from tensord.indexing.dimension_numbers import gather, scatter  # noqa: F401
from tensord.indexing.gathering import take, take_along_axis  # noqa: F401
from tensord.indexing.run_time_sizes import (  # noqa: F401
    dynamic_slice,
    dynamic_truncate,
    dynamic_update_slice,
    pad_to_match,
    shape_of,
)
from tensord.indexing.scattering import put_along_axis  # noqa: F401
from tensord.indexing.searching import searchsorted  # noqa: F401
from tensord.program import CompiledProgram, Spec, compile, evaluate, make_graph, spec  # noqa: F401
from tensord.session import RemoteArray, Session  # noqa: F401
from tensord.stats import Segment, Stats  # noqa: F401
from tensord.tracing.operators import install as _install_operators

__version__ = "0.10.0"

_install_operators()
