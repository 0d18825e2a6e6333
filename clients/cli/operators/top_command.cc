#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/operators/http_get.h"
#include "clients/cli/operators/prometheus_text.h"
#include "clients/cli/operators/server_view.h"
#include "clients/cli/operators/server_view_text.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/connection.h"
#include "clients/cli/shell/interrupt.h"
#include "clients/cli/shell/printable_text.h"
#include "clients/cli/shell/terminal.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/steady_time.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

constexpr char kDefaultMetrics[] = "localhost:9464";
constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kViewDeadline = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr char kQuit = 'q';

struct Look {
  absl::Time time;
  std::vector<MetricSample> samples;
};

absl::StatusOr<Look> LookAt(const std::string& address, absl::Duration timeout, const std::atomic<bool>& is_given_up) {
  const absl::StatusOr<std::string> page = GetPage(address, "/metrics", timeout, &is_given_up);
  if (!page.ok()) return page.status();
  const absl::Time time = client::SteadyNow();
  absl::StatusOr<std::vector<MetricSample>> samples = ParsePrometheusText(*page);
  if (!samples.ok()) return samples.status();
  return Look{.time = time, .samples = *std::move(samples)};
}

// A server, and the last look at it.
class Watch {
 public:
  Watch(client::Client& client, std::string address, absl::Duration timeout)
      : client_(client), address_(std::move(address)), timeout_(timeout) {}

  // Returns the changes since the look before; none if that is the first one, or the first after one that failed. Ends
  // soon after GiveUp in another thread, for good.
  absl::StatusOr<std::optional<ServerView>> LookAgain() {
    const client::Cancellation::Scope scope(&cancellation_);
    std::optional<Look> former = std::exchange(former_, std::nullopt);
    absl::StatusOr<Look> look = LookAt(address_, timeout_, is_given_up_);
    if (!look.ok()) return look.status();
    const absl::StatusOr<v1::ServerInfo> info = client_.GetServerInfo();
    if (!info.ok()) return info.status();
    former_ = *std::move(look);
    if (!former.has_value()) return std::nullopt;
    return CompareMetrics(former->samples, former_->samples, former_->time - former->time, *info);
  }

  void GiveUp() {
    is_given_up_ = true;
    cancellation_.Cancel();
  }

 private:
  client::Client& client_;
  const std::string address_;
  const absl::Duration timeout_;
  std::optional<Look> former_;
  std::atomic<bool> is_given_up_ = false;
  client::Cancellation cancellation_;
};

// Waits so long, or less; tells whether "q" or Ctrl-C ended the wait.
bool IsEnded(absl::Duration wait, Terminal& terminal) {
  return Interrupt::flag() || terminal.WaitForKey(kQuit, wait) || Interrupt::flag();
}

// Returns false if "q" or Ctrl-C ends the wait. Looks at the keyboard however short it is.
bool WaitFor(absl::Duration duration, Terminal& terminal) {
  const absl::Time end = client::SteadyNow() + duration;
  absl::Duration left = duration;
  do {
    if (IsEnded(std::min(kLook, left), terminal)) return false;
    left = end - client::SteadyNow();
  } while (left > absl::ZeroDuration());
  return true;
}

// Looks on a thread of its own, since a server may hang, and keys are to be heard meanwhile. None if "q" or Ctrl-C
// ended the look.
std::optional<absl::StatusOr<std::optional<ServerView>>> LookAgain(Watch& watch, Terminal& terminal) {
  auto look = std::async(std::launch::async, [&watch] { return watch.LookAgain(); });
  while (look.wait_for(absl::ToChronoMilliseconds(kLook)) != std::future_status::ready) {
    if (!IsEnded(absl::ZeroDuration(), terminal)) continue;
    watch.GiveUp();
    look.wait();
    return std::nullopt;
  }
  return look.get();
}

void Print(const ServerView& view, bool is_live, const Terminal& terminal, Console& console) {
  if (console.is_json()) {
    console.PrintJsonLine(ServerViewJson(view));
  } else if (is_live) {
    console.out() << Terminal::Redrawn(ServerViewLines(view, terminal.Size()));
  } else {
    console.out() << absl::StrJoin(ServerViewLines(view, {}), "\n") << "\n\n";
  }
  console.out() << std::flush;
}

// A server that starts again is looked at again.
void PrintOutage(const absl::Status& status, const Terminal& terminal, Console& console) {
  std::string line = absl::StrCat("no view: ", PrintableLine(status.message()));
  line.resize(std::min(line.size(), terminal.Size().columns));
  console.out() << Terminal::Redrawn({std::move(line)}) << std::flush;
}

int Show(Watch& watch, absl::Duration interval, bool is_once, Console& console) {
  Terminal terminal;
  const Interrupt interrupt;  // within the terminal, whose own handler comes with the second Ctrl-C
  const bool is_live = !is_once && !console.is_json() && terminal.is_screen();
  auto look = LookAgain(watch, terminal);
  if (look.has_value() && !look->ok()) return console.Fail(look->status());
  while (look.has_value() && WaitFor(interval, terminal)) {
    look = LookAgain(watch, terminal);
    if (!look.has_value()) break;
    const absl::StatusOr<std::optional<ServerView>>& view = *look;
    if (!view.ok()) {
      if (!is_live) return console.Fail(view.status());
      PrintOutage(view.status(), terminal, console);
    } else if (view->has_value()) {
      Print(**view, is_live, terminal, console);
      if (is_once) break;
    }
    if (!console.out()) break;
  }
  if (is_live) console.out() << "\n";
  return kExitOk;
}

int Top(const Arguments& arguments, Console& console) {
  absl::StatusOr<client::ConnectOptions> options = ParseConnection(arguments, kViewDeadline);
  if (!options.ok()) return console.Usage("top", options.status().message());
  const absl::Duration timeout = *options->deadline;
  absl::Duration interval = kDefaultInterval;
  if (const auto value = arguments.Value("interval")) {
    const absl::StatusOr<absl::Duration> parsed = ParseTime("interval", *value, absl::Nanoseconds(1));
    if (!parsed.ok()) return console.Usage("top", parsed.status().message());
    interval = *parsed;
  }
  const absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(*std::move(options));
  if (!client.ok()) return console.Fail(client.status());
  Watch watch(**client, arguments.Value("metrics").value_or(kDefaultMetrics), timeout);
  return Show(watch, interval, arguments.Has("once"), console);
}

}  // namespace

Command TopCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "metrics", .placeholder = "HOST:PORT", .help = "The server's metrics; default localhost:9464"},
      {.name = "interval", .placeholder = "TIME", .help = "Between two looks; default 1s"},
      {.name = "once", .help = "Print one view and end"}};
  for (FlagSpec& flag : ConnectionFlags(kViewDeadline)) flags.push_back(std::move(flag));
  return {.name = "top",
          .operands = "",
          .summary = "Show what the server does, live",
          .details =
              "Rates and latencies are those since the look before, from the page that the server's --metrics serves; "
              "they are the server's own, without the network.\nOn a terminal the view has its size, goes on when the "
              "server "
              "has started again, and ends with q or Ctrl-C; elsewhere it ends when the server does.\n",
          .flags = std::move(flags),
          .run = &Top};
}

}  // namespace tensord::cli
