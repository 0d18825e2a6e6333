#include "engine/base/refusal.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(RefusalTest, EveryOneIsDeclaredWhole) {
  std::set<std::string> ids;
  std::string last;
  for (const RefusalInfo& info : AllRefusals()) {
    const std::string id(info.id);
    EXPECT_TRUE(ids.insert(id).second) << id << " is declared twice";
    EXPECT_NE(info.code, absl::StatusCode::kOk) << id;
    EXPECT_FALSE(info.doc.empty()) << id;
    EXPECT_EQ(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), std::string::npos) << id;
    EXPECT_EQ(&InfoOf(info.refusal), &info) << id;
  }
  EXPECT_GT(ids.size(), 30u);
}

TEST(RefusalTest, CarriesItsReasonAndCode) {
  const absl::Status status = Refuse(Refusal::kShapeMismatch, "sizes differ: 2 and 3");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "sizes differ: 2 and 3");
  const std::optional<RefusalDetail> detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "SHAPE_MISMATCH");
  EXPECT_EQ(detail->node, "");
  EXPECT_EQ(detail->limit, "");
}

TEST(RefusalTest, EveryFieldComesBack) {
  const std::string node("a\0b \xc3\xa9", 6);
  const absl::Status status = WithNode(RefuseLimit("graph_nodes", 10, -7, "nodes of the graph"), node, "add");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<RefusalDetail> detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "LIMIT_EXCEEDED");
  EXPECT_EQ(detail->node, node);
  EXPECT_EQ(detail->op, "add");
  EXPECT_EQ(detail->limit, "graph_nodes");
  EXPECT_EQ(detail->limit_value, 10);
  EXPECT_EQ(detail->actual_value, -7);
}

TEST(RefusalTest, SaysWhenToTryAgain) {
  const absl::Status status = WithRetryAfter(
      RefuseLimit(Refusal::kRateLimited, "tenant.rate", 5, 6, "calls in this second"), absl::Milliseconds(250));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<RefusalDetail> detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "RATE_LIMITED");
  EXPECT_EQ(detail->limit, "tenant.rate");
  EXPECT_EQ(detail->retry_after, absl::Milliseconds(250));
  EXPECT_EQ(DetailOf(WithNode(status, "n", "add"))->retry_after, absl::Milliseconds(250));
  EXPECT_TRUE(WithRetryAfter(absl::OkStatus(), absl::Seconds(1)).ok());
  EXPECT_FALSE(DetailOf(WithRetryAfter(absl::InternalError("x"), absl::Seconds(1))).has_value());
}

TEST(RefusalTest, ALimitSaysWhenToTryAgain) {
  const absl::Status status =
      RefuseLimit(Refusal::kQueueFull, "cpu.queue_length", 5, 6, "runs that wait", absl::Milliseconds(1250));
  EXPECT_EQ(DetailOf(status)->retry_after, absl::Milliseconds(1250));
  EXPECT_EQ(DetailOf(RefuseLimit(Refusal::kQueueFull, "cpu.queue_length", 5, 6, "runs"))->retry_after,
            absl::ZeroDuration());
}

TEST(RefusalTest, IsToldFromOthersOfItsCode) {
  const absl::Status full = RefuseLimit(Refusal::kQueueFull, "cpu.queue_length", 5, 6, "runs that wait");
  EXPECT_TRUE(IsRefusal(full, Refusal::kQueueFull));
  ASSERT_EQ(InfoOf(Refusal::kOutOfMemory).code, full.code());
  EXPECT_FALSE(IsRefusal(full, Refusal::kOutOfMemory));
  EXPECT_FALSE(IsRefusal(full, Refusal::kShapeMismatch));
  EXPECT_FALSE(IsRefusal(absl::ResourceExhaustedError("no refusal"), Refusal::kQueueFull));
  EXPECT_FALSE(IsRefusal(absl::OkStatus(), Refusal::kQueueFull));
}

TEST(RefusalTest, ANodeIsNamedOnce) {
  const absl::Status once = WithNode(Refuse(Refusal::kOpUnset, "no operation"), "x", "");
  EXPECT_EQ(once.message(), "no operation (node \"x\")");
  const absl::Status twice = WithNode(once, "y", "add");
  EXPECT_EQ(twice.message(), once.message());
  EXPECT_EQ(DetailOf(twice)->node, "x");
}

TEST(RefusalTest, NamingANodeKeepsWhatIsNoRefusal) {
  EXPECT_TRUE(WithNode(absl::OkStatus(), "x", "add").ok());
  const absl::Status unnamed = Refuse(Refusal::kOpUnset, "no operation");
  EXPECT_EQ(WithNode(unnamed, "", "add"), unnamed);
  const absl::Status foreign = WithNode(absl::UnavailableError("gone"), "x", "add");
  EXPECT_EQ(foreign.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("node \"x\""));
  EXPECT_EQ(DetailOf(foreign)->node, "x");
}

TEST(RefusalTest, OtherStatusesHaveNoDetail) {
  EXPECT_FALSE(DetailOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(DetailOf(absl::InternalError("x")).has_value());
}

TEST(RefusalTest, ADamagedDetailIsNone) {
  absl::Status status = absl::InternalError("x");
  status.SetPayload("tensord/refusal-detail", absl::Cord("\xff\xff\xff\xff"));
  EXPECT_FALSE(DetailOf(status).has_value());
}

TEST(RefusalTest, ALimitSaysItsValues) {
  const absl::Status status = RefuseLimit("rank", 16, 17, "rank of a tensor");
  EXPECT_THAT(std::string(status.message()), EndsWith("17 is beyond the limit rank = 16"));
}

}  // namespace
}  // namespace tensord
