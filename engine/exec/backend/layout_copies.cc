#include "engine/exec/backend/layout_copies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

LayoutCopies OneCopy(CopyAxes axes, int64_t first_element = 0) {
  LayoutCopies copies;
  copies.copies.push_back({.axes = std::move(axes), .from_offset = first_element});
  return copies;
}

int64_t At(const std::vector<int64_t>& values, size_t i, int64_t if_empty) {
  return values.empty() ? if_empty : values[i];
}

// Returns the axes of `shape` in the order of `permutation`, dense in the destination.
CopyAxes PermutedAxes(absl::Span<const int64_t> shape, absl::Span<const int64_t> permutation) {
  const Shape strides = ColumnMajorStrides(shape);
  CopyAxes axes;
  int64_t dst_stride = 1;
  for (int64_t axis : permutation) {
    const size_t k = static_cast<size_t>(axis);
    axes.push_back({shape[k], strides[k], dst_stride});
    dst_stride *= shape[k];
  }
  return axes;
}

// Returns the axes of a box of these sizes in two dense tensors.
CopyAxes BoxAxes(absl::Span<const int64_t> sizes, const Shape& src_strides, const Shape& dst_strides) {
  CopyAxes axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({sizes[i], src_strides[i], dst_strides[i]});
  return axes;
}

// Writes one element, operand `from` or kZero, into a box of the result.
LayoutCopy Fill(int from, absl::Span<const int64_t> sizes, const Shape& strides, int64_t first) {
  LayoutCopy fill{.from = from, .into_offset = first};
  for (size_t i = 0; i < strides.size(); ++i) fill.axes.push_back({sizes[i], 0, strides[i]});
  return fill;
}

LayoutCopies Transpose(const BoundInstruction& instruction) {
  return OneCopy(PermutedAxes(instruction.operands[0].shape, instruction.attrs->Ints("permutation")));
}

CopyAxes ReversedAxes(absl::Span<const int64_t> shape) {
  std::vector<int64_t> permutation(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) permutation[i] = static_cast<int64_t>(shape.size() - 1 - i);
  return PermutedAxes(shape, permutation);
}

LayoutCopies Reshape(const BoundInstruction& instruction) {
  const ConcreteType &operand = instruction.operands[0], &result = instruction.results[0];
  if (static_cast<Order>(instruction.attrs->Int("order")) != Order::kRowMajor) {
    return OneCopy({{operand.num_elements(), 1, 1}});
  }
  // Row-major order is column-major order of the reversed axes: reverse, and reverse again in the new shape.
  const Shape reversed_result(result.shape.rbegin(), result.shape.rend());
  LayoutCopies copies{.needs_scratch = true};
  copies.copies.push_back({.axes = ReversedAxes(operand.shape), .into_scratch = true});
  copies.copies.push_back({.axes = ReversedAxes(reversed_result), .from = LayoutCopy::kScratch, .follows = true});
  return copies;
}

// For a caller that takes no views.
LayoutCopies OptimizationBarrier(const BoundInstruction& instruction) {
  return OneCopy({{instruction.operands[0].num_elements(), 1, 1}});
}

LayoutCopies BroadcastInDim(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const std::vector<int64_t>& dimensions = instruction.attrs->Ints("broadcast_dimensions");
  const Shape src_strides = ColumnMajorStrides(operand.shape);
  const Shape dst_strides = ColumnMajorStrides(shape);
  CopyAxes axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back({shape[i], 0, dst_strides[i]});
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (operand.shape[i] != 1) axes[static_cast<size_t>(dimensions[i])].src_stride = src_strides[i];
  }
  return OneCopy(std::move(axes));
}

LayoutCopies Slice(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const std::vector<int64_t>& starts = instruction.attrs->Ints("start_indices");
  const std::vector<int64_t>& strides = instruction.attrs->Ints("strides");
  const Shape src_strides = ColumnMajorStrides(operand.shape);
  const Shape dst_strides = ColumnMajorStrides(shape);
  CopyAxes axes;
  int64_t first = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    // A step that is never taken may be too large to multiply.
    const int64_t src_stride = shape[i] > 1 ? src_strides[i] * At(strides, i, 1) : 0;
    axes.push_back({shape[i], src_stride, dst_strides[i]});
    if (shape[i] > 0) first += starts[i] * src_strides[i];
  }
  return OneCopy(std::move(axes), first);
}

