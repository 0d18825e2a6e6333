#include "server/lifecycle/file_watch.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/unit/server/counted_calls.h"

namespace tensord::server {
namespace {

TEST(FileWatchTest, SeesEveryKindOfChange) {
  const PrivateFolder folder;
  const std::string path = folder.Write("file", "1");
  folder.Write("linked", "a");
  const std::string link = folder.PathOf("link");
  ASSERT_EQ(symlink("linked", link.c_str()), 0);
  CountedCalls changes;
  const std::vector<std::string> paths = {path, link};
  const FileWatch watch(
      absl::Milliseconds(1), FileWatch::StateOf(paths), [&] { return paths; },
      [&] {
        changes.Add();
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
  CountedCalls changes;
  const FileWatch watch(
      absl::Milliseconds(1), state, [&] { return paths; },
      [&] {
        changes.Add();
        return true;
      });
  EXPECT_TRUE(changes.WaitFor(1));
}

TEST(FileWatchTest, ComesAgainUntilAChangeIsTaken) {
  const PrivateFolder folder;
  const std::vector<std::string> paths = {folder.Write("file", "1")};
  CountedCalls calls, looks;
  int times = 0;
  FileWatch watch(
      absl::Milliseconds(1), "another",
      [&] {
        if (times == 3) looks.Add();
        return paths;
      },
      [&] {
        calls.Add();
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
