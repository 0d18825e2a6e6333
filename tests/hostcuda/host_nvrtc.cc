#include "tests/hostcuda/host_nvrtc.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <regex>

#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_compiler.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_modules.h"
#include "tests/hostcuda/host_settings.h"
#include "tests/hostcuda/waiting_kernels.h"

namespace tensord::cuda {
namespace host {
namespace {

Handles<NvrtcProgramObject>& Programs() {
  static auto* const programs = new Handles<NvrtcProgramObject>;
  return *programs;
}

// Those that NVRTC 13.0 knows.
constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

bool StartsWith(const std::string& text, const char* beginning) { return text.rfind(beginning, 0) == 0; }

// Returns all that decides what the compiler makes of a source: also what is not in the command's words.
std::string KeyOf(const std::string& source, const std::vector<std::string>& command, int architecture) {
  static const std::string headers = [] {
    std::string text;
    for (const char* name : {"host_services", "host_kernel", "host_kernel_checks"}) {
      text += ReadFile(std::string(TENSORD_HOST_CUDA_ROOT "/tests/hostcuda/") + name + ".h");
    }
    return text;
  }();
  std::string key = std::to_string(architecture) + " ";
  for (const std::string& word : command) key += word + " ";
  struct stat compiler = {};
  if (stat(command[0].c_str(), &compiler) == 0) {
    key += std::to_string(compiler.st_size) + " " + std::to_string(compiler.st_mtime) + " ";
  }
  return key + std::to_string(std::hash<std::string>()(headers)) + "\n" + source;
}

bool Waits(const std::string& source) {
  for (const char* word : {"__syncthreads", "__syncwarp", "__shfl", "__ballot", "__any_sync", "__all_sync"}) {
    if (source.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool ReadOptions(int num_options, const char* const* options, CompileOptions* read, std::string* log) {
  for (int i = 0; i < num_options; ++i) {
    const std::string option = options[i];
    std::smatch match;
    static const std::regex architecture("(?:--gpu-architecture|-arch)=(sm|compute)_([0-9]+)[af]?");
    if (std::regex_match(option, match, architecture)) {
      read->is_machine_code = match[1] == "sm";
      read->architecture = std::atoi(match[2].str().c_str());
    } else if (option == "--fmad=false" || option == "-fmad=false") {
      read->contracts = false;
    } else if (StartsWith(option, "-D")) {
      read->definitions.push_back(option);
    } else if (StartsWith(option, "--define-macro=")) {
      read->definitions.push_back("-D" + option.substr(std::strlen("--define-macro=")));
    } else if (option != "--std=c++17" && option != "--std=c++20" && !StartsWith(option, "--ptxas-options=") &&
               !StartsWith(option, "--diag-suppress=") && option != "--device-int128") {
      *log += "nvrtc: error: invalid value for option: " + option + "\n";
      return false;
    }
  }
  if (std::ranges::count(kArchitectures, read->architecture) > 0) return true;
  *log += "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
  return false;
}

Images& Images::Get() {
  static Images* const images = new Images;
  return *images;
}

bool Images::Find(const std::string& key, std::string* image) {
  std::lock_guard lock(mutex_);
  const auto known = images_.find(key);
  if (known == images_.end()) return false;
  *image = known->second;
  return true;
}

void Images::Keep(const std::string& key, const std::string& image) {
  std::lock_guard lock(mutex_);
  images_[key] = image;
}

std::shared_ptr<const ImageFolder> Images::Folder() {
  std::string path = Settings::Get().Text("IMAGES");
  if (path.empty()) path = TENSORD_HOST_CUDA_IMAGES;
  if (path == "none") path.clear();
  std::lock_guard lock(mutex_);
  if (folder_ == nullptr || folder_->path() != path) folder_ = std::make_shared<const ImageFolder>(path);
  return folder_;
}

NvrtcResult Images::Compile(const CompileOptions& options, NvrtcProgramObject* program) {
  const bool is_checked = Settings::Get().IsOn("CHECK");
  if (options.contracts) {
    program->log += "hostcuda: --fmad=false is missing: NVIDIA's compiler would contract what this one does not\n";
    return kNvrtcInvalidOption;
  }
  const HostText text = HostTextOf(program->source, program->name);
  const std::string source = LibrarySource({&text}, is_checked);
  const std::vector<std::string> command = CompilerCommand(options.definitions, is_checked);
  const std::string key = KeyOf(source, command, options.architecture);
  program->is_machine_code = options.is_machine_code;
  if (Find(key, &program->image)) return kNvrtcSuccess;
  const std::shared_ptr<const ImageFolder> kept = Folder();
  if (kept->Read(key, &program->image)) {
    Keep(key, program->image);
    return kNvrtcSuccess;
  }
  const bool is_promised = Settings::Get().IsOn("TOGETHER");
  std::string body;
  if (is_promised) {
    WaitingKernels::Get().Add(key, {text, command, is_checked});
    body = key;
  } else if (!CompileLibrary(command, source, &body, &program->log)) {
    return kNvrtcCompilation;
  }
  ImageHeader header = {{}, options.architecture, Waits(program->source), is_checked, 0, is_promised, body.size()};
  std::memcpy(header.magic, kImageMagic, sizeof(header.magic));
  program->image = std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + body;
  Keep(key, program->image);
  if (!is_promised) kept->Write(key, program->image);
  return kNvrtcSuccess;
}

}  // namespace host

using host::Calls;
using host::Programs;

// Begins a call on a program.
#define HOST_ENTER_PROGRAM(handle, program)                                                                 \
  if (const int injected = Calls::Get().Count(__func__, kNvrtcOutOfMemory); injected != 0) return injected; \
  const std::shared_ptr<NvrtcProgramObject> program = Programs().Find(handle);                              \
  if (program == nullptr) return kNvrtcInvalidProgram

HOST_CUDA_EXPORT long hostCudaCompilations() { return host::Compilations(); }

HOST_CUDA_EXPORT NvrtcResult nvrtcVersion(int* major, int* minor) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcOutOfMemory); injected != 0) return injected;
  const long version = host::Settings::Get().Number("NVRTC_VERSION", 13000);
  *major = static_cast<int>(version / 1000);
  *minor = static_cast<int>(version % 1000 / 10);
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetNumSupportedArchs(int* number) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcOutOfMemory); injected != 0) return injected;
  *number = static_cast<int>(std::size(host::kArchitectures));
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcOutOfMemory); injected != 0) return injected;
  std::ranges::copy(host::kArchitectures, architectures);
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT const char* nvrtcGetErrorString(NvrtcResult result) {
  switch (result) {
    case kNvrtcSuccess:
      return "NVRTC_SUCCESS";
    case kNvrtcOutOfMemory:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case kNvrtcInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kNvrtcInvalidProgram:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case kNvrtcInvalidOption:
      return "NVRTC_ERROR_INVALID_OPTION";
    case kNvrtcCompilation:
      return "NVRTC_ERROR_COMPILATION";
    default:
      return "NVRTC_ERROR unknown";
  }
}

