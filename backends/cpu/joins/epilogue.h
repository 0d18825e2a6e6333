#ifndef TENSORD_BACKENDS_CPU_JOINS_EPILOGUE_H_
#define TENSORD_BACKENDS_CPU_JOINS_EPILOGUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/fused/plan.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// An elementwise fused kernel that is run on the pieces of a product, each when its sums are complete. All points have
// the bits that the kernel gives them by itself.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class Epilogue {
 public:
  // Tells whether each element of the operand is read for the one element of the same place and no other.
  static bool IsPointwise(const MicroProgram& micro, size_t operand);
  // Plans the kernel for an operand that is read like that. Nothing if an instruction has no function here.
  static std::optional<Epilogue> Plan(const MicroProgram& micro, size_t operand, const JitOptions& jit);

  // Returns the result to whose memory the product may be written before the kernel is run on it; -1 if there is none.
  int32_t in_place_result() const { return in_place_result_; }
  // Returns the bytes that Run needs, aligned to 64.
  int64_t task_bytes() const { return plan_.task_bytes; }
  std::string Describe() const;

  // `args` are those of the whole kernel: the product's operand is the memory of the result in place, or null.
  void Run(const KernelArgs& args, const GemmPiece& piece, char* memory) const;

 private:
  explicit Epilogue(FusedPlan plan) : plan_(std::move(plan)) {}

  FusedPlan plan_;
  int32_t operand_ = 0;
  int32_t in_place_result_ = -1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_EPILOGUE_H_
