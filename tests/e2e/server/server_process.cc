#include "tests/e2e/server/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"

namespace tensord {

std::string Process::BinaryPath() {
  const char* path = std::getenv("TENSORD_BINARY");
  return path == nullptr ? "" : path;
}

Process::Process(const std::vector<std::string>& flags, const std::string& errors,
                 const std::vector<std::string>& before) {
  std::vector<std::string> arguments = before;
  arguments.push_back(BinaryPath());
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t started = -1;
  const int error = posix_spawn(&started, argv[0], &actions, nullptr, argv.data(), environ);
  EXPECT_EQ(error, 0) << "cannot start " << argv[0];
  if (error == 0) process_ = started;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  output_ = fdopen(ends[0], "r");
}

Process::~Process() {
  if (process_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  fclose(output_);
}

std::string Process::Line() {
  std::string line;
  for (int c; (c = fgetc(output_)) != EOF && c != '\n';) line.push_back(static_cast<char>(c));
  return line;
}

std::string Process::Rest() {
  std::string text;
  for (int c; (c = fgetc(output_)) != EOF;) text.push_back(static_cast<char>(c));
  return text;
}

void Process::Signal(int signal) {
  ASSERT_GT(process_, 0) << "there is no process";  // kill would take its number for "all processes"
  kill(process_, signal);
}

bool Process::EndsWithin(std::chrono::milliseconds time) const {
  const auto until = std::chrono::steady_clock::now() + time;
  while (true) {
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
      return true;
    }
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int64_t Process::PeakBytes() const {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

void Process::ForgetPeak() const { std::ofstream("/proc/" + std::to_string(process_) + "/clear_refs") << 5; }

int Process::Wait() {
  if (process_ <= 0) return -1;
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tensord
