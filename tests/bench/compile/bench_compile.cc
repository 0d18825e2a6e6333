// The cost of a cold compile, from a graph to a program that is ready to run, on graphs of one mixture of ops and of
// 100 to 100,000 nodes (tests/testlib/graphs/mixed_graph.h). The sizes take turns, so that other users of the machine
// disturb all of them alike. Nodes are counted in time of the processor: short compiles fit between two interruptions,
// long ones do not. Prints a table, or with --json=FILE the workloads in the form of ./dev bench.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/allocator_tuning.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "proto/codec/graph_codec.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"
#include "tests/testlib/graphs/mixed_graph.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

struct Workload {
  std::string name;
  int nodes;
  bool row_major;
  bool symbolic;
};

struct Samples {
  std::vector<double> compile_ns;
  std::vector<double> cpu_ns;
  std::vector<double> decode_ns;
  // The passes in the order in which they run.
  std::vector<std::string> passes;
  std::vector<std::vector<double>> pass_ns;
};

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Returns the time of the calling thread, on which a compile runs alone.
double CpuNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

absl::Status CompileOnce(const Workload& workload, Graph graph, Backend* backend, Samples* samples) {
  const CompileSettings settings{.device = "cpu:0", .row_major = workload.row_major};
  const auto start = Clock::now();
  const double cpu_start = CpuNanoseconds();
  const ProgramKey key = MakeProgramKey(graph, settings);
  const auto program = Compile(std::move(graph), settings, key.fingerprint, backend);
  samples->cpu_ns.push_back(CpuNanoseconds() - cpu_start);
  samples->compile_ns.push_back(NanosecondsSince(start));
  if (!program.ok()) return program.status();
  const std::vector<PassRecord>& records = (*program)->program().passes;
  samples->passes.clear();
  samples->pass_ns.resize(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    samples->passes.push_back(records[i].name);
    samples->pass_ns[i].push_back(static_cast<double>(records[i].duration_ns));
  }
  return absl::OkStatus();
}

absl::Status DecodeOnce(const std::string& bytes, std::vector<double>* took) {
  const auto start = Clock::now();
  v1::Graph wire;
  if (!wire.ParseFromString(bytes)) return absl::InternalError("the graph's own bytes do not parse");
  const auto graph = codec::DecodeGraph(wire, CoreRegistry(), {}, Order::kRowMajor);
  took->push_back(NanosecondsSince(start));
  return graph.status();
}

