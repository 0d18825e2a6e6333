#ifndef TENSORD_TESTS_HOSTCUDA_HOST_NVRTC_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_NVRTC_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/abi/nvrtc.h"
#include "tests/hostcuda/image_folder.h"

namespace tensord::cuda {

struct NvrtcProgramObject {
  std::string source, name, log;
  std::string image;  // as host_modules.h says
  bool is_machine_code = false;
};

namespace host {

// The compiler's options, as far as the device knows them.
struct CompileOptions {
  int architecture = 0;          // 90 for sm_90 and compute_90
  bool is_machine_code = false;  // sm_…
  bool contracts = true;         // a multiplication and an addition become one operation
  std::vector<std::string> definitions;
};

// Reads NVRTC's options. False, with words in the log, for one that is unknown or has no such value.
bool ReadOptions(int num_options, const char* const* options, CompileOptions* read, std::string* log);

// Images by source and options: the same text is compiled once in a process, and once in all processes that share the
// folder of the setting IMAGES. Thread-safe.
class Images {
 public:
  static Images& Get();

  // Compiles, or takes what is known, or promises what WaitingKernels will compile. Returns an NVRTC result.
  NvrtcResult Compile(const CompileOptions& options, NvrtcProgramObject* program);

 private:
  bool Find(const std::string& key, std::string* image);
  void Keep(const std::string& key, const std::string& image);
  // Returns the folder that the setting names.
  std::shared_ptr<const ImageFolder> Folder();

  std::mutex mutex_;
  std::map<std::string, std::string> images_;
  std::shared_ptr<const ImageFolder> folder_;
};

}  // namespace host
}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_NVRTC_H_
