#ifndef TENSORD_BACKENDS_CUDA_COMPILE_KERNEL_COMPILER_H_
#define TENSORD_BACKENDS_CUDA_COMPILE_KERNEL_COMPILER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/printer.h"
#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/compile/loaded_kernel.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// Compiles kernels for one device, and keeps each for as long as somebody has it: equal texts with equal launches are
// one kernel. Their machine code is kept longer, in a store. Thread-safe; threads compile at once. NVRTC's table must
// outlive it.
class KernelCompiler {
 public:
  // The calling thread has entered the context.
  static absl::StatusOr<std::unique_ptr<KernelCompiler>> Create(std::shared_ptr<Context> context, const Nvrtc* nvrtc,
                                                                std::shared_ptr<CubinStore> cubins);

  // Returns what the printer may assume of the device, and of pointers to tensors: these may be views, and so have the
  // alignment of an element only.
  const CudaOptions& printing() const { return printing_; }

  // Returns the device's context, for objects of libraries that go with a kernel.
  const std::shared_ptr<Context>& context() const { return context_; }

  // Compiles and loads a kernel that has something to compute. The calling thread has entered the context. INTERNAL
  // with the compiler's log for a text that it refuses; UNSUPPORTED_ON_DEVICE for a device that is older than all that
  // NVRTC knows; OUT_OF_MEMORY.
  absl::StatusOr<std::shared_ptr<const LoadedKernel>> Compile(const KernelText& kernel);

 private:
  static constexpr size_t kFewKernels = 64;

  KernelCompiler(std::shared_ptr<Context> context, const Nvrtc* nvrtc, std::shared_ptr<CubinStore> cubins)
      : context_(std::move(context)), nvrtc_(nvrtc), cubins_(std::move(cubins)) {}
  absl::Status Describe();
  // Chooses machine code of the device, 90 for example; if NVRTC does not know it, PTX of the newest one that both
  // know.
  absl::Status ChooseArchitecture(int device);
  std::shared_ptr<const LoadedKernel> Find(const Fingerprint& key);
  // Keeps a kernel, unless another thread was quicker; returns the one that is kept.
  std::shared_ptr<const LoadedKernel> Keep(const Fingerprint& key, std::shared_ptr<const LoadedKernel> kernel);
  absl::StatusOr<std::string> ImageOf(const std::string& source) const;

  const std::shared_ptr<Context> context_;
  const Nvrtc* const nvrtc_;
  const std::shared_ptr<CubinStore> cubins_;
  std::string version_;       // "nvrtc 13.0"; constant after Create, like the next four
  std::string build_;         // with what tells it from others of that version
  std::string architecture_;  // "--gpu-architecture=sm_90"
  bool is_ptx_ = false;
  CudaOptions printing_;
  Mutex mutex_;
  absl::flat_hash_map<Fingerprint, std::weak_ptr<const LoadedKernel>> kernels_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kFewKernels;  // so many kernels that those that are gone are looked for
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_COMPILE_KERNEL_COMPILER_H_
