#include "tests/testlib/cuda/cuda_device.h"

#include <cstring>
#include <future>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/libraries.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"

namespace tensord {

// The libraries, the first device's primary context and a stream.
struct CudaDevice::Opened {
  std::unique_ptr<cuda::Libraries> libraries;
  const cuda::Nvrtc* nvrtc = nullptr;
  std::string architecture;  // compute_90, say
  bool is_retained = false;
  cuda::CuStream stream = nullptr;

  const cuda::Driver& driver() const { return libraries->driver(); }
  absl::Status Check(cuda::CuResult result, absl::string_view function) const {
    return cuda::StatusOf(driver(), result, function);
  }
  absl::Status Open(const cuda::LibraryPaths& paths);
  ~Opened() {
    if (stream != nullptr) driver().cuStreamDestroy_v2(stream);
    if (is_retained) driver().cuDevicePrimaryCtxRelease_v2(0);
  }
};

absl::Status CudaDevice::Opened::Open(const cuda::LibraryPaths& paths) {
  ASSIGN_OR_RETURN(libraries, cuda::Libraries::Open(paths));
  const absl::StatusOr<const cuda::Nvrtc*> found = libraries->nvrtc();
  if (!found.ok()) return absl::UnavailableError(found.status().message());
  nvrtc = *found;
  const cuda::Driver& d = driver();
  int major = 0, minor = 0;
  cuda::CuContext context = nullptr;
  RETURN_IF_ERROR(Check(d.cuDeviceGetAttribute(&major, cuda::kCuComputeCapabilityMajor, 0), "cuDeviceGetAttribute"));
  RETURN_IF_ERROR(Check(d.cuDeviceGetAttribute(&minor, cuda::kCuComputeCapabilityMinor, 0), "cuDeviceGetAttribute"));
  architecture = absl::StrCat("compute_", major, minor);
  RETURN_IF_ERROR(Check(d.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain"));
  is_retained = true;
  RETURN_IF_ERROR(Check(d.cuCtxSetCurrent(context), "cuCtxSetCurrent"));
  return Check(d.cuStreamCreate(&stream, cuda::kCuStreamNonBlocking), "cuStreamCreate");
}

namespace {

constexpr size_t kGuardBytes = 256;
constexpr char kGuard = 0x5a;

// Compiles to PTX; warnings count as errors.
absl::StatusOr<std::string> Compile(const cuda::Nvrtc& nvrtc, const std::string& source,
                                    const std::string& architecture) {
  cuda::NvrtcProgram program = nullptr;
  RETURN_IF_ERROR(
      cuda::StatusOfNvrtc(nvrtc, nvrtc.nvrtcCreateProgram(&program, source.c_str(), "fused.cu", 0, nullptr, nullptr),
                          "nvrtcCreateProgram"));
  const std::shared_ptr<void> owner(program, [&nvrtc](void* held) {
    auto mine = static_cast<cuda::NvrtcProgram>(held);
    nvrtc.nvrtcDestroyProgram(&mine);
  });
  const std::string gpu = absl::StrCat("--gpu-architecture=", architecture);
  std::vector<const char*> options = {gpu.c_str()};
  for (absl::string_view option : kCudaCompileOptions) options.push_back(option.data());
  options.push_back("--diag-suppress=177");  // random programs have values that nothing reads
  const cuda::NvrtcResult result = nvrtc.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  size_t bytes = 0;
  std::string log;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) == cuda::kNvrtcSuccess && bytes > 1) {
    log.resize(bytes);
    nvrtc.nvrtcGetProgramLog(program, log.data());
    log.resize(bytes - 1);
  }
  if (result != cuda::kNvrtcSuccess || !log.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(nvrtc.nvrtcGetErrorString(result), "\n", log));
  }
  std::string ptx;
  RETURN_IF_ERROR(cuda::StatusOfNvrtc(nvrtc, nvrtc.nvrtcGetPTXSize(program, &bytes), "nvrtcGetPTXSize"));
  ptx.resize(bytes);
  RETURN_IF_ERROR(cuda::StatusOfNvrtc(nvrtc, nvrtc.nvrtcGetPTX(program, ptx.data()), "nvrtcGetPTX"));
  return ptx;
}

// Memory of the device with a guard behind it, and pinned memory of the same size for its way there and back.
class DeviceMemory {
 public:
  DeviceMemory(const cuda::Driver* driver, size_t bytes) : driver_(driver), bytes_(bytes) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (address_ != 0) driver_->cuMemFree_v2(address_);
    if (staging_ != nullptr) driver_->cuMemFreeHost(staging_);
  }

  absl::Status Allocate() {
    RETURN_IF_ERROR(cuda::StatusOf(*driver_, driver_->cuMemAlloc_v2(&address_, size()), "cuMemAlloc"));
    RETURN_IF_ERROR(cuda::StatusOf(*driver_, driver_->cuMemHostAlloc(&staging_, size(), 0), "cuMemHostAlloc"));
    std::memset(staging_, kGuard, size());
    return absl::OkStatus();
  }
  cuda::CuAddress* address() { return &address_; }
  char* staging() { return static_cast<char*>(staging_); }

