#include "backends/cpu/layout/kernels.h"

#include <cstring>

namespace tensord::cpu {
namespace {

class ShapeOfKernel final : public Kernel {
 public:
  explicit ShapeOfKernel(int64_t size) : size_(size) {}

  void Run(const KernelArgs& args) const override { std::memcpy(args.results[0], &size_, sizeof(size_)); }

 private:
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeShapeOfKernel(const BoundInstruction& instruction) {
  const size_t axis = static_cast<size_t>(instruction.attrs->Int("dimension"));
  return std::make_unique<ShapeOfKernel>(instruction.operands[0].shape[axis]);
}

}  // namespace tensord::cpu
