#include "backends/cuda/compile/loaded_kernel.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadedKernel::Load(std::shared_ptr<Context> context,
                                                                       const std::string& image,
                                                                       const std::vector<CudaLaunch>& launches,
                                                                       bool* is_refused) {
  std::shared_ptr<LoadedKernel> kernel(new LoadedKernel(std::move(context)));
  RETURN_IF_ERROR(kernel->Open(image, launches, is_refused));
  return kernel;
}

absl::Status LoadedKernel::Open(const std::string& image, const std::vector<CudaLaunch>& launches, bool* is_refused) {
  const Driver& driver = context_->driver();
  const CuResult result = driver.cuModuleLoadData(&module_, image.data());
  if (is_refused != nullptr) *is_refused = IsRefusedImage(result);
  RETURN_IF_ERROR(context_->Check(result, "cuModuleLoadData"));
  for (const CudaLaunch& launch : launches) {
    Launch loaded{.blocks = static_cast<unsigned>(launch.blocks),
                  .threads = static_cast<unsigned>(launch.threads_per_block),
                  .shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes),
                  .arguments = launch.arguments,
                  .unless_same = launch.unless_same};
    RETURN_IF_ERROR(context_->Check(driver.cuModuleGetFunction(&loaded.function, module_, launch.entry.c_str()),
                                    "cuModuleGetFunction"));
    if (loaded.shared_bytes > 0) {
      RETURN_IF_ERROR(context_->Check(driver.cuFuncSetAttribute(loaded.function, kCuFuncMaxDynamicSharedSizeBytes,
                                                                static_cast<int>(loaded.shared_bytes)),
                                      "cuFuncSetAttribute"));
    }
    RETURN_IF_ERROR(Measure(loaded.function));
    launches_.push_back(loaded);
  }
  return absl::OkStatus();
}

absl::Status LoadedKernel::Measure(CuFunction function) {
  const Driver& driver = context_->driver();
  int registers = 0, local_bytes = 0;
  RETURN_IF_ERROR(
      context_->Check(driver.cuFuncGetAttribute(&registers, kCuFuncNumRegs, function), "cuFuncGetAttribute"));
  RETURN_IF_ERROR(
      context_->Check(driver.cuFuncGetAttribute(&local_bytes, kCuFuncLocalSizeBytes, function), "cuFuncGetAttribute"));
  registers_ = std::max(registers_, registers);
  local_bytes_ = std::max(local_bytes_, local_bytes);
  return absl::OkStatus();
}

std::string LoadedKernel::Describe() const {
  const auto threads = [](const Launch& launch) { return uint64_t{launch.blocks} * launch.threads; };
  const auto largest = std::max_element(launches_.begin(), launches_.end(),
                                        [&](const Launch& a, const Launch& b) { return threads(a) < threads(b); });
  if (largest == launches_.end()) return "no launch";
  std::string text = launches_.size() == 1 ? "1 launch" : absl::StrCat(launches_.size(), " launches, the largest");
  absl::StrAppend(&text, " of ", largest->blocks, " x ", largest->threads, " threads, ", registers_, " registers");
  if (local_bytes_ > 0) absl::StrAppend(&text, " and ", local_bytes_, " bytes of local memory a thread");
  return text;
}

LoadedKernel::~LoadedKernel() {
  if (module_ != nullptr && context_->Enter().ok()) context_->driver().cuModuleUnload(module_);
}

absl::Status LoadedKernel::Enqueue(CuStream stream, absl::Span<const CuAddress> pointers) const {
  absl::InlinedVector<void*, 16> all;
  for (const CuAddress& pointer : pointers) all.push_back(const_cast<CuAddress*>(&pointer));
  for (const Launch& launch : launches_) {
    if (launch.unless_same.has_value() && pointers[static_cast<size_t>(launch.unless_same->first)] ==
                                              pointers[static_cast<size_t>(launch.unless_same->second)]) {
      continue;
    }
    absl::InlinedVector<void*, 16> some;
    for (const int32_t position : launch.arguments) some.push_back(all[static_cast<size_t>(position)]);
    void** const arguments = launch.arguments.empty() ? all.data() : some.data();
    RETURN_IF_ERROR(
        context_->Check(context_->driver().cuLaunchKernel(launch.function, launch.blocks, 1, 1, launch.threads, 1, 1,
                                                          launch.shared_bytes, stream, arguments, nullptr),
                        "cuLaunchKernel"));
  }
  return absl::OkStatus();
}

}  // namespace tensord::cuda
