#ifndef TENSORD_TESTS_HOSTCUDA_HOST_HALF_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_HALF_H_

#include "engine/tensor/half_types.h"

namespace tensord::cuda::host {

// 16-bit floats as the libraries' products take them: widened exactly, and rounded once from a sum in double.
template <typename T>
struct Narrow {
  T value;
  explicit operator double() const { return static_cast<double>(static_cast<float>(value)); }
  Narrow() = default;
  explicit Narrow(double x) : value(x) {}
};
using Half = Narrow<Float16>;
using Brain = Narrow<BFloat16>;

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_HALF_H_
