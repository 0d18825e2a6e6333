#include "engine/fusion/cuda_prelude.h"

namespace tensord {
namespace {

constexpr CudaPiece kPieces[] = {
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
};

}  // namespace

absl::Span<const CudaPiece> CudaReductionPieces() { return kPieces; }

}  // namespace tensord
