#ifndef TENSORD_BACKENDS_CUDA_LIBRARIES_STATUS_H_
#define TENSORD_BACKENDS_CUDA_LIBRARIES_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/abi/blas_lt.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/abi/fft.h"
#include "backends/cuda/abi/nvrtc.h"
#include "backends/cuda/abi/solver.h"
#include "backends/cuda/libraries/libraries.h"

namespace tensord::cuda {

// Returns an error's name, CUDA_ERROR_OUT_OF_MEMORY for example.
std::string NameOf(const Driver& driver, CuResult result);

// Tells whether an error stays until the context is made anew: then the device's memory is lost.
bool IsLost(CuResult result);

// Tells whether the driver refuses machine code, which another compiler or driver may have left.
bool IsRefusedImage(CuResult result);

// Return the status of a call: its code by the kind of the error, and a message that names the function and the error.
//
//   OUT_OF_MEMORY  the device's memory, or the library's, is full
//   DEVICE_LOST    the context is lost, see IsLost
//   INTERNAL       all others: a mistake of ours, or of the library
absl::Status StatusOf(const Driver& driver, CuResult result, absl::string_view function);
absl::Status StatusOfNvrtc(const Nvrtc& nvrtc, NvrtcResult result, absl::string_view function);
absl::Status StatusOfBlas(BlasResult result, absl::string_view function);
absl::Status StatusOfSolver(SolverResult result, absl::string_view function);
absl::Status StatusOfFft(FftResult result, absl::string_view function);

// Returns UNAVAILABLE for a device that is configured: "device cuda:0 is not there: …", with the reason that
// Libraries::Open has given.
absl::Status DeviceIsNotThere(int ordinal, const absl::Status& reason);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LIBRARIES_STATUS_H_
