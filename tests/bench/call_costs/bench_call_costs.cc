// The cost that the server adds to a call beside its work: identity, counting, sampling. Run it with
// --benchmark_filter=NAME.
#include <benchmark/benchmark.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/fingerprint.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "engine/runtime/devices/segment_times.h"
#include "server/identity/audit.h"
#include "server/identity/authenticator.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/metrics/process_metrics.h"
#include "server/profiling/stack_sampler.h"

namespace tensord::server {
namespace {

// An authenticator with that many callers, each with a token; none: it asks nobody.
class Gate {
 public:
  explicit Gate(int64_t callers) : authenticator_(&metrics_, &audit_) {
    if (callers == 0) return;
    std::string text;
    for (int64_t i = 0; i < callers; ++i) {
      absl::StrAppend(&text, "tenant-", i, " execute,read ", Fingerprint::Of(absl::StrCat("token-", i)).ToHex(), "\n");
    }
    IdentityPolicy policy;
    policy.required = true;
    policy.table = std::make_shared<const IdentityTable>(*IdentityTable::Parse(text));
    authenticator_.Replace(std::move(policy));
  }
  const Authenticator& authenticator() const { return authenticator_; }

 private:
  Log log_{{.level = LogLevel::kOff}};
  Metrics all_{std::vector<std::string>()};
  ControlMetrics metrics_{*all_.registry()};
  Audit audit_{&log_};
  Authenticator authenticator_;
};

void Admit(benchmark::State& state) {
  const Gate gate(state.range(0));
  const std::string token = absl::StrCat("Bearer token-", state.range(0) / 2);
  Credentials credentials;
  if (state.range(0) > 0) credentials.authorizations = {token};
  for (auto _ : state) {
    Caller caller;
    const absl::Status status = gate.authenticator().Admit(credentials, "", RpcMethod::kExecute, &caller);
    if (!status.ok()) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(caller);
  }
}
BENCHMARK(Admit)->Arg(0)->Arg(1)->Arg(100)->Arg(10'000);

void CountACall(benchmark::State& state) {
  Metrics metrics(std::vector<std::string>{"cpu:0"});
  RequestRecord record;
  record.device = "cpu:0";
  if (state.range(0) == 1) record.tenant = "team-a";
  auto at = StageTimes::Clock::now();
  record.stages = StageTimes(at);
  for (const Stage stage : {Stage::kDecode, Stage::kQueue, Stage::kCompute, Stage::kEncode}) {
    record.stages.EndAt(stage, at += std::chrono::microseconds(5));
  }
  for (auto _ : state) {
    metrics.CallStarted(RpcMethod::kExecute);
    metrics.CallEnded(record);
  }
}
BENCHMARK(CountACall)->ArgName("tenant")->Arg(0)->Arg(1)->Threads(1)->Threads(2);

// A run of one small kernel, without and with its segments timed now and then.
void RunOneSegment(benchmark::State& state) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  auto graph = ParseGraph(R"(graph "double" {
      %x = input : f32[16]
      %y = add(%x, %x)
      output "y" = %y
    })",
                          CoreRegistry());
  const CompiledProgramPtr program = *Compile(*std::move(graph), {.device = "cpu:0"}, Fingerprint(), backend.get());
  SegmentTimes times;
  const auto bytes = std::make_shared<std::vector<float>>(16, 1.0f);
  RunRequest request{.program = program};
  request.arguments = {{.type = ConcreteType{.dtype = DType::kF32, .shape = {16}},
                        .bytes = std::shared_ptr<const void>(bytes, bytes->data())}};
  if (state.range(0) == 1) request.segment_times = &times;
  for (auto _ : state) benchmark::DoNotOptimize(RunProgram(request, absl::ZeroDuration()));
}
BENCHMARK(RunOneSegment)->ArgName("sampled")->Arg(0)->Arg(1);

void Scrape(benchmark::State& state) {
  Metrics metrics(std::vector<std::string>{"cpu:0"});
  const ProcessMetrics process;
  const prometheus::TextSerializer serializer;
  for (auto _ : state) {
    std::vector<prometheus::MetricFamily> families = metrics.registry()->Collect();
    for (prometheus::MetricFamily& family : process.Collect()) families.push_back(std::move(family));
    benchmark::DoNotOptimize(serializer.Serialize(families));
  }
}
BENCHMARK(Scrape);

void ReadProcess(benchmark::State& state) {
  const ProcessMetrics process;
  for (auto _ : state) benchmark::DoNotOptimize(process.Collect());
}
BENCHMARK(ReadProcess);

// A signal of the profiler's: without one that samples, and with one.
void ProfileSignal(benchmark::State& state) {
  std::unique_ptr<StackSampler> sampler = StackSampler::Start(1);
  if (state.range(0) == 0) sampler->Stop();
  for (auto _ : state) raise(SIGPROF);
}
BENCHMARK(ProfileSignal)->ArgName("samples")->Arg(0)->Arg(1);

}  // namespace
}  // namespace tensord::server

BENCHMARK_MAIN();
