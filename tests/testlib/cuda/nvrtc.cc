#include "tests/testlib/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tensord {
namespace {

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so"};

template <typename F>
bool Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

// Programs are freed however a compilation ends.
template <typename Program>
struct ProgramOwner {
  Program program = nullptr;
  int (*destroy)(Program*) = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) destroy(&program);
  }
};

}  // namespace

const Nvrtc* Nvrtc::Get() {
  static const Nvrtc* const opened = []() -> const Nvrtc* {
    static Nvrtc nvrtc;
    return nvrtc.Open() ? &nvrtc : nullptr;
  }();
  return opened;
}

bool Nvrtc::Open() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  return library != nullptr && Find(library, "nvrtcVersion", &version_) &&
         Find(library, "nvrtcGetErrorString", &error_) && Find(library, "nvrtcCreateProgram", &create_) &&
         Find(library, "nvrtcCompileProgram", &compile_) && Find(library, "nvrtcDestroyProgram", &destroy_) &&
         Find(library, "nvrtcGetProgramLogSize", &log_size_) && Find(library, "nvrtcGetProgramLog", &log_) &&
         Find(library, "nvrtcGetPTXSize", &ptx_size_) && Find(library, "nvrtcGetPTX", &ptx_);
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  version_(&major, &minor);
  return absl::StrCat(major, ".", minor);
}

absl::StatusOr<Nvrtc::Output> Nvrtc::Run(const std::string& source, const std::vector<std::string>& options) const {
  ProgramOwner<Program> owner{.destroy = destroy_};
  if (const int rc = create_(&owner.program, source.c_str(), "fused.cu", 0, nullptr, nullptr); rc != 0) {
    return absl::InternalError(error_(rc));
  }
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int rc = compile_(owner.program, static_cast<int>(arguments.size()), arguments.data());
  size_t size = 0;
  Output output;
  if (log_size_(owner.program, &size) == 0 && size > 1) {
    output.log.resize(size);
    log_(owner.program, output.log.data());
    output.log.resize(size - 1);
  }
  if (rc != 0) return absl::InvalidArgumentError(absl::StrCat(error_(rc), "\n", output.log));
  if (const int status = ptx_size_(owner.program, &size); status != 0) return absl::InternalError(error_(status));
  output.ptx.resize(size);
  if (const int status = ptx_(owner.program, output.ptx.data()); status != 0) {
    return absl::InternalError(error_(status));
  }
  return output;
}

absl::StatusOr<std::string> Nvrtc::Compile(const std::string& source, const std::vector<std::string>& options) const {
  absl::StatusOr<Output> output = Run(source, options);
  if (!output.ok()) return output.status();
  if (!output->log.empty()) return absl::InvalidArgumentError(absl::StrCat("warnings:\n", output->log));
  return std::move(output->ptx);
}

absl::StatusOr<int> Nvrtc::Registers(const std::string& source, std::vector<std::string> options) const {
  options.push_back("--ptxas-options=-v");
  absl::StatusOr<Output> output = Run(source, options);
  if (!output.ok()) return output.status();
  int most = 0;
  for (const absl::string_view line : absl::StrSplit(output->log, '\n')) {
    if (absl::StrContains(line, "spill") && !absl::StrContains(line, "0 bytes spill stores, 0 bytes spill loads")) {
      return absl::InvalidArgumentError(line);
    }
    if (absl::StrContains(line, "warning")) return absl::InvalidArgumentError(output->log);
    constexpr absl::string_view kUsed = "Used ";
    if (const size_t at = line.find(kUsed); at != absl::string_view::npos) {
      most = std::max(most, std::atoi(line.data() + at + kUsed.size()));
    }
  }
  return most;
}

}  // namespace tensord
