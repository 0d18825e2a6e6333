#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "clients/cli/command.h"
#include "clients/cli/connection.h"
#include "clients/cli/http_get.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/prometheus_text.h"
#include "clients/cli/server_view.h"
#include "clients/cpp/client.h"
#include "clients/cpp/steady_time.h"

namespace tensord::cli {
namespace {

constexpr char kDefaultMetrics[] = "localhost:9464";
constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kViewDeadline = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr char kClearScreen[] = "\x1b[H\x1b[2J";

struct Look {
  absl::Time time;
  std::vector<MetricSample> samples;
};

absl::StatusOr<Look> LookAt(const std::string& address, absl::Duration timeout) {
  const absl::StatusOr<std::string> page = GetPage(address, "/metrics", timeout);
  if (!page.ok()) return page.status();
  const absl::Time time = client::SteadyNow();
  absl::StatusOr<std::vector<MetricSample>> samples = ParsePrometheusText(*page);
  if (!samples.ok()) return samples.status();
  return Look{.time = time, .samples = *std::move(samples)};
}

// False where Ctrl-C ends the wait.
bool WaitFor(absl::Duration duration) {
  const absl::Time end = client::SteadyNow() + duration;
  for (absl::Time now = client::SteadyNow(); now < end; now = client::SteadyNow()) {
    if (Interrupt::flag()) return false;
    absl::SleepFor(std::min(kLook, end - now));
  }
  return !Interrupt::flag();
}

void Print(const ServerView& view, bool is_screen, Console& console) {
  if (console.is_json()) {
    console.PrintJson(ServerViewJson(view));
  } else {
    console.out() << (is_screen ? kClearScreen : "") << ServerViewText(view) << (is_screen ? "" : "\n");
  }
  console.out() << std::flush;
}

int Top(const Arguments& arguments, Console& console) {
  absl::StatusOr<client::ConnectOptions> options = ParseConnection(arguments);
  if (!options.ok()) return console.Usage("top", options.status().message());
  if (!options->deadline.has_value()) options->deadline = kViewDeadline;
  const absl::Duration timeout = *options->deadline;
  absl::Duration interval = kDefaultInterval;
  if (const auto value = arguments.Value("interval")) {
    const absl::StatusOr<absl::Duration> parsed = ParseTime("interval", *value, absl::Nanoseconds(1));
    if (!parsed.ok()) return console.Usage("top", parsed.status().message());
    interval = *parsed;
  }
  const std::string address = arguments.Value("metrics").value_or(kDefaultMetrics);
  const bool is_once = arguments.Has("once");
  const bool is_screen = !is_once && !console.is_json() && isatty(STDOUT_FILENO) == 1;

  const absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(*std::move(options));
  if (!client.ok()) return console.Fail(client.status());
  const Interrupt interrupt;
  absl::StatusOr<Look> former = LookAt(address, timeout);
  if (!former.ok()) return console.Fail(former.status());
  while (WaitFor(interval)) {
    absl::StatusOr<Look> look = LookAt(address, timeout);
    if (!look.ok()) return console.Fail(look.status());
    const absl::StatusOr<v1::ServerInfo> info = (*client)->GetServerInfo();
    if (!info.ok()) return console.Fail(info.status());
    Print(CompareMetrics(former->samples, look->samples, look->time - former->time, *info), is_screen, console);
    if (is_once || !console.out()) break;
    former = std::move(look);
  }
  return kExitOk;
}

}  // namespace

Command TopCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "metrics", .placeholder = "HOST:PORT", .help = "The server's metrics; default localhost:9464"},
      {.name = "interval", .placeholder = "TIME", .help = "Between two looks; default 1s"},
      {.name = "once", .help = "Print one view and end"}};
  for (FlagSpec& flag : ConnectionFlags()) flags.push_back(std::move(flag));
  return {.name = "top",
          .operands = "",
          .summary = "Show what the server does, live",
          .details =
              "Rates and latencies are those since the look before, from the page that the server's --metrics serves;\n"
              "they are the server's own, without the network. Ends with Ctrl-C, or when the server does.\n",
          .flags = std::move(flags),
          .run = &Top};
}

}  // namespace tensord::cli
