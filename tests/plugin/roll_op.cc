#include "tests/plugin/roll_op.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/derivative.h"

namespace sample {
namespace {

using tensord::AttrDef;
using tensord::AttrKind;
using tensord::ConcreteType;
using tensord::Refusal;

absl::StatusOr<tensord::ResultTypes> InferRoll(tensord::InferContext& context) {
  if (context.operand(0).rank() != 1) {
    return Refuse(Refusal::kRankMismatch,
                  absl::StrCat("a roll takes a vector, and the operand is ", ToString(context.operand(0))));
  }
  return tensord::ResultTypes{context.operand(0)};
}

// Rolls the tangent as the elements.
void JvpRoll(tensord::JvpCall& call) {
  call.result_tangents[0] = call.graph.Add(call.op, call.attrs, {call.tangents[0]});
}

// Rolls the cotangent back.
void TransposeRoll(tensord::TransposeCall& call) {
  tensord::Attributes back = call.attrs;
  back.Set("places", -call.attrs.Int("places"));
  call.operand_cotangents[0] = call.graph.Add(call.op, std::move(back), {call.cotangents[0]});
}

// Elements [0, split) go to the end, the others before them.
size_t SplitOf(int64_t places, int64_t size) {
  if (size == 0) return 0;
  const int64_t forward = (places % size + size) % size;
  return static_cast<size_t>((size - forward) % size);
}

void RollBytes(const char* from, char* into, size_t split_bytes, size_t bytes) {
  if (bytes == 0) return;
  std::memcpy(into, from + split_bytes, bytes - split_bytes);
  std::memcpy(into + (bytes - split_bytes), from, split_bytes);
}

absl::Status ReferenceRoll(const tensord::ReferenceCall& call) {
  const tensord::Literal& operand = *call.operands[0];
  const size_t split = SplitOf(call.attrs.Int("places"), operand.shape()[0]);
  RollBytes(operand.bytes().data(), call.results[0].mutable_data(),
            split * static_cast<size_t>(SizeOf(operand.dtype())), operand.bytes().size());
  return absl::OkStatus();
}

class RollKernel final : public tensord::cpu::Kernel {
 public:
  RollKernel(size_t split_bytes, size_t bytes) : split_bytes_(split_bytes), bytes_(bytes) {}
  void Run(const tensord::cpu::KernelArgs& args) const override {
    RollBytes(static_cast<const char*>(args.operands[0]), static_cast<char*>(args.results[0]), split_bytes_, bytes_);
  }

 private:
  const size_t split_bytes_;
  const size_t bytes_;
};

absl::StatusOr<std::unique_ptr<tensord::cpu::Kernel>> MakeRollKernel(const tensord::BoundInstruction& instruction,
                                                                     const tensord::cpu::FamilyContext&) {
  const ConcreteType& operand = instruction.operands[0];
  const size_t split = SplitOf(instruction.attrs->Int("places"), operand.shape[0]);
  return std::make_unique<RollKernel>(split * static_cast<size_t>(SizeOf(operand.dtype)),
                                      static_cast<size_t>(operand.num_bytes()));
}

constexpr AttrDef kAttrs[] = {{.name = "places", .kind = AttrKind::kInt}};
constexpr tensord::RefusalRule kRefusals[] = {{Refusal::kRankMismatch, "the operand is no vector"}};
constexpr tensord::OpDef kOps[] = {{.family = "sample",
                                    .index = 0,
                                    .name = "sample.v1.Roll",
                                    .summary = "Turns the elements of a vector round.",
                                    .op_class = tensord::OpClass::kExtension,
                                    .min_operands = 1,
                                    .max_operands = 1,
                                    .attrs = kAttrs,
                                    .traits = tensord::kJoinsSessions,
                                    .dtypes = tensord::kAnyDType,
                                    .infer = &InferRoll,
                                    .refusals = kRefusals,
                                    .reference = &ReferenceRoll,
                                    .permute = tensord::Facet<tensord::PermuteRule>::None("a vector has one order"),
                                    .jvp = &JvpRoll,
                                    .linear_transpose = &TransposeRoll}};
constexpr tensord::cpu::FamilyKernel kKernels[] = {{.op = "sample.v1.Roll", .make = &MakeRollKernel}};

}  // namespace

absl::Span<const tensord::OpDef> Ops() { return kOps; }
absl::Span<const tensord::cpu::FamilyKernel> CpuKernels() { return kKernels; }

}  // namespace sample
