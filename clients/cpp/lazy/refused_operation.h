#ifndef TENSORD_CLIENTS_CPP_LAZY_REFUSED_OPERATION_H_
#define TENSORD_CLIENTS_CPP_LAZY_REFUSED_OPERATION_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Returns the tensor of an operation that cannot be: INVALID_ARGUMENT, "OP: WHAT".
inline Tensor RefusedOperation(absl::string_view op, absl::string_view what) {
  return Tensor::Failed(absl::InvalidArgumentError(absl::StrCat(op, ": ", what)));
}

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_LAZY_REFUSED_OPERATION_H_
