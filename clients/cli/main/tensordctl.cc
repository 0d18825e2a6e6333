#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/terminal.h"

int main(int argc, char** argv) {
  // A reader that goes away (`tensordctl info | head`) makes writing fail, and must not kill gRPC's threads.
  std::signal(SIGPIPE, SIG_IGN);
  // Debian's Abseil looks for cycles at every lock, gRPC's too.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  tensord::cli::Console console(std::cout, std::cerr);
  console.set_columns(tensord::cli::ScreenSizeOf(STDOUT_FILENO).columns);
  if (tensord::cli::IsScreen(STDERR_FILENO))
    console.set_progress_columns(tensord::cli::ScreenSizeOf(STDERR_FILENO).columns);
  const int status = tensord::cli::Dispatch(words, console);
  std::cout.flush();
  return status == tensord::cli::kExitOk && !std::cout ? tensord::cli::kExitFailed : status;
}
