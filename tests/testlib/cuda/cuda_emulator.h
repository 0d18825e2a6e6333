#ifndef TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATOR_H_
#define TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/tensor/literal.h"

namespace tensord {

// Printed kernels that the C++ compiler has made a library of, to run them on the processor: what they compute can be
// tested without a device. Thread-compatible; one kernel of a process runs at a time.
class CudaEmulator {
 public:
  // Compiles all of them, on two processors; their entries have different names. UNAVAILABLE if there is no such
  // compiler, INVALID_ARGUMENT with the compiler's words where it refuses the text. Writes to a folder of its own in
  // `folder`.
  static absl::StatusOr<CudaEmulator> Build(const std::vector<KernelText>& kernels, const std::string& compiler,
                                            const std::string& folder);

  // Runs all launches of a kernel. The operands' bytes are copied to where they are aligned as CUDA's allocator does.
  // The results have their types already; INTERNAL if the threads of a block do not meet at barriers, or where a
  // kernel writes past a result.
  absl::Status Run(size_t kernel, const std::vector<Literal>& operands, std::vector<Literal>* results) const;

 private:
  using LaunchFunction = const char* (*)(void**, unsigned, unsigned);
  struct Entries {
    KernelText kernel;
    std::vector<LaunchFunction> launches;
  };
  std::vector<std::shared_ptr<void>> libraries_;
  std::vector<Entries> kernels_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATOR_H_
