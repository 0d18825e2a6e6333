#include "clients/cli/bench/bench_flags.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/shell/connection.h"
#include "tensord/connect_options.h"

namespace tensord::cli {
namespace {

constexpr int kMostConcurrency = 100'000;
constexpr int kMostConnections = 10'000;
constexpr int kMostThreads = 256;
constexpr double kMostRate = 1e7;
// An overload must reach the server's queues, which the streams of one connection are too few for.
constexpr int kOverloadConnections = 16;

absl::Status BadValue(absl::string_view flag, absl::string_view wanted, absl::string_view value) {
  return absl::InvalidArgumentError(absl::StrCat("flag needs ", wanted, ": --", flag, "=", value));
}

// Reads flags until one cannot be read; that is its status.
class FlagReader {
 public:
  explicit FlagReader(const Arguments& arguments) : arguments_(arguments) {}

  const absl::Status& status() const { return status_; }

  void Number(absl::string_view flag, int least, int most, int* target) {
    if (const auto value = arguments_.Value(flag)) ReadNumber(flag, *value, least, most, target);
  }
  void Numbers(absl::string_view flag, int least, int most, std::vector<int>* target) {
    ForEach(flag, [&](absl::string_view word) {
      int number = 0;
      ReadNumber(flag, word, least, most, &number);
      target->push_back(number);
    });
  }
  template <typename Use>
  void Real(absl::string_view flag, double above, double most, const Use& use) {
    if (const auto value = arguments_.Value(flag)) ReadReal(flag, *value, above, most, use);
  }
  void Reals(absl::string_view flag, double above, double most, std::vector<double>* target) {
    ForEach(flag, [&](absl::string_view word) {
      ReadReal(flag, word, above, most, [&](double number) { target->push_back(number); });
    });
  }
  // `use` gets a time of at least `least`.
  template <typename Use>
  void Time(absl::string_view flag, absl::Duration least, const Use& use) {
    const auto value = arguments_.Value(flag);
    if (!value.has_value()) return;
    const absl::StatusOr<absl::Duration> time = ParseTime(flag, *value, least);
    if (!time.ok()) return Fail(time.status());
    use(*time);
  }
  template <typename Use>
  void ForEach(absl::string_view flag, const Use& use) {
    const auto value = arguments_.Value(flag);
    if (!value.has_value()) return;
    for (absl::string_view word : absl::StrSplit(*value, ',')) use(word);
  }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  void ReadNumber(absl::string_view flag, absl::string_view word, int least, int most, int* target) {
    if (!absl::SimpleAtoi(word, target) || *target < least || *target > most) {
      Fail(BadValue(flag, absl::StrCat("a number from ", least, " to ", most), word));
    }
  }
  template <typename Use>
  void ReadReal(absl::string_view flag, absl::string_view word, double above, double most, const Use& use) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number) || !(number > above) || !(number <= most)) {
      return Fail(BadValue(flag, absl::StrCat("a number above ", above, " and at most ", most), word));
    }
    use(number);
  }

  const Arguments& arguments_;
  absl::Status status_;
};

absl::StatusOr<client::DType> ParseDType(absl::string_view word) {
  for (const client::DType dtype :
       {client::DType::kBool, client::DType::kI32, client::DType::kI64, client::DType::kF32, client::DType::kF64,
        client::DType::kC64, client::DType::kC128, client::DType::kF16, client::DType::kBF16}) {
    if (client::DTypeName(dtype) == word) return dtype;
  }
  return BadValue("dtypes", "dtypes such as f32,f64", word);
}

