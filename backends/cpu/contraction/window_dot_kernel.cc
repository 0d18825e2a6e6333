#include "backends/cpu/contraction/window_dot_kernel.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/layout/kernels.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

// The least run of lines that are packed together: shorter ones are copied with zeros around first.
constexpr int64_t kLeastPackedRun = 16;

alignas(64) constexpr char kZero[64] = {};  // one element of any dtype

// An operand as the contraction reads it.
struct StridedOperand {
  int64_t offset_bytes = 0;      // of the element at index 0
  std::vector<int64_t> strides;  // by index, in elements
  std::unique_ptr<Kernel> pad;   // null: it is read where it lies
  int64_t padded_bytes = 0;
  PaddedTensor padded;  // the same; empty where it is read where it lies
};

absl::StatusOr<StridedOperand> PlanOperand(const ConcreteType& type, const AffineRead& read,
                                           const std::vector<int64_t>& sizes) {
  StridedOperand operand;
  std::vector<int64_t> low(type.shape.size()), high(type.shape.size());
  ConcreteType padded = type;
  bool pads = false;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    int64_t last = read.starts[axis];
    for (size_t i = 0; i < sizes.size(); ++i) last += read.Step(i, axis) * (sizes[i] - 1);
    low[axis] = std::max<int64_t>(0, -read.starts[axis]);
    high[axis] = std::max<int64_t>(0, last - type.shape[axis] + 1);
    padded.shape[axis] += low[axis] + high[axis];
    pads = pads || low[axis] > 0 || high[axis] > 0;
  }
  if (pads) {
    if (!NumBytes(type.dtype, padded.shape).has_value()) {
      return Refuse(Refusal::kShapeOverflow, "the padded operand has more than 2^56 bytes");
    }
    operand.padded_bytes = padded.num_bytes();
    Attributes attrs(Def(CoreOp::kPad).attrs);
    attrs.Set("edge_padding_low", low).Set("edge_padding_high", high);
    const BoundInstruction pad = {.op = &Def(CoreOp::kPad),
                                  .attrs = &attrs,
                                  .operands = {type, {.dtype = type.dtype, .shape = {}}},
                                  .results = {padded}};
    ASSIGN_OR_RETURN(operand.pad, MakeLayoutKernel(pad));
  }
  const Shape axis_strides = ColumnMajorStrides(padded.shape), strides = ColumnMajorStrides(type.shape);
  for (size_t axis = 0; axis < low.size() && pads; ++axis) {
    operand.padded.axes.push_back(
        {type.shape[axis], read.starts[axis], padded.shape[axis], axis_strides[axis], strides[axis]});
  }
  for (size_t axis = 0; axis < low.size(); ++axis) {
    operand.offset_bytes += (read.starts[axis] + low[axis]) * axis_strides[axis] * SizeOf(type.dtype);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& stride = operand.strides.emplace_back(0);
    for (size_t axis = 0; axis < low.size(); ++axis) stride += read.Step(i, axis) * axis_strides[axis];
  }
  return operand;
}

// The space, with the operand first that has the fastest axis of the result.
struct AffineSpace {
  DotSpace space;
  bool swaps = false;
};

AffineSpace MakeSpace(const std::vector<int64_t>& sizes, size_t of_result, const std::vector<int64_t>& lhs,
                      const std::vector<int64_t>& rhs) {
  AffineSpace made;
  const auto first = std::find_if(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(of_result),
                                  [](int64_t size) { return size > 1; });
  const size_t fastest = static_cast<size_t>(first - sizes.begin());
  made.swaps = fastest < of_result && lhs[fastest] == 0;
  const std::vector<int64_t>&left = made.swaps ? rhs : lhs, &right = made.swaps ? lhs : rhs;
  int64_t result_stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool is_summed = i >= of_result;
    const DotAxis axis = {sizes[i], {left[i], right[i], is_summed ? 0 : result_stride}};
    if (!is_summed) result_stride *= sizes[i];
    const DotRole role = is_summed ? kSummed : left[i] != 0 && right[i] != 0 ? kBatch : left[i] != 0 ? kRows : kColumns;
    made.space.roles[role].push_back(axis);
  }
  // Rows that are not one axis of the result with the first row axis are gone through like a batch.
  DotAxisList& rows = made.space.roles[kRows];
  size_t beside = 0;
  for (int64_t next = 1; beside < rows.size() && rows[beside].strides[kDotResult] == next; ++beside) {
    next *= rows[beside].size;
  }
  DotAxisList& batch = made.space.roles[kBatch];
  batch.insert(batch.end(), rows.begin() + static_cast<ptrdiff_t>(beside), rows.end());
  rows.erase(rows.begin() + static_cast<ptrdiff_t>(beside), rows.end());
  for (DotAxisList& role : made.space.roles) role = MergeAxes(role);
  return made;
}

// Operands in the order in which the products take them.
using StridedOperands = std::array<StridedOperand, 2>;

