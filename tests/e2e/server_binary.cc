#include "tests/e2e/server_binary.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

constexpr int kStartMilliseconds = 60000;

// Reads what the server prints until it says that it listens.
absl::Status WaitUntilListening(int output) {
  std::string printed;
  while (!absl::StrContains(printed, "listening grpc ")) {
    pollfd readable = {.fd = output, .events = POLLIN};
    const int count = poll(&readable, 1, kStartMilliseconds);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError(absl::StrCat("the server does not listen; it printed: ", printed));
    char buffer[4096];
    const ssize_t size = read(output, buffer, sizeof(buffer));
    if (size <= 0) return absl::UnavailableError(absl::StrCat("the server ended; it printed: ", printed));
    printed.append(buffer, static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ServerBinary::Path() {
  const char* path = std::getenv("TENSORD_BINARY");
  return path == nullptr ? "" : path;
}

absl::StatusOr<std::unique_ptr<ServerBinary>> ServerBinary::Start(const std::vector<std::string>& flags) {
  std::unique_ptr<ServerBinary> server(new ServerBinary);
  std::string folder = (std::filesystem::temp_directory_path() / "tensord-e2e-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::ErrnoToStatus(errno, "cannot make a folder for the socket");
  server->folder_ = folder;
  server->target_ = absl::StrCat("unix:", folder, "/socket");

  int ends[2];
  if (pipe(ends) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  server->output_ = ends[0];
  std::vector<std::string> words = {Path(), absl::StrCat("--listen=", server->target_)};
  const auto is_level = [](const std::string& flag) { return absl::StartsWith(flag, "--log-level="); };
  if (std::none_of(flags.begin(), flags.end(), is_level)) words.push_back("--log-level=warning");
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  server->process_ = fork();
  if (server->process_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  if (server->process_ < 0) return absl::ErrnoToStatus(errno, "cannot start the server");
  const absl::Status listening = WaitUntilListening(server->output_);
  if (!listening.ok()) return listening;
  return server;
}

int ServerBinary::End(int signal) {
  kill(process_, signal);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

int ServerBinary::Stop() {
  if (process_ <= 0) return -1;
  const int status = End(SIGTERM);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void ServerBinary::Kill() {
  if (process_ > 0) End(SIGKILL);
}

ServerBinary::~ServerBinary() {
  Stop();
  if (output_ >= 0) close(output_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tensord
