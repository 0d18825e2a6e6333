#ifndef TENSORD_TESTS_BENCH_EINSUM_PATHS_EINSUM_NETWORKS_H_
#define TENSORD_TESTS_BENCH_EINSUM_PATHS_EINSUM_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// An einsum whose paths are compared.
struct EinsumNetwork {
  std::string name;
  std::vector<std::vector<int>> operands;  // labels
  std::vector<int> output;
  std::vector<int64_t> sizes;  // by label
  ContractionPath given;       // the path that came with it; empty where none did

  ContractionNetwork Network() const { return ContractionNetwork(operands, output, sizes); }
};

// Reads a file of the collections of einsum benchmarks: a JSON object with `format_string`, `shapes` and
// `paths.opt_flops.path`.
absl::StatusOr<EinsumNetwork> ReadEinsumNetwork(const std::string& path);

// Networks that need no file: chains of matrices, an inner product of matrix product states, pairwise models on random
// graphs and on a grid. The same on every call.
std::vector<EinsumNetwork> MadeEinsumNetworks();

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_EINSUM_PATHS_EINSUM_NETWORKS_H_
