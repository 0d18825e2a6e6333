#include "backends/cuda/libraries/status.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::cuda {
namespace {

absl::Status MemoryIsFull(absl::string_view function, absl::string_view name) {
  return Refuse(Refusal::kOutOfMemory, absl::StrCat(function, ": ", name, "; free tensors, or send less work at once"));
}

absl::Status Fails(absl::string_view function, absl::string_view name) {
  return absl::InternalError(absl::StrCat(function, ": ", name));
}

// Libraries whose errors have no names at hand.
absl::Status StatusOfNumber(int result, int success, int out_of_memory, absl::string_view kind,
                            absl::string_view function) {
  if (result == success) return absl::OkStatus();
  const std::string name = absl::StrCat(kind, " ", result);
  return result == out_of_memory ? MemoryIsFull(function, name) : Fails(function, name);
}

}  // namespace

std::string NameOf(const Driver& driver, CuResult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) == kCuSuccess && name != nullptr) return name;
  return absl::StrCat("CUresult ", result);
}

bool IsLost(CuResult result) {
  // Errors of kernels: illegal addresses, instructions and barriers, faults of memory and links, assertions.
  switch (result) {
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 709:  // CUDA_ERROR_CONTEXT_IS_DESTROYED: by another user of the primary context
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case kCuIllegalAddress:
    case kCuLaunchFailed:
      return true;
    default:
      return false;
  }
}

bool IsRefusedImage(CuResult result) {
  switch (result) {
    case 200:  // CUDA_ERROR_INVALID_IMAGE
    case 209:  // CUDA_ERROR_NO_BINARY_FOR_GPU
    case 218:  // CUDA_ERROR_INVALID_PTX
    case 222:  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    case 300:  // CUDA_ERROR_INVALID_SOURCE
      return true;
    default:
      return false;
  }
}

absl::Status StatusOf(const Driver& driver, CuResult result, absl::string_view function) {
  if (result == kCuSuccess) return absl::OkStatus();
  const std::string name = NameOf(driver, result);
  if (result == kCuOutOfMemory) return MemoryIsFull(function, name);
  if (IsLost(result)) {
    return Refuse(Refusal::kDeviceLost,
                  absl::StrCat(function, ": ", name, "; what was on the device is gone, compute it again"));
  }
  return Fails(function, name);
}

absl::Status StatusOfNvrtc(const Nvrtc& nvrtc, NvrtcResult result, absl::string_view function) {
  if (result == kNvrtcSuccess) return absl::OkStatus();
  const char* const name = nvrtc.nvrtcGetErrorString(result);
  return result == kNvrtcOutOfMemory ? MemoryIsFull(function, name) : Fails(function, name);
}

absl::Status StatusOfBlas(BlasResult result, absl::string_view function) {
  return StatusOfNumber(result, kBlasSuccess, kBlasAllocFailed, "cublasStatus_t", function);
}

absl::Status StatusOfSolver(SolverResult result, absl::string_view function) {
  return StatusOfNumber(result, kSolverSuccess, kSolverAllocFailed, "cusolverStatus_t", function);
}

absl::Status StatusOfFft(FftResult result, absl::string_view function) {
  return StatusOfNumber(result, kFftSuccess, kFftAllocFailed, "cufftResult", function);
}

absl::Status DeviceIsNotThere(int ordinal, const absl::Status& reason) {
  return absl::UnavailableError(absl::StrCat("device cuda:", ordinal, " is not there: ", reason.message()));
}

}  // namespace tensord::cuda
