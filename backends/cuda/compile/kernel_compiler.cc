#include "backends/cuda/compile/kernel_compiler.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/libraries/library_build.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// A program of NVRTC's while it is compiled.
class Compilation {
 public:
  Compilation(const Nvrtc* nvrtc, NvrtcProgram program) : nvrtc_(nvrtc), program_(program) {}
  ~Compilation() { nvrtc_->nvrtcDestroyProgram(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  NvrtcResult Compile(const std::vector<const char*>& options) {
    return nvrtc_->nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
  }
  std::string Log() const {
    size_t bytes = 0;
    if (nvrtc_->nvrtcGetProgramLogSize(program_, &bytes) != kNvrtcSuccess || bytes <= 1) return "";
    std::string log(bytes, '\0');
    if (nvrtc_->nvrtcGetProgramLog(program_, log.data()) != kNvrtcSuccess) return "";
    log.resize(bytes - 1);
    return log;
  }
  // Returns machine code, or PTX for the driver to compile.
  absl::StatusOr<std::string> Image(bool is_ptx) const {
    size_t bytes = 0;
    if (is_ptx) {
      RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetPTXSize(program_, &bytes), "nvrtcGetPTXSize"));
      std::string ptx(bytes, '\0');
      RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetPTX(program_, ptx.data()), "nvrtcGetPTX"));
      return ptx;
    }
    RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetCUBINSize(program_, &bytes), "nvrtcGetCUBINSize"));
    std::string image(bytes, '\0');
    RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetCUBIN(program_, image.data()), "nvrtcGetCUBIN"));
    return image;
  }

 private:
  const Nvrtc* const nvrtc_;
  NvrtcProgram program_;
};

// Returns a hash of all of a kernel: a grid is not in the source where its last thread is the last one that is needed.
Fingerprint KeyOf(const KernelText& kernel) {
  std::string key = kernel.source;
  for (const CudaLaunch& launch : kernel.launches) {
    absl::StrAppend(&key, "\n", launch.entry, " ", launch.blocks, " ", launch.threads_per_block, " ",
                    launch.dynamic_shared_bytes, " [", absl::StrJoin(launch.arguments, " "), "]");
    if (!launch.numbers.empty()) absl::StrAppend(&key, " of [", absl::StrJoin(launch.numbers, " "), "]");
    if (launch.parts > 1) absl::StrAppend(&key, " in ", launch.parts);
    if (launch.unless_same.has_value()) {
      absl::StrAppend(&key, " ", launch.unless_same->first, " ", launch.unless_same->second);
    }
  }
  return Fingerprint::Of(key);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelCompiler>> KernelCompiler::Create(std::shared_ptr<Context> context,
                                                                       const Nvrtc* nvrtc,
                                                                       std::shared_ptr<CubinStore> cubins) {
  std::unique_ptr<KernelCompiler> compiler(new KernelCompiler(std::move(context), nvrtc, std::move(cubins)));
  RETURN_IF_ERROR(compiler->Describe());
  return compiler;
}

absl::Status KernelCompiler::Describe() {
  int version_major = 0, version_minor = 0;
  RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcVersion(&version_major, &version_minor), "nvrtcVersion"));
  version_ = absl::StrCat("nvrtc ", version_major, ".", version_minor);
  build_ = absl::StrCat(version_, ", ", LibraryBuild(reinterpret_cast<const void*>(nvrtc_->nvrtcVersion)));
  ASSIGN_OR_RETURN(const int major, context_->Attribute(kCuComputeCapabilityMajor));
  ASSIGN_OR_RETURN(const int minor, context_->Attribute(kCuComputeCapabilityMinor));
  RETURN_IF_ERROR(ChooseArchitecture(10 * major + minor));
  ASSIGN_OR_RETURN(printing_.num_processors, context_->Attribute(kCuMultiprocessorCount));
  ASSIGN_OR_RETURN(printing_.max_threads_per_block, context_->Attribute(kCuMaxThreadsPerBlock));
  ASSIGN_OR_RETURN(printing_.max_shared_bytes, context_->Attribute(kCuMaxSharedMemoryPerBlockOptin));
  printing_.pointer_alignment_bytes = 1;
  return absl::OkStatus();
}

