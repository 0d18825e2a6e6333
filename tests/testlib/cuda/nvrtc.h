#ifndef TENSORD_TESTS_TESTLIB_CUDA_NVRTC_H_
#define TENSORD_TESTS_TESTLIB_CUDA_NVRTC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord {

// NVIDIA's run-time compiler, opened where the machine has it: it needs neither a device nor a driver. Thread-safe.
class Nvrtc {
 public:
  // Returns null if there is none: in the loader's path, or in the CUDA toolkit's usual folder. Opened once.
  static const Nvrtc* Get();

  // Compiles to PTX, or to machine code if the options name a real architecture. A refusal of the compiler is an
  // INVALID_ARGUMENT with its log; warnings count as well.
  absl::StatusOr<std::string> Compile(const std::string& source, const std::vector<std::string>& options) const;

  // Returns the registers that the kernels of a source take on a real architecture, at most. Spills and
  // warnings are refused.
  absl::StatusOr<int> Registers(const std::string& source, std::vector<std::string> options) const;

  std::string version() const;

 private:
  Nvrtc() = default;
  bool Open();

  struct Output {
    std::string ptx;
    std::string log;
  };
  absl::StatusOr<Output> Run(const std::string& source, const std::vector<std::string>& options) const;

  using Program = struct OpaqueProgram*;
  int (*version_)(int*, int*) = nullptr;
  const char* (*error_)(int) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_CUDA_NVRTC_H_
