#include "tests/bench/einsum_paths/einsum_networks.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/families/einsum/equation.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace tensord {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

const Value& Field(const Struct& object, const std::string& name) {
  static const Value* const kNone = new Value;
  const auto it = object.fields().find(name);
  return it == object.fields().end() ? *kNone : it->second;
}

int64_t Number(const Value& value) { return static_cast<int64_t>(value.number_value()); }

// Positions among the live operands, as pairs of ids.
absl::StatusOr<ContractionPath> PairsOf(const Value& steps, int operands) {
  ContractionPath path;
  std::vector<int> live;
  for (int i = 0; i < operands; ++i) live.push_back(i);
  for (const Value& step : steps.list_value().values()) {
    if (step.list_value().values_size() != 2) return absl::InvalidArgumentError("a step is no pair");
    const auto [a, b] = std::minmax({Number(step.list_value().values(0)), Number(step.list_value().values(1))});
    if (a < 0 || a == b || b >= static_cast<int64_t>(live.size())) {
      return absl::InvalidArgumentError("a step names an operand that is not there");
    }
    path.push_back({live[static_cast<size_t>(a)], live[static_cast<size_t>(b)]});
    live.erase(live.begin() + b);
    live.erase(live.begin() + a);
    live.push_back(operands + static_cast<int>(path.size()) - 1);
  }
  return path;
}

// Edges between `vertices` variables become matrices, which share the variables' labels.
EinsumNetwork PairwiseModel(std::string name, int vertices, int64_t values,
                            const std::vector<std::pair<int, int>>& edges) {
  EinsumNetwork network{.name = std::move(name)};
  for (const auto& [a, b] : edges) network.operands.push_back({a, b});
  network.sizes.assign(static_cast<size_t>(vertices), values);
  return network;
}

EinsumNetwork Chain(int matrices, std::mt19937_64* random) {
  EinsumNetwork network{.name = absl::StrCat("einsum_paths_chain_", matrices)};
  for (int i = 0; i < matrices; ++i) network.operands.push_back({i, i + 1});
  for (int i = 0; i <= matrices; ++i) {
    network.sizes.push_back(std::uniform_int_distribution<int64_t>(20, 512)(*random));
  }
  network.output = {0, matrices};
  std::shuffle(network.operands.begin(), network.operands.end(), *random);
  return network;
}

// Two states side by side: site i has a bond of each state on the left and one on the right, and a physical axis.
EinsumNetwork InnerProduct(int sites, std::mt19937_64* random) {
  EinsumNetwork network{.name = absl::StrCat("einsum_paths_mps_", sites)};
  const auto size = [&](int64_t low, int64_t high) {
    network.sizes.push_back(std::uniform_int_distribution<int64_t>(low, high)(*random));
    return static_cast<int>(network.sizes.size()) - 1;
  };
  int upper = size(1, 1), lower = size(1, 1);
  for (int i = 0; i < sites; ++i) {
    const int physical = size(2, 60), next_upper = size(8, 128), next_lower = size(8, 128);
    network.operands.push_back({upper, physical, next_upper});
    network.operands.push_back({lower, physical, next_lower});
    upper = next_upper;
    lower = next_lower;
  }
  return network;
}

EinsumNetwork Grid(int side) {
  std::vector<std::pair<int, int>> edges;
  for (int i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) edges.push_back({i, i + 1});
    if (i + side < side * side) edges.push_back({i, i + side});
  }
  return PairwiseModel(absl::StrCat("einsum_paths_grid_", side, "x", side), side * side, 2, edges);
}

// Every vertex has three edges: three random perfect matchings.
EinsumNetwork ThreeRegular(int vertices, std::mt19937_64* random) {
  std::vector<std::pair<int, int>> edges;
  std::vector<int> order;
  for (int i = 0; i < vertices; ++i) order.push_back(i);
  for (int matching = 0; matching < 3; ++matching) {
    std::shuffle(order.begin(), order.end(), *random);
    for (size_t i = 0; i + 1 < order.size(); i += 2) edges.push_back({order[i], order[i + 1]});
  }
  return PairwiseModel(absl::StrCat("einsum_paths_three_regular_", vertices), vertices, 2, edges);
}

// Every label stands in many operands.
EinsumNetwork Crowded(int operands, int labels, int rank, std::mt19937_64* random) {
  EinsumNetwork network{.name = absl::StrCat("einsum_paths_crowded_", operands, "_", labels, "_", rank)};
  for (int i = 0; i < operands; ++i) {
    network.operands.emplace_back();
    for (int k = 0; k < rank; ++k) {
      network.operands.back().push_back(std::uniform_int_distribution<int>(0, labels - 1)(*random));
    }
  }
  network.sizes.assign(static_cast<size_t>(labels), 2);
  return network;
}

}  // namespace

absl::StatusOr<EinsumNetwork> ReadEinsumNetwork(const std::string& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  Struct object;
  if (!file || !google::protobuf::util::JsonStringToMessage(content.str(), &object).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no JSON object"));
  }
  ASSIGN_OR_RETURN(const Equation equation, ParseEquation(Field(object, "format_string").string_value()));
  EinsumNetwork network{.name = absl::StrCat("einsum_paths_", Field(object, "name").string_value())};
  const auto& shapes = Field(object, "shapes").list_value();
  if (shapes.values_size() != static_cast<int>(equation.operands.size())) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has another number of shapes than of operands"));
  }
  std::map<int64_t, int> labels;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const auto& shape = shapes.values(static_cast<int>(i)).list_value();
    network.operands.emplace_back();
    for (size_t axis = 0; axis < equation.operands[i].size(); ++axis) {
      const auto [it, is_new] = labels.try_emplace(equation.operands[i][axis], static_cast<int>(labels.size()));
      if (static_cast<int>(axis) >= shape.values_size()) {
        return absl::InvalidArgumentError(absl::StrCat(path, " has a shape of too few sizes"));
      }
      if (is_new) network.sizes.push_back(Number(shape.values(static_cast<int>(axis))));
      network.operands.back().push_back(it->second);
    }
  }
  for (int64_t label : equation.output) network.output.push_back(labels.at(label));
  const Value& given = Field(Field(Field(object, "paths").struct_value(), "opt_flops").struct_value(), "path");
  ASSIGN_OR_RETURN(network.given, PairsOf(given, static_cast<int>(equation.operands.size())));
  return network;
}

std::vector<EinsumNetwork> MadeEinsumNetworks() {
  std::mt19937_64 random(1);
  std::vector<EinsumNetwork> networks;
  for (int matrices : {10, 100, 1'000, 10'000}) networks.push_back(Chain(matrices, &random));
  networks.push_back(InnerProduct(100, &random));
  for (int side : {8, 16}) networks.push_back(Grid(side));
  for (int vertices : {60, 220}) networks.push_back(ThreeRegular(vertices, &random));
  for (int rank : {2, 3}) networks.push_back(Crowded(1'000, 50, rank, &random));
  networks.push_back(Crowded(5'000, 1'000, 3, &random));
  return networks;
}

}  // namespace tensord