  // Enqueue a copy of all bytes, and of the guard behind them.
  absl::Status Write(cuda::CuStream stream) {
    return cuda::StatusOf(*driver_, driver_->cuMemcpyHtoDAsync_v2(address_, staging_, size(), stream), "cuMemcpyHtoD");
  }
  absl::Status Read(cuda::CuStream stream) {
    return cuda::StatusOf(*driver_, driver_->cuMemcpyDtoHAsync_v2(staging_, address_, size(), stream), "cuMemcpyDtoH");
  }
  // Of what was read.
  bool is_guard_whole() {
    const std::string guard(staging() + bytes_, kGuardBytes);
    return guard.find_first_not_of(kGuard) == std::string::npos;
  }

 private:
  size_t size() const { return bytes_ + kGuardBytes; }

  const cuda::Driver* driver_;
  size_t bytes_;
  cuda::CuAddress address_ = 0;
  void* staging_ = nullptr;
};

}  // namespace

absl::StatusOr<CudaDevice> CudaDevice::Build(const cuda::LibraryPaths& paths, const std::vector<CudaKernel>& kernels) {
  auto opened = std::make_shared<Opened>();
  RETURN_IF_ERROR(opened->Open(paths));
  std::vector<absl::StatusOr<std::string>> images(kernels.size());
  const auto compile = [&](size_t first) {
    for (size_t k = first; k < kernels.size(); k += 2) {
      images[k] = Compile(*opened->nvrtc, kernels[k].source, opened->architecture);
    }
  };
  std::future<void> odd = std::async(std::launch::async, compile, 1);
  compile(0);
  odd.get();
  CudaDevice device;
  device.opened_ = std::move(opened);
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!images[k].ok()) return images[k].status();
    RETURN_IF_ERROR(device.Load(kernels[k], *images[k]));
  }
  return device;
}

absl::Status CudaDevice::Load(const CudaKernel& kernel, const std::string& image) {
  const cuda::Driver& d = opened_->driver();
  Entries& entries = kernels_.emplace_back(Entries{.kernel = kernel});
  cuda::CuModule module = nullptr;
  RETURN_IF_ERROR(opened_->Check(d.cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData"));
  entries.module = std::shared_ptr<void>(
      module, [opened = opened_](void* held) { opened->driver().cuModuleUnload(static_cast<cuda::CuModule>(held)); });
  for (const CudaLaunch& launch : kernel.launches) {
    cuda::CuFunction function = nullptr;
    RETURN_IF_ERROR(
        opened_->Check(d.cuModuleGetFunction(&function, module, launch.entry.c_str()), "cuModuleGetFunction"));
    RETURN_IF_ERROR(opened_->Check(d.cuFuncSetAttribute(function, cuda::kCuFuncMaxDynamicSharedSizeBytes,
                                                        static_cast<int>(launch.dynamic_shared_bytes)),
                                   "cuFuncSetAttribute"));
    entries.functions.push_back(function);
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::Run(size_t kernel, const std::vector<Literal>& operands, std::vector<Literal>* results) const {
  const Entries& entries = kernels_[kernel];
  const cuda::Driver& d = opened_->driver();
  const cuda::CuStream stream = opened_->stream;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<void*> arguments;
  const auto add = [&](size_t bytes) {
    memory.push_back(std::make_unique<DeviceMemory>(&d, bytes));
    RETURN_IF_ERROR(memory.back()->Allocate());
    arguments.push_back(memory.back()->address());
    return absl::OkStatus();
  };
  for (const Literal& operand : operands) {
    RETURN_IF_ERROR(add(operand.bytes().size()));
    std::memcpy(memory.back()->staging(), operand.bytes().data(), operand.bytes().size());
  }
  for (const Literal& result : *results) RETURN_IF_ERROR(add(result.bytes().size()));
  RETURN_IF_ERROR(add(static_cast<size_t>(entries.kernel.scratch_bytes)));
  for (const auto& m : memory) RETURN_IF_ERROR(m->Write(stream));
  for (size_t l = 0; l < entries.functions.size(); ++l) {
    const CudaLaunch& launch = entries.kernel.launches[l];
    RETURN_IF_ERROR(opened_->Check(
        d.cuLaunchKernel(entries.functions[l], static_cast<unsigned>(launch.blocks), 1, 1,
                         static_cast<unsigned>(launch.threads_per_block), 1, 1,
                         static_cast<unsigned>(launch.dynamic_shared_bytes), stream, arguments.data(), nullptr),
        launch.entry));
  }
  for (const auto& m : memory) RETURN_IF_ERROR(m->Read(stream));
  RETURN_IF_ERROR(opened_->Check(d.cuStreamSynchronize(stream), "cuStreamSynchronize"));
  for (size_t m = 0; m < memory.size(); ++m) {
    if (!memory[m]->is_guard_whole()) return absl::InternalError(absl::StrCat("written past argument ", m));
  }
  for (size_t r = 0; r < results->size(); ++r) {
    Literal& result = (*results)[r];
    std::memcpy(result.mutable_data(), memory[operands.size() + r]->staging(), result.bytes().size());
  }
  return absl::OkStatus();
}

}  // namespace tensord
