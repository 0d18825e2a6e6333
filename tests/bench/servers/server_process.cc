#include "tests/bench/servers/server_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tensord {

ServerProcess::ServerProcess(const Serve& serve) {
  int end[2], ready[2];
  if (pipe(end) != 0 || pipe(ready) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(end[1]);
    close(ready[0]);
    std::_Exit(serve([&](const std::vector<std::string>& addresses) {
      const std::string text = absl::StrJoin(addresses, "\n");
      const bool is_told = write(ready[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      close(ready[1]);
      char byte = 0;
      if (is_told) (void)!read(end[0], &byte, 1);
    }));
  }
  close(end[0]);
  close(ready[1]);
  end_ = end[1];
  ready_ = ready[0];
}

ServerProcess::~ServerProcess() {
  (void)!write(end_, "", 1);  // others that were forked since hold the pipe too
  close(end_);
  close(ready_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::vector<std::string> ServerProcess::Await() {
  std::string text;
  char bytes[512];
  for (ssize_t got = 0; (got = read(ready_, bytes, sizeof(bytes))) > 0;) text.append(bytes, static_cast<size_t>(got));
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

}  // namespace tensord
