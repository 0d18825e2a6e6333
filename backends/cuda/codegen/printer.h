#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// What the printer may assume of the device and of the pointers that the kernel is launched with.
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

// A micro program as CUDA C++, for NVRTC: the source needs no headers. The launches run in order, on one stream. Every
// entry takes the same arguments: the pointers to the operands in their order, those to the results in theirs, and one
// to the scratch memory where scratch_bytes is not 0. Operands and results may share memory as InPlacePairs says and
// not otherwise. Nothing has to be cleared before, and nothing depends on what other launches left. There are no
// launches where there is nothing to compute. The same program and options give the same text, and the same operands
// the same bits: reductions join what was accumulated in an order that the sizes and the options fix.
struct CudaKernel {
  std::string source;
  std::vector<CudaLaunch> launches;
  int64_t scratch_bytes = 0;
};

// What the source is to be compiled with, besides the architecture: the meaning of floats depends on it.
inline constexpr absl::string_view kCudaCompileOptions[] = {"--std=c++17", "--fmad=false"};

// Values are those of engine/ops/scalar/scalar_math.h, with CUDA's elementary functions: at most 4 ulp off.
CudaKernel PrintCuda(const MicroProgram& program, const CudaOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