// Keeps a block at the start of the operand; the result's type tells its size.
LayoutCopies DynamicTruncate(const BoundInstruction& instruction) {
  const Shape& shape = instruction.results[0].shape;
  return OneCopy(BoxAxes(shape, ColumnMajorStrides(instruction.operands[0].shape), ColumnMajorStrides(shape)));
}

LayoutCopies Reverse(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape strides = ColumnMajorStrides(operand.shape);
  CopyAxes axes = BoxAxes(operand.shape, strides, strides);
  int64_t first = 0;
  for (int64_t dimension : instruction.attrs->Ints("dimensions")) {
    CopyAxis& axis = axes[static_cast<size_t>(dimension)];
    if (axis.size == 0) continue;
    first += (axis.size - 1) * axis.src_stride;
    axis.src_stride = -axis.src_stride;
  }
  return OneCopy(std::move(axes), first);
}

LayoutCopies Concatenate(const BoundInstruction& instruction) {
  const Shape dst_strides = ColumnMajorStrides(instruction.results[0].shape);
  const size_t joined = static_cast<size_t>(instruction.attrs->Int("dimension"));
  LayoutCopies copies;
  int64_t done = 0;
  for (size_t k = 0; k < instruction.operands.size(); ++k) {
    const ConcreteType& operand = instruction.operands[k];
    copies.copies.push_back({.axes = BoxAxes(operand.shape, ColumnMajorStrides(operand.shape), dst_strides),
                             .from = static_cast<int>(k),
                             .into_offset = done * dst_strides[joined]});
    done += operand.shape[joined];
  }
  return copies;
}

// The source of the elements of a padded axis: `count` operand elements from `first` on go to `place`, `place` + step,
// …
struct PaddedAxis {
  int64_t first = 0;
  int64_t count = 0;
  int64_t place = 0;
  int64_t step = 1;
};

PaddedAxis PlaceAxis(int64_t operand_size, int64_t result_size, int64_t low, int64_t interior) {
  PaddedAxis axis;
  axis.step = interior + 1;
  if (operand_size == 0 || result_size == 0) return axis;
  // Without a second element no step is taken, however large it is.
  if (operand_size == 1) axis.step = 1;
  if (low < -(operand_size - 1) * axis.step) return axis;  // all of it is cropped
  // The first element at or after the start of the result, and below the last one before its end.
  axis.first = low < 0 ? (-low + axis.step - 1) / axis.step : 0;
  axis.place = low + axis.first * axis.step;
  if (axis.place >= result_size) return axis;
  axis.count = std::min(operand_size - axis.first, (result_size - 1 - axis.place) / axis.step + 1);
  return axis;
}

LayoutCopies Pad(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const std::vector<int64_t>& low = instruction.attrs->Ints("edge_padding_low");
  const std::vector<int64_t>& interior = instruction.attrs->Ints("interior_padding");
  const Shape src_strides = ColumnMajorStrides(operand.shape);
  const Shape dst_strides = ColumnMajorStrides(shape);

  std::vector<PaddedAxis> padded;
  bool only_edges = true;
  bool any = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    padded.push_back(PlaceAxis(operand.shape[i], shape[i], low[i], At(interior, i, 0)));
    only_edges = only_edges && (padded[i].step == 1 || padded[i].count <= 1);
    any = any && padded[i].count > 0;
  }
  LayoutCopies copies;
  if (!any || !only_edges) {
    copies.copies.push_back(Fill(1, shape, dst_strides, 0));
  } else {
    // The slabs below and above the operand along each axis, the last axis first; each leaves out the parts that
    // earlier ones have filled.
    Shape box(shape);
    int64_t first = 0;
    for (size_t i = shape.size(); i-- > 0;) {
      const int64_t above = padded[i].place + padded[i].count;
      box[i] = padded[i].place;
      copies.copies.push_back(Fill(1, box, dst_strides, first));
      box[i] = shape[i] - above;
      copies.copies.push_back(Fill(1, box, dst_strides, first + above * dst_strides[i]));
      box[i] = padded[i].count;
      first += padded[i].place * dst_strides[i];
    }
  }
  if (any) {
    LayoutCopy copy{.follows = !only_edges};
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t dst_stride = padded[i].count > 1 ? dst_strides[i] * padded[i].step : dst_strides[i];
      copy.axes.push_back({padded[i].count, src_strides[i], dst_stride});
      copy.from_offset += padded[i].first * src_strides[i];
      copy.into_offset += padded[i].place * dst_strides[i];
    }
    copies.copies.push_back(std::move(copy));
  }
  return copies;
}

