#ifndef TENSORD_EVALUATION_H_
#define TENSORD_EVALUATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/client.h"
#include "tensord/host_tensor.h"
#include "tensord/tensor.h"

namespace tensord::client {

struct TracedGraph;  // messages.h

// Returns the graph that computes `outputs`, for Client::Compile and Client::Explain. Its first inputs are the
// `parameters` (Tensor::Parameter), in this order, used or not; the next ones are the values that the outputs use.
// Shared parts of the outputs stand in it once. Nodes are named after their calls, "Solve_3@train.cc#L42", and names
// play no part in a program: equal computations find one. Fails with the first failure among the outputs, and if they
// use another parameter or two have one name.
absl::StatusOr<TracedGraph> Trace(absl::Span<const Tensor> outputs, absl::Span<const Tensor> parameters = {});

// Returns the value of a tensor, in options.order; one call to the server.
absl::StatusOr<HostTensor> Eval(Client& client, const Tensor& output, const ExecuteOptions& options = {});

// Returns the value of a tensor of one element. INVALID_ARGUMENT if it has others or none, or T is not the dtype.
template <typename T>
absl::StatusOr<T> EvalScalar(Client& client, const Tensor& output, const ExecuteOptions& options = {}) {
  const absl::StatusOr<HostTensor> value = Eval(client, output, options);
  if (!value.ok()) return value.status();
  return value->Item<T>();
}

// Returns the values of several tensors in one call, which computes their shared parts once. Makes no call for no
// tensors.
absl::StatusOr<std::vector<HostTensor>> EvalAll(Client& client, absl::Span<const Tensor> outputs,
                                                const ExecuteOptions& options = {});

// Returns the gradient of a tensor, one real number, with respect to each of the tensors `wrt`: tensors of their dtypes
// and shapes, to be evaluated, compiled or differentiated further. The server is asked now for the nodes that are
// recorded, which share the value's own. A tensor of `wrt` is a variable wherever the value depends on it; if it is
// computed from another one of them, the other one's gradient leaves that way out. Of complex numbers x + iy it is
// df/dx + i df/dy, the direction of steepest ascent.
//
//   const std::vector<Tensor> slopes = Gradient(client, loss, {w, b});
//   auto updated = EvalAll(client, {w - 0.1 * slopes[0], b - 0.1 * slopes[1]});
//
// All are failed tensors if the value or one of `wrt` is, if the value is no real number of rank 0, if one of `wrt` has
// a dtype without derivatives or a size that only the run knows, and if the server refuses: UNIMPLEMENTED, with the
// node and the op in the ErrorDetail, if an operation has no derivative.
std::vector<Tensor> Gradient(Client& client, const TensorArg& value, absl::Span<const Tensor> wrt);

}  // namespace tensord::client

#endif  // TENSORD_EVALUATION_H_
