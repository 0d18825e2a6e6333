#include "backends/cpu/layout/kernels.h"

#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/layout/strided_copy.h"
#include "engine/base/status_macros.h"
#include "engine/exec/backend/layout_copies.h"

namespace tensord::cpu {
namespace {

alignas(16) constexpr char kZeroElement[16] = {};

// A planned copy, with its sides.
struct CopyStep {
  StridedCopy copy;
  int from = 0;  // as of LayoutCopy
  bool into_scratch = false;
  int64_t from_offset_bytes = 0;
  int64_t into_offset_bytes = 0;
};

class CopyKernel final : public Kernel {
 public:
  CopyKernel(std::vector<CopyStep> steps, int64_t scratch_bytes)
      : steps_(std::move(steps)), scratch_bytes_(scratch_bytes) {}

  void Run(const KernelArgs& args) const override {
    for (const CopyStep& step : steps_) {
      const void* operand = step.from == LayoutCopy::kScratch ? args.scratch
                            : step.from == LayoutCopy::kZero  ? kZeroElement
                                                              : args.operands[static_cast<size_t>(step.from)];
      const char* from = static_cast<const char*>(operand) + step.from_offset_bytes;
      char* into = static_cast<char*>(step.into_scratch ? args.scratch : args.results[0]) + step.into_offset_bytes;
      RunCopy(step.copy, from, into, args.pool);
    }
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }

 private:
  const std::vector<CopyStep> steps_;
  const int64_t scratch_bytes_;
};

class ShapeOfKernel final : public Kernel {
 public:
  explicit ShapeOfKernel(int64_t size) : size_(size) {}

  void Run(const KernelArgs& args) const override { std::memcpy(args.results[0], &size_, sizeof(size_)); }

 private:
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLayoutKernel(const BoundInstruction& instruction) {
  ASSIGN_OR_RETURN(const LayoutCopies copies, LayoutCopiesOf(instruction));
  const ConcreteType& result = instruction.results[0];
  const int64_t element_bytes = SizeOf(result.dtype);
  std::vector<CopyStep> steps;
  for (const LayoutCopy& copy : copies.copies) {
    steps.push_back({.copy = StridedCopy(copy.axes, element_bytes, result.num_bytes()),
                     .from = copy.from,
                     .into_scratch = copy.into_scratch,
                     .from_offset_bytes = copy.from_offset * element_bytes,
                     .into_offset_bytes = copy.into_offset * element_bytes});
  }
  return std::make_unique<CopyKernel>(std::move(steps), copies.needs_scratch ? result.num_bytes() : 0);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShapeOfKernel(const BoundInstruction& instruction) {
  const size_t axis = static_cast<size_t>(instruction.attrs->Int("dimension"));
  return std::make_unique<ShapeOfKernel>(instruction.operands[0].shape[axis]);
}

}  // namespace tensord::cpu
