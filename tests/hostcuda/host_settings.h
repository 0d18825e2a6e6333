#ifndef TENSORD_TESTS_HOSTCUDA_HOST_SETTINGS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_SETTINGS_H_

#include <map>
#include <mutex>
#include <string>

namespace tensord::cuda::host {

// The settings of the host CUDA device (README.md): HOST_CUDA_… of the environment, unless a test has set them.
// Thread-safe.
class Settings {
 public:
  static Settings& Get();

  // Returns a setting's text; empty if nobody has set it.
  std::string Text(const char* name);
  long Number(const char* name, long otherwise);
  bool IsOn(const char* name) { return Number(name, 0) != 0; }
  void Set(const char* name, const char* value);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_SETTINGS_H_