// One round of a workload: once for the allocator, which first sorts what another size has left, and then as often as
// makes some milliseconds.
absl::Status RunRound(const Workload& workload, const Graph& graph, const std::string& bytes, Backend* backend,
                      Samples* samples) {
  const int repeats = std::max(1, 2000 / workload.nodes);
  Samples unused;
  for (int i = -1; i < repeats; ++i) {
    Samples* const kept = i < 0 ? &unused : samples;
    absl::Status status = CompileOnce(workload, graph, backend, kept);
    if (status.ok()) status = DecodeOnce(bytes, &kept->decode_ns);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Nanoseconds a node of each pass, of all workloads side by side.
void PrintPasses(const std::vector<Workload>& workloads, const std::vector<Samples>& samples) {
  std::cout << absl::StrFormat("\n%-36s", "ns a node of");
  for (const Workload& workload : workloads) std::cout << absl::StrFormat(" %9s", absl::StrCat(workload.nodes));
  std::cout << "\n";
  std::vector<double> rest;
  for (size_t w = 0; w < workloads.size(); ++w) rest.push_back(Median(samples[w].compile_ns));
  const auto print = [&](const std::string& name, const auto& ns_of) {
    std::cout << absl::StrFormat("%-36s", name);
    for (size_t w = 0; w < workloads.size(); ++w) std::cout << absl::StrFormat(" %9.0f", ns_of(w) / workloads[w].nodes);
    std::cout << "\n";
  };
  for (size_t i = 0; i < samples[0].passes.size(); ++i) {
    print(samples[0].passes[i], [&](size_t w) {
      const double ns = Median(samples[w].pass_ns[i]);
      rest[w] -= ns;
      return ns;
    });
  }
  print("key, types, lowering, kernels, memory", [&](size_t w) { return rest[w]; });
}

int Main(absl::string_view json_file, absl::string_view filter, int rounds) {
  std::vector<Workload> workloads;
  for (int nodes : {100, 400, 1'000, 10'000, 100'000}) {
    const std::string name = absl::StrCat("S2_compile_", nodes);
    workloads.push_back({name, nodes, /*row_major=*/true, /*symbolic=*/false});
    workloads.push_back({name + "_column_major", nodes, /*row_major=*/false, /*symbolic=*/false});
    workloads.push_back({name + "_symbolic", nodes, /*row_major=*/true, /*symbolic=*/true});
  }
  workloads.erase(std::remove_if(workloads.begin(), workloads.end(),
                                 [&](const Workload& w) { return !absl::StartsWith(w.name, filter); }),
                  workloads.end());

  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  std::vector<Graph> graphs;
  std::vector<std::string> bytes;
  for (const Workload& workload : workloads) {
    graphs.push_back(MixedGraph({.nodes = workload.nodes, .symbolic = workload.symbolic}));
    const absl::StatusOr<v1::Graph> wire = codec::EncodeGraph(graphs.back());
    if (!wire.ok()) {
      std::cerr << workload.name << ": " << wire.status() << "\n";
      return 1;
    }
    bytes.push_back(wire->SerializeAsString());
  }
  std::vector<Samples> samples(workloads.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < workloads.size(); ++i) {
      const absl::Status status = RunRound(workloads[i], graphs[i], bytes[i], backend.get(), &samples[i]);
      if (!status.ok()) {
        std::cerr << workloads[i].name << ": " << status << "\n";
        return 1;
      }
    }
  }

  std::vector<std::string> rows;
  std::cout << absl::StrFormat("%-32s %10s %10s %14s %14s\n", "workload", "ms", "cpu ms", "cpu ns a node", "decode ns");
  for (size_t i = 0; i < workloads.size(); ++i) {
    const double compile = Median(samples[i].compile_ns), cpu = Median(samples[i].cpu_ns), nodes = workloads[i].nodes;
    std::cout << absl::StrFormat("%-32s %10.3f %10.3f %14.0f %14.0f\n", workloads[i].name, compile / 1e6, cpu / 1e6,
                                 cpu / nodes, Median(samples[i].decode_ns) / nodes);
    rows.push_back(absl::StrFormat(
        R"({"workload": "%s", "threads": 1, "ours_ms": %.6f, "ns_per_node": %.1f, "decode_ns_per_node": %.1f, "peers": {}})",
        workloads[i].name, compile / 1e6, cpu / nodes, Median(samples[i].decode_ns) / nodes));
  }
  for (const bool symbolic : {false, true}) {
    std::vector<Workload> of_kind;
    std::vector<Samples> their_samples;
    for (size_t i = 0; i < workloads.size(); ++i) {
      if (workloads[i].row_major && workloads[i].symbolic == symbolic) {
        of_kind.push_back(workloads[i]);
        their_samples.push_back(samples[i]);
      }
    }
    if (symbolic && !of_kind.empty()) std::cout << "\nsymbolic:";
    if (!of_kind.empty()) PrintPasses(of_kind, their_samples);
  }
  std::cout << "\n";
  for (const absl::string_view variant : {"", "_column_major", "_symbolic"}) {
    double first = 0, last = 0;
    for (size_t i = 0; i < workloads.size(); ++i) {
      const double ns_per_node = Median(samples[i].cpu_ns) / workloads[i].nodes;
      if (workloads[i].name == absl::StrCat("S2_compile_100", variant)) first = ns_per_node;
      if (workloads[i].name == absl::StrCat("S2_compile_100000", variant)) last = ns_per_node;
    }
    if (first > 0 && last > 0) {
      std::cout << absl::StrFormat("a node of 100,000 costs %.2f of one of 100%s%s\n", last / first,
                                   variant.empty() ? "" : ", ", absl::StripPrefix(variant, "_"));
    }
  }
  if (!json_file.empty()) {
    std::ofstream(std::string(json_file)) << "{\"workloads\": [" << absl::StrJoin(rows, ", ") << "]}\n";
  }
  return 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  std::string json_file, filter;
  int rounds = 9;
  tensord::OptionReader reader;
  reader.Text("json", &json_file);
  reader.Text("filter", &filter);
  reader.Number("rounds", 1, 10'000, &rounds);
  if (!reader.Read(argc, argv)) {
    std::cerr << "usage: bench_compile [--filter=BEGINNING_OF_NAME] [--rounds=N] [--json=FILE]\n";
    return 2;
  }
  tensord::TuneAllocator();
  return tensord::Main(json_file, filter, rounds);
}
