#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_EINSUM_GRAPH_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_EINSUM_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_field.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/host_tensor.h"
#include "tensord/messages.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::cli {

// Checks an equation as its author wrote it, since WithOutput adds characters. INVALID_ARGUMENT for ASCII characters
// that no equation has.
absl::Status CheckEquation(absl::string_view equation);

// Returns the equation without spaces and with an output. Without an output of its own it gets the labels that occur
// once, in the order of the alphabet (of Unicode), behind the axes of an ellipsis, as in NumPy.
std::string WithOutput(absl::string_view equation);

// "auto", "greedy", "optimal" or "left-to-right". INVALID_ARGUMENT names the others.
absl::StatusOr<einsum::v1::Einsum::Optimizer> ParseOptimizer(absl::string_view name);

// "max_plus", "min_plus", "max_times" or "or_and", also with a hyphen. INVALID_ARGUMENT names them.
absl::StatusOr<v1::Algebra> ParseAlgebra(absl::string_view name);

// Returns the steps of "(1, 2), (0, 1)": positions among the operands that are left, the result of a step goes to their
// end. INVALID_ARGUMENT names the flag.
absl::StatusOr<google::protobuf::RepeatedPtrField<einsum::v1::Einsum::Step>> ParseSteps(absl::string_view text);

// The same, of a plan.
std::string StepsText(const v1::ContractionPlan& plan);

// Returns the graph of one einsum over the operands, which are its inputs "operand0", "operand1", … of exactly their
// sizes; those of other dtypes are converted to the dtype of NumPy's promotion. Its output is "result".
v1::Graph EinsumGraph(const einsum::v1::Einsum& einsum, absl::Span<const client::HostTensor> operands);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_EINSUM_GRAPH_H_
