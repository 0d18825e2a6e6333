#include "engine/runtime/compile/compile_pool.h"

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
  ASSERT_TRUE(pool.Submit("a", [&] { niceness.Put(Niceness()); }).ok());
  EXPECT_EQ(niceness.WaitFor(1)[0], std::min(19, own + 10));
  EXPECT_EQ(Niceness(), own) << "nobody else's";
}

// As a call does, which is answered and gone before the thread that handed its work over goes on.
TEST(CompilePoolTest, TheNameMayEndWithTheWork) {
  for (int i = 0; i < 200; ++i) {
    CompilePool pool(1, 10);
    auto* const name = new std::string("a tenant whose name is on the heap");
    const auto ticket = pool.Submit(*name, [name] { delete name; });
    ASSERT_TRUE(ticket.ok());
    EXPECT_EQ(ticket->tenant, "a tenant whose name is on the heap");
  }
}

TEST(CompilePoolTest, WhatIsBeyondTheQueueIsRefused) {
  Event started, gate;
  Inbox<int> done;
  CompilePool pool(1, 1);
  ASSERT_TRUE(pool.Submit("a",
                          [&] {
                            started.Set();
                            gate.Wait();
                            done.Put(1);
                          })
                  .ok());
  started.Wait();
  EXPECT_TRUE(pool.Submit("a", [&] { done.Put(2); }).ok());
  EXPECT_FALSE(pool.Submit("a", [&] { done.Put(3); }).ok());
  gate.Set();
  EXPECT_EQ(done.WaitFor(2), (std::vector<int>{1, 2}));
}

TEST(CompilePoolTest, OneTenantsPartOfTheQueueIsBounded) {
  Event started, gate;
  Inbox<int> done;
  CompilePool pool(1, CompilePool::Bounds{.max_queued = 3, .max_queued_per_tenant = 1});
  const auto block = [&] {
    started.Set();
    gate.Wait();
  };
  ASSERT_TRUE(pool.Submit("a", block).ok());
  started.Wait();
  const auto waits = pool.Submit("a", [&] { done.Put(1); });
  ASSERT_TRUE(waits.ok());
  const absl::Status refused = pool.Submit("a", [&] { done.Put(2); }).status();
  EXPECT_EQ(DetailOf(refused)->reason, "QUEUE_FULL");
  EXPECT_EQ(DetailOf(refused)->limit, "scheduling.tenant_queue_percent");
  EXPECT_EQ(DetailOf(refused)->limit_value, 1);
  EXPECT_TRUE(pool.Submit("b", [&] { done.Put(3); }).ok());
  EXPECT_EQ(done.WaitFor(1)[0], 3) << "another tenant does not wait for that one's";
  EXPECT_TRUE(pool.Drop(*waits));
  gate.Set();
}

}  // namespace
}  // namespace tensord
