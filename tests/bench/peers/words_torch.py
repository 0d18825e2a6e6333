"""PyTorch's words."""
import torch
import torch.nn.functional as functional

from words import Words, equation_of


class TorchWords(Words):
    def __init__(self):
        super().__init__(torch)

    def adamw(self, p, m, v, g, step):
        if torch.compiler.is_compiling():
            return super().adamw(p, m, v, g, step)
        torch._fused_adamw_([p], [g], [m], [v], [], [step], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
                            amsgrad=False, maximize=False)
        return {"p": p, "m": m, "v": v}

    def erf(self, x):
        return torch.erf(x)

    def cross_entropy(self, scores, wanted):
        return functional.cross_entropy(scores, wanted)

    def pow(self, x, y):
        return torch.pow(x, y)

    def rsqrt(self, x):
        return torch.rsqrt(x)

    def relu(self, x):
        return torch.relu(x)

    def gelu(self, x):
        return functional.gelu(x, approximate="tanh")

    def softmax(self, x):
        return torch.softmax(x, -1)

    def layer_norm(self, x, scale, shift):
        return functional.layer_norm(x, x.shape[-1:], scale, shift)

    def sum(self, x, axes, keep=False):
        return torch.sum(x, axes, keepdim=keep)

    def max(self, x, axes, keep=False):
        return torch.amax(x, axes, keepdim=keep)

    def min(self, x, axes):
        return torch.amin(x, axes)

    def prod(self, x, axes):
        return torch.prod(x, axes)

    def sum_of_squares(self, x):
        return torch.vdot(x.reshape(-1), x.reshape(-1))

    def to_f64(self, x):
        return x.double()

    def permute(self, x, axes):
        return x.permute(tuple(axes))

    def transpose(self, x, axes):
        return x.permute(tuple(axes)).contiguous()

    def concat(self, parts, axis):
        return torch.cat(parts, axis)

    def pad_around(self, x):
        return functional.pad(x, (1, 1, 1, 1))

    def pad_end(self, x, count):
        return functional.pad(x, (0, count))

    def flip(self, x):
        return torch.flip(x, (0,))

    def take_rows(self, table, indices):
        return torch.index_select(table, 0, indices)

    def add_rows(self, table, indices, update):
        return torch.index_add(table, 0, indices, update)

    def linear(self, x, weights, bias):
        return torch.addmm(bias, x, weights)

    def attention(self, q, k, v):
        return functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]

    def causal_attention(self, q, k, v):
        return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]

    def decode_step(self, q, k, v, K, V, position):
        K[:, position] = k[:, 0]
        V[:, position] = v[:, 0]
        length = position + 1
        attention = functional.scaled_dot_product_attention(q[None, :, None], K[None, :, :length], V[None, :, :length])
        return {"attention": attention[0, :, 0], "K": K, "V": V}

    def conv3x3(self, x, kernel):
        return functional.conv2d(x, kernel, padding=1)

    def semiring_product(self, algebra, a, b):
        if algebra == "or_and":
            return torch.matmul(a.float(), b.float()) > 0
        if torch.compiler.is_compiling():
            return (a[:, :, None] + b).amax(1)
        # Some rows at a time: all sums of them are in memory.
        rows = max(1, 2**20 // b.numel())
        return torch.cat([(a[row : row + rows, :, None] + b).amax(1) for row in range(0, len(a), rows)])

    def shortest_paths(self, weights):
        paths = weights.clone().fill_diagonal_(0)
        for via in range(len(paths)):
            torch.minimum(paths, paths[:, via, None] + paths[via], out=paths)
        return paths

    def einsum(self, equation, *operands):
        return torch.einsum(equation, *operands)

    def network(self, terms, output, path, tensors):
        # In an order of its own, by opt_einsum.
        return torch.einsum(equation_of(terms, output), *tensors)

    def eye(self, like):
        return torch.eye(like.shape[0], dtype=like.dtype)

    def solve_lower(self, a, b):
        return torch.linalg.solve_triangular(a, b, upper=False)
