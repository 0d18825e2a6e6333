// Graphs that are to be one fused kernel, run in turns with others: does what the lines of its standard input say and
// answers each with one line of JSON. Driven by tests/bench/fused/fused.py.
//
//   list                                     the names of the workloads
//   open NAME FOLDER                         compiles it, writes inputs and results as FOLDER/x.bin, and says what it
//   is run NAME fused|unfused COUNT             milliseconds of each run floor NAME {"dram": ms, "math": ms}
//
// Errors are {"error": "…"}.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
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
#include "engine/base/allocator_tuning.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/compiler.h"
#include "engine/runtime/explain.h"
#include "tests/bench/fused/bandwidth.h"
#include "tests/bench/fused/fused_workloads.h"
#include "tests/testlib/random_literal.h"

namespace tensord {
namespace {

// Of the arrays on which ops are timed without memory traffic: they stay in the cache of the core.
constexpr int64_t kCachedElements = 4096;

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// A compiled graph with arguments to run it on.
class Contestant {
 public:
  static absl::StatusOr<Contestant> Create(Graph graph, std::vector<std::string> disabled_passes, Backend* backend,
                                           std::vector<std::shared_ptr<const Literal>> inputs) {
    Contestant contestant;
    const CompileSettings settings{.device = "cpu:0", .disabled_passes = std::move(disabled_passes)};
    const ProgramKey key = MakeProgramKey(graph, settings);
    ASSIGN_OR_RETURN(contestant.program_, Compile(std::move(graph), settings, key.fingerprint, backend));
    std::vector<ConcreteType> types;
    for (const std::shared_ptr<const Literal>& input : inputs) {
      types.push_back(input->type());
      const absl::string_view bytes = input->bytes();
      ASSIGN_OR_RETURN(BufferPtr buffer, backend->Import(bytes.data(), static_cast<int64_t>(bytes.size()), input));
      contestant.arguments_.push_back(std::move(buffer));
    }
    ASSIGN_OR_RETURN(contestant.bound_, contestant.program_->Bind(types));
    return contestant;
  }

  const CompiledProgram& program() const { return *program_; }
  const BoundProgram& bound() const { return *bound_; }

  absl::StatusOr<std::vector<BufferPtr>> Run() const { return bound_->Run(arguments_); }

  absl::StatusOr<double> RunTimed() const {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(Run().status());
    return MillisecondsSince(start);
  }

 private:
  Contestant() = default;

  CompiledProgramPtr program_;
  std::shared_ptr<const BoundProgram> bound_;
  std::vector<BufferPtr> arguments_;
};

// Modest numbers; none below zero where `positive` says so, and for the inputs that AdamW takes roots and powers of.
std::vector<std::shared_ptr<const Literal>> InputsOf(const Graph& graph, bool positive) {
  std::mt19937_64 random(7);
  std::vector<std::shared_ptr<const Literal>> inputs;
  for (const GraphInput& input : graph.inputs()) {
    Literal literal = RandomLiteral(ToConcreteType(input.type), Values::kModest, &random);
    const auto make_positive = [&]<typename T>(TypeTag<T>) {
      for (T& value : literal.mutable_values<T>()) value = std::abs(value) + T(input.name == "step" ? 10 : 0.001);
    };
    if (positive || input.name == "v" || input.name == "step") {
      if (input.type.dtype == DType::kF64) {
        make_positive(TypeTag<double>());
      } else {
        make_positive(TypeTag<float>());
      }
    }
    inputs.push_back(std::make_shared<const Literal>(std::move(literal)));
  }
  return inputs;
}

bool NeedsPositive(const FusedWorkload& workload) {
  return workload.math.size() == 1 && absl::StartsWith(workload.name, "G01b");
}

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
  explicit Commands(int threads) : threads_(threads), backend_(MakeCpuBackend({.threads = threads})) {
    for (FusedWorkload& workload : FusedWorkloads()) workloads_.emplace(workload.name, std::move(workload));
  }

  absl::StatusOr<std::string> Do(const std::vector<std::string>& words) {
    if (words[0] == "list" && words.size() == 1) return List();
    if (words.size() < 2) return absl::InvalidArgumentError("no such command");
    const auto workload = workloads_.find(words[1]);
    if (workload == workloads_.end()) return absl::InvalidArgumentError("no such workload");
    if (words[0] == "open" && words.size() == 3) return Open(workload->second, words[2]);
    if (words[0] == "floor" && words.size() == 2) return Floor(workload->second);
    int count = 0;
    if (words[0] == "run" && words.size() == 4 && absl::SimpleAtoi(words[3], &count) && opened_.contains(words[1])) {
      return Run(opened_.at(words[1]), words[2] == "fused", count);
    }
    return absl::InvalidArgumentError("no such command");
  }

 private:
  struct Opened {
    Contestant fused, unfused;
    int64_t read_bytes = 0;
    int64_t written_bytes = 0;
    int64_t result_elements = 0;
  };

  std::string List() const {
    return absl::StrCat(
        "[", absl::StrJoin(workloads_, ", ", [](std::string* out, const auto& w) { *out += Quoted(w.first); }), "]");
  }

