// The gain of fusing: random graphs of maps, reductions and broadcasts at five sizes, each run in turns with and
// without the pass `fuse`. Prints a line for each size and the worst graphs with their texts, fails if the fused
// program takes more than 1.5 times as long as the other, and with --json=FILE writes the workloads in the form of
// ./dev bench.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/allocator_tuning.h"
#include "engine/base/status_macros.h"
#include "engine/ir/printer.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"
#include "tests/testlib/graphs/random_reductions.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostOfUnfused = 1.5;
constexpr int64_t kSizes[] = {64, 2048, 65536, 524288, 4194304};  // elements, from tiny to larger than the caches
constexpr size_t kShownGraphs = 3;                                // of a size
constexpr double kTurnMs = 0.5;                                   // of a turn, at least
constexpr int kTurns = 5;
constexpr int kRepetitions = 3;  // of what seems too slow: a machine that others use has bad moments

// A program with arguments, run again and again on this thread.
class Contestant {
 public:
  static absl::StatusOr<Contestant> Create(const Graph& graph, std::vector<std::string> disabled_passes,
                                           Backend* backend) {
    const CompileSettings settings{.device = "cpu:0", .disabled_passes = std::move(disabled_passes)};
    Contestant contestant;
    ASSIGN_OR_RETURN(contestant.program_,
                     Compile(graph, settings, MakeProgramKey(graph, settings).fingerprint, backend));
    std::mt19937 random(1);
    std::uniform_real_distribution<double> value(0.5, 1.5);
    for (const GraphInput& input : graph.inputs()) {
      const ConcreteType type = ToConcreteType(input.type);
      ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, backend->Allocate(type.num_bytes()));
      void* const data = buffer->address();
      for (int64_t i = 0; i < type.num_elements(); ++i) {
        const double x = value(random);
        type.dtype == DType::kF32 ? void(static_cast<float*>(data)[i] = static_cast<float>(x))
                                  : void(static_cast<double*>(data)[i] = x);
      }
      contestant.arguments_.push_back(std::move(buffer));
      contestant.types_.push_back(type);
    }
    ASSIGN_OR_RETURN(contestant.bound_, contestant.program_->Bind(contestant.types_));
    ASSIGN_OR_RETURN(const double first, contestant.TurnMs(1));
    ASSIGN_OR_RETURN(const double second, contestant.TurnMs(1));
    contestant.runs_ = std::max(1, static_cast<int>(kTurnMs / std::max(1e-6, std::min(first, second))));
    return contestant;
  }

  // Milliseconds of a run.
  absl::StatusOr<double> TurnMs() const { return TurnMs(runs_); }
  const CompiledProgram& program() const { return *program_; }

 private:
  absl::StatusOr<double> TurnMs(int runs) const {
    const Clock::time_point start = Clock::now();
    for (int run = 0; run < runs; ++run) {
      const auto results = bound_->Run(arguments_);
      if (!results.ok()) return results.status();
    }
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / runs;
  }

  CompiledProgramPtr program_;
  std::shared_ptr<const BoundProgram> bound_;
  std::vector<ConcreteType> types_;
  std::vector<BufferPtr> arguments_;
  int runs_ = 1;
};

struct Measured {
  uint64_t seed = 0;
  double fused_ms = 0;
  double unfused_ms = 0;
  double ratio() const { return fused_ms / unfused_ms; }
};

absl::StatusOr<Measured> Measure(uint64_t seed, int64_t elements, Backend* backend) {
  const Graph graph = RandomReductionGraph(seed, elements);
  ASSIGN_OR_RETURN(const Contestant fused, Contestant::Create(graph, {}, backend));
  ASSIGN_OR_RETURN(const Contestant unfused, Contestant::Create(graph, {"fuse"}, backend));
  Measured best{.seed = seed, .fused_ms = 1, .unfused_ms = 0};
  for (int repetition = 0; repetition < kRepetitions && best.ratio() > kMostOfUnfused; ++repetition) {
    std::vector<double> with, without;
    for (int turn = 0; turn < kTurns; ++turn) {
      ASSIGN_OR_RETURN(const double a, fused.TurnMs());
      ASSIGN_OR_RETURN(const double b, unfused.TurnMs());
      with.push_back(a);
      without.push_back(b);
    }
    const Measured measured{.seed = seed, .fused_ms = Median(with), .unfused_ms = Median(without)};
    if (measured.ratio() < best.ratio()) best = measured;
  }
  return best;
}

