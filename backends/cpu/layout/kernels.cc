#include "backends/cpu/layout/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/layout/strided_copy.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

constexpr int kScratch = -1;    // as a side of a step
constexpr int kZeroBytes = -2;  // as its source
alignas(16) constexpr char kZeroElement[16] = {};

// One copy of a kernel: from an operand, scratch or zero into the result or scratch, between the given first elements.
struct CopyStep {
  StridedCopy copy;
  int from = 0;  // index of an operand, kScratch or kZeroBytes
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
      const void* operand = step.from == kScratch     ? args.scratch
                            : step.from == kZeroBytes ? kZeroElement
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

std::unique_ptr<Kernel> MakeCopyKernel(std::vector<CopyStep> steps, int64_t scratch_bytes = 0) {
  return std::make_unique<CopyKernel>(std::move(steps), scratch_bytes);
}

std::unique_ptr<Kernel> MakeOneCopy(const CopyAxes& axes, int64_t element_bytes, int64_t first_element = 0) {
  CopyStep step;
  step.copy = StridedCopy(axes, element_bytes);
  step.from_offset_bytes = first_element * element_bytes;
  return MakeCopyKernel({std::move(step)});
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

std::unique_ptr<Kernel> MakeTranspose(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  return MakeOneCopy(PermutedAxes(operand.shape, instruction.attrs->Ints("permutation")), SizeOf(operand.dtype));
}

CopyAxes ReversedAxes(absl::Span<const int64_t> shape) {
  std::vector<int64_t> permutation(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) permutation[i] = static_cast<int64_t>(shape.size() - 1 - i);
  return PermutedAxes(shape, permutation);
}

std::unique_ptr<Kernel> MakeReshape(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const ConcreteType& result = instruction.results[0];
  const int64_t element_bytes = SizeOf(operand.dtype);
  if (static_cast<Order>(instruction.attrs->Int("order")) != Order::kRowMajor) {
    return MakeOneCopy({{operand.num_elements(), 1, 1}}, element_bytes);
  }
  // Row-major order is column-major order of the reversed axes: reverse, and reverse again in the new shape.
  Shape reversed_result(result.shape.rbegin(), result.shape.rend());
  std::vector<CopyStep> steps(2);
  steps[0].copy = StridedCopy(ReversedAxes(operand.shape), element_bytes);
  steps[0].into_scratch = true;
  steps[1].copy = StridedCopy(ReversedAxes(reversed_result), element_bytes);
  steps[1].from = kScratch;
  return MakeCopyKernel(std::move(steps), operand.num_bytes());
}

// For a caller that takes no views.
std::unique_ptr<Kernel> MakeOptimizationBarrier(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  return MakeOneCopy({{operand.num_elements(), 1, 1}}, SizeOf(operand.dtype));
}

std::unique_ptr<Kernel> MakeBroadcastInDim(const BoundInstruction& instruction) {
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
  return MakeOneCopy(axes, SizeOf(operand.dtype));
}

std::unique_ptr<Kernel> MakeSlice(const BoundInstruction& instruction) {
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
  return MakeOneCopy(axes, SizeOf(operand.dtype), first);
}

// Keeps a block at the start of the operand; the result's type tells its size.
std::unique_ptr<Kernel> MakeDynamicTruncate(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const Shape src_strides = ColumnMajorStrides(operand.shape);
  const Shape dst_strides = ColumnMajorStrides(shape);
  CopyAxes axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back({shape[i], src_strides[i], dst_strides[i]});
  return MakeOneCopy(axes, SizeOf(operand.dtype));
}

std::unique_ptr<Kernel> MakeReverse(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape strides = ColumnMajorStrides(operand.shape);
  CopyAxes axes;
  for (size_t i = 0; i < strides.size(); ++i) axes.push_back({operand.shape[i], strides[i], strides[i]});
  int64_t first = 0;
  for (int64_t dimension : instruction.attrs->Ints("dimensions")) {
    CopyAxis& axis = axes[static_cast<size_t>(dimension)];
    if (axis.size == 0) continue;
    first += (axis.size - 1) * axis.src_stride;
    axis.src_stride = -axis.src_stride;
  }
  return MakeOneCopy(axes, SizeOf(operand.dtype), first);
}

std::unique_ptr<Kernel> MakeConcatenate(const BoundInstruction& instruction) {
  const Shape dst_strides = ColumnMajorStrides(instruction.results[0].shape);
  const size_t joined = static_cast<size_t>(instruction.attrs->Int("dimension"));
  std::vector<CopyStep> steps;
  int64_t done = 0;
  for (size_t k = 0; k < instruction.operands.size(); ++k) {
    const ConcreteType& operand = instruction.operands[k];
    const Shape src_strides = ColumnMajorStrides(operand.shape);
    CopyAxes axes;
    for (size_t i = 0; i < src_strides.size(); ++i) {
      axes.push_back({operand.shape[i], src_strides[i], dst_strides[i]});
    }
    CopyStep step;
    step.copy = StridedCopy(axes, SizeOf(operand.dtype), instruction.results[0].num_bytes());
    step.from = static_cast<int>(k);
    step.into_offset_bytes = done * dst_strides[joined] * SizeOf(operand.dtype);
    if (step.copy.num_tasks() > 0) steps.push_back(std::move(step));
    done += operand.shape[joined];
  }
  return MakeCopyKernel(std::move(steps));
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

// Writes one element, operand `from` or kZeroBytes, into a box of the result.
CopyStep FillStep(int from, absl::Span<const int64_t> sizes, const Shape& strides, int64_t first, int64_t element_bytes,
                  int64_t whole_bytes) {
  CopyAxes axes;
  for (size_t i = 0; i < strides.size(); ++i) axes.push_back({sizes[i], 0, strides[i]});
  CopyStep step;
  step.copy = StridedCopy(axes, element_bytes, whole_bytes);
  step.from = from;
  step.into_offset_bytes = first * element_bytes;
  return step;
}

std::unique_ptr<Kernel> MakePad(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const std::vector<int64_t>& low = instruction.attrs->Ints("edge_padding_low");
  const std::vector<int64_t>& interior = instruction.attrs->Ints("interior_padding");
  const int64_t element_bytes = SizeOf(operand.dtype), whole_bytes = instruction.results[0].num_bytes();
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
  std::vector<CopyStep> steps;
  if (!any || !only_edges) {
    steps.push_back(FillStep(1, shape, dst_strides, 0, element_bytes, whole_bytes));
  } else {
    // The slabs below and above the operand along each axis, the last axis first; each leaves out the parts that
    // earlier ones have filled.
    Shape box(shape);
    int64_t first = 0;
    for (size_t i = shape.size(); i-- > 0;) {
      const int64_t above = padded[i].place + padded[i].count;
      box[i] = padded[i].place;
      steps.push_back(FillStep(1, box, dst_strides, first, element_bytes, whole_bytes));
      box[i] = shape[i] - above;
      steps.push_back(FillStep(1, box, dst_strides, first + above * dst_strides[i], element_bytes, whole_bytes));
      box[i] = padded[i].count;
      first += padded[i].place * dst_strides[i];
    }
  }
  if (any) {
    CopyAxes axes;
    CopyStep step;
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t dst_stride = padded[i].count > 1 ? dst_strides[i] * padded[i].step : dst_strides[i];
      axes.push_back({padded[i].count, src_strides[i], dst_stride});
      step.from_offset_bytes += padded[i].first * src_strides[i] * element_bytes;
      step.into_offset_bytes += padded[i].place * dst_strides[i] * element_bytes;
    }
    step.copy = StridedCopy(axes, element_bytes, whole_bytes);
    steps.push_back(std::move(step));
  }
  steps.erase(
      std::remove_if(steps.begin(), steps.end(), [](const CopyStep& step) { return step.copy.num_tasks() == 0; }),
      steps.end());
  return MakeCopyKernel(std::move(steps));
}

std::unique_ptr<Kernel> MakeExtractDiag(const BoundInstruction& instruction) {
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
  return MakeOneCopy(axes, SizeOf(operand.dtype));
}

std::unique_ptr<Kernel> MakeEmbedDiag(const BoundInstruction& instruction) {
  const ConcreteType &operand = instruction.operands[0], &result = instruction.results[0];
  const size_t a = static_cast<size_t>(instruction.attrs->Int("axis_a"));
  const size_t b = static_cast<size_t>(instruction.attrs->Int("axis_b"));
  const Shape src_strides = ColumnMajorStrides(operand.shape), dst_strides = ColumnMajorStrides(result.shape);
  const int64_t element_bytes = SizeOf(operand.dtype);
  CopyAxes axes;
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    const int64_t dst_stride = dst_strides[i < b ? i : i + 1] + (i == a ? dst_strides[b] : 0);
    axes.push_back({operand.shape[i], src_strides[i], dst_stride});
  }
  std::vector<CopyStep> steps;
  // An axis of size 1 is all diagonal.
  if (operand.shape[a] != 1)
    steps.push_back(FillStep(kZeroBytes, {result.num_elements()}, {1}, 0, element_bytes, result.num_bytes()));
  steps.emplace_back().copy = StridedCopy(axes, element_bytes);
  return MakeCopyKernel(std::move(steps));
}

std::unique_ptr<Kernel> MakePadToMatch(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& shape = instruction.results[0].shape;
  const size_t padded = static_cast<size_t>(instruction.attrs->Int("dimension"));
  const int64_t element_bytes = SizeOf(operand.dtype), kept = operand.shape[padded];
  const int64_t whole_bytes = instruction.results[0].num_bytes();
  const Shape src_strides = ColumnMajorStrides(operand.shape), dst_strides = ColumnMajorStrides(shape);
  CopyAxes axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back({operand.shape[i], src_strides[i], dst_strides[i]});
  Shape added = shape;
  added[padded] -= kept;
  std::vector<CopyStep> steps;
  steps.emplace_back().copy = StridedCopy(axes, element_bytes, whole_bytes);
  steps.push_back(FillStep(kZeroBytes, added, dst_strides, kept * dst_strides[padded], element_bytes, whole_bytes));
  return MakeCopyKernel(std::move(steps));
}

class ShapeOfKernel final : public Kernel {
 public:
  explicit ShapeOfKernel(int64_t size) : size_(size) {}

