#include "tests/testlib/cuda/cuda_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tests/testlib/cuda/nvrtc.h"

namespace tensord {

// The used part of the driver's interface, by the names of cuda.h. A process has one, with the first device's primary
// context.
struct CudaDriver {
  using Result = int;
  using Address = unsigned long long;

  static const absl::StatusOr<const CudaDriver*>& Get();

  // OK, or INTERNAL with the name of the error and of what was called.
  absl::Status Check(Result result, const char* what) const;

  Result (*init)(unsigned) = nullptr;
  Result (*error_name)(Result, const char**) = nullptr;
  Result (*device_get)(int*, int) = nullptr;
  Result (*device_attribute)(int*, int, int) = nullptr;
  Result (*context_retain)(void**, int) = nullptr;
  Result (*context_set)(void*) = nullptr;
  Result (*synchronize)() = nullptr;
  Result (*module_load)(void**, const void*) = nullptr;
  Result (*module_unload)(void*) = nullptr;
  Result (*module_function)(void**, void*, const char*) = nullptr;
  Result (*function_attribute)(void*, int, int) = nullptr;
  Result (*allocate)(Address*, size_t) = nullptr;
  Result (*free)(Address) = nullptr;
  Result (*set)(Address, unsigned char, size_t) = nullptr;
  Result (*to_device)(Address, const void*, size_t) = nullptr;
  Result (*from_device)(void*, Address, size_t) = nullptr;
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**) = nullptr;
  std::string architecture;  // compute_90, say
};

namespace {

constexpr size_t kGuardBytes = 256;
constexpr char kGuard = 0x5a;
// Numbers of CUdevice_attribute and CUfunction_attribute.
constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76, kMaxDynamicSharedBytes = 8;

absl::Status OpenDriver(CudaDriver* d) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError("there is no CUDA driver on this machine");
  const auto find = [library]<typename F>(const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(library, name));
    return *function != nullptr;
  };
  const bool has_all =
      find("cuInit", &d->init) && find("cuGetErrorName", &d->error_name) && find("cuDeviceGet", &d->device_get) &&
      find("cuDeviceGetAttribute", &d->device_attribute) && find("cuDevicePrimaryCtxRetain", &d->context_retain) &&
      find("cuCtxSetCurrent", &d->context_set) && find("cuCtxSynchronize", &d->synchronize) &&
      find("cuModuleLoadData", &d->module_load) && find("cuModuleUnload", &d->module_unload) &&
      find("cuModuleGetFunction", &d->module_function) && find("cuFuncSetAttribute", &d->function_attribute) &&
      find("cuMemAlloc_v2", &d->allocate) && find("cuMemFree_v2", &d->free) && find("cuMemsetD8_v2", &d->set) &&
      find("cuMemcpyHtoD_v2", &d->to_device) && find("cuMemcpyDtoH_v2", &d->from_device) &&
      find("cuLaunchKernel", &d->launch);
  if (!has_all) return absl::UnavailableError("the CUDA driver lacks a function");
  if (Nvrtc::Get() == nullptr) return absl::UnavailableError("there is no libnvrtc on this machine");
  int device = 0, major = 0, minor = 0;
  void* context = nullptr;
  if (d->init(0) != 0 || d->device_get(&device, 0) != 0) return absl::UnavailableError("there is no CUDA device");
  absl::Status status = d->Check(d->device_attribute(&major, kComputeCapabilityMajor, device), "cuDeviceGetAttribute");
  status.Update(d->Check(d->device_attribute(&minor, kComputeCapabilityMinor, device), "cuDeviceGetAttribute"));
  status.Update(d->Check(d->context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  status.Update(d->Check(d->context_set(context), "cuCtxSetCurrent"));
  d->architecture = absl::StrCat("compute_", major, minor);
  return status;
}

// Memory of the device with a guard behind it.
class DeviceMemory {
 public:
  DeviceMemory(const CudaDriver* driver, size_t bytes) : driver_(driver), bytes_(bytes) {
    status_ = driver->Check(driver->allocate(&address_, bytes + kGuardBytes), "cuMemAlloc");
    if (status_.ok()) status_ = driver->Check(driver->set(address_, kGuard, bytes + kGuardBytes), "cuMemsetD8");
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (address_ != 0) driver_->free(address_);
  }

  const absl::Status& status() const { return status_; }
  CudaDriver::Address* address() { return &address_; }

  absl::Status Read(char* to, size_t bytes, size_t begin) const {
    return driver_->Check(driver_->from_device(to, address_ + begin, bytes), "cuMemcpyDtoH");
  }
  absl::Status Write(const char* from, size_t bytes) {
    return driver_->Check(driver_->to_device(address_, from, bytes), "cuMemcpyHtoD");
  }
  absl::StatusOr<bool> IsGuardWhole() const {
    std::string guard(kGuardBytes, 0);
    const absl::Status read = Read(guard.data(), kGuardBytes, bytes_);
    if (!read.ok()) return read;
    return guard.find_first_not_of(kGuard) == std::string::npos;
  }

 private:
  const CudaDriver* driver_;
  size_t bytes_;
  CudaDriver::Address address_ = 0;
  absl::Status status_;
};

}  // namespace