  absl::StatusOr<std::string> Open(const FusedWorkload& workload, const std::string& folder) {
    opened_.clear();
    Graph graph = workload.graph();
    const auto inputs = InputsOf(graph, NeedsPositive(workload));
    ASSIGN_OR_RETURN(Contestant unfused, Contestant::Create(graph, {"fuse"}, backend_.get(), inputs));
    ASSIGN_OR_RETURN(Contestant fused, Contestant::Create(std::move(graph), {}, backend_.get(), inputs));
    Opened opened{.fused = std::move(fused), .unfused = std::move(unfused)};

    const ExecProgram& program = opened.fused.program().program();
    std::vector<std::string> inputs_json, outputs_json;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const absl::string_view bytes = inputs[i]->bytes();
      opened.read_bytes += static_cast<int64_t>(bytes.size());
      inputs_json.push_back(TensorJson(program.inputs[i].name, inputs[i]->type()));
      WriteBytes(absl::StrCat(folder, "/", program.inputs[i].name, ".bin"), bytes.data(),
                 static_cast<int64_t>(bytes.size()));
    }
    ASSIGN_OR_RETURN(const std::vector<BufferPtr> results, opened.fused.Run());
    for (size_t i = 0; i < results.size(); ++i) {
      const ConcreteType& type = opened.fused.bound().slot_types()[static_cast<size_t>(program.outputs[i].slot)];
      opened.written_bytes += type.num_bytes();
      opened.result_elements = std::max(opened.result_elements, type.num_elements());
      outputs_json.push_back(TensorJson(program.outputs[i].name, type));
      WriteBytes(absl::StrCat(folder, "/result_", program.outputs[i].name, ".bin"), results[i]->address(),
                 type.num_bytes());
    }
    std::vector<std::string> kernels;
    for (absl::string_view line : absl::StrSplit(ExplainProgram(opened.fused.program()), '\n')) {
      if (absl::StrContains(line, "fused")) kernels.push_back(Quoted(absl::StripAsciiWhitespace(line)));
    }
    std::string answer = absl::StrFormat(
        R"({"inputs": [%s], "outputs": [%s], "read_bytes": %d, "written_bytes": %d, "segments": %d, )"
        R"("unfused_segments": %d, "temporary_bytes": %d, "elements": %d, "explain": [%s]})",
        absl::StrJoin(inputs_json, ", "), absl::StrJoin(outputs_json, ", "), opened.read_bytes, opened.written_bytes,
        opened.fused.program().segment_count(), opened.unfused.program().segment_count(),
        opened.fused.bound().temporary_bytes(), opened.result_elements, absl::StrJoin(kernels, ", "));
    opened_.emplace(workload.name, std::move(opened));
    return answer;
  }

  static absl::StatusOr<std::string> Run(const Opened& opened, bool fused, int count) {
    std::vector<std::string> times;
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const double ms, (fused ? opened.fused : opened.unfused).RunTimed());
      times.push_back(absl::StrCat(ms));
    }
    return absl::StrCat("[", absl::StrJoin(times, ", "), "]");
  }

  absl::StatusOr<std::string> Floor(const FusedWorkload& workload) {
    const auto opened = opened_.find(workload.name);
    if (opened == opened_.end()) return absl::InvalidArgumentError("not opened");
    double math_ms = 0;
    for (const CoreOp op : workload.math) {
      ASSIGN_OR_RETURN(const double ms, CachedMsPerElement(op, workload.dtype));
      math_ms += ms * static_cast<double>(opened->second.result_elements) / threads_;
    }
    return absl::StrFormat(R"({"dram": %.6f, "math": %.6f})",
                           MemoryFloorMs(opened->second.read_bytes, opened->second.written_bytes, threads_), math_ms);
  }

  // What the op alone takes on data that stays in the cache; of operations that follow one another without memory in
  // between, no kernel takes less.
  absl::StatusOr<double> CachedMsPerElement(CoreOp op, DType dtype) {
    Graph graph = OneOpGraph(op, dtype, kCachedElements);
    const auto inputs = InputsOf(graph, /*positive=*/true);
    ASSIGN_OR_RETURN(const Contestant contestant,
                     Contestant::Create(std::move(graph), {"fuse"}, backend_.get(), inputs));
    std::vector<double> rounds;
    for (int round = 0; round < 21; ++round) {
      constexpr int kRuns = 50;
      const auto start = std::chrono::steady_clock::now();
      for (int run = 0; run < kRuns; ++run) RETURN_IF_ERROR(contestant.Run().status());
      rounds.push_back(MillisecondsSince(start) / kRuns);
    }
    return *std::min_element(rounds.begin(), rounds.end()) / static_cast<double>(kCachedElements);
  }

  const int threads_;
  const std::unique_ptr<Backend> backend_;
  std::map<std::string, FusedWorkload> workloads_;
  std::map<std::string, Opened> opened_;
};

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--threads=") || !absl::SimpleAtoi(argument, &threads) || threads < 1) {
      std::cerr << "usage: bench_fused [--threads=N] < commands\n";
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
