#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// The printer's assumptions about the device and the pointers that the kernel is launched with.
struct CudaOptions {
  std::string name = "fused";            // what the entries' names begin with
  int32_t max_threads_per_block = 1024;  // a power of two, from 32 to 1024
  int64_t max_blocks = 2147483647;       // in one launch
  int32_t num_processors = 132;          // streaming multiprocessors, at least 1: that there is work for each of them
  int64_t max_shared_bytes = 48 * 1024;  // a block's shared memory
  int64_t pointer_alignment_bytes = 16;  // of every pointer; at least an element's size
  int64_t points_per_split = 32768;      // what a block has at least where a reduced range is cut
};

// One launch of an entry, on a grid and blocks of one dimension.
struct CudaLaunch {
  std::string entry;  // extern "C"
  int64_t blocks = 1;
  int32_t threads_per_block = 1;
  int64_t dynamic_shared_bytes = 0;
};

// A micro program as CUDA C++, for NVRTC: the source needs no headers. The launches run in order, on one stream; there
// are none if there is nothing to compute. Every entry takes the same arguments: the pointers to the operands in order,
// those to the results in order, and one to the scratch memory unless scratch_bytes is 0. Operands and results may
// share memory as InPlacePairs says and not otherwise. Nothing has to be cleared before, and nothing depends on the
// remains of other launches. The same program and options give the same text, and the same operands the same bits:
// sizes and options fix the order in which reductions join their accumulators.
struct CudaKernel {
  std::string source;
  std::vector<CudaLaunch> launches;
  int64_t scratch_bytes = 0;
};

// The compiler options for the source, besides the architecture: the meaning of floats depends on them.
inline constexpr absl::string_view kCudaCompileOptions[] = {"--std=c++17", "--fmad=false"};

// Values are those of engine/ops/scalar/scalar_math.h, with CUDA's elementary functions: at most 4 ulp off.
CudaKernel PrintCuda(const MicroProgram& program, const CudaOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
