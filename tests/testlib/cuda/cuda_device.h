#ifndef TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_
#define TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/codegen/printer.h"
#include "backends/cuda/libraries/library_paths.h"
#include "engine/tensor/literal.h"

namespace tensord {

// Printed kernels that NVRTC and the driver have compiled for the first device of some libraries, to run them there: of
// the machine's GPU, or of the host CUDA device (tests/hostcuda). Thread-compatible.
class CudaDevice {
 public:
  // Compiles all of them, two at a time. UNAVAILABLE if there is no driver, no device or no NVRTC, INVALID_ARGUMENT
  // with the compiler's words where it refuses the text.
  static absl::StatusOr<CudaDevice> Build(const cuda::LibraryPaths& paths, const std::vector<CudaKernel>& kernels);

  // Runs all launches of a kernel on memory of the device, of which nothing was cleared. The results have their types
  // already; INTERNAL or DATA_LOSS if the device reports an error, or where a kernel writes past an argument.
  absl::Status Run(size_t kernel, const std::vector<Literal>& operands, std::vector<Literal>* results) const;

 private:
  struct Opened;
  struct Entries {
    CudaKernel kernel;
    std::shared_ptr<void> module;
    std::vector<cuda::CuFunction> functions;
  };
  absl::Status Load(const CudaKernel& kernel, const std::string& image);

  std::shared_ptr<const Opened> opened_;
  std::vector<Entries> kernels_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_CUDA_CUDA_DEVICE_H_
