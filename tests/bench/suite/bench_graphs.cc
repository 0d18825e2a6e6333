// The benchmarks' graphs, run in turns with others: does what the lines of its standard input say and answers each with
// one line of JSON. Driven by tests/bench/suite/suite.py.
//
//   list                            the names of the workloads
//   network NAME FILE               one more workload, a sum of products: workloads.h
//   machine                         rates of the machine: GB/s of copies, GF/s
//   open NAME FOLDER                compiles it, writes inputs and results as FOLDER/x.bin and FOLDER/result_y.bin, and
//                                   says what it is
//   run NAME ours|unfused COUNT     milliseconds of each run, after one that is not counted
//   limit NAME                      milliseconds that it takes at least: of memory, products, arithmetic, math
//   functions
//
// Errors are {"error": "…"}.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/machine/blas.h"
#include "engine/base/allocator_tuning.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/compile/explain.h"
#include "tests/bench/suite/contestant.h"
#include "tests/bench/suite/graph_work.h"
#include "tests/bench/suite/machine_limits.h"
#include "tests/bench/suite/workloads.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/runs/liveness_optimum.h"

namespace tensord {
namespace {

// The size of arrays on which ops are timed without memory traffic: they stay in the cache of the core.
constexpr int64_t kCachedElements = 24576;

void WriteBytes(const std::string& file, const void* bytes, int64_t size) {
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(bytes), size);
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c >= ' ') quoted += c;
  }
  return quoted + "\"";
}

std::string TensorJson(absl::string_view name, const ConcreteType& type) {
  return absl::StrFormat(R"({"name": %s, "dtype": "%s", "shape": [%s]})", Quoted(name), Name(type.dtype),
                         absl::StrJoin(type.shape, ", "));
}

class Commands {
 public:
  explicit Commands(int threads)
      : threads_(threads), backend_(MakeCpuBackend({.threads = threads})), alone_(MakeCpuBackend({.threads = 1})) {
    for (Workload& workload : AllWorkloads()) {
      names_.push_back(workload.name);
      workloads_.emplace(names_.back(), std::move(workload));
    }
  }

  absl::StatusOr<std::string> Do(const std::vector<std::string>& words) {
    if (words[0] == "list" && words.size() == 1) return List();
    if (words[0] == "machine" && words.size() == 1) return Machine();
    if (words[0] == "network" && words.size() == 3) return AddNetwork(words[1], words[2]);
    if (words.size() < 2) return absl::InvalidArgumentError("no such command");
    const auto workload = workloads_.find(words[1]);
    if (workload == workloads_.end()) return absl::InvalidArgumentError("no such workload");
    if (words[0] == "open" && words.size() == 3) return Open(workload->second, words[2]);
    if (!opened_ || opened_->name != words[1]) return absl::InvalidArgumentError("not opened");
    if (words[0] == "limit" && words.size() == 2) return Limit();
    int count = 0;
    if (words[0] == "run" && words.size() == 4 && absl::SimpleAtoi(words[3], &count)) {
      if (words[2] == "ours") return Run(&opened_->ours, count);
      if (words[2] == "unfused" && opened_->unfused) return Run(&*opened_->unfused, count);
    }
    return absl::InvalidArgumentError("no such command");
  }

 private:
  struct Opened {
    std::string name;
    Contestant ours;
    std::optional<Contestant> unfused;
    GraphWork work;
    int64_t read_bytes = 0;
    int64_t written_bytes = 0;
  };

  std::string List() const {
    return absl::StrCat("[", absl::StrJoin(names_, ", ", [](std::string* out, const auto& n) { *out += Quoted(n); }),
                        "]");
  }

  absl::StatusOr<std::string> AddNetwork(const std::string& name, const std::string& file) {
    ASSIGN_OR_RETURN(Workload workload, ReadNetwork(name, file));
    names_.push_back(name);
    workloads_.insert_or_assign(name, std::move(workload));
    return "[]";
  }

