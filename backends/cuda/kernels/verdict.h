#ifndef TENSORD_BACKENDS_CUDA_KERNELS_VERDICT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_VERDICT_H_

#include <cstdint>

namespace tensord::cuda {

// The first fault that a kernel found in its operands. On the device it is one word, `batch << 24 | reason`, which
// starts as kNoVerdict and is lowered by atomicMin: the first of the batch wins, whichever thread is first. Read in
// Finish.
struct Verdict {
  int64_t batch = 0;  // index of the matrix, or of the like
  int reason = 0;     // 0 to 2^24 - 1, the kernel's own number
};

inline constexpr uint64_t kNoVerdict = ~uint64_t{0};

inline Verdict VerdictOf(uint64_t word) {
  return {.batch = static_cast<int64_t>(word >> 24), .reason = static_cast<int>(word & 0xffffff)};
}

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_VERDICT_H_
