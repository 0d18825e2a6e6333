#include "backends/cpu/fft/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/fft/line_step.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/families/fft/fft_steps.h"

namespace tensord::cpu {
namespace {

bool IsDouble(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128; }
bool IsReal(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

int64_t Product(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}

// Transforms the axes one after the other. Steps go into the result as soon as their output is as large as it. Earlier
// steps go into scratch, by turns into one of two buffers.
class FftKernel final : public Kernel {
 public:
  enum class Place : uint8_t { kOperand, kResult, kFirst, kSecond };
  struct Step {
    std::unique_ptr<const FftLineStep> lines;
    Place from;
    Place into;
  };

  FftKernel(std::vector<Step> steps, int64_t buffer_bytes)
      : steps_(std::move(steps)), buffer_bytes_(RoundUp(buffer_bytes, 64)) {
    for (const Step& step : steps_) {
      step_bytes_ = std::max(step_bytes_, step.lines->scratch_bytes());
      for (Place place : {step.from, step.into}) {
        if (place == Place::kFirst) buffers_ = std::max(buffers_, 1);
        if (place == Place::kSecond) buffers_ = 2;
      }
    }
  }

  int64_t scratch_bytes() const override { return buffers_ * buffer_bytes_ + step_bytes_; }

  void Run(const KernelArgs& args) const override {
    char* const scratch = static_cast<char*>(args.scratch);
    const auto address = [&](Place place) -> void* {
      if (place == Place::kResult) return args.results[0];
      return place == Place::kFirst ? scratch : scratch + buffer_bytes_;
    };
    for (const Step& step : steps_) {
      const void* const from = step.from == Place::kOperand ? args.operands[0] : address(step.from);
      step.lines->Run(from, address(step.into), scratch + buffers_ * buffer_bytes_, args.pool);
    }
  }

  std::string Describe() const override {
    return absl::StrCat("fft ", absl::StrJoin(steps_, ", then ", [](std::string* out, const Step& step) {
                          absl::StrAppend(out, step.lines->Describe());
                        }));
  }

 private:
  const std::vector<Step> steps_;
  const int64_t buffer_bytes_;
  int buffers_ = 0;
  int64_t step_bytes_ = 0;
};

// No axes: the operand as complex numbers.
template <typename T>
class ComplexCopy final : public Kernel {
 public:
  ComplexCopy(int64_t elements, bool from_real) : elements_(elements), from_real_(from_real) {}

  void Run(const KernelArgs& args) const override {
    const T* const from = static_cast<const T*>(args.operands[0]);
    T* const into = static_cast<T*>(args.results[0]);
    args.pool->ParallelForBlocks(elements_, 1 << 15, [&](int64_t begin, int64_t end) {
      if (!from_real_) {
        std::memcpy(into + 2 * begin, from + 2 * begin, static_cast<size_t>(end - begin) * 2 * sizeof(T));
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        into[2 * i] = from[i];
        into[2 * i + 1] = 0;
      }
    });
  }

 private:
  const int64_t elements_;
  const bool from_real_;
};

FftForm FormOf(FftKind kind, bool in_is_real) {
  if (kind == FftKind::kRfft) return FftForm::kRealToHalf;
  if (kind == FftKind::kIrfft) return FftForm::kHalfToReal;
  return in_is_real ? FftForm::kRealToFull : FftForm::kComplex;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFftKernel(const BoundInstruction& instruction,
                                                      const FamilyContext& context) {
  const ConcreteType &operand = instruction.operands[0], &result = instruction.results[0];
  if (result.num_elements() == 0) return std::make_unique<NothingToDo>();
  const std::vector<FftStep> steps = FftSteps(*instruction.attrs, operand.shape);
  const bool is_double = IsDouble(operand.dtype);
  if (steps.empty()) {
    const bool from_real = IsReal(operand.dtype);
    if (is_double) return std::make_unique<ComplexCopy<double>>(result.num_elements(), from_real);
    return std::make_unique<ComplexCopy<float>>(result.num_elements(), from_real);
  }

  std::vector<FftKernel::Step> made;
  ConcreteType type = operand;
  FftKernel::Place place = FftKernel::Place::kOperand;
  int64_t buffer_bytes = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const FftStep& step = steps[i];
    const size_t axis = static_cast<size_t>(step.axis);
    const bool in_is_real = IsReal(type.dtype);
    FftLineTask task{.is_double = is_double, .form = FormOf(step.kind, in_is_real), .length = step.length};
    task.lines = {.inner = Product(absl::MakeSpan(type.shape).subspan(0, axis)),
                  .in_length = type.shape[axis],
                  .out_length = step.result_size(),
                  .real_in = in_is_real && task.form == FftForm::kHalfToReal,
                  .forward = step.forward(),
                  .scale = FftScale(*instruction.attrs, step)};
    task.num_lines = task.lines.inner * Product(absl::MakeSpan(type.shape).subspan(axis + 1));
    type.shape[axis] = step.result_size();
    type.dtype = step.kind == FftKind::kIrfft ? result.dtype : is_double ? DType::kC128 : DType::kC64;
    const std::optional<int64_t> bytes = NumBytes(type.dtype, type.shape);
    if (!bytes.has_value()) {
      return Refuse(Refusal::kShapeOverflow, absl::StrCat("the transform along axis ", step.axis, " yields ",
                                                          ToString(type.shape), ", which is too much"));
    }
    FftKernel::Place into = FftKernel::Place::kResult;
    if (!(type == result)) {
      into = place == FftKernel::Place::kFirst ? FftKernel::Place::kSecond : FftKernel::Place::kFirst;
      buffer_bytes = std::max(buffer_bytes, *bytes);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<const FftLineStep> lines, FftLineStep::Create(task, *context.fft));
    made.push_back({.lines = std::move(lines), .from = place, .into = into});
    place = into;
  }
  return std::make_unique<FftKernel>(std::move(made), buffer_bytes);
}

constexpr FamilyKernel kFftKernels[] = {{.op = "tensord.fft.v1.Fft", .make = &MakeFftKernel}};

}  // namespace

absl::Span<const FamilyKernel> FftKernels() { return kFftKernels; }

bool IsFft(const OpDef& op) { return op.op_class == OpClass::kExtension && op.name == kFftKernels[0].op; }

bool KeepsSizes(const BoundInstruction& instruction) {
  if (!IsFft(*instruction.op) || instruction.operands[0].shape != instruction.results[0].shape) return false;
  const FftKind kind = static_cast<FftKind>(instruction.attrs->Int("kind"));
  return kind == FftKind::kFft || kind == FftKind::kIfft;
}

}  // namespace tensord::cpu
