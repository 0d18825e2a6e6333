#include "backends/cpu/fft/lines_kernel.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/transforms.h"

namespace tensord::cpu {
namespace {

class FftLinesKernel final : public Kernel {
 public:
  FftLinesKernel(const FftLines& lines, std::shared_ptr<const FftLaneTransform> transform)
      : lines_(lines), transform_(std::move(transform)) {}

  int64_t scratch_bytes() const override { return transform_->task_bytes(); }

  void Run(const KernelArgs& args) const override {
    FftLines lines = lines_;
    lines.in = args.operands[0];
    lines.out = args.results[0];
    transform_->Run(lines, 0, lines.inner, static_cast<char*>(args.scratch));
  }

  std::string Describe() const override {
    return absl::StrCat("fft ", lines_.in_length, " in lanes, ", lines_.inner, " lines");
  }

 private:
  const FftLines lines_;  // all but the addresses
  const std::shared_ptr<const FftLaneTransform> transform_;
};

}  // namespace

std::unique_ptr<Kernel> MakeFftLinesKernel(bool is_double, const FftLines& lines, FftTransforms& transforms) {
  return std::make_unique<FftLinesKernel>(lines, transforms.Lanes(is_double, FftForm::kComplex, lines.in_length));
}

}  // namespace tensord::cpu