  std::string Machine() const {
    constexpr int64_t kBytes = int64_t{1} << 27;
    const double copied = 2 * static_cast<double>(kBytes) / MemoryFloorMs(kBytes, kBytes, threads_) / 1e6;
    const double triad = 3 * static_cast<double>(kBytes) / MemoryFloorMs(2 * kBytes, kBytes, threads_) / 1e6;
    return absl::StrFormat(
        R"({"copy_gb_per_s": %.2f, "triad_gb_per_s": %.2f, "cached_gb_per_s": %.2f, "f32_gflops": %.1f, )"
        R"("f64_gflops": %.1f, "model": %s})",
        copied, triad, CachedCopyRate(threads_), PeakFlopsF32(threads_) / 1e6, PeakFlopsF64(threads_) / 1e6,
        Quoted(backend_->Describe().model));
  }

  absl::StatusOr<std::string> Open(const Workload& workload, const std::string& folder) {
    opened_.reset();
    Graph graph = workload.graph();
    const auto inputs = MakeInputs(workload, graph);
    GraphWork work = WorkOf(graph);
    std::optional<Contestant> unfused;
    if (workload.is_one_kernel) {
      ASSIGN_OR_RETURN(unfused, Contestant::Create(graph, {"fuse"}, backend_.get(), inputs, workload.state));
    }
    ASSIGN_OR_RETURN(Contestant ours, Contestant::Create(std::move(graph), {}, backend_.get(), inputs, workload.state));
    opened_.emplace(Opened{workload.name, std::move(ours), std::move(unfused), std::move(work)});

    const ExecProgram& program = opened_->ours.program().program();
    const BoundProgram& bound = opened_->ours.bound();
    std::vector<std::string> inputs_json, outputs_json;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const absl::string_view bytes = inputs[i]->bytes();
      const std::string& name = program.inputs[i].name;
      if (workload.rewrites_state || !IsState(workload, name))
        opened_->read_bytes += static_cast<int64_t>(bytes.size());
      inputs_json.push_back(TensorJson(name, inputs[i]->type()));
      WriteBytes(absl::StrCat(folder, "/", name, ".bin"), bytes.data(), static_cast<int64_t>(bytes.size()));
    }
    ASSIGN_OR_RETURN(const std::vector<BufferPtr> results, opened_->ours.Run());
    int64_t elements = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const ConcreteType& type = bound.slot_types()[static_cast<size_t>(program.outputs[i].slot)];
      const std::string& name = program.outputs[i].name;
      // If only parts of a tensor change, only the change is written; all of it is read.
      const bool is_read = IsState(workload, name) && !workload.rewrites_state;
      (is_read ? opened_->read_bytes : opened_->written_bytes) += type.num_bytes();
      elements = std::max(elements, type.num_elements());
      outputs_json.push_back(TensorJson(name, type));
      WriteBytes(absl::StrCat(folder, "/result_", name, ".bin"), results[i]->address(), type.num_bytes());
    }
    std::vector<std::string> kernels;
    for (absl::string_view line : absl::StrSplit(ExplainProgram(opened_->ours.program()), '\n')) {
      if (absl::StrContains(line, "fused")) kernels.push_back(Quoted(absl::StripAsciiWhitespace(line)));
    }
    return absl::StrFormat(
        R"({"inputs": [%s], "outputs": [%s], "read_bytes": %d, "written_bytes": %d, "segments": %d, )"
        R"("is_one_kernel": %s, "temporary_bytes": %d, "planned_bytes": %d, "alive_bytes": %d, "elements": %d, )"
        R"("compile_ms": %.3f, )"
        R"("state": [%s], "explain": [%s]})",
        absl::StrJoin(inputs_json, ", "), absl::StrJoin(outputs_json, ", "), opened_->read_bytes,
        opened_->written_bytes, opened_->ours.program().segment_count(), workload.is_one_kernel ? "true" : "false",
        bound.temporary_bytes(), PlannedBytes(bound.plan()),
        LivenessOptimum(program, bound, std::vector<int64_t>(program.instructions.size())), elements,
        opened_->ours.compile_ms(),
        absl::StrJoin(workload.state, ", ", [](std::string* out, const auto& n) { *out += Quoted(n); }),
        absl::StrJoin(kernels, ", "));
  }

  static bool IsState(const Workload& workload, const std::string& name) {
    return std::find(workload.state.begin(), workload.state.end(), name) != workload.state.end();
  }

  static absl::StatusOr<std::string> Run(Contestant* contestant, int count) {
    std::vector<std::string> times;
    RETURN_IF_ERROR(contestant->Run().status());
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const double ms, contestant->RunTimed());
      times.push_back(absl::StrCat(ms));
    }
    return absl::StrCat("[", absl::StrJoin(times, ", "), "]");
  }

  absl::StatusOr<std::string> Limit() {
    const GraphWork& work = opened_->work;
    double math_ms = 0, flops = 0, products_ms = 0;
    for (const auto& [op, elements] : work.math) {
      ASSIGN_OR_RETURN(const double ms, CachedMsPerElement(op.first, op.second));
      math_ms += ms * elements / threads_;
    }
    const double f32 = PeakFlopsF32(threads_), f64 = PeakFlopsF64(threads_);
    double arithmetic_ms = work.arithmetic_f32 / f32 + work.arithmetic_f64 / f64;
    for (const MatrixSizes& product : work.products) {
      flops += Flops(product);
      const bool is_single = kHalves.Contains(product.dtype) || RealPartOf(product.dtype) == DType::kF32;
      (IsForBlas(product) ? products_ms : arithmetic_ms) +=
          IsForBlas(product) ? BlasMs(product, threads_) : Flops(product) / (is_single ? f32 : f64);
    }
    for (const auto& [kind, products] : work.semiring_products) {
      flops += 2 * products;
      arithmetic_ms += products / PeakSemiringProducts(kind.first, kind.second, threads_);
    }
    return absl::StrFormat(R"({"dram": %.6f, "fma": %.6f, "arithmetic": %.6f, "math": %.6f, "flops": %.0f})",
                           MemoryFloorMs(opened_->read_bytes, opened_->written_bytes, threads_), products_ms,
                           arithmetic_ms, math_ms, flops);
  }

  // Returns the time of the op alone on data that stays in the cache; no kernel of operations that follow one another
  // without memory in between takes less.
  absl::StatusOr<double> CachedMsPerElement(CoreOp op, DType dtype) {
    const auto known = cached_.find({op, dtype});
    if (known != cached_.end()) return known->second;
    // The cost of the call is the same for both.
    ASSIGN_OR_RETURN(const double half, BestMsOfOp(op, dtype, kCachedElements / 2));
    ASSIGN_OR_RETURN(const double whole, BestMsOfOp(op, dtype, kCachedElements));
    return cached_[{op, dtype}] = std::max(0., whole - half) / static_cast<double>(kCachedElements / 2);
  }

  absl::StatusOr<double> BestMsOfOp(CoreOp op, DType dtype, int64_t elements) {
    Graph graph = OneOpGraph(op, dtype, elements);
    const auto inputs = MakeInputs({.name = "", .graph = nullptr, .range = {0.01, 4}}, graph);
    ASSIGN_OR_RETURN(Contestant contestant, Contestant::Create(std::move(graph), {}, alone_.get(), inputs, {}));
    double best = 1e9;
    for (int round = 0; round < 41; ++round) {
      constexpr int kRuns = 10;
      const auto start = std::chrono::steady_clock::now();
      for (int run = 0; run < kRuns; ++run) RETURN_IF_ERROR(contestant.Run().status());
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count() / kRuns);
    }
    return best;
  }

  const int threads_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Backend> alone_;
  std::vector<std::string> names_;
  std::map<std::string, Workload> workloads_;
  std::optional<Opened> opened_;
  std::map<std::pair<CoreOp, DType>, double> cached_;
};

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::cpu::BeginAgainWithBlasCore(tensord::cpu::FittingBlasCore(std::nullopt), argv);  // as the server
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--threads=") || !absl::SimpleAtoi(argument, &threads) || threads < 1) {
      std::cerr << "usage: bench_graphs [--threads=N] < commands\n";
      return 2;
    }
  }
  tensord::TuneAllocator();
  tensord::Commands commands(threads);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    const absl::StatusOr<std::string> answer = commands.Do(words);
    std::cout << (answer.ok() ? *answer
                              : absl::StrCat("{\"error\": ", tensord::Quoted(answer.status().ToString()), "}"))
              << std::endl;
  }
  return 0;
}
