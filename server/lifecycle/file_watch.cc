#include "server/lifecycle/file_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/steady_time.h"

namespace tensord::server {
namespace {

constexpr int kIdleShare = 9;  // of ten

}  // namespace

// Includes the time of the last change of the entry, so that a file moved here with an old time counts.
std::string FileWatch::StateOf(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) {
      absl::StrAppend(&text, path, " absent\n");
      continue;
    }
    absl::StrAppend(&text, path, " ", info.st_dev, " ", info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ",
                    info.st_mtim.tv_nsec, " ");
    absl::StrAppend(&text, info.st_ctim.tv_sec, " ", info.st_ctim.tv_nsec, "\n");
  }
  return text;
}

FileWatch::FileWatch(absl::Duration interval, std::string state, std::function<std::vector<std::string>()> paths,
                     std::function<bool()> changed)
    : interval_(interval),
      paths_(std::move(paths)),
      changed_(std::move(changed)),
      state_(std::move(state)),
      thread_([this] { Loop(); }) {}

FileWatch::~FileWatch() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  ended_.SignalAll();
  thread_.join();
}

absl::Duration FileWatch::PauseAfter(absl::Duration interval, absl::Duration took) {
  return std::max(interval, kIdleShare * took);
}

bool FileWatch::Wait(absl::Duration pause) {
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pause);
  MutexLock lock(&mutex_);
  while (!ending_ && ended_.WaitUntil(&mutex_, until)) {
  }
  return !ending_;
}

void FileWatch::Loop() {
  bool taken = true;
  absl::Duration pause = interval_;
  while (Wait(pause)) {
    pause = interval_;
    // Before the files are read: a write meanwhile makes another look.
    std::string now = StateOf(paths_());
    if (taken && now == state_) continue;
    state_ = std::move(now);
    const absl::Time begin = SteadyNow();
    taken = changed_();
    pause = PauseAfter(interval_, SteadyNow() - begin);
  }
}

}  // namespace tensord::server
