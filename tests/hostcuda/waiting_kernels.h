#ifndef TENSORD_TESTS_HOSTCUDA_WAITING_KERNELS_H_
#define TENSORD_TESTS_HOSTCUDA_WAITING_KERNELS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/hostcuda/host_compiler.h"

namespace tensord::cuda::host {

// Kernels that NVRTC was asked for under the setting TOGETHER. The first launch of one of them compiles all that wait,
// in one call of the host's compiler: most of the time for a small kernel is the call's. Thread-safe.
class WaitingKernels {
 public:
  static WaitingKernels& Get();

  struct Kernel {
    HostText text;
    std::vector<std::string> command;
    bool is_checked = false;
  };
  void Add(const std::string& key, Kernel kernel);

  // A library that has a kernel's text at `place`. Null where the compiler refuses the text, as standard error says.
  struct Made {
    std::shared_ptr<const std::string> library;
    size_t place = 0;
  };
  Made Make(const std::string& key);

 private:
  // Compiles kernels with one command; if it refuses them, each alone.
  void CompileLocked(const std::vector<std::string>& keys);

  std::mutex mutex_;
  std::map<std::string, Kernel> waiting_;
  std::map<std::string, Made> made_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_WAITING_KERNELS_H_
