#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/bench/bench_flags.h"
#include "clients/cli/bench/bench_report.h"
#include "clients/cli/bench/bench_workloads.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/interrupt.h"
#include "clients/cli/shell/line_wrap.h"
#include "clients/cli/shell/progress_line.h"
#include "clients/load/load_run.h"
#include "clients/load/overload.h"

namespace tensord::cli {
namespace {

constexpr size_t kIndent = 4;  // of what a narrow screen breaks

// The workloads of one run.
struct Mix {
  std::string name;
  std::vector<load::PreparedWorkload> workloads;
};

// The runs, and their reports.
class Bench {
 public:
  // `file` gets the report as JSON too; it may be null.
  Bench(const BenchFlagValues& values, Console& console, Console* file)
      : values_(values), console_(console), file_(file), progress_(console) {}

  // Until the first that cannot start, or an interruption.
  absl::Status RunAll(client::Client& client, std::vector<BenchMix> mixes) {
    for (BenchMix& workloads : mixes) {
      absl::StatusOr<Mix> mix = PrepareMix(client, std::exchange(workloads, {}));
      if (!mix.ok()) return mix.status();
      const absl::Status ran = RunMix(*mix);
      if (!ran.ok() || is_interrupted_) return ran;
    }
    return absl::OkStatus();
  }

  // Prints the runs not printed yet, with the reason why the others did not start, and returns the exit status.
  int Report(const absl::Status& ran) {
    auto* missed = (*json_.mutable_fields())["missed"].mutable_list_value();
    for (const std::string& line : missed_) {
      missed->add_values()->set_string_value(line);
      console_.Complain(line);
    }
    if (file_ != nullptr) ran.ok() ? file_->PrintJson(json_) : file_->Fail(ran, json_);
    if (!ran.ok()) return console_.Fail(ran, std::move(json_));
    if (console_.is_json()) console_.PrintJson(json_);
    return missed_.empty() && !is_interrupted_ ? kExitOk : kExitFailed;
  }

 private:
  absl::StatusOr<Mix> PrepareMix(client::Client& client, const BenchMix& workloads) const {
    Mix mix;
    std::vector<std::string> names;
    for (size_t i = 0; i < workloads.size(); ++i) {
      const double weight = values_.workloads[i].weight;
      absl::StatusOr<load::PreparedWorkload> prepared = load::Prepare(client, workloads[i], weight, values_.options);
      if (!prepared.ok()) return prepared.status();
      names.push_back(weight == 1 ? workloads[i].name : absl::StrCat(workloads[i].name, "*", weight));
      mix.workloads.push_back(*std::move(prepared));
    }
    mix.name = absl::StrJoin(names, " + ");
    return mix;
  }

  absl::Status RunMix(const Mix& mix) {
    if (values_.overload.has_value()) return RunOverload(mix);
    for (const int concurrency : values_.concurrencies) {
      const absl::Status ran =
          RunLoop({.workload = mix.name, .connections = values_.plan.connections, .concurrency = concurrency}, mix);
      if (!ran.ok() || is_interrupted_) return ran;
    }
    for (const double rate : values_.rates) {
      const absl::Status ran =
          RunLoop({.workload = mix.name, .connections = values_.plan.connections, .rate = rate}, mix);
      if (!ran.ok() || is_interrupted_) return ran;
    }
    return absl::OkStatus();
  }

  // `title` tells which run it is.
  load::LoadPlan PlanOf(const Mix& mix, const std::string& title) {
    load::LoadPlan plan = values_.plan;
    plan.workloads = mix.workloads;
    plan.interrupted = &Interrupt::flag();
    plan.progress = [this, title](const load::LoadProgress& progress) {
      progress_.Show(ProgressText(progress, title));
    };
    return plan;
  }