void ReadWorkloads(const Arguments& arguments, FlagReader& reader, BenchFlagValues* values) {
  auto specs = load::ParseWorkloadSpecs(arguments.Value("workload").value_or("tiny"));
  if (!specs.ok()) return reader.Fail(specs.status());
  values->workloads = *std::move(specs);
  reader.ForEach("sizes", [&](absl::string_view word) {
    const absl::StatusOr<int64_t> size = load::ParseSize(word);
    if (!size.ok()) return reader.Fail(BadValue("sizes", "sizes such as 64,16Ki", word));
    values->sizes.push_back(*size);
  });
  reader.ForEach("dtypes", [&](absl::string_view word) {
    const absl::StatusOr<client::DType> dtype = ParseDType(word);
    if (!dtype.ok()) return reader.Fail(dtype.status());
    values->dtypes.push_back(*dtype);
  });
  const bool takes_size = std::any_of(values->workloads.begin(), values->workloads.end(), [](const auto& spec) {
    return load::HasSize(spec.name) && !spec.size.has_value();
  });
  const bool takes_dtype = std::any_of(values->workloads.begin(), values->workloads.end(),
                                       [](const auto& spec) { return load::IsBuiltIn(spec.name); });
  if (!values->sizes.empty() && !takes_size) {
    reader.Fail(absl::InvalidArgumentError("no workload is left to take a size from --sizes"));
  }
  if (!values->dtypes.empty() && !takes_dtype) {
    reader.Fail(absl::InvalidArgumentError("only workloads that are built in take a dtype from --dtypes"));
  }
  if (values->dtypes.empty()) values->dtypes.push_back(client::DType::kF32);
  for (const std::string& entry : arguments.Values("input")) {
    auto named = ParseNameAndFile("input", entry);
    if (!named.ok()) return reader.Fail(named.status());
    if (!values->files.insert(*std::move(named)).second) reader.Fail(BadValue("input", "each name once", entry));
  }
  for (const std::string& entry : arguments.Values("symbol")) {
    const std::pair<std::string, std::string> named = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const absl::StatusOr<int64_t> size = load::ParseSize(named.second);
    if (named.first.empty() || !size.ok()) return reader.Fail(BadValue("symbol", "NAME=SIZE", entry));
    values->symbols[named.first] = *size;
  }
}

void ReadLoop(const Arguments& arguments, FlagReader& reader, BenchFlagValues* values) {
  load::LoadPlan& plan = values->plan;
  reader.Numbers("concurrency", 1, kMostConcurrency, &values->concurrencies);
  reader.Reals("rate", 0, kMostRate, &values->rates);
  reader.Real("overload", 0, 1000, [&](double factor) { values->overload = factor; });
  if (!values->rates.empty() && (!values->concurrencies.empty() || values->overload.has_value())) {
    reader.Fail(absl::InvalidArgumentError("--rate goes with neither --concurrency nor --overload"));
  }
  if (values->rates.empty() && values->concurrencies.empty() && !values->overload.has_value()) {
    values->concurrencies.push_back(1);
  }
  const std::string arrivals = arguments.Value("arrivals").value_or("poisson");
  if (arrivals != "poisson" && arrivals != "fixed") reader.Fail(BadValue("arrivals", "poisson or fixed", arrivals));
  plan.arrivals = arrivals == "fixed" ? load::ArrivalKind::kFixed : load::ArrivalKind::kPoisson;
  if (values->overload.has_value()) plan.connections = kOverloadConnections;
  reader.Number("connections", 1, kMostConnections, &plan.connections);
  reader.Number("threads", 1, kMostThreads, &plan.threads);
  reader.Number("max-outstanding", 1, kMostConcurrency, &plan.most_outstanding);
  plan.warmup = absl::Seconds(1);
  reader.Time("warmup", absl::ZeroDuration(), [&](absl::Duration time) { plan.warmup = time; });
  reader.Time("duration", absl::Milliseconds(1), [&](absl::Duration time) { plan.duration = time; });
  reader.Time("give-up", absl::ZeroDuration(), [&](absl::Duration time) { plan.give_up = time; });
  reader.Real("cancel-percent", -1e-9, 100, [&](double percent) { plan.cancelled_share = percent / 100; });
  reader.Real("disconnect-percent", -1e-9, 100, [&](double percent) { plan.disconnected_share = percent / 100; });
  if (plan.cancelled_share + plan.disconnected_share > 1) {
    reader.Fail(absl::InvalidArgumentError("--cancel-percent and --disconnect-percent are more than 100 together"));
  }
  int seed = 1;
  reader.Number("seed", 0, std::numeric_limits<int>::max(), &seed);
  plan.seed = static_cast<uint64_t>(seed);
}

void ReadGates(FlagReader& reader, BenchFlagValues* values) {
  BenchGates& gates = values->gates;
  reader.Time("max-p99", absl::Nanoseconds(1), [&](absl::Duration time) { gates.largest_p99 = time; });
  reader.Time("max-refusal-p99", absl::Nanoseconds(1), [&](absl::Duration time) { gates.largest_refusal_p99 = time; });
  reader.Real("min-goodput", 0, 1e6, [&](double ratio) { gates.least_goodput_ratio = ratio; });
  if (gates.least_goodput_ratio.has_value() && !values->overload.has_value()) {
    reader.Fail(absl::InvalidArgumentError("--min-goodput is a part of the peak, which only --overload finds"));
  }
}

}  // namespace