  void Run(const KernelArgs& args) const override { std::memcpy(args.results[0], &size_, sizeof(size_)); }

 private:
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLayoutKernel(const BoundInstruction& instruction) {
  const OpDef& op = *instruction.op;
  if (Is(op, CoreOp::kTranspose)) return MakeTranspose(instruction);
  if (Is(op, CoreOp::kReshape)) return MakeReshape(instruction);
  if (Is(op, CoreOp::kBroadcastInDim)) return MakeBroadcastInDim(instruction);
  if (Is(op, CoreOp::kSlice)) return MakeSlice(instruction);
  if (Is(op, CoreOp::kPad)) return MakePad(instruction);
  if (Is(op, CoreOp::kConcatenate)) return MakeConcatenate(instruction);
  if (Is(op, CoreOp::kReverse)) return MakeReverse(instruction);
  if (Is(op, CoreOp::kExtractDiag)) return MakeExtractDiag(instruction);
  if (Is(op, CoreOp::kEmbedDiag)) return MakeEmbedDiag(instruction);
  if (Is(op, CoreOp::kPadToMatch)) return MakePadToMatch(instruction);
  if (Is(op, CoreOp::kDynamicTruncate)) return MakeDynamicTruncate(instruction);
  if (Is(op, CoreOp::kOptimizationBarrier)) return MakeOptimizationBarrier(instruction);
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("no layout kernel on cpu for the op ", op.name));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShapeOfKernel(const BoundInstruction& instruction) {
  const size_t axis = static_cast<size_t>(instruction.attrs->Int("dimension"));
  return std::make_unique<ShapeOfKernel>(instruction.operands[0].shape[axis]);
}

}  // namespace tensord::cpu
