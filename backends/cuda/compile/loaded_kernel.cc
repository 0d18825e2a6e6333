#include "backends/cuda/compile/loaded_kernel.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/rounding.h"
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
                  .blocks_of_part = static_cast<unsigned>(launch.blocks_of_part()),
                  .threads = static_cast<unsigned>(launch.threads_per_block),
                  .shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes),
                  .arguments = launch.arguments,
                  .numbers = launch.numbers,
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
    parts_ += CeilDiv(launch.blocks, launch.blocks_of_part());
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
  const auto threads = [](const Launch& launch) { return uint64_t{launch.blocks_of_part} * launch.threads; };
  const auto largest = std::max_element(launches_.begin(), launches_.end(),
                                        [&](const Launch& a, const Launch& b) { return threads(a) < threads(b); });
  if (largest == launches_.end()) return "no launch";
  std::string text = parts_ == 1 ? "1 launch" : absl::StrCat(parts_, " launches, the largest");
  absl::StrAppend(&text, " of ", largest->blocks_of_part, " x ", largest->threads, " threads, ", registers_,
                  " registers");
  if (local_bytes_ > 0) absl::StrAppend(&text, " and ", local_bytes_, " bytes of local memory a thread");
  return text;
}

LoadedKernel::~LoadedKernel() {
  if (module_ != nullptr && context_->Enter().ok()) context_->driver().cuModuleUnload(module_);
}

absl::Status LoadedKernel::Enqueue(CuStream stream, absl::Span<const CuAddress> pointers, Pace* pace) const {
  int64_t part = 0;
  for (const Launch& launch : launches_) {
    if (launch.unless_same.has_value() && pointers[static_cast<size_t>(launch.unless_same->first)] ==
                                              pointers[static_cast<size_t>(launch.unless_same->second)]) {
      continue;
    }
    uint64_t first_block = 0;
    absl::InlinedVector<void*, 16> arguments;
    if (launch.blocks_of_part < launch.blocks) arguments.push_back(&first_block);
    const auto add = [&](const CuAddress& pointer) { arguments.push_back(const_cast<CuAddress*>(&pointer)); };
    for (const int32_t position : launch.arguments) add(pointers[static_cast<size_t>(position)]);
    if (launch.arguments.empty()) std::for_each(pointers.begin(), pointers.end(), add);
    if (!launch.numbers.empty()) arguments.push_back(const_cast<int64_t*>(launch.numbers.data()));
    for (; first_block < launch.blocks; first_block += launch.blocks_of_part) {
      if (is_cut() && pace != nullptr) RETURN_IF_ERROR(pace->BeforePart(part++, parts_));
      const auto left = static_cast<unsigned>(launch.blocks - first_block);
      RETURN_IF_ERROR(EnqueuePart(launch, std::min(launch.blocks_of_part, left), stream, arguments.data()));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadedKernel::EnqueuePart(const Launch& launch, unsigned blocks, CuStream stream, void** arguments) const {
  return context_->Check(context_->driver().cuLaunchKernel(launch.function, blocks, 1, 1, launch.threads, 1, 1,
                                                           launch.shared_bytes, stream, arguments, nullptr),
                         "cuLaunchKernel");
}

}  // namespace tensord::cuda