// `elements`: of one size alone, 0: of all. `explains`: the worst graphs' texts are shown even where they are fast.
struct Options {
  std::string json_file;
  int threads = 1;
  int64_t graphs = 300;
  uint64_t seed = 1;
  int64_t elements = 0;
  bool explains = false;
};

// The text of a graph, and why its fused program runs as it does.
void Show(uint64_t seed, int64_t elements, Backend* backend) {
  const Graph graph = RandomReductionGraph(seed, elements);
  std::cout << PrintGraph(graph);
  const absl::StatusOr<Contestant> fused = Contestant::Create(graph, {}, backend);
  if (fused.ok()) std::cout << ExplainProgram(fused->program()) << "\n";
}

// The graphs' figures at one size, the slowest beside its unfused program first.
absl::StatusOr<std::vector<Measured>> MeasureAll(const Options& options, int64_t elements, Backend* backend) {
  std::vector<Measured> all;
  for (int64_t g = 0; g < options.graphs; ++g) {
    ASSIGN_OR_RETURN(const Measured measured, Measure(options.seed + static_cast<uint64_t>(g), elements, backend));
    all.push_back(measured);
  }
  std::sort(all.begin(), all.end(), [](const Measured& a, const Measured& b) { return a.ratio() > b.ratio(); });
  return all;
}

int Main(const Options& options) {
  TuneAllocator();
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = options.threads});
  std::vector<std::string> rows;
  int64_t slow = 0;
  std::cout << absl::StrFormat("%-10s %8s %12s %12s %10s %10s\n", "elements", "graphs", "fused ms", "unfused ms",
                               "geo. mean", "worst");
  for (const int64_t elements : kSizes) {
    if (options.elements != 0 && options.elements != elements) continue;
    const absl::StatusOr<std::vector<Measured>> all = MeasureAll(options, elements, backend.get());
    if (!all.ok()) {
      std::cerr << all.status() << "\n";
      return 2;
    }
    double fused = 0, unfused = 0, logarithm = 0;
    for (const Measured& one : *all) {
      fused += one.fused_ms;
      unfused += one.unfused_ms;
      logarithm += std::log(one.ratio()) / static_cast<double>(all->size());
      slow += one.ratio() > kMostOfUnfused ? 1 : 0;
    }
    std::cout << absl::StrFormat("%-10d %8d %12.3f %12.3f %10.3f %10.3f\n", elements, all->size(), fused, unfused,
                                 std::exp(logarithm), all->front().ratio());
    for (size_t i = 0; i < std::min(kShownGraphs, all->size()); ++i) {
      const Measured& one = (*all)[i];
      std::cout << absl::StrFormat("  %.3f of unfused (%.4f ms, %.4f ms): --seed=%d --elements=%d\n", one.ratio(),
                                   one.fused_ms, one.unfused_ms, one.seed, elements);
      if (one.ratio() > kMostOfUnfused || options.explains) Show(one.seed, elements, backend.get());
    }
    std::cout << std::flush;
    rows.push_back(absl::StrFormat(
        R"({"workload": "fusion_%d", "threads": %d, "ours_ms": %.6f, "unfused_ms": %.6f, "worst": %.3f, "peers": {}})",
        elements, options.threads, fused, unfused, all->front().ratio()));
  }
  if (!options.json_file.empty()) {
    std::ofstream(options.json_file) << "{\"workloads\": [" << absl::StrJoin(rows, ", ") << "]}\n";
  }
  if (slow > 0)
    std::cout << absl::StrFormat("%d programs take more than %.1f times as long fused\n", slow, kMostOfUnfused);
  return slow > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::Options options;
  tensord::OptionReader reader;
  reader.Text("json", &options.json_file);
  reader.Number("threads", 1, 1024, &options.threads);
  reader.Number<int64_t>("graphs", 1, 100'000, &options.graphs);
  reader.Number<uint64_t>("seed", 0, uint64_t{1} << 62, &options.seed);
  reader.Number<int64_t>("elements", 0, int64_t{1} << 40, &options.elements);
  reader.Flag("explain", &options.explains);
  if (!reader.Read(argc, argv)) {
    std::cerr << "usage: bench_fusion [--explain] [--threads=N] [--graphs=N] [--seed=N] [--elements=N] [--json=FILE]\n";
    return 2;
  }
  return tensord::Main(options);
}
