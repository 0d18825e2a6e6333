#ifndef TENSORD_BACKENDS_CPU_JOINS_CONTEXT_H_
#define TENSORD_BACKENDS_CPU_JOINS_CONTEXT_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/exec/backend/bound_instruction.h"

namespace tensord::cpu {

class FftTransforms;

// The cases in which a product runs the elementwise kernels beside it: the one that follows it, and multiplications
// that make its operands.
enum class EpilogueUse {
  kNever,
  kWhereItPays,  // by sizes alone
  kAlways,       // wherever it can be done
};

// When segments run together, a part of a tensor at a time.
struct ChainLimits {
  // The most bytes of all values that pass between the segments, in one block; 0: no blocks. If such blocks would read
  // operands too often, larger ones are tried.
  int64_t block_bytes = 0;
  int64_t large_block_bytes = 0;
  int64_t least_bytes = 1;       // of one of these values as a whole: a smaller one stays in the cache anyway
  int64_t least_join_bytes = 1;  // of what passes in a product join, together
  int64_t least_read_bytes = 1;  // of a tensor that several reductions read: a smaller one stays in the cache
  int64_t least_blocks = 2;      // for the threads to share, unless blocks are small
};

// Allows as much as the second-level cache for a block: values that do not stay there are near in the next cache, and
// large blocks take a part of it.
ChainLimits MachineChainLimits();

// The parts that joins are made with. Borrows all of them.
struct JoinContext {
  using Make = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction,
                                                       absl::Span<const int32_t> num_readers);

  absl::FunctionRef<Make> make;  // of any instruction; the readers may be empty, where they are not known
  FftTransforms& fft_transforms;
  JitOptions jit;
  EpilogueUse epilogues = EpilogueUse::kWhereItPays;
  ChainLimits limits;
  int threads = 1;

  // Makes the kernel of a part of an instruction, as MakeKernel.
  absl::StatusOr<std::unique_ptr<Kernel>> operator()(const BoundInstruction& part) const { return make(part, {}); }
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_CONTEXT_H_
