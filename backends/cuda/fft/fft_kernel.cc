#include "backends/cuda/fft/fft_kernel.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/fft/fft_lines.h"
#include "backends/cuda/fft/fft_text.h"
#include "backends/cuda/kernels/text_kernel.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/families/fft/fft_steps.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kAlignment = 256;          // of the parts of scratch
constexpr int64_t kBlocksPerProcessor = 16;  // of a copy

bool IsReal(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }
bool IsDouble(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128; }

int64_t Product(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// The sizes of one transform: a tensor's lines, what cuFFT reads of each, and what it writes.
struct LinesShape {
  FftAxis axis;
  int64_t from_length, in_length, out_length;
  DType from, in, out;  // of the tensor, and of cuFFT's sides; the result has the last
};

int TypeOf(const LinesShape& shape) {
  const bool is_double = IsDouble(shape.out);
  if (IsReal(shape.in)) return is_double ? kFftD2Z : kFftR2C;
  if (IsReal(shape.out)) return is_double ? kFftZ2D : kFftC2R;
  return is_double ? kFftZ2Z : kFftC2C;
}

// One axis: lines are loaded, transformed, stored.
struct Step {
  LinesShape shape;
  std::unique_ptr<FftLines> lines;
  // Null where cuFFT reads the tensor itself, or writes it itself: always, or if the address suits.
  std::shared_ptr<const LoadedKernel> load, store;
  bool may_read_tensor = false;
  bool may_write_tensor = false;
  bool scales = false;
  int64_t complex_bytes = 0;
};

class FftKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const BoundInstruction& instruction,
                                                      const std::vector<FftStep>& steps, const KernelContext& context) {
    std::unique_ptr<FftKernel> kernel(new FftKernel());
    ConcreteType type = instruction.operands[0];
    for (const FftStep& step : steps) {
      RETURN_IF_ERROR(kernel->Append(step, FftScale(*instruction.attrs, step), context, &type));
    }
    return kernel;
  }

  absl::Status Enqueue(const Launch& launch) const override {
    CuAddress from = launch.operands[0];
    for (size_t i = 0; i < steps_.size(); ++i) {
      RETURN_IF_ERROR(launch.BeforePart(static_cast<int64_t>(i), static_cast<int64_t>(steps_.size())));
      const bool is_last = i + 1 == steps_.size();
      const CuAddress into = is_last ? launch.results[0] : launch.scratch + Offset(tensors_at_[i % 2]);
      RETURN_IF_ERROR(EnqueueStep(steps_[i], launch, from, into));
      from = into;
    }
    return absl::OkStatus();
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string Describe() const override {
    int copies = 0;
    for (const Step& step : steps_) copies += (step.load != nullptr) + (step.store != nullptr);
    return absl::StrCat("cuFFT, ", steps_.size(), steps_.size() == 1 ? " axis" : " axes",
                        copies > 0 ? absl::StrCat(", up to ", copies, copies == 1 ? " copy" : " copies") : "");
  }

 private:
  static CuAddress Offset(int64_t bytes) { return static_cast<CuAddress>(bytes); }

  absl::Status Append(const FftStep& step, double factor, const KernelContext& context, ConcreteType* type) {
    const auto axis = static_cast<size_t>(step.axis);
    const DType complex = IsDouble(type->dtype) ? DType::kC128 : DType::kC64;
    const DType real = IsDouble(type->dtype) ? DType::kF64 : DType::kF32;
    LinesShape shape;
    shape.axis.inner = Product(absl::MakeSpan(type->shape).subspan(0, axis));
    shape.axis.lines = shape.axis.inner * Product(absl::MakeSpan(type->shape).subspan(axis + 1));
    shape.from_length = type->shape[axis];
    shape.in_length = step.kind == FftKind::kIrfft ? step.length / 2 + 1 : step.length;
    shape.out_length = step.result_size();
    shape.from = type->dtype;
    shape.in = step.kind == FftKind::kRfft ? real : complex;
    shape.out = step.kind == FftKind::kIrfft ? real : complex;
    type->shape[axis] = shape.out_length;
    type->dtype = shape.out;
    if (shape.axis.lines == 0) return absl::OkStatus();  // another axis has size 0, and a later step fills it up
    RETURN_IF_ERROR(MakeStep(shape, step, factor, context));
    const std::optional<int64_t> bytes = NumBytes(type->dtype, type->shape);
    if (!bytes.has_value()) {
      return Refuse(Refusal::kShapeOverflow, absl::StrCat("the transform along axis ", step.axis, " yields ",
                                                          ToString(type->shape), ", which is too much"));
    }
    Place(*bytes);
    return absl::OkStatus();
  }

  absl::Status MakeStep(const LinesShape& shape, const FftStep& step, double factor, const KernelContext& context) {
    const int64_t most_blocks = context.compiler->printing().num_processors * kBlocksPerProcessor;
    Step made{.shape = shape, .complex_bytes = SizeOf(IsDouble(shape.out) ? DType::kC128 : DType::kC64)};
    const bool is_dense = shape.axis.inner == 1;
    made.scales = factor != 1;
    // A transform to real numbers loses what it reads, and wants a spectrum that real numbers have.
    made.may_read_tensor =
        is_dense && shape.from_length == shape.in_length && shape.from == shape.in && !IsReal(shape.out);
    made.may_write_tensor = is_dense;
    if (!made.may_read_tensor || IsReal(shape.in)) {
      ASSIGN_OR_RETURN(made.load,
                       context.compiler->Compile(FftLoadText({.axis = shape.axis,
                                                              .from_length = shape.from_length,
                                                              .length = shape.in_length,
                                                              .real_length = IsReal(shape.out) ? step.length : 0,
                                                              .from = shape.from,
                                                              .to = shape.in},
                                                             most_blocks)));
    }
    if (!made.may_write_tensor || made.scales || IsReal(shape.out)) {
      ASSIGN_OR_RETURN(
          made.store,
          context.compiler->Compile(FftStoreText(
              {.axis = shape.axis, .length = shape.out_length, .factor = factor, .dtype = shape.out}, most_blocks)));
    }
    ASSIGN_OR_RETURN(
        made.lines,
        FftLines::Create(
            {.length = step.length, .lines = shape.axis.lines, .type = TypeOf(shape), .forward = step.forward()},
            context));
    steps_.push_back(std::move(made));
    return absl::OkStatus();
  }

  // Gives scratch to what the last step needs; the steps use it one after the other. `bytes` are its result's.
  void Place(int64_t bytes) {
    const Step& step = steps_.back();
    const LinesShape& shape = step.shape;
    const auto lines_bytes = [&](int64_t length, DType dtype) {
      return RoundUp(shape.axis.lines * length * SizeOf(dtype), kAlignment);
    };
    if (step.load != nullptr) in_bytes_ = std::max(in_bytes_, lines_bytes(shape.in_length, shape.in));
    if (step.store != nullptr) out_bytes_ = std::max(out_bytes_, lines_bytes(shape.out_length, shape.out));
    work_bytes_ = std::max(work_bytes_, RoundUp(step.lines->work_bytes(), kAlignment));
    // Of the last step's result nothing is in scratch; that of the one before is known now to lie there.
    if (steps_.size() > 1) {
      int64_t& before = tensor_bytes_[(steps_.size() - 2) % 2];
      before = std::max(before, last_bytes_);
    }
    last_bytes_ = RoundUp(bytes, kAlignment);
    int64_t at = 0;
    const auto place = [&](int64_t part_bytes) { return std::exchange(at, at + part_bytes); };
    work_at_ = place(work_bytes_);
    in_at_ = place(in_bytes_);
    out_at_ = place(out_bytes_);
    tensors_at_[0] = place(tensor_bytes_[0]);
    tensors_at_[1] = place(tensor_bytes_[1]);
    scratch_bytes_ = at;
  }

  absl::Status EnqueueStep(const Step& step, const Launch& launch, CuAddress from, CuAddress into) const {
    const auto suits = [&](CuAddress address) { return address % static_cast<CuAddress>(step.complex_bytes) == 0; };
    CuAddress in = from;
    if (!step.may_read_tensor || !suits(from)) {
      in = launch.scratch + Offset(in_at_);
      RETURN_IF_ERROR(step.load->Enqueue(launch.stream, {from, in}));
    }
    const bool writes_tensor = step.may_write_tensor && suits(into);
    const CuAddress out = writes_tensor ? into : launch.scratch + Offset(out_at_);
    RETURN_IF_ERROR(step.lines->Enqueue(launch.stream, in, out, launch.scratch + Offset(work_at_)));
    if (writes_tensor && !step.scales) return absl::OkStatus();
    return step.store->Enqueue(launch.stream, {out, into});
  }

  FftKernel() = default;

  std::vector<Step> steps_;  // constant after Make, like those below
  int64_t work_bytes_ = 0, in_bytes_ = 0, out_bytes_ = 0, last_bytes_ = 0;
  int64_t tensor_bytes_[2] = {0, 0};
  int64_t work_at_ = 0, in_at_ = 0, out_at_ = 0;
  int64_t tensors_at_[2] = {0, 0};  // results of steps that are not the last, by turns
  int64_t scratch_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeFftKernel(const BoundInstruction& instruction,
                                                      const KernelContext& context) {
  const ConcreteType &operand = instruction.operands[0], &result = instruction.results[0];
  const std::vector<FftStep> steps = FftSteps(*instruction.attrs, operand.shape);
  if (!steps.empty()) return FftKernel::Make(instruction, steps, context);
  // No axes: the operand as complex numbers.
  const int64_t elements = result.num_elements();
  return TextKernel::Make(
      FftLoadText({.axis = {}, .from_length = elements, .length = elements, .from = operand.dtype, .to = result.dtype},
                  context.compiler->printing().num_processors * kBlocksPerProcessor),
      "copy", context);
}

constexpr DTypeSet kFftDTypes = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
constexpr FamilyKernel kFftKernels[] = {{.op = "tensord.fft.v1.Fft", .dtypes = kFftDTypes, .make = &MakeFftKernel}};

}  // namespace

absl::Span<const FamilyKernel> FftKernels() { return kFftKernels; }

}  // namespace tensord::cuda
