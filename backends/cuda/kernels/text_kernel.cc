#include "backends/cuda/kernels/text_kernel.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

absl::StatusOr<std::unique_ptr<Kernel>> TextKernel::Make(const KernelText& text, absl::string_view way,
                                                         const KernelContext& context) {
  if (text.launches.empty()) return std::make_unique<NothingToDo>();
  ASSIGN_OR_RETURN(std::shared_ptr<const LoadedKernel> loaded, context.compiler->Compile(text));
  std::string full = text.spread.empty() ? std::string(way) : absl::StrCat(way, " ", text.spread);
  return std::unique_ptr<Kernel>(new TextKernel(std::move(loaded), text, std::move(full)));
}

absl::Status TextKernel::Enqueue(const Launch& launch) const {
  absl::InlinedVector<CuAddress, 16> pointers(launch.operands.begin(), launch.operands.end());
  pointers.insert(pointers.end(), launch.results.begin(), launch.results.end());
  if (scratch_bytes_ > 0) pointers.push_back(launch.scratch);
  return loaded_->Enqueue(launch.stream, pointers, launch.pace);
}

std::string TextKernel::Describe() const { return absl::StrCat(way_, ", ", loaded_->Describe()); }

}  // namespace tensord::cuda
