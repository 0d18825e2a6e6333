#ifndef TENSORD_BACKENDS_CUDA_KERNELS_SORT_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_SORT_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/lines.h"

namespace tensord::cuda {

// A sort of `count` unsigned 64-bit keys in scratch memory, as launches: blocks are sorted in shared memory, then runs
// are merged, each key finding its place by bisection. Keys that differ give one result, whatever the order of threads.
class SortText {
 public:
  explicit SortText(int64_t count) : count_(count) {}

  // Bytes of scratch memory.
  int64_t scratch_bytes() const;

  // Prints the launches. The first computes the keys: `write_key` writes the lines that declare "const u64 key" for the
  // number "i" of a key. Each entry takes the kernel's pointers `arguments`, declared by `parameters`, of which one is
  // "u64* scratch".
  std::vector<CudaLaunch> Write(CudaLines* lines, const std::string& parameters, const std::vector<int32_t>& arguments,
                                const std::function<void()>& write_key) const;

  // Returns the first of the sorted keys, in terms of "scratch".
  std::string Sorted() const;

 private:
  int64_t num_merges() const;

  const int64_t count_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_SORT_TEXT_H_
