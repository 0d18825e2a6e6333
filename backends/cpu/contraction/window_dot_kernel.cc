#include "backends/cpu/contraction/window_dot_kernel.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/contraction/operands/padded_copy.h"
#include "backends/cpu/contraction/tiled_gemm.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/affine_dot.h"

namespace tensord::cpu {
namespace {

// The least run of lines that are packed together: shorter ones are copied with zeros around first.
constexpr int64_t kLeastPackedRun = 16;

// An operand as the contraction reads it.
struct StridedOperand {
  int64_t offset_bytes = 0;        // of the element at index 0
  std::vector<int64_t> strides;    // by index, in elements
  std::optional<PaddedCopy> copy;  // nothing: it is read where it lies
  PaddedTensor padded;             // the same; empty where it is read where it lies
};

// `first_axis` is the one along which elements lie side by side in a copy.
absl::StatusOr<StridedOperand> PlanOperand(const ConcreteType& type, const AffineRead& read,
                                           const std::vector<int64_t>& sizes, size_t first_axis = 0) {
  StridedOperand operand;
  const size_t rank = type.shape.size();
  Shape low(rank), padded = type.shape;
  bool pads = false;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t last = read.starts[axis];
    for (size_t i = 0; i < sizes.size(); ++i) last += read.Step(i, axis) * (sizes[i] - 1);
    low[axis] = std::max<int64_t>(0, -read.starts[axis]);
    padded[axis] += low[axis] + std::max<int64_t>(0, last - type.shape[axis] + 1);
    pads = pads || padded[axis] > type.shape[axis];
  }
  const Shape strides = ColumnMajorStrides(type.shape);
  Shape axis_strides = strides;
  if (pads) {
    if (!NumBytes(type.dtype, padded).has_value()) {
      return Refuse(Refusal::kShapeOverflow, "the padded operand has more than 2^56 bytes");
    }
    operand.copy = PaddedCopy(type, low, padded, first_axis);
    axis_strides = operand.copy->strides();
  }
  for (size_t axis = 0; axis < rank && pads; ++axis) {
    operand.padded.axes.push_back(
        {type.shape[axis], read.starts[axis], padded[axis], axis_strides[axis], strides[axis]});
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    operand.offset_bytes += (read.starts[axis] + low[axis]) * axis_strides[axis] * SizeOf(type.dtype);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& stride = operand.strides.emplace_back(0);
    for (size_t axis = 0; axis < rank; ++axis) stride += read.Step(i, axis) * axis_strides[axis];
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
      if (operands_[side].copy.has_value()) scratch_bytes_ += (operands_[side].copy->bytes() + 63) / 64 * 64;
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
      if (operand.copy.has_value()) {
        operand.copy->Run(read[side], scratch + places_[side], args.pool);
        read[side] = scratch + places_[side];
      }
      read[side] += operand.offset_bytes;
    }
    contraction_.Run(read[kLhs], read[kRhs], args.results[0], scratch + contraction_place_, args.workspace, *args.pool);
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t workspace_bytes() const override { return contraction_.workspace_bytes(); }
  std::string Describe() const override {
    return operands_[kLhs].copy.has_value() || operands_[kRhs].copy.has_value() ? "of padded copies" : "";
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
      offset_bytes_[side] = operands[side].copy.has_value() ? 0 : operands[side].offset_bytes;
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

// Returns the axis along which a copy of the rows' operand is to have its elements side by side, so that tiles can read
// its windows in place: the axis that the fastest index of the result moves along, and no other.
std::optional<size_t> AxisOfRows(const AffineRead& read, const std::vector<int64_t>& sizes, size_t of_result) {
  for (size_t i = 0; i < of_result; ++i) {
    if (sizes[i] == 1) continue;
    std::optional<size_t> moved;
    for (size_t axis = 0; axis < read.starts.size(); ++axis) {
      if (read.Step(i, axis) == 0) continue;
      if (moved.has_value() || read.Step(i, axis) != 1) return std::nullopt;
      moved = axis;
    }
    if (!moved.has_value() || *moved == 0 || sizes[i] < kLeastPackedRun) return std::nullopt;
    return moved;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeAffineDotKernel(const BoundInstruction& instruction) {
  if (!IsAffineDot(*instruction.op)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no kernel of windows on cpu for the op ", instruction.op->name));
  }
  const Attributes& attrs = *instruction.attrs;
  const std::vector<int64_t>& sizes = attrs.Ints("sizes");
  const std::array<AffineRead, 2> reads = {LhsReadOf(attrs), RhsReadOf(attrs)};
  const DType dtype = instruction.results[0].dtype, read_dtype = instruction.operands[kLhs].dtype;
  std::array<DotOperand, 2> read = {DotOperand{read_dtype, attrs.Int("lhs_conj") != 0},
                                    DotOperand{read_dtype, attrs.Int("rhs_conj") != 0}};
  StridedOperands operands;
  for (size_t side : {kLhs, kRhs}) {
    ASSIGN_OR_RETURN(operands[side], PlanOperand(instruction.operands[side], reads[side], sizes));
  }
  const size_t of_result = sizes.size() - static_cast<size_t>(attrs.Int("num_summed"));
  AffineSpace made = MakeSpace(sizes, of_result, operands[kLhs].strides, operands[kRhs].strides);
  const size_t of_rows = made.swaps ? kRhs : kLhs;
  if (made.swaps) {
    std::swap(read[kLhs], read[kRhs]);
    std::swap(operands[kLhs], operands[kRhs]);
  }
  bool pads = false, has_runs = true;
  for (DotSide side : {kLhs, kRhs}) {
    if (!operands[side].copy.has_value()) continue;
    pads = true;
    const DotAxisList& lines = made.space.roles[side == kLhs ? kRows : kColumns];
    has_runs = has_runs && !lines.empty() && lines[0].size >= kLeastPackedRun;
  }
  if (pads && has_runs && read_dtype == dtype) {
    const PaddedTensors padded = {operands[kLhs].padded, operands[kRhs].padded};
    std::optional<TiledGemm> tiled = TiledGemm::Plan(made.space, dtype, padded);
    if (tiled.has_value()) return std::make_unique<PaddedDotKernel>(*std::move(tiled), operands, made.swaps);
  }
  const std::optional<size_t> axis_of_rows = AxisOfRows(reads[of_rows], sizes, of_result);
  if (operands[kLhs].copy.has_value() && read_dtype == dtype && axis_of_rows.has_value()) {
    ASSIGN_OR_RETURN(StridedOperand rows,
                     PlanOperand(instruction.operands[of_rows], reads[of_rows], sizes, *axis_of_rows));
    AffineSpace turned = made.swaps ? MakeSpace(sizes, of_result, operands[kRhs].strides, rows.strides)
                                    : MakeSpace(sizes, of_result, rows.strides, operands[kRhs].strides);
    const std::optional<TiledGemm> tiled = TiledGemm::Plan(turned.space, dtype);
    if (tiled.has_value() && tiled->reads_windows()) {
      operands[kLhs] = std::move(rows);
      made = std::move(turned);
    }
  }
  ASSIGN_OR_RETURN(Contraction contraction, Contraction::Create(made.space, read, dtype));
  return std::make_unique<AffineDotKernel>(std::move(contraction), std::move(operands), made.swaps);
}

}  // namespace tensord::cpu
