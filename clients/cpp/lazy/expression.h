// The expression behind a lazy Tensor. Used by the functions that make operations, not by programs.
#ifndef TENSORD_CLIENTS_CPP_LAZY_EXPRESSION_H_
#define TENSORD_CLIENTS_CPP_LAZY_EXPRESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensord/host_tensor.h"
#include "tensord/source_location.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {

// One value of a graph that is being traced: a graph input (`host` or `parameter` is set), an operation over operands
// (`op` is set), a further result of its one operand (`result` is not 0), or a failure (`status` is not OK). Immutable
// once made, and shared by every Tensor and Expression that uses it. Freed without recursion, so that a chain of
// operations may be as long as memory allows.
struct Expression {
  Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression();

  absl::Status status;
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<HostTensor> host;
  std::optional<std::string> parameter;  // its name
  v1::Node op;                           // without name and inputs
  std::vector<std::shared_ptr<const Expression>> operands;
  int64_t result = 0;
  // Name and place of the call that recorded the operation, for people. The name is a literal; empty: the op's own.
  absl::string_view call;
  SourceLocation place;
};

// Returns "Solve_3@train.cc#L42", a node's name for people: the call, the node's number, and the place of the call.
std::string NodeNameOf(const Expression& expression, int number);

// Visits the expressions that `root` is made of and that are not done yet, each once and operands first. A visit makes
// the expression done.
void VisitOperandsFirst(const Expression& root, absl::FunctionRef<bool(const Expression&)> is_done,
                        absl::FunctionRef<void(const Expression&)> visit);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_LAZY_EXPRESSION_H_
