#include "backends/cpu/reduce/kernels.h"

#include "absl/strings/str_cat.h"
#include "backends/cpu/reduce/reduce.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

class ReduceKernel final : public Kernel {
 public:
  explicit ReduceKernel(Reduction reduction) : reduction_(std::move(reduction)) {}

  void Run(const KernelArgs& args) const override {
    reduction_.Run(args.operands[0], args.results[0], args.scratch, *args.pool);
  }
  int64_t scratch_bytes() const override { return reduction_.scratch_bytes(); }

 private:
  const Reduction reduction_;
};

}  // namespace

std::optional<ReduceOp> ReduceOpOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return ReduceOp::kSum;
    case ReduceKind::kProduct:
      return ReduceOp::kProduct;
    case ReduceKind::kMax:
      return ReduceOp::kMax;
    case ReduceKind::kMin:
      return ReduceOp::kMin;
    case ReduceKind::kAnd:
      return ReduceOp::kAnd;
    case ReduceKind::kOr:
      return ReduceOp::kOr;
    case ReduceKind::kUnspecified:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceKernel(const BoundInstruction& instruction) {
  if (!Is(*instruction.op, CoreOp::kReduce)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no reduction kernel on cpu for the op ", instruction.op->name));
  }
  const ConcreteType& operand = instruction.operands[0];
  const std::optional<ReduceOp> op = ReduceOpOf(static_cast<ReduceKind>(instruction.attrs->Int("kind")));
  const bool is_logical = op == ReduceOp::kAnd || op == ReduceOp::kOr;
  if (!op.has_value() || (is_logical && operand.dtype != DType::kBool)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no kernel on cpu for reduce of kind ", instruction.attrs->Int("kind"), " on ",
                               Name(operand.dtype)));
  }
  return std::make_unique<ReduceKernel>(
      Reduction(*op, operand.dtype, operand.shape, instruction.attrs->Ints("dimensions")));
}

}  // namespace tensord::cpu