HOST_CUDA_EXPORT NvrtcResult nvrtcCreateProgram(NvrtcProgram* program, const char* source, const char* name,
                                                int num_headers, const char* const*, const char* const*) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcOutOfMemory); injected != 0) return injected;
  // Our kernels include nothing.
  if (program == nullptr || source == nullptr || num_headers != 0) return kNvrtcInvalidInput;
  auto made = std::make_shared<NvrtcProgramObject>();
  made->source = source;
  made->name = name == nullptr ? "default_program" : name;
  *program = Programs().Add(std::move(made));
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcCompileProgram(NvrtcProgram handle, int num_options, const char* const* options) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcCompilation); injected != 0) return injected;
  const std::shared_ptr<NvrtcProgramObject> program = Programs().Find(handle);
  if (program == nullptr) return kNvrtcInvalidProgram;
  program->log.clear();
  host::CompileOptions read;
  if (!host::ReadOptions(num_options, options, &read, &program->log)) return kNvrtcInvalidOption;
  return host::Images::Get().Compile(read, program.get());
}

HOST_CUDA_EXPORT NvrtcResult nvrtcDestroyProgram(NvrtcProgram* program) {
  if (const int injected = Calls::Get().Count(__func__, kNvrtcInvalidProgram); injected != 0) return injected;
  if (program == nullptr || Programs().Take(*program) == nullptr) return kNvrtcInvalidProgram;
  *program = nullptr;
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetProgramLogSize(NvrtcProgram handle, size_t* bytes) {
  HOST_ENTER_PROGRAM(handle, program);
  *bytes = program->log.size() + 1;
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetProgramLog(NvrtcProgram handle, char* log) {
  HOST_ENTER_PROGRAM(handle, program);
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return kNvrtcSuccess;
}

// PTX is there whatever the options name; machine code only for a real architecture.
HOST_CUDA_EXPORT NvrtcResult nvrtcGetPTXSize(NvrtcProgram handle, size_t* bytes) {
  HOST_ENTER_PROGRAM(handle, program);
  if (program->image.empty()) return kNvrtcInvalidProgram;
  *bytes = program->image.size();
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetPTX(NvrtcProgram handle, char* ptx) {
  HOST_ENTER_PROGRAM(handle, program);
  if (program->image.empty()) return kNvrtcInvalidProgram;
  std::memcpy(ptx, program->image.data(), program->image.size());
  host::ImageHeader header;
  std::memcpy(&header, ptx, sizeof(header));
  header.is_text = 1;
  std::memcpy(ptx, &header, sizeof(header));
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetCUBINSize(NvrtcProgram handle, size_t* bytes) {
  HOST_ENTER_PROGRAM(handle, program);
  if (program->image.empty()) return kNvrtcInvalidProgram;
  *bytes = program->is_machine_code ? program->image.size() : 0;
  return kNvrtcSuccess;
}

HOST_CUDA_EXPORT NvrtcResult nvrtcGetCUBIN(NvrtcProgram handle, char* cubin) {
  HOST_ENTER_PROGRAM(handle, program);
  if (program->image.empty() || !program->is_machine_code) return kNvrtcInvalidProgram;
  std::memcpy(cubin, program->image.data(), program->image.size());
  return kNvrtcSuccess;
}

}  // namespace tensord::cuda
