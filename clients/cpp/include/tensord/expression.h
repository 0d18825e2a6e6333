// The expression behind a lazy Tensor. Used by the functions that make operations, not by programs.
#ifndef TENSORD_EXPRESSION_H_
#define TENSORD_EXPRESSION_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "tensord/host_tensor.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {

// One value of a graph that is being traced: a graph input (`host` is set), an operation over operands (`op` is set),
// or a failure (`status` is not OK). Immutable once made, and shared by every Tensor and Expression that uses it. Freed
// without recursion, so that a chain of operations may be as long as memory allows.
struct Expression {
  Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression();

  absl::Status status;
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<HostTensor> host;
  v1::Node op;  // without name and inputs
  std::vector<std::shared_ptr<const Expression>> operands;
};

}  // namespace tensord::client

#endif  // TENSORD_EXPRESSION_H_