const absl::StatusOr<const CudaDriver*>& CudaDriver::Get() {
  static const absl::StatusOr<const CudaDriver*> opened = []() -> absl::StatusOr<const CudaDriver*> {
    static CudaDriver driver;
    const absl::Status status = OpenDriver(&driver);
    if (!status.ok()) return status;
    return &driver;
  }();
  return opened;
}

absl::Status CudaDriver::Check(Result result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* name = nullptr;
  error_name(result, &name);
  return absl::InternalError(absl::StrCat(what, ": ", name == nullptr ? "unknown error" : name));
}

absl::StatusOr<CudaDevice> CudaDevice::Build(const std::vector<KernelText>& kernels) {
  const absl::StatusOr<const CudaDriver*>& driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const CudaDriver& d = **driver;
  std::vector<std::string> options = {"--gpu-architecture=" + d.architecture};
  for (absl::string_view option : kCudaCompileOptions) options.emplace_back(option);
  options.emplace_back("--diag-suppress=177");  // random programs have values that nothing reads
  CudaDevice device;
  device.driver_ = &d;
  for (const KernelText& kernel : kernels) {
    Entries& entries = device.kernels_.emplace_back(Entries{.kernel = kernel});
    const absl::StatusOr<std::string> ptx = Nvrtc::Get()->Compile(kernel.source, options);
    if (!ptx.ok()) return ptx.status();
    void* module = nullptr;
    absl::Status status = d.Check(d.module_load(&module, ptx->c_str()), "cuModuleLoadData");
    if (!status.ok()) return status;
    entries.module = std::shared_ptr<void>(module, [&d](void* loaded) { d.module_unload(loaded); });
    for (const CudaLaunch& launch : kernel.launches) {
      void* function = nullptr;
      status.Update(d.Check(d.module_function(&function, module, launch.entry.c_str()), "cuModuleGetFunction"));
      if (!status.ok()) return status;
      status.Update(
          d.Check(d.function_attribute(function, kMaxDynamicSharedBytes, static_cast<int>(launch.dynamic_shared_bytes)),
                  "cuFuncSetAttribute"));
      entries.functions.push_back(function);
    }
    if (!status.ok()) return status;
  }
  return device;
}

absl::Status CudaDevice::Run(size_t kernel, const std::vector<Literal>& operands, std::vector<Literal>* results) const {
  const Entries& entries = kernels_[kernel];
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<void*> arguments;
  absl::Status status;
  const auto add = [&](size_t bytes) {
    memory.push_back(std::make_unique<DeviceMemory>(driver_, bytes));
    arguments.push_back(memory.back()->address());
    status.Update(memory.back()->status());
    return status.ok();
  };
  for (const Literal& operand : operands) {
    if (add(operand.bytes().size())) {
      status.Update(memory.back()->Write(operand.bytes().data(), operand.bytes().size()));
    }
  }
  for (const Literal& result : *results) add(result.bytes().size());
  add(static_cast<size_t>(entries.kernel.scratch_bytes));
  if (!status.ok()) return status;

  for (size_t l = 0; l < entries.functions.size() && status.ok(); ++l) {
    const CudaLaunch& launch = entries.kernel.launches[l];
    for (uint64_t first = 0; first < static_cast<uint64_t>(launch.blocks) && status.ok();
         first += static_cast<uint64_t>(launch.blocks_of_part())) {
      std::vector<void*> all = arguments;
      if (launch.parts > 1) all.insert(all.begin(), &first);
      const int64_t blocks = std::min(launch.blocks_of_part(), launch.blocks - static_cast<int64_t>(first));
      status = driver_->Check(
          driver_->launch(entries.functions[l], static_cast<unsigned>(blocks), 1, 1,
                          static_cast<unsigned>(launch.threads_per_block), 1, 1,
                          static_cast<unsigned>(launch.dynamic_shared_bytes), nullptr, all.data(), nullptr),
          launch.entry.c_str());
    }
  }
  if (status.ok()) status = driver_->Check(driver_->synchronize(), "cuCtxSynchronize");
  if (!status.ok()) return status;
  for (size_t m = 0; m < memory.size(); ++m) {
    const absl::StatusOr<bool> is_whole = memory[m]->IsGuardWhole();
    if (!is_whole.ok()) return is_whole.status();
    if (!*is_whole) return absl::InternalError(absl::StrCat("written past argument ", m));
  }
  for (size_t r = 0; r < results->size(); ++r) {
    Literal& result = (*results)[r];
    status.Update(
        memory[operands.size() + r]->Read(static_cast<char*>(result.mutable_data()), result.bytes().size(), 0));
  }
  return status;
}

}  // namespace tensord