LayoutCopies ExtractDiag(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const size_t a = static_cast<size_t>(instruction.attrs->Int("axis_a"));
  const size_t b = static_cast<size_t>(instruction.attrs->Int("axis_b"));
  const Shape src_strides = ColumnMajorStrides(operand.shape);
  CopyAxes axes;
  int64_t dst_stride = 1;
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    if (i == b) continue;
    axes.push_back({operand.shape[i], i == a ? src_strides[a] + src_strides[b] : src_strides[i], dst_stride});
    dst_stride *= operand.shape[i];
  }
  return OneCopy(std::move(axes));
}

LayoutCopies EmbedDiag(const BoundInstruction& instruction) {
  const ConcreteType &operand = instruction.operands[0], &result = instruction.results[0];
  const size_t a = static_cast<size_t>(instruction.attrs->Int("axis_a"));
  const size_t b = static_cast<size_t>(instruction.attrs->Int("axis_b"));
  const Shape src_strides = ColumnMajorStrides(operand.shape), dst_strides = ColumnMajorStrides(result.shape);
  CopyAxes axes;
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    const int64_t dst_stride = dst_strides[i < b ? i : i + 1] + (i == a ? dst_strides[b] : 0);
    axes.push_back({operand.shape[i], src_strides[i], dst_stride});
  }
  LayoutCopies copies = OneCopy(std::move(axes));
  // An axis of size 1 is all diagonal.
  if (operand.shape[a] != 1) {
    copies.copies[0].follows = true;
    copies.copies.insert(copies.copies.begin(), Fill(LayoutCopy::kZero, {result.num_elements()}, {1}, 0));
  }
  return copies;
}

LayoutCopies PadToMatch(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const size_t padded = static_cast<size_t>(instruction.attrs->Int("dimension"));
  const int64_t kept = operand.shape[padded];
  const Shape dst_strides = ColumnMajorStrides(shape);
  Shape added = shape;
  added[padded] -= kept;
  LayoutCopies copies = OneCopy(BoxAxes(operand.shape, ColumnMajorStrides(operand.shape), dst_strides));
  copies.copies.push_back(Fill(LayoutCopy::kZero, added, dst_strides, kept * dst_strides[padded]));
  return copies;
}

absl::StatusOr<LayoutCopies> AllCopies(const BoundInstruction& instruction) {
  const OpDef& op = *instruction.op;
  if (Is(op, CoreOp::kTranspose)) return Transpose(instruction);
  if (Is(op, CoreOp::kReshape)) return Reshape(instruction);
  if (Is(op, CoreOp::kBroadcastInDim)) return BroadcastInDim(instruction);
  if (Is(op, CoreOp::kSlice)) return Slice(instruction);
  if (Is(op, CoreOp::kPad)) return Pad(instruction);
  if (Is(op, CoreOp::kConcatenate)) return Concatenate(instruction);
  if (Is(op, CoreOp::kReverse)) return Reverse(instruction);
  if (Is(op, CoreOp::kExtractDiag)) return ExtractDiag(instruction);
  if (Is(op, CoreOp::kEmbedDiag)) return EmbedDiag(instruction);
  if (Is(op, CoreOp::kPadToMatch)) return PadToMatch(instruction);
  if (Is(op, CoreOp::kDynamicTruncate)) return DynamicTruncate(instruction);
  if (Is(op, CoreOp::kOptimizationBarrier)) return OptimizationBarrier(instruction);
  return Refuse(Refusal::kUnsupportedOnDevice,
                absl::StrCat("the op ", op.name, " does not move elements to known places"));
}

}  // namespace

absl::StatusOr<LayoutCopies> LayoutCopiesOf(const BoundInstruction& instruction) {
  absl::StatusOr<LayoutCopies> copies = AllCopies(instruction);
  if (copies.ok()) {
    std::erase_if(copies->copies, [](const LayoutCopy& copy) { return NumElements(copy.axes) == 0; });
  }
  return copies;
}

}  // namespace tensord
