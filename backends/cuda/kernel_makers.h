#ifndef TENSORD_BACKENDS_CUDA_KERNEL_MAKERS_H_
#define TENSORD_BACKENDS_CUDA_KERNEL_MAKERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "backends/cuda/kernels/kernel.h"
#include "engine/exec/backend/parallel_for.h"

namespace tensord::cuda {

// Makes kernels by their numbers, in any order. Compiling one takes long, so that other threads take a part; what they
// allocate for it counts as the caller's.
class KernelMakers {
 public:
  using Made = absl::StatusOr<std::unique_ptr<Kernel>>;

  using Make = absl::FunctionRef<Made(size_t)>;

  // Makes `count`: over `parallel`, or on this thread where that is empty. Returns them up to the first refusal; those
  // behind it may not be made, and count for nothing. Breaks off as CheckStopped says.
  static absl::StatusOr<std::vector<Made>> MakeAll(size_t count, Make make, const ParallelFor& parallel);

 private:
  explicit KernelMakers(size_t count) : made_(count), first_bad_(count) {}
  void MakeOne(size_t i, Make make);

  const std::thread::id caller_ = std::this_thread::get_id();
  std::vector<Made> made_;  // an element is of the thread that makes it
  std::atomic<size_t> first_bad_;
  std::atomic<int64_t> bytes_ = 0;  // of other threads
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNEL_MAKERS_H_
