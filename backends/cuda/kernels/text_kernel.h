#ifndef TENSORD_BACKENDS_CUDA_KERNELS_TEXT_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_TEXT_KERNEL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// A kernel that is CUDA C++ of ours alone.
class TextKernel final : public Kernel {
 public:
  // Compiles a text; NothingToDo for one without launches. `way` says how it computes, in a word.
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelText& text, absl::string_view way,
                                                      const KernelContext& context);

  absl::Status Enqueue(const Launch& launch) const override;
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  bool varies() const override { return varies_; }
  std::string Describe() const override;

 private:
  TextKernel(std::shared_ptr<const LoadedKernel> loaded, const KernelText& text, std::string way)
      : loaded_(std::move(loaded)), scratch_bytes_(text.scratch_bytes), varies_(text.varies), way_(std::move(way)) {}

  const std::shared_ptr<const LoadedKernel> loaded_;
  const int64_t scratch_bytes_;
  const bool varies_;
  const std::string way_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_TEXT_KERNEL_H_
