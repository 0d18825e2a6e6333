// The cost of a run without a client: bound programs run on the calling thread, and the cost of threads and memory
// before that; medians of many rounds. Prints a table, and with --json=FILE writes the workloads in the form of ./dev
// bench.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
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
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/bench/in_process/host_workloads.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"

namespace tensord {
namespace {

constexpr int kRounds = 31;

ValueId Append(Graph* graph, CoreOp op, std::vector<ValueId> operands, Attributes attrs = {}) {
  Node node{.name = absl::StrCat("n", graph->nodes().size()), .op = &Def(op), .attrs = std::move(attrs)};
  node.operands.assign(operands.begin(), operands.end());
  return graph->AddNode(std::move(node));
}

TensorType F32(std::vector<int64_t> shape) {
  return {.dtype = DType::kF32, .shape = SymbolicShape(shape.begin(), shape.end())};
}

Graph OneAdd() {
  Graph graph;
  const ValueId x = graph.AddInput("x", F32({16})), y = graph.AddInput("y", F32({16}));
  graph.AddOutput("z", Append(&graph, CoreOp::kAdd, {x, y}));
  return graph;
}

ValueId AppendDot(Graph* graph, ValueId a, ValueId b) {
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
  attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
  return Append(graph, CoreOp::kDotGeneral, {a, b}, std::move(attrs));
}

// (a b) + c on 2×2 matrices: what remains is overhead.
Graph TwoByTwo() {
  Graph graph;
  const ValueId a = graph.AddInput("a", F32({2, 2})), b = graph.AddInput("b", F32({2, 2})),
                c = graph.AddInput("c", F32({2, 2}));
  graph.AddOutput("y", Append(&graph, CoreOp::kAdd, {AppendDot(&graph, a, b), c}));
  return graph;
}

Graph DotChain() {
  Graph graph;
  const ValueId a = graph.AddInput("a", F32({4, 4})), x = graph.AddInput("x", F32({4, 4}));
  ValueId y = x;
  for (int i = 0; i < 64; ++i) y = AppendDot(&graph, a, y);
  graph.AddOutput("y", y);
  return graph;
}

// Additions, which nothing makes fewer: a pass must not reorder sums of floats.
Graph TinyOps() {
  Graph graph;
  const ValueId x = graph.AddInput("x", F32({4}));
  ValueId y = x;
  for (int i = 0; i < 1000; ++i) y = Append(&graph, CoreOp::kAdd, {y, x});
  graph.AddOutput("y", y);
  return graph;
}

struct Workload {
  std::string name;
  std::string what;
  std::function<Graph()> graph;
  int runs_per_round;
  std::vector<std::string> disabled_passes = {};
};

// Microseconds of a run.
absl::StatusOr<double> Measure(const Workload& workload, Backend* backend) {
  Graph graph = workload.graph();
  const CompileSettings settings{.device = "cpu:0", .disabled_passes = workload.disabled_passes};
  const ProgramKey key = MakeProgramKey(graph, settings);
  const auto program = Compile(std::move(graph), settings, key.fingerprint, backend);
  if (!program.ok()) return program.status();
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> arguments;
  for (const TensorType& type : (*program)->program().slot_types) {
    if (types.size() == (*program)->program().inputs.size()) break;
    types.push_back(ToConcreteType(type));
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(types.back().num_elements()), 0.25f);
    auto buffer = backend->Import(values->data(), types.back().num_bytes(), values);
    if (!buffer.ok()) return buffer.status();
    arguments.push_back(*std::move(buffer));
  }
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int run = 0; run < workload.runs_per_round; ++run) {
      const auto bound = (*program)->Bind(types);
      if (!bound.ok()) return bound.status();
      const auto results = (*bound)->Run(arguments);
      if (!results.ok()) return results.status();
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    rounds.push_back(took.count() / workload.runs_per_round);
  }
  return Median(std::move(rounds));
}

int Main(absl::string_view json_file, absl::string_view filter) {
  const std::vector<std::string> unfused = {"fuse"}, unsegmented = {"fuse", "form_sessions"};
  const Workload workloads[] = {
      {"in_process_add", "one Add on f32[16]", &OneAdd, 5000},
      {"in_process_2x2", "dot and add on 2x2", &TwoByTwo, 5000},
      {"in_process_2x2_unsegmented", "the same, a session each", &TwoByTwo, 5000, unsegmented},
      {"in_process_dot_chain", "64 dots of 4x4 in a chain", &DotChain, 500},
      {"in_process_dot_chain_unsegmented", "the same, a session each", &DotChain, 500, unsegmented},
      {"in_process_tiny_ops", "1,000 additions of f32[4]", &TinyOps, 50},
      {"in_process_tiny_ops_unfused", "the same, a kernel each", &TinyOps, 50, unfused},
      {"in_process_tiny_ops_unsegmented", "the same, a session each", &TinyOps, 50, unsegmented}};
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  std::vector<std::string> rows;
  const auto report = [&](const std::string& name, const std::string& what, int threads, double microseconds) {
    std::cout << absl::StrFormat("%-34s %-28s %10.3f us\n", name, what, microseconds);
    rows.push_back(absl::StrFormat(R"({"workload": "%s", "threads": %d, "ours_ms": %.6f, "peers": {}})", name, threads,
                                   microseconds / 1000));
  };
  for (const Workload& workload : workloads) {
    if (!absl::StrContains(workload.name, filter)) continue;
    const absl::StatusOr<double> microseconds = Measure(workload, backend.get());
    if (!microseconds.ok()) {
      std::cerr << workload.name << ": " << microseconds.status() << "\n";
      return 1;
    }
    report(workload.name, workload.what, 1, *microseconds);
  }
  for (const HostWorkload& workload : HostWorkloads()) {
    if (!absl::StrContains(workload.name, filter)) continue;
    report(workload.name, workload.what, workload.threads, workload.measure());
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
  tensord::OptionReader reader;
  reader.Text("json", &json_file);
  reader.Text("filter", &filter);
  if (!reader.Read(argc, argv)) {
    std::cerr << "usage: bench_in_process [--filter=PART_OF_NAME] [--json=FILE]\n";
    return 2;
  }
  return tensord::Main(json_file, filter);
}
