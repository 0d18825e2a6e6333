// Graphs on one GPU, run in process on tensors that stay there: the time of the GPU's work by its own events, and that
// of whole runs. Prints a table, and with --json=FILE writes it. Each run's first result is the same at every run, and
// after all nothing is left on the device; else the status is 1.

#include <algorithm>
#include <chrono>
#include <cstring>
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
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/base/fingerprint.h"
#include "engine/base/status_macros.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "tests/bench/cuda/cuda_workloads.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRounds = 200;
constexpr int64_t kHostBytes = int64_t{8} << 30;

struct Options {
  std::string libraries;  // as cuda.libraries
  std::string filter;
  std::string json;
  int64_t divide = 1;
  int milliseconds = 500;  // of measuring for each workload
};

struct Measured {
  CudaWorkload workload;
  std::vector<ConcreteType> inputs;
  double compile_ms = 0;
  double device_ms = 0;  // of the GPU's work
  double run_ms = 0;     // of a run that nobody times
  std::string digest;    // of the first result
};

double Milliseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Numbers from 0.25 to 1.25 in every dtype of the workloads, by the low bits of a generator.
class Numbers {
 public:
  std::string Of(const ConcreteType& type, bool is_definite) {
    std::string bytes(static_cast<size_t>(type.num_bytes()), '\0');
    const int64_t rows = type.shape.empty() ? 1 : type.shape[0];
    const size_t real_bytes = static_cast<size_t>(type.dtype == DType::kC64 ? 4 : SizeOf(type.dtype));
    for (size_t at = 0, i = 0; at < bytes.size(); at += real_bytes, ++i) {
      const int64_t element = static_cast<int64_t>(i) % (rows * rows);
      double number = Next();
      if (is_definite) number = element % (rows + 1) == 0 ? static_cast<double>(rows) + number : 0.25;
      Write(number, type.dtype, &bytes[at]);
    }
    return bytes;
  }

 private:
  double Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return 0.25 + static_cast<double>(state_ >> 40) / static_cast<double>(1 << 24);
  }
  static void Write(double number, DType dtype, char* to) {
    const float single = static_cast<float>(number);
    if (dtype == DType::kF64) {
      std::memcpy(to, &number, sizeof(number));
    } else if (dtype == DType::kBF16) {
      std::memcpy(to, reinterpret_cast<const char*>(&single) + 2, 2);
    } else {
      std::memcpy(to, &single, sizeof(single));
    }
  }

  uint64_t state_ = 1;
};

class CudaBench {
 public:
  CudaBench(Backend* backend, const Options& options) : backend_(backend), options_(options) {}

  absl::StatusOr<Measured> Measure(const CudaWorkload& workload) {
    Measured measured{.workload = workload};
    ASSIGN_OR_RETURN(Graph graph, ParseGraph(workload.text, FamilyRegistry()));
    const Clock::time_point start = Clock::now();
    ASSIGN_OR_RETURN(const CompiledProgramPtr program,
                     Compile(std::move(graph), {.device = "cuda:0"}, Fingerprint(), backend_));
    measured.compile_ms = Milliseconds(start);
    RunRequest run;
    run.program = program;
    run.stays = {true};
    Numbers numbers;
    for (size_t i = 0; i < program->program().inputs.size(); ++i) {
      const ConcreteType type = program->static_binding()->slot_types()[i];
      RunTensor argument{.type = type};
      const std::string bytes = numbers.Of(type, workload.is_definite);
      ASSIGN_OR_RETURN(argument.buffer, backend_->Import(bytes.data(), type.num_bytes(), nullptr));
      run.arguments.push_back(std::move(argument));
      measured.inputs.push_back(type);
    }
    ASSIGN_OR_RETURN(measured.digest, Digest(run));
    RETURN_IF_ERROR(Time(run, &measured));
    ASSIGN_OR_RETURN(const std::string again, Digest(run));
    if (again != measured.digest) return absl::InternalError("a later run gave other bits");
    return measured;
  }

 private:
  static absl::StatusOr<std::string> Digest(RunRequest run) {
    run.stays = {false};
    ASSIGN_OR_RETURN(const RunOutcome outcome, RunProgram(run, absl::ZeroDuration()));
    const RunTensor& result = outcome.results[0];
    return Fingerprint::Of({static_cast<const char*>(result.bytes.get()), static_cast<size_t>(result.type.num_bytes())})
        .ToHex();
  }

