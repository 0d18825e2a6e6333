#ifndef TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_
#define TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/tensor/literal.h"

namespace tensord {

struct CudaDriver;

// Printed kernels that NVRTC and the driver have compiled for the machine's first device, to run them there. Needs no
// CUDA to build: both libraries are opened where the machine has them. Thread-compatible.
class CudaDevice {
 public:
  // Compiles all of them. UNAVAILABLE if there is no driver, no device or no NVRTC, INVALID_ARGUMENT with the
  // compiler's words where it refuses the text.
  static absl::StatusOr<CudaDevice> Build(const std::vector<KernelText>& kernels);

  // Runs all launches of a kernel on memory of the device, of which nothing was cleared. The results have their types
  // already; INTERNAL if the device reports an error, or where a kernel writes past a result.
  absl::Status Run(size_t kernel, const std::vector<Literal>& operands, std::vector<Literal>* results) const;

 private:
  struct Entries {
    KernelText kernel;
    std::shared_ptr<void> module;
    std::vector<void*> functions;
  };
  const CudaDriver* driver_ = nullptr;
  std::vector<Entries> kernels_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_
