// The planner of einsum on networks of its own and on those of a folder: operations beside those of a file's path, the
// largest intermediate and the time of planning.
//
//   bench_einsum_paths [--json=FILE] [FOLDER]

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/families/einsum/path_cost.h"
#include "engine/families/einsum/path_search.h"
#include "tests/bench/einsum_paths/einsum_networks.h"
#include "tests/bench/option_reader.h"

namespace tensord {
namespace {

// Files of the folder that hold an einsum.
std::vector<EinsumNetwork> NetworksIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<EinsumNetwork> networks;
  for (const std::string& file : files) {
    absl::StatusOr<EinsumNetwork> network = ReadEinsumNetwork(file);
    if (network.ok()) {
      networks.push_back(*std::move(network));
    } else {
      std::cerr << "left out: " << network.status().message() << "\n";
    }
  }
  return networks;
}

int Main(const std::string& json_file, const std::string& folder) {
  std::vector<EinsumNetwork> networks = folder.empty() ? MadeEinsumNetworks() : NetworksIn(folder);
  std::vector<std::string> rows;
  int compared = 0, no_worse = 0;
  double worst = 0;
  std::cout << absl::StrFormat("%-64s %8s %11s %9s %11s %9s\n", "network", "operands", "flops", "of given", "largest",
                               "plan ms");
  for (const EinsumNetwork& terms : networks) {
    const ContractionNetwork network = terms.Network();
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<ContractionPath> path = SearchPath(network, PathOptimizer::kAuto, std::nullopt);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!path.ok()) {
      std::cerr << terms.name << ": " << path.status() << "\n";
      return 1;
    }
    const PathCost cost = CostOf(network, *path);
    std::string ratio = "–";
    if (!terms.given.empty()) {
      const double of_given = cost.flops / CostOf(network, terms.given).flops;
      ratio = absl::StrFormat("%.4f", of_given);
      ++compared;
      no_worse += of_given <= 1 ? 1 : 0;
      worst = std::max(worst, of_given);
    }
    std::cout << absl::StrFormat("%-64s %8d %11.4g %9s %11.4g %9.1f\n", terms.name, network.num_operands(), cost.flops,
                                 ratio, cost.largest, ms);
    rows.push_back(absl::StrFormat(
        R"({"workload": "%s", "threads": 1, "ours_ms": %.6f, "flops": %.6g, "largest": %.6g, "peers": {}})", terms.name,
        ms, cost.flops, cost.largest));
  }
  if (compared > 0) {
    std::cout << absl::StrFormat("%d of %d paths take no more operations than the given ones, the worst %.4f of them\n",
                                 no_worse, compared, worst);
  }
  if (!json_file.empty()) {
    std::ofstream(json_file) << "{\"workloads\": [" << absl::StrJoin(rows, ", ") << "]}\n";
  }
  return 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  std::string json_file;
  std::vector<std::string> folders;
  tensord::OptionReader reader;
  reader.Text("json", &json_file);
  if (!reader.Read(argc, argv, &folders) || folders.size() > 1 ||
      (folders.size() == 1 && !std::filesystem::is_directory(folders[0]))) {
    std::cerr << "usage: bench_einsum_paths [--json=FILE] [FOLDER]\n";
    return 2;
  }
  return tensord::Main(json_file, folders.empty() ? "" : folders[0]);
}
