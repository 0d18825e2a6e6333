#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_

#include <cstdint>
#include <string>

#include "backends/cuda/codegen/kernel_text.h"
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
  int64_t terms_per_share = 4096;        // likewise where blocks share the sums of a product
  int64_t most_shared_sums = 4194304;    // that are kept in scratch memory then
  // Steps of each processor (CudaLaunchParts) that a launch has at most, where it can be cut: some 10 ms.
  int64_t steps_per_launch = 1280000000;
};

// Prints a micro program. Operands and results may share memory as InPlacePairs says and not otherwise. Sizes and
// options fix the order in which reductions join their accumulators. Values are those of
// engine/ops/scalar/scalar_math.h, with CUDA's elementary functions: at most 4 ulp off.
KernelText PrintCuda(const MicroProgram& program, const CudaOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_PRINTER_H_