  absl::Status RunLoop(BenchRun run, const Mix& mix) {
    load::LoadPlan plan = PlanOf(mix, RunTitle(run));
    plan.concurrency = run.concurrency;
    plan.rate = run.rate;
    absl::StatusOr<load::LoadResult> result = load::RunLoad(plan);
    if (!result.ok()) return result.status();
    run.result = *std::move(result);
    return Note(std::move(run));
  }

  absl::Status RunOverload(const Mix& mix) {
    absl::StatusOr<load::OverloadResult> result =
        load::RunOverload(PlanOf(mix, mix.name), *values_.overload, values_.concurrencies);
    if (!result.ok()) return result.status();
    BenchRun run = {.workload = mix.name, .connections = values_.plan.connections, .rate = result->offered};
    run.overload = {.peak_concurrency = result->peak_concurrency,
                    .peak_goodput = result->peak_goodput,
                    .goodput_ratio = result->goodput_ratio()};
    run.result = std::move(result->overload);
    return Note(std::move(run));
  }

  // Prints the run. UNAVAILABLE if it ended because its server is gone.
  absl::Status Note(BenchRun run) {
    progress_.Clear();
    is_interrupted_ = run.result.is_interrupted;
    AddRunJson(RunJson(run), &json_);
    if (!console_.is_json()) console_.out() << WrapLines(RunText(run), console_.columns(), kIndent) << std::flush;
    for (std::string& line : MissedGates(run, values_.gates)) missed_.push_back(std::move(line));
    if (!run.result.is_server_gone) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("no call has reached the server for ",
                                               absl::FormatDuration(values_.plan.give_up), ": ",
                                               values_.plan.connection.target));
  }

  const BenchFlagValues& values_;
  Console& console_;
  Console* const file_;
  google::protobuf::Struct json_;
  std::vector<std::string> missed_;
  bool is_interrupted_ = false;
  ProgressLine progress_;
};

int RunBench(const Arguments& arguments, Console& console) {
  const absl::StatusOr<BenchFlagValues> values = ParseBenchFlags(arguments);
  if (!values.ok()) return console.Usage("bench", values.status().message());
  const absl::StatusOr<BenchFiles> files = ReadBenchFiles(*values);
  if (!files.ok()) return console.Fail(files.status());
  const absl::Status names = CheckBenchNames(*values, *files);
  if (!names.ok()) return console.Usage("bench", names.message());
  absl::StatusOr<std::vector<BenchMix>> mixes = MakeBenchMixes(*values, *files);
  if (!mixes.ok()) return console.Fail(mixes.status());
  // Before the load: a report that cannot be written is not worth waiting for.
  const std::string path = arguments.Value("json").value_or("");
  std::ofstream file;
  std::ostringstream said;  // a failure stands on the console already
  Console report(file, said);
  report.set_json(true);
  if (!path.empty()) {
    console.set_json(false);
    file.open(path);
    if (!file) return console.Fail(absl::InvalidArgumentError(absl::StrCat("cannot write ", path)));
  }
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values->plan.connection);
  if (!client.ok()) return console.Fail(client.status());
  const Interrupt interrupt;
  Bench bench(*values, console, path.empty() ? nullptr : &report);
  const int status = bench.Report(bench.RunAll(**client, *std::move(mixes)));
  if (!path.empty() && !file.flush()) return console.Fail(absl::DataLossError(absl::StrCat("cannot write ", path)));
  return status;
}

}  // namespace

Command BenchCommand() {
  return {.name = "bench",
          .operands = "",
          .summary = "Measure how the server does under load",
          .details =
              "LIST has commas in between. Workloads: tiny (a sum of 16 elements), busy:N (N small products in a "
              "row on one core), matmul:N, upload:BYTES, download:BYTES, or a graph file; an own weight stands "
              "behind a star.\n--deadline is that of each call. Latency counts from when a call was due, so that an "
              "open loop shows what its users wait; queue and run are the server's own times, and the rest is the "
              "network and both programs.\nCtrl-C prints what there is.\n",
          .flags = BenchFlags(),
          .run = &RunBench};
}

}  // namespace tensord::cli
