#include "engine/runtime/compile_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

int Niceness() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(CompilePoolTest, ItsThreadsGiveWay) {
  const int own = Niceness();
  Inbox<int> niceness;
  CompilePool pool(2, 10, 10);
  ASSERT_TRUE(pool.Submit([&] { niceness.Put(Niceness()); }));
  EXPECT_EQ(niceness.WaitFor(1)[0], std::min(19, own + 10));
  EXPECT_EQ(Niceness(), own) << "nobody else's";
}

TEST(CompilePoolTest, WhatIsBeyondTheQueueIsRefused) {
  Event started, gate;
  Inbox<int> done;
  CompilePool pool(1, 1);
  ASSERT_TRUE(pool.Submit([&] {
    started.Set();
    gate.Wait();
    done.Put(1);
  }));
  started.Wait();
  EXPECT_TRUE(pool.Submit([&] { done.Put(2); }));
  EXPECT_FALSE(pool.Submit([&] { done.Put(3); }));
  gate.Set();
  EXPECT_EQ(done.WaitFor(2), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace tensord