absl::Status KernelCompiler::ChooseArchitecture(int device) {
  int number = 0;
  RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetNumSupportedArchs(&number), "nvrtcGetNumSupportedArchs"));
  std::vector<int> known(static_cast<size_t>(std::max(number, 0)));
  if (number > 0) {
    RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, nvrtc_->nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs"));
  }
  int newest = 0;  // that the device has too
  for (const int architecture : known) {
    if (architecture <= device) newest = std::max(newest, architecture);
  }
  is_ptx_ = newest > 0 && newest < device;
  architecture_ =
      absl::StrCat("--gpu-architecture=", is_ptx_ ? absl::StrCat("compute_", newest) : absl::StrCat("sm_", device));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const LoadedKernel>> KernelCompiler::Compile(const KernelText& kernel) {
  const Fingerprint key = KeyOf(kernel);
  if (std::shared_ptr<const LoadedKernel> found = Find(key); found != nullptr) return found;
  const CubinStore::Source source{.text = kernel.source,
                                  .options = absl::MakeConstSpan(kCudaCompileOptions),
                                  .compiler = build_,
                                  .architecture = architecture_};
  const auto compile = [&] { return ImageOf(kernel.source); };
  ASSIGN_OR_RETURN(CubinStore::Image image, cubins_->Get(source, compile));
  bool is_refused = false;
  absl::StatusOr<std::shared_ptr<const LoadedKernel>> loaded =
      LoadedKernel::Load(context_, *image, kernel.launches, &is_refused);
  if (is_refused) {  // by this driver; a newer one may have left it on the disk
    cubins_->Forget(source);
    ASSIGN_OR_RETURN(image, cubins_->Get(source, compile));
    loaded = LoadedKernel::Load(context_, *image, kernel.launches);
  }
  RETURN_IF_ERROR(loaded.status());
  return Keep(key, *std::move(loaded));
}

std::shared_ptr<const LoadedKernel> KernelCompiler::Find(const Fingerprint& key) {
  MutexLock lock(&mutex_);
  const auto it = kernels_.find(key);
  return it == kernels_.end() ? nullptr : it->second.lock();
}

std::shared_ptr<const LoadedKernel> KernelCompiler::Keep(const Fingerprint& key,
                                                         std::shared_ptr<const LoadedKernel> kernel) {
  MutexLock lock(&mutex_);
  std::weak_ptr<const LoadedKernel>& kept = kernels_[key];
  if (std::shared_ptr<const LoadedKernel> other = kept.lock(); other != nullptr) return other;
  kept = kernel;
  if (kernels_.size() >= sweep_at_) {
    const AllocatedBytes::Pause others;
    absl::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max(kFewKernels, 2 * kernels_.size());
  }
  return kernel;
}

absl::StatusOr<std::string> KernelCompiler::ImageOf(const std::string& source) const {
  NvrtcProgram program = nullptr;
  RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_,
                                nvrtc_->nvrtcCreateProgram(&program, source.c_str(), "tensord.cu", 0, nullptr, nullptr),
                                "nvrtcCreateProgram"));
  Compilation compilation(nvrtc_, program);
  std::vector<const char*> options = {architecture_.c_str()};
  for (const absl::string_view option : kCudaCompileOptions) options.push_back(option.data());
  const NvrtcResult result = compilation.Compile(options);
  if (result == kNvrtcCompilation) {
    return absl::InternalError(absl::StrCat("NVRTC refuses the text of a kernel: ", compilation.Log()));
  }
  if (result == kNvrtcInvalidOption) {  // all others are of every version
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat(version_, " refuses ", architecture_, ": ", compilation.Log(),
                               "; install an NVRTC that knows the device, see cuda.libraries"));
  }
  RETURN_IF_ERROR(StatusOfNvrtc(*nvrtc_, result, "nvrtcCompileProgram"));
  return compilation.Image(is_ptx_);
}

}  // namespace tensord::cuda
