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
  int looks = 0;
  Changes first_look;
  {
    FileWatch watch(
        absl::Milliseconds(1),
        [&] {
          if (++looks == 2) first_look.Tell();  // the state before is known since the first
          return std::vector<std::string>{path, link};
        },
        [&] { changes.Tell(); });
    ASSERT_TRUE(first_look.WaitFor(1));
    folder.Write("file", "2");
    EXPECT_TRUE(changes.WaitFor(1)) << "replaced";
    ASSERT_EQ(unlink(path.c_str()), 0);
    EXPECT_TRUE(changes.WaitFor(2)) << "gone";
    folder.Write("file", "2");
    EXPECT_TRUE(changes.WaitFor(3)) << "back";
    folder.Write("linked", "b");
    EXPECT_TRUE(changes.WaitFor(4)) << "behind a link";
  }
}

TEST(FileWatchTest, EndsWhileItWaits) {
  const FileWatch watch(
      absl::Hours(1), [] { return std::vector<std::string>(); }, [] {});
}

}  // namespace
}  // namespace tensord::server
