#include "backends/cpu/contraction/kernels.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/contraction/semiring/semiring_product.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/contraction.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

class DotKernel final : public Kernel {
 public:
  explicit DotKernel(Contraction contraction) : contraction_(std::move(contraction)) {}

  void Run(const KernelArgs& args) const override {
    contraction_.Run(args.operands[0], args.operands[1], args.results[0], args.scratch, args.workspace, *args.pool);
  }
  int64_t scratch_bytes() const override { return contraction_.scratch_bytes(); }
  int64_t workspace_bytes() const override { return contraction_.workspace_bytes(); }

 private:
  const Contraction contraction_;
};

class SemiringKernel final : public Kernel {
 public:
  explicit SemiringKernel(SemiringProduct product) : product_(std::move(product)) {}

  void Run(const KernelArgs& args) const override {
    product_.Run(args.operands[0], args.operands[1], args.results[0], args.workspace, *args.pool);
  }
  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }
  std::string Describe() const override { return product_.Describe(); }

 private:
  const SemiringProduct product_;
};

// Returns the algebra whose kernels compute it. The ordinary product of BOOL is that of or_and.
Algebra ComputedAlgebra(const BoundInstruction& instruction) {
  const Algebra algebra = AlgebraOf(*instruction.attrs);
  const bool is_logical = algebra == Algebra::kStandard && instruction.results[0].dtype == DType::kBool;
  return is_logical ? Algebra::kOrAnd : algebra;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDotKernel(const BoundInstruction& instruction) {
  if (!Is(*instruction.op, CoreOp::kDotGeneral)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no contraction kernel on cpu for the op ", instruction.op->name));
  }
  const Algebra algebra = ComputedAlgebra(instruction);
  if (algebra != Algebra::kStandard) {
    if (instruction.results[0].num_elements() == 0) return std::make_unique<NothingToDo>();
    return std::make_unique<SemiringKernel>(
        SemiringProduct(DotSpaceOf(instruction), algebra, instruction.results[0].dtype));
  }
  return MakePartialDotKernel(instruction, DotSpaceOf(instruction));
}

bool IsOrdinaryDot(const BoundInstruction& instruction) {
  return instruction.micro == nullptr && Is(*instruction.op, CoreOp::kDotGeneral) &&
         ComputedAlgebra(instruction) == Algebra::kStandard;
}

absl::StatusOr<Contraction> ContractionOf(const BoundInstruction& instruction, const DotSpace& part) {
  const DotAxes axes = DotAxesOf(*instruction.attrs);
  return Contraction::Create(
      part,
      {{{instruction.operands[0].dtype, axes.conjugates_lhs}, {instruction.operands[1].dtype, axes.conjugates_rhs}}},
      instruction.results[0].dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePartialDotKernel(const BoundInstruction& instruction,
                                                             const DotSpace& part) {
  ASSIGN_OR_RETURN(Contraction contraction, ContractionOf(instruction, part));
  return std::make_unique<DotKernel>(std::move(contraction));
}

}  // namespace tensord::cpu
