// The cost of a gradient that nobody has asked for before: to differentiate the loss of an encoder layer (D15) by its
// weights, and to compile and bind the derivative. Prints both in time of the processor, or with --json=FILE writes the
// workloads in the form of ./dev bench.

#include <time.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/allocator_tuning.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"
#include "tests/testlib/graphs/bench_derivative_graphs.h"
#include "tests/testlib/graphs/bench_graphs.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Samples {
  std::vector<double> differentiate_ms, compile_ms;
  size_t nodes = 0, derivative_nodes = 0;
};

absl::Status Measure(const Graph& loss, const DerivativeRequest& request, Backend* backend, Samples* samples) {
  auto start = Clock::now();
  ASSIGN_OR_RETURN(Graph derivative, Differentiate(loss, request));
  samples->differentiate_ms.push_back(MillisecondsSince(start));
  samples->nodes = loss.nodes().size();
  samples->derivative_nodes = derivative.nodes().size();
  const CompileSettings settings{.device = "cpu:0", .row_major = true};
  start = Clock::now();
  const ProgramKey key = MakeProgramKey(derivative, settings);
  ASSIGN_OR_RETURN(const CompiledProgramPtr program,
                   Compile(std::move(derivative), settings, key.fingerprint, backend));
  samples->compile_ms.push_back(MillisecondsSince(start));
  return absl::OkStatus();
}

int Main(const std::string& json_file, int rounds) {
  const Graph loss = SumOfSquares(EncoderLayerGraph(512, 256, 8, 2048));
  DerivativeRequest request{.mode = DerivativeMode::kGrad, .keep_outputs = true};
  for (const GraphInput& input : loss.inputs()) {
    if (input.name != "x") request.wrt.push_back(input.name);
  }
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  Samples samples;
  for (int round = 0; round < rounds; ++round) {
    const absl::Status status = Measure(loss, request, backend.get(), &samples);
    if (!status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
  }
  const double differentiate = Median(samples.differentiate_ms), compile = Median(samples.compile_ms);
  std::cout << absl::StrFormat("S2_gradient_G15: %d nodes become %d, differentiate %.3f ms, compile %.3f ms\n",
                               samples.nodes, samples.derivative_nodes, differentiate, compile);
  if (!json_file.empty()) {
    std::ofstream(json_file) << absl::StrFormat(
        R"({"workloads": [{"workload": "S2_gradient_G15", "threads": 1, "ours_ms": %.6f, "differentiate_ms": %.6f, )"
        R"("compile_ms": %.6f, "peers": {}}]})",
        differentiate + compile, differentiate, compile);
  }
  return 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  std::string json_file;
  int rounds = 25;
  tensord::OptionReader reader;
  reader.Text("json", &json_file);
  reader.Number("rounds", 1, 10'000, &rounds);
  if (!reader.Read(argc, argv)) {
    std::cerr << "usage: bench_gradient_compile [--rounds=N] [--json=FILE]\n";
    return 2;
  }
  tensord::TuneAllocator();
  return tensord::Main(json_file, rounds);
}
