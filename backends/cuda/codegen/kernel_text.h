#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_KERNEL_TEXT_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_KERNEL_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord {

// One launch of an entry, on a grid and blocks of one dimension.
struct CudaLaunch {
  std::string entry;  // extern "C"
  int64_t blocks = 1;
  int32_t threads_per_block = 1;
  int64_t dynamic_shared_bytes = 0;
  // Positions among the kernel's pointers of those that the entry takes; empty: it takes all.
  std::vector<int32_t> arguments = {};
  // Numbers that the entry takes after its pointers, in one struct of `i64`; empty: it takes none. With them, entries
  // of one text do for launches that differ in sizes.
  std::vector<int64_t> numbers = {};
  // Positions of two pointers: where they are equal the launch is left out.
  std::optional<std::pair<int32_t, int32_t>> unless_same = std::nullopt;
  // Launches that the blocks are spread over, one after the other, which take about the same time. If there are
  // several, the entry has a parameter ahead of the pointers, `u64 first_block`: blockIdx.x counts from there.
  int64_t parts = 1;

  int64_t blocks_of_part() const { return (blocks + parts - 1) / parts; }
};

// A kernel as CUDA C++, for NVRTC: the source needs no headers. The launches run in order, on one stream; there are
// none if there is nothing to compute. Equal sources may have other launches: more blocks of the same. The kernel's
// pointers are those to the operands in order, those to the results in order, and one to the scratch memory unless
// scratch_bytes is 0. Nothing has to be cleared before, and nothing depends on the remains of other launches. The same
// input gives the same text, and the same operands the same bits.
struct KernelText {
  std::string source;
  std::vector<CudaLaunch> launches;
  int64_t scratch_bytes = 0;
  bool varies = false;      // its time depends on the numbers that it is given, by more than a launch should take
  std::string spread = {};  // over threads, for people: "rows, 32 threads a row"; may be empty
};

// The compiler options for the source, besides the architecture: the meaning of floats depends on them.
inline constexpr absl::string_view kCudaCompileOptions[] = {"--std=c++17", "--fmad=false"};

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_KERNEL_TEXT_H_
