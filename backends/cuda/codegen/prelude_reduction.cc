#include "backends/cuda/codegen/prelude.h"

namespace tensord {
namespace {

constexpr CudaPiece kReductionPieces[] = {
    {"Shuffle", "Types", R"(// What the lane with `mask` flipped has.
template <typename T>
TENSORD_FN T Shuffle(T x, int mask) {
  union {
    T value;
    u32 words[(sizeof(T) + 3) / 4];
  } in = {x}, out = {x};
#pragma unroll
  for (int w = 0; w < (int)((sizeof(T) + 3) / 4); ++w) out.words[w] = __shfl_xor_sync(0xffffffffu, in.words[w], mask);
  return out.value;
}
)"},
    {"JoinWarp", "Shuffle",
     R"(// What neighbouring lanes have, joined two by two, the lower one first: the same for all of them.
template <int lanes, typename T, typename F>
TENSORD_FN T JoinWarp(T x, F f) {
#pragma unroll
  for (int mask = 1; mask < lanes; mask *= 2) {
    const T other = Shuffle(x, mask);
    x = (threadIdx.x & mask) != 0 ? f(other, x) : f(x, other);
  }
  return x;
}
)"},
    {"JoinRow", "JoinWarp",
     R"(// The same of more lanes than a warp has. Every thread of the block calls it; `shared` has an element for each warp.
template <int lanes, typename T, typename F>
TENSORD_FN T JoinRow(T x, F f, T* shared) {
  constexpr int warps = lanes / 32;
  x = JoinWarp<32>(x, f);
  __syncthreads();  // what was joined before has been read
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return JoinWarp<warps>(shared[threadIdx.x / lanes * warps + threadIdx.x % warps], f);
}
)"},
    {"JoinPanel", "Types",
     R"(// The same where `group` neighbours have different kept indices. `shared` has an element for each thread.
template <int lanes, int group, typename T, typename F>
TENSORD_FN T JoinPanel(T x, F f, T* shared) {
  __syncthreads();  // what was joined before has been read
  shared[threadIdx.x] = x;
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half * group) shared[threadIdx.x] = f(shared[threadIdx.x], shared[threadIdx.x + half * group]);
  }
  __syncthreads();
  return shared[threadIdx.x % group];
}
)"},
};

}  // namespace

absl::Span<const CudaPiece> CudaReductionPieces() { return kReductionPieces; }

}  // namespace tensord
