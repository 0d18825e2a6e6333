#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/program_at_work.h"
#include "engine/runtime/programs/quarantine.h"
#include "server/config/command_line.h"
#include "server/config/setting_comments.h"
#include "server/daemon.h"
#include "server/devices.h"
#include "server/lifecycle/address_space.h"
#include "server/lifecycle/crash_signals.h"
#include "server/lifecycle/file_watch.h"
#include "server/lifecycle/last_exit.h"
#include "server/lifecycle/stop_signals.h"
#include "server/observe/logs/library_logs.h"
#include "server/observe/records/crash_line.h"
#include "server/observe/records/flight_recorder.h"
#include "server/observe/records/termination.h"
#include "server/process_tuning.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/version.h"

namespace tensord::server {
namespace {

constexpr int kWrongUsage = 2;

void Print(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "tensord: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? kWrongUsage : 1;
}

// Returns the configuration as the command line gives it now.
absl::StatusOr<ServerConfig> ReadConfig(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return line.status();
  return std::move(line->config);
}

// The objects that a signal handler uses are static.
std::atomic<const FlightRecorder*> crash_recorder{nullptr};
std::atomic<Quarantine*> crash_quarantine{nullptr};

// Protects the next start first: the reader of standard error may be stuck.
void SayLastWord(int signal, bool is_of_this_thread) {
  Quarantine* const quarantine = crash_quarantine.load();
  if (quarantine != nullptr) quarantine->WriteCrash(signal, is_of_this_thread);
  const FlightRecorder* const recorder = crash_recorder.load();
  if (recorder != nullptr) recorder->WriteTo(STDERR_FILENO);
  CrashLine line;
  line.Add("level", "error");
  line.Add("event", "crash");
  line.Add("signal", signal);
  if (WorkSeen seen; is_of_this_thread && SeeWorkOfThisThread(&seen)) {
    std::array<char, 2 * Fingerprint::kBytes> digits;
    seen.fingerprint.WriteHex(digits.data());
    line.Add("fingerprint", absl::string_view(digits.data(), digits.size()));
    line.Add("work", Name(seen.work));
  }
  line.WriteTo(STDERR_FILENO);
}

// Waits for the orderly end. Nobody waits for the compilations or runs that are still going on then, and they may
// outlast the patience of the process that stops the server.
int End(Daemon* daemon) {
  daemon->RunUntilStopped();
  if (daemon->IsBusy()) {
    daemon->parts().log->Flush();
    _exit(0);
  }
  LastExit::OfProcess().SetLastWord(nullptr);  // the log is about to go
  return 0;
}

// Keeps running work from holding the process beyond the time of its end.
void BoundEnd(Daemon* daemon) {
  LastExit& exit = LastExit::OfProcess();
  exit.SetLastWord([daemon] {
    daemon->parts().log->Event(LogLevel::kWarning, "leaving",
                               "the time to end is over: what still runs ends with the process");
    daemon->parts().log->Flush();
  });
  daemon->SetEndWithin([&exit](std::chrono::milliseconds time) { exit.EndWithin(time); });
}

// `state`: the state of the files of --config before they were read.
int Serve(const ServerConfig& config, const std::vector<std::string>& arguments, const std::string& state) {
  TellWhyItTerminates();
  if (const absl::Status space = CheckAddressSpace(); !space.ok()) return Complain(space);
  signal(SIGPIPE, SIG_IGN);
  TakeOverLibraryLogs();

  PollingThreads polling;  // those of all servers
  std::unique_ptr<Daemon> daemon;
  const CrashSignals crash(&SayLastWord);  // until the daemon, which it reads, is about to go
  // Before the daemon starts: its manager may send a signal as soon as it hears that the server is ready, and a start
  // takes a while.
  StopSignals signals;
  absl::StatusOr<std::unique_ptr<Daemon>> created = Daemon::Create(config, &polling);
  if (!created.ok()) return Complain(created.status());
  daemon = *std::move(created);
  crash_recorder = daemon->parts().recorder.get();
  crash_quarantine = daemon->parts().quarantine.get();
  BoundEnd(daemon.get());
  daemon->WatchConfig(
      {.files = ConfigFilesOf(arguments), .state = state, .read = [&arguments] { return ReadConfig(arguments); }});
  signals.Deliver([&daemon] { daemon->RequestStop(); },
                  [&daemon, &arguments] { daemon->Reload(ReadConfig(arguments)); });
  const absl::Status serves = daemon->Serve();
  if (!serves.ok() && !absl::IsCancelled(serves)) {
    LastExit::OfProcess().SetStatus(1);
    LastExit::OfProcess().SetLastWord(nullptr);
    return Complain(serves);
  }
  if (!serves.ok()) return End(daemon.get());
  for (const std::string& address : daemon->grpc_addresses()) Print(absl::StrCat("listening grpc ", address, "\n"));
  if (!daemon->metrics_address().empty()) Print(absl::StrCat("listening metrics ", daemon->metrics_address(), "\n"));
  if (!daemon->admin_address().empty()) Print(absl::StrCat("listening admin ", daemon->admin_address(), "\n"));
  return End(daemon.get());
}

int Main(char** argv, const std::vector<std::string>& arguments) {
  const std::string state = FileWatch::StateOf(ConfigFilesOf(arguments));
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return Complain(line.status());
  switch (line->action) {
    case CommandLine::Action::kVersion:
      Print(absl::StrCat("tensord ", Version(), "\n"));
      return 0;
    case CommandLine::Action::kHelp:
      Print(HelpText());
      return 0;
    case CommandLine::Action::kPrintDefaultConfig:
      Print(PrintDefaultConfig());
      return 0;
    case CommandLine::Action::kCheckConfig: {
      const absl::Status checked = Daemon::Check(line->config);
      if (!checked.ok()) return Complain(checked);
      const absl::StatusOr<std::vector<std::string>> cuda = DescribeCudaDevices(line->config);
      if (!cuda.ok()) return Complain(cuda.status());
      Print("the configuration is right\n");
      for (const std::string& device : *cuda) Print(absl::StrCat(device, "\n"));
      return 0;
    }
    case CommandLine::Action::kRun:
      break;
  }
  BeginAgainForBlas(line->config, argv);
  return Serve(line->config, arguments, state);
}

}  // namespace
}  // namespace tensord::server

int main(int argc, char** argv) {
  tensord::server::TuneProcess();
  return tensord::server::Main(argv, std::vector<std::string>(argv + 1, argv + argc));
}