std::vector<FlagSpec> BenchFlags() {
  std::vector<FlagSpec> flags = {
      {.name = "workload",
       .placeholder = "LIST",
       .help = "What is called, with weights: tiny*9,matmul:256*1 or GRAPH; default tiny"},
      {.name = "sizes", .placeholder = "LIST", .help = "A run for each size, of workloads that name none"},
      {.name = "dtypes", .placeholder = "LIST", .help = "A run for each dtype, of built-in workloads; default f32"},
      {.name = "input",
       .placeholder = "NAME=FILE",
       .help = "Value of a graph's input, a .npy file; others are random",
       .is_repeatable = true},
      {.name = "symbol", .placeholder = "NAME=SIZE", .help = "Size of a graph's symbol", .is_repeatable = true},
      {.name = "concurrency", .placeholder = "LIST", .help = "Closed loops with so many calls under way; default 1"},
      {.name = "rate", .placeholder = "LIST", .help = "Open loops of so many calls a second"},
      {.name = "arrivals",
       .placeholder = "poisson|fixed",
       .help = "How the calls of an open loop come; default poisson"},
      {.name = "overload", .placeholder = "FACTOR", .help = "Finds the peak, then offers so many times as much"},
      {.name = "connections", .placeholder = "N", .help = "Connections; default 1, with --overload 16"},
      {.name = "threads", .placeholder = "N", .help = "Threads that wait for answers; default 1"},
      {.name = "max-outstanding", .placeholder = "N", .help = "Calls that an open loop has under way; default 10000"},
      {.name = "warmup", .placeholder = "TIME", .help = "Not counted, before each run; default 1s"},
      {.name = "duration", .placeholder = "TIME", .help = "Of each run; default 10s"},
      {.name = "give-up",
       .placeholder = "TIME",
       .help = "End once no call has reached a server for this long, 0s: never; default 10s"},
      {.name = "cancel-percent", .placeholder = "P", .help = "Calls that are cancelled at a random time"},
      {.name = "disconnect-percent", .placeholder = "P", .help = "Calls whose own connection is cut at a random time"},
      {.name = "priority", .placeholder = "N", .help = "Priority of the calls; default 0"},
      {.name = "device", .placeholder = "DEVICE", .help = "cpu, cuda, xla or one device; default the server's"},
      {.name = "seed", .placeholder = "N", .help = "Of arrivals, mixes and fates; default 1"},
      {.name = "max-p99", .placeholder = "TIME", .help = "Exit status 1 where a run's p99 is more"},
      {.name = "max-refusal-p99", .placeholder = "TIME", .help = "The same for the time that refusals take"},
      {.name = "min-goodput",
       .placeholder = "RATIO",
       .help = "The same where an overload's goodput is less of the peak"}};
  for (FlagSpec& flag : ConnectionFlags(kWorkDeadline)) {
    if (flag.name == "json") {
      flag.placeholder = "[FILE]";
      flag.help = "Print the result as JSON, or write it to FILE beside the text";
    }
    if (flag.name == "deadline") flag.help = "Give up a measured call after this long; default when the run ends";
    flags.push_back(std::move(flag));
  }
  return flags;
}

absl::StatusOr<BenchFlagValues> ParseBenchFlags(const Arguments& arguments) {
  BenchFlagValues values;
  FlagReader reader(arguments);
  absl::StatusOr<client::ConnectOptions> connection = ParseConnection(arguments, kWorkDeadline);
  if (!connection.ok()) return connection.status();
  values.plan.connection = *std::move(connection);
  // --deadline is that of the measured calls, which have none without it: the run ends them. It does not apply to the
  // calls that prepare the run.
  if (arguments.Has("deadline")) values.plan.deadline = values.plan.connection.deadline;
  values.plan.connection.deadline = kWorkDeadline;
  values.plan.connection.connect_timeout = client::ConnectOptions().connect_timeout;
  if (values.plan.connection.target.empty()) values.plan.connection.target = client::DefaultTarget();
  ReadWorkloads(arguments, reader, &values);
  ReadLoop(arguments, reader, &values);
  ReadGates(reader, &values);
  reader.Number("priority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), &values.options.priority);
  values.options.device = arguments.Value("device").value_or("");
  if (values.plan.disconnected_share > 0 && values.plan.connection.credentials != nullptr) {
    reader.Fail(absl::InvalidArgumentError("--disconnect-percent needs connections in plain text"));
  }
  if (!reader.status().ok()) return reader.status();
  return values;
}

}  // namespace tensord::cli
