#ifndef TENSORD_BACKENDS_CUDA_COMPILE_LOADED_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_COMPILE_LOADED_KERNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/pace.h"

namespace tensord::cuda {

// A kernel's machine code on a device, with the launches that it is made of. Immutable, so thread-safe. No launch of it
// may be on its way when it goes.
class LoadedKernel {
 public:
  // Loads an image that has the entries of the launches. The calling thread has entered the context. `is_refused` tells
  // whether the driver takes the image for no code of its own.
  static absl::StatusOr<std::shared_ptr<const LoadedKernel>> Load(std::shared_ptr<Context> context,
                                                                  const std::string& image,
                                                                  const std::vector<CudaLaunch>& launches,
                                                                  bool* is_refused = nullptr);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  // Enqueues the launches; each takes of these pointers those that it names. Asks the pace before each part of a
  // launch, if some launch has several; null: nothing waits.
  absl::Status Enqueue(CuStream stream, absl::Span<const CuAddress> pointers, Pace* pace = nullptr) const;
  // Returns the parts before which Enqueue asks the pace; 0: no launch has several, and it asks for none.
  int64_t num_parts() const { return is_cut() ? parts_ : 0; }
  // Says for people how it is launched: "2 launches, the largest of 528 x 256 threads, 40 registers".
  std::string Describe() const;

 private:
  struct Launch {
    CuFunction function = nullptr;
    unsigned blocks = 1;          // of all parts
    unsigned blocks_of_part = 1;  // the last one has what is left
    unsigned threads = 1;
    unsigned shared_bytes = 0;
    std::vector<int32_t> arguments;
    std::vector<int64_t> numbers;
    std::optional<std::pair<int32_t, int32_t>> unless_same;
  };

  explicit LoadedKernel(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status Open(const std::string& image, const std::vector<CudaLaunch>& launches, bool* is_refused);
  absl::Status Measure(CuFunction function);
  bool is_cut() const { return parts_ > static_cast<int64_t>(launches_.size()); }
  absl::Status EnqueuePart(const Launch& launch, unsigned blocks, CuStream stream, void** arguments) const;

  const std::shared_ptr<Context> context_;
  CuModule module_ = nullptr;     // constant after Load
  std::vector<Launch> launches_;  // constant after Load
  int64_t parts_ = 0;             // of all launches; likewise
  int registers_ = 0;             // that a thread takes, of the launch that takes most; likewise
  int local_bytes_ = 0;           // memory of a thread for what does not fit into them; likewise
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_COMPILE_LOADED_KERNEL_H_
