#include "clients/cli/bench/bench_workloads.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/files/npy.h"
#include "clients/cli/shell/short_text.h"
#include "proto/command_line/nearest_name.h"

namespace tensord::cli {
namespace {

absl::StatusOr<BenchMix> MakeMix(const BenchFlagValues& values, const BenchFiles& files, std::optional<int64_t> size,
                                 client::DType dtype) {
  BenchMix mix;
  for (const load::WorkloadSpec& spec : values.workloads) {
    const std::optional<int64_t> own = spec.size.has_value() || !load::HasSize(spec.name) ? spec.size : size;
    absl::StatusOr<load::Workload> workload =
        load::IsBuiltIn(spec.name)
            ? load::BuiltInWorkload(spec.name, own, dtype)
            : load::GraphWorkload(spec.name, files.graphs.at(spec.name), files.tensors, values.symbols);
    if (!workload.ok()) return workload.status();
    mix.push_back(*std::move(workload));
  }
  return mix;
}

std::string KnownNames(const std::set<std::string>& names) {
  return names.empty() ? "none" : ListText(std::vector<std::string>(names.begin(), names.end()));
}

std::string DidYouMean(const std::string& name, const std::set<std::string>& names) {
  return wire::DidYouMean(name, std::vector<std::string>(names.begin(), names.end()));
}

}  // namespace

absl::StatusOr<BenchFiles> ReadBenchFiles(const BenchFlagValues& values) {
  BenchFiles files;
  for (const load::WorkloadSpec& spec : values.workloads) {
    if (load::IsBuiltIn(spec.name) || files.graphs.count(spec.name) != 0) continue;
    absl::StatusOr<v1::Graph> graph = ReadGraph(spec.name);
    if (!graph.ok()) return graph.status();
    files.graphs.emplace(spec.name, *std::move(graph));
  }
  for (const auto& [name, file] : values.files) {
    absl::StatusOr<client::HostTensor> tensor = ReadNpy(file);
    if (!tensor.ok()) return tensor.status();
    files.tensors.emplace(name, *std::move(tensor));
  }
  return files;
}

absl::Status CheckBenchNames(const BenchFlagValues& values, const BenchFiles& files) {
  std::set<std::string> inputs;
  std::set<std::string> symbols;
  for (const auto& [path, graph] : files.graphs) {
    for (const v1::GraphInput& input : graph.inputs()) {
      inputs.insert(input.name());
      for (const v1::DimExpr& dim : input.type().shape()) {
        if (dim.has_symbol()) symbols.insert(dim.symbol());
      }
    }
  }
  for (const auto& [name, file] : values.files) {
    if (inputs.count(name) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("no graph has such an input, but ", KnownNames(inputs),
                                                   ": --input=", name, "=", file, DidYouMean(name, inputs)));
  }
  for (const auto& [name, size] : values.symbols) {
    if (symbols.count(name) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("no graph has an input with such a symbol, but ",
                                                   KnownNames(symbols), ": --symbol=", name, "=", size,
                                                   DidYouMean(name, symbols)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BenchMix>> MakeBenchMixes(const BenchFlagValues& values, const BenchFiles& files) {
  std::vector<std::optional<int64_t>> sizes(values.sizes.begin(), values.sizes.end());
  if (sizes.empty()) sizes.push_back(std::nullopt);
  std::vector<BenchMix> mixes;
  for (const std::optional<int64_t>& size : sizes) {
    for (const client::DType dtype : values.dtypes) {
      absl::StatusOr<BenchMix> mix = MakeMix(values, files, size, dtype);
      if (!mix.ok()) return mix.status();
      mixes.push_back(*std::move(mix));
    }
  }
  return mixes;
}

}  // namespace tensord::cli