class AffineDotKernel final : public Kernel {
 public:
  AffineDotKernel(Contraction contraction, StridedOperands operands, bool swaps)
      : contraction_(std::move(contraction)), operands_(std::move(operands)), swaps_(swaps) {
    for (size_t side : {kLhs, kRhs}) {
      places_[side] = scratch_bytes_;
      scratch_bytes_ += (operands_[side].padded_bytes + 63) / 64 * 64;
    }
    contraction_place_ = scratch_bytes_;
    scratch_bytes_ += contraction_.scratch_bytes();
  }

  void Run(const KernelArgs& args) const override {
    char* const scratch = static_cast<char*>(args.scratch);
    std::array<const char*, 2> read;
    for (size_t side : {kLhs, kRhs}) {
      const StridedOperand& operand = operands_[side];
      read[side] = static_cast<const char*>(args.operands[swaps_ ? 1 - side : side]);
      if (operand.pad != nullptr) {
        const void* const from[] = {read[side], kZero};
        void* const to[] = {scratch + places_[side]};
        operand.pad->Run({.operands = from, .results = to, .scratch = nullptr, .pool = args.pool});
        read[side] = scratch + places_[side];
      }
      read[side] += operand.offset_bytes;
    }
    contraction_.Run(read[kLhs], read[kRhs], args.results[0], scratch + contraction_place_, args.workspace, *args.pool);
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t workspace_bytes() const override { return contraction_.workspace_bytes(); }
  std::string Describe() const override {
    return operands_[kLhs].pad != nullptr || operands_[kRhs].pad != nullptr ? "of padded copies" : "";
  }

 private:
  const Contraction contraction_;
  const StridedOperands operands_;
  const bool swaps_;  // lhs of the products is the second operand
  std::array<int64_t, 2> places_ = {0, 0};
  int64_t contraction_place_ = 0;
  int64_t scratch_bytes_ = 0;
};

// A product by tiles, packed with zeros for elements that do not exist.
class PaddedDotKernel final : public Kernel {
 public:
  PaddedDotKernel(TiledGemm product, const StridedOperands& operands, bool swaps)
      : product_(std::move(product)), swaps_(swaps) {
    for (size_t side : {kLhs, kRhs})
      offset_bytes_[side] = operands[side].pad == nullptr ? operands[side].offset_bytes : 0;
  }

  void Run(const KernelArgs& args) const override {
    std::array<const char*, 2> read;
    for (size_t side : {kLhs, kRhs}) {
      read[side] = static_cast<const char*>(args.operands[swaps_ ? 1 - side : side]) + offset_bytes_[side];
    }
    product_.Run(read[kLhs], read[kRhs], static_cast<char*>(args.results[0]), static_cast<char*>(args.workspace),
                 /*accumulates=*/false, *args.pool);
  }
  int64_t workspace_bytes() const override { return product_.scratch_bytes(); }
  std::string Describe() const override { return "packed with zeros"; }

 private:
  const TiledGemm product_;
  const bool swaps_;
  std::array<int64_t, 2> offset_bytes_ = {0, 0};  // of an operand without padding
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeAffineDotKernel(const BoundInstruction& instruction) {
  if (!IsAffineDot(*instruction.op)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no kernel of windows on cpu for the op ", instruction.op->name));
  }
  const Attributes& attrs = *instruction.attrs;
  const std::vector<int64_t>& sizes = attrs.Ints("sizes");
  const ConcreteType &lhs = instruction.operands[kLhs], &rhs = instruction.operands[kRhs];
  StridedOperands operands;
  ASSIGN_OR_RETURN(operands[kLhs], PlanOperand(lhs, LhsReadOf(attrs), sizes));
  ASSIGN_OR_RETURN(operands[kRhs], PlanOperand(rhs, RhsReadOf(attrs), sizes));
  const size_t of_result = sizes.size() - static_cast<size_t>(attrs.Int("num_summed"));
  const AffineSpace made = MakeSpace(sizes, of_result, operands[kLhs].strides, operands[kRhs].strides);
  std::array<DotOperand, 2> read = {DotOperand{lhs.dtype, attrs.Int("lhs_conj") != 0},
                                    DotOperand{rhs.dtype, attrs.Int("rhs_conj") != 0}};
  if (made.swaps) {
    std::swap(read[kLhs], read[kRhs]);
    std::swap(operands[kLhs], operands[kRhs]);
  }
  const DType dtype = instruction.results[0].dtype;
  const PaddedTensors padded = {operands[kLhs].padded, operands[kRhs].padded};
  bool pads = false, has_runs = true;
  for (DotSide side : {kLhs, kRhs}) {
    if (operands[side].pad == nullptr) continue;
    pads = true;
    const DotAxisList& lines = made.space.roles[side == kLhs ? kRows : kColumns];
    has_runs = has_runs && !lines.empty() && lines[0].size >= kLeastPackedRun;
  }
  if (pads && has_runs && lhs.dtype == dtype) {
    std::optional<TiledGemm> tiled = TiledGemm::Plan(made.space, dtype, padded);
    if (tiled.has_value()) return std::make_unique<PaddedDotKernel>(*std::move(tiled), operands, made.swaps);
  }
  ASSIGN_OR_RETURN(Contraction contraction, Contraction::Create(made.space, read, dtype));
  return std::make_unique<AffineDotKernel>(std::move(contraction), std::move(operands), made.swaps);
}

}  // namespace tensord::cpu
