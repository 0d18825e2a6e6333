#ifndef TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_CLIENT_TENSORS_H_
#define TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_CLIENT_TENSORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "clients/cpp/lazy/expression.h"
#include "tensord/shape.h"
#include "tensord/tensor.h"

namespace tensord::client {

template <typename T = float>
Tensor Input(Shape shape, T value = T()) {
  const int64_t count = *ElementCount(shape);
  return Tensor::FromVector(std::vector<T>(static_cast<size_t>(count), value), std::move(shape));
}

// Why a tensor failed, without the place of the call.
inline std::string Why(const absl::Status& status) {
  const std::string message(status.message());
  return message.substr(0, message.rfind("; at "));
}
inline std::string Why(const Tensor& tensor) { return Why(tensor.status()); }

// The operation that made the tensor, or why there is none.
inline std::string LastOp(const Tensor& tensor) {
  return tensor.ok() ? tensor.expression()->op.ShortDebugString() : Why(tensor);
}

}  // namespace tensord::client

#endif  // TENSORD_TESTS_UNIT_CLIENTS_CPP_LAZY_CLIENT_TENSORS_H_
