#include "engine/base/thread_niceness.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace tensord {
namespace {

int ThisNiceness() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(ThreadNicenessTest, IsOfTheThreadAndOfThoseThatItStarts) {
  const int before = ThisNiceness();
  int told = -1, own = -1, inherited = -1;
  std::thread([&] {
    told = LowerThisThread(3);
    own = ThisNiceness();
    std::thread([&] { inherited = ThisNiceness(); }).join();
  }).join();
  EXPECT_EQ(told, before < 17 ? before + 3 : 19);
  EXPECT_EQ(own, told);
  EXPECT_EQ(inherited, told);
  EXPECT_EQ(ThisNiceness(), before);
}

TEST(ThreadNicenessTest, NobodyIsNicerThanTheNicest) {
  int told = -1;
  std::thread([&] { told = LowerThisThread(1000); }).join();
  EXPECT_EQ(told, 19);
}

}  // namespace
}  // namespace tensord
