#ifndef TENSORD_TESTS_GOLDEN_CUDA_CASES_H_
#define TENSORD_TESTS_GOLDEN_CUDA_CASES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord {

// The fused kernels of a graph whose sizes are numbers: of each its micro program, how it is launched, and its CUDA
// C++.
absl::StatusOr<std::string> RunCudaCase(const std::string& input);

}  // namespace tensord

#endif  // TENSORD_TESTS_GOLDEN_CUDA_CASES_H_
