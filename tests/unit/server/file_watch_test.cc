#include "server/lifecycle/file_watch.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "gtest/gtest.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord::server {
namespace {

class Changes {
 public:
  void Tell() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  bool Has(int count) {
    MutexLock lock(&mutex_);
    return count_ >= count;
  }
  // False where they do not come.
  bool WaitFor(int count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(&mutex_);
    while (count_ < count) {
      if (!changed_.WaitUntil(&mutex_, until)) return count_ >= count;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(FileWatchTest, SeesEveryKindOfChange) {
  const PrivateFolder folder;
  const std::string path = folder.Write("file", "1");
  folder.Write("linked", "a");
  const std::string link = folder.PathOf("link");
  ASSERT_EQ(symlink("linked", link.c_str()), 0);
  Changes changes;
  const std::vector<std::string> paths = {path, link};
  const FileWatch watch(
      absl::Milliseconds(1), FileWatch::StateOf(paths), [&] { return paths; },
      [&] {
        changes.Tell();
        return true;
      });
  folder.Write("file", "2");
  EXPECT_TRUE(changes.WaitFor(1)) << "replaced";
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(changes.WaitFor(2)) << "gone";
  folder.Write("file", "2");
  EXPECT_TRUE(changes.WaitFor(3)) << "back";
  folder.Write("linked", "b");
  EXPECT_TRUE(changes.WaitFor(4)) << "behind a link";
}

TEST(FileWatchTest, WhatTakesLongIsDoneSeldom) {
  EXPECT_EQ(FileWatch::PauseAfter(absl::Milliseconds(100), absl::Milliseconds(1)), absl::Milliseconds(100));
  EXPECT_EQ(FileWatch::PauseAfter(absl::Milliseconds(100), absl::Milliseconds(200)), absl::Milliseconds(1800));
}

TEST(FileWatchTest, SeesWhatChangedBeforeItBegan) {
  const PrivateFolder folder;
  const std::vector<std::string> paths = {folder.Write("file", "1")};
  const std::string state = FileWatch::StateOf(paths);
  folder.Write("file", "2");
  Changes changes;
  const FileWatch watch(
      absl::Milliseconds(1), state, [&] { return paths; },
      [&] {
        changes.Tell();
        return true;
      });
  EXPECT_TRUE(changes.WaitFor(1));
}

TEST(FileWatchTest, ComesAgainUntilAChangeIsTaken) {
  const PrivateFolder folder;
  const std::vector<std::string> paths = {folder.Write("file", "1")};
  Changes calls, looks;
  int times = 0;
  FileWatch watch(
      absl::Milliseconds(1), "another",
      [&] {
        if (times == 3) looks.Tell();
        return paths;
      },
      [&] {
        calls.Tell();
        return ++times == 3;
      });
  EXPECT_TRUE(calls.WaitFor(3));
  EXPECT_TRUE(looks.WaitFor(3)) << "looks that find nothing";
  EXPECT_FALSE(calls.Has(4));
}

TEST(FileWatchTest, EndsWhileItWaits) {
  const FileWatch watch(
      absl::Hours(1), "", [] { return std::vector<std::string>(); }, [] { return true; });
}

}  // namespace
}  // namespace tensord::server
