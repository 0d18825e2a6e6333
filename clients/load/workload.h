#ifndef TENSORD_CLIENTS_LOAD_WORKLOAD_H_
#define TENSORD_CLIENTS_LOAD_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensord/host_tensor.h"
#include "tensord/messages.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::load {

// A graph and the values of its inputs, which every call sends. A value type.
struct Workload {
  std::string name;  // "matmul:256 f32"
  v1::Graph graph;
  std::vector<client::HostTensor> arguments;
};

// One entry of a mix: "tiny*9", "matmul:256*1", "graphs/tanh_affine.json".
struct WorkloadSpec {
  std::string name;             // of a built-in one, or a graph file's path
  std::optional<int64_t> size;  // what stands behind the colon
  double weight = 1;            // calls in proportion to it
};

// Returns a list with commas in between. Sizes may end in k, M, G (decimal) or Ki, Mi, Gi (binary), and in B.
// INVALID_ARGUMENT names the entry that cannot be read.
absl::StatusOr<std::vector<WorkloadSpec>> ParseWorkloadSpecs(absl::string_view text);
// "64", "64Ki", "1MiB". INVALID_ARGUMENT if it is no whole number above 0.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

// "tiny", "busy", "matmul", "upload" and "download".
bool IsBuiltIn(absl::string_view name);
// Tells whether a size changes it: all but "tiny".
bool HasSize(absl::string_view name);

// Makes a workload. tiny: the sum of two vectors of 16. busy:N: N products of 64 x 64 that each wait for the one
// before, so that one core works. matmul:N: a product of two N x N. upload:N: N bytes there, one element back;
// download:N: the other way. Each has a default size. INVALID_ARGUMENT if the workload does not take the dtype or the
// size.
absl::StatusOr<Workload> BuiltInWorkload(absl::string_view name, std::optional<int64_t> size, client::DType dtype);

// Makes a workload of a graph on given values, by the names of its inputs, and on random values for the others;
// `symbols` has the sizes of symbols. INVALID_ARGUMENT names an input of unknown size.
absl::StatusOr<Workload> GraphWorkload(absl::string_view name, const v1::Graph& graph,
                                       const std::map<std::string, client::HostTensor>& values,
                                       const std::map<std::string, int64_t>& symbols);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_WORKLOAD_H_
