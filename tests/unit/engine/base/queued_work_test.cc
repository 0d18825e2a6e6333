#include "engine/base/queued_work.h"

#include <map>
#include <string>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

// Queues of tenants that wait until they are told.
class Queues {
 public:
  QueuedWork::Submit Of(const std::string& tenant) {
    return [this, tenant](std::function<void()> work) -> absl::StatusOr<QueuedWork::Drop> {
      if (full_) return Refuse(Refusal::kQueueFull, "full");
      works_[tenant].push_back(std::move(work));
      return [this, tenant] { works_[tenant].clear(); };
    };
  }
  void Fill() { full_ = true; }
  size_t queued(const std::string& tenant) { return works_[tenant].size(); }
  std::function<void()> Take(const std::string& tenant) {
    std::function<void()> work = std::move(works_[tenant].front());
    works_[tenant].erase(works_[tenant].begin());
    return work;
  }

 private:
  bool full_ = false;
  std::map<std::string, std::vector<std::function<void()>>> works_;
};

TEST(QueuedWorkTest, IsDoneOnceByWhoComesFirst) {
  Queues queues;
  int done = 0;
  const auto work = std::make_shared<QueuedWork>([&done] { ++done; });
  for (const char* tenant : {"a", "b", "a", "b"}) EXPECT_TRUE(work->QueueFor(tenant, queues.Of(tenant)).ok());
  EXPECT_EQ(queues.queued("a"), 1u) << "once for each";
  EXPECT_EQ(queues.queued("b"), 1u);
  const std::function<void()> late = queues.Take("a");  // it has its turn too
  queues.Take("b")();
  EXPECT_EQ(done, 1);
  late();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(work->QueueFor("c", queues.Of("c")).ok());
  EXPECT_EQ(queues.queued("c"), 0u) << "it has begun";
}

TEST(QueuedWorkTest, LeavesTheOtherQueuesWhenItBegins) {
  Queues queues;
  const auto work = std::make_shared<QueuedWork>([&queues] { EXPECT_EQ(queues.queued("b"), 0u); });
  for (const char* tenant : {"a", "b"}) EXPECT_TRUE(work->QueueFor(tenant, queues.Of(tenant)).ok());
  queues.Take("a")();
}

TEST(QueuedWorkTest, AQueueThatIsFullSaysSo) {
  Queues queues;
  const auto work = std::make_shared<QueuedWork>([] {});
  EXPECT_TRUE(work->QueueFor("a", queues.Of("a")).ok());
  queues.Fill();
  EXPECT_EQ(work->QueueFor("b", queues.Of("b")).message(), "full");
  EXPECT_TRUE(work->QueueFor("a", queues.Of("a")).ok()) << "it is there";
}

TEST(QueuedWorkTest, WhatIsAbandonedDoesNotBeginOrIsStopped) {
  Queues queues;
  const auto held = std::make_shared<int>();
  const auto unbegun = std::make_shared<QueuedWork>([held] { ADD_FAILURE() << "nobody waits"; });
  EXPECT_TRUE(unbegun->QueueFor("a", queues.Of("a")).ok());
  const std::function<void()> late = queues.Take("a");
  EXPECT_TRUE(unbegun->QueueFor("b", queues.Of("b")).ok());
  unbegun->Abandon();
  EXPECT_EQ(held.use_count(), 1) << "what it holds is gone";
  EXPECT_EQ(queues.queued("b"), 0u);
  late();

  QueuedWork* begun = nullptr;
  bool was_stopped = true, is_stopped = false;
  const auto work = std::make_shared<QueuedWork>([&] {
    was_stopped = StopRequested();
    begun->Abandon();
    is_stopped = StopRequested();
  });
  begun = work.get();
  EXPECT_TRUE(work->QueueFor("a", queues.Of("a")).ok());
  queues.Take("a")();
  EXPECT_FALSE(was_stopped);
  EXPECT_TRUE(is_stopped);
}

}  // namespace
}  // namespace tensord