  absl::Status Time(RunRequest run, Measured* measured) const {
    std::vector<double> device, whole;
    const Clock::time_point start = Clock::now();
    for (int round = 0; round < kMostRounds; ++round) {
      if (round >= 3 && Milliseconds(start) > options_.milliseconds) break;
      run.profile = true;
      ASSIGN_OR_RETURN(const RunOutcome timed, RunProgram(run, absl::ZeroDuration()));
      absl::Duration work;
      for (const SegmentProfile& segment : timed.profile) work += segment.duration;
      device.push_back(absl::ToDoubleMilliseconds(work));
      run.profile = false;
      const Clock::time_point begun = Clock::now();
      RETURN_IF_ERROR(RunProgram(run, absl::ZeroDuration()).status());
      whole.push_back(Milliseconds(begun));
    }
    measured->device_ms = Median(std::move(device));
    measured->run_ms = Median(std::move(whole));
    return absl::OkStatus();
  }

  Backend* const backend_;
  const Options& options_;
};

// "3904 GB/s", "50.1 TF/s"; empty where the time of a run is all.
std::string RateText(const Measured& measured) {
  const double seconds = std::max(measured.device_ms, 1e-6) / 1e3;
  if (measured.workload.bytes > 0) {
    return absl::StrFormat("%.4g GB/s", static_cast<double>(measured.workload.bytes) / seconds / 1e9);
  }
  if (measured.workload.flops > 0) return absl::StrFormat("%.4g TF/s", measured.workload.flops / seconds / 1e12);
  return "";
}

std::string JsonOf(const Measured& measured) {
  const auto input = [](std::string* text, const ConcreteType& type) {
    absl::StrAppend(text, "{\"dtype\": \"", Name(type.dtype), "\", \"shape\": [", absl::StrJoin(type.shape, ", "),
                    "]}");
  };
  return absl::StrCat("{\"workload\": \"", measured.workload.name, "\", \"bytes\": ", measured.workload.bytes,
                      ", \"flops\": ", measured.workload.flops,
                      ", \"is_chain\": ", measured.workload.is_chain ? "true" : "false",
                      ", \"compile_ms\": ", measured.compile_ms, ", \"device_ms\": ", measured.device_ms,
                      ", \"run_ms\": ", measured.run_ms, ", \"digest\": \"", measured.digest, "\", \"inputs\": [",
                      absl::StrJoin(measured.inputs, ", ", input), "]}");
}

// After each workload: what was measured is kept where time runs out.
void WriteJson(const Options& options, const Backend& backend, const std::vector<std::string>& workloads) {
  if (options.json.empty()) return;
  std::ofstream(options.json) << "{\"device\": \"" << backend.Describe().model << "\", \"workloads\": [\n"
                              << absl::StrJoin(workloads, ",\n") << "\n]}\n";
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(cuda::Libraries* libraries) {
  return MakeCudaBackend({.libraries = libraries, .host_memory = HostBufferPool::Create(kHostBytes, kHostBytes)});
}

int Main(const Options& options) {
  auto libraries = cuda::Libraries::Open(cuda::PathsOf(options.libraries));
  if (!libraries.ok()) {
    std::cerr << libraries.status().message() << "\n";
    return 1;
  }
  auto backend = MakeBackend(libraries->get());
  if (!backend.ok()) {
    std::cerr << backend.status().message() << "\n";
    return 1;
  }
  std::cout << (*backend)->Describe().model << "\n"
            << absl::StrFormat("%-24s %11s %11s %12s %12s\n", "workload", "compile ms", "device ms", "run ms", "rate");
  std::vector<std::string> json;
  bool is_well = true;
  for (const CudaWorkload& workload : CudaWorkloads(options.divide)) {
    if (!absl::StartsWith(workload.name, options.filter)) continue;
    const auto measured = CudaBench(backend->get(), options).Measure(workload);
    if (!measured.ok()) {
      std::cout << absl::StrFormat("%-24s %s\n", workload.name, measured.status().message());
      is_well = false;
      continue;
    }
    std::cout << absl::StrFormat("%-24s %11.1f %11.4f %12.4f %12s\n", workload.name, measured->compile_ms,
                                 measured->device_ms, measured->run_ms, RateText(*measured))
              << std::flush;
    json.push_back(JsonOf(*measured));
    WriteJson(options, **backend, json);
  }
  if (const int64_t left = (*backend)->Memory().in_use_bytes; left != 0) {
    std::cout << left << " bytes are left on the device\n";
    is_well = false;
  }
  return is_well ? 0 : 1;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::Options options;
  tensord::OptionReader reader;
  reader.Text("libraries", &options.libraries);
  reader.Text("filter", &options.filter);
  reader.Text("json", &options.json);
  reader.Number("divide", int64_t{1}, int64_t{1} << 30, &options.divide);
  reader.Number("milliseconds", 1, 600'000, &options.milliseconds);
  if (!reader.Read(argc, argv)) {
    std::cerr
        << "usage: bench_cuda [--libraries=FOLDER] [--filter=BEGIN] [--divide=N] [--milliseconds=N] [--json=FILE]\n";
    return 2;
  }
  return tensord::Main(options);
}
