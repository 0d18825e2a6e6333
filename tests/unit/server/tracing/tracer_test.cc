#include "server/tracing/tracer.h"

#include <prometheus/registry.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tracing/otlp_spans.h"
#include "server/tracing/span_queue.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;

CallTrace From(const char* flags) {
  return {.context = *ParseTraceparent(std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-") + flags)};
}

class TracerTest : public ::testing::Test {
 protected:
  // Made where it stays: it has a thread.
  Tracer Make(double ratio) {
    return Tracer({.sample_ratio = ratio,
                   .exporter = {.target = "unix:/nobody/listens", .credentials = grpc::InsecureChannelCredentials()}},
                  &metrics_, &log_);
  }

  prometheus::Registry registry_;
  TraceMetrics metrics_{registry_};
  Log log_{{.level = LogLevel::kOff}};
};

TEST_F(TracerTest, TheCallersFlagDecides) {
  for (const double ratio : {0.0, 1.0}) {
    const Tracer tracer = Make(ratio);
    CallTrace sampled = From("01"), other = From("00");
    const SpanId caller = sampled.context.span_id;
    tracer.Begin(&sampled);
    tracer.Begin(&other);
    EXPECT_TRUE(sampled.is_sampled());
    EXPECT_NE(sampled.context.span_id, caller) << "the call has a span of its own";
    EXPECT_FALSE(other.is_sampled());
    EXPECT_TRUE(IsSet(other.context.trace_id)) << "for the log";
  }
}

TEST_F(TracerTest, TheRatioIsForTheOthers) {
  const auto count = [](const Tracer& tracer) {
    int sampled = 0;
    for (int i = 0; i < 4000; ++i) {
      CallTrace trace;
      tracer.Begin(&trace);
      EXPECT_EQ(IsSet(trace.context.trace_id), trace.is_sampled());
      sampled += trace.is_sampled() ? 1 : 0;
    }
    return sampled;
  };
  Tracer tracer = Make(0);
  EXPECT_EQ(count(tracer), 0);
  tracer.SetSampleRatio(1);
  EXPECT_EQ(count(tracer), 4000);
  tracer.SetSampleRatio(0.25);
  // Ten standard deviations from the mean.
  EXPECT_NEAR(count(tracer), 1000, 280);
}

TEST_F(TracerTest, ARequestIsBelowItsStream) {
  const Tracer tracer = Make(0);
  CallTrace stream = From("01");
  tracer.Begin(&stream);
  const CallTrace request = Tracer::Under(stream);
  EXPECT_EQ(request.parent, stream.context.span_id);
  EXPECT_NE(request.context.span_id, stream.context.span_id);
  EXPECT_EQ(request.context.trace_id, stream.context.trace_id);
}

// A call that becomes so many spans.
TracedRequest CallOf(size_t spans, const std::string& id = "") {
  TracedRequest request;
  request.record.request_id = id;
  request.record.segments.resize(spans - 1);
  return request;
}

std::vector<std::string> Ids(const std::vector<TracedRequest>& requests) {
  std::vector<std::string> ids;
  for (const TracedRequest& request : requests) ids.push_back(request.record.request_id);
  return ids;
}

TEST(SpanQueueTest, IsBoundedBySpans) {
  SpanQueue queue(10);
  EXPECT_TRUE(queue.Push(CallOf(6)));
  EXPECT_FALSE(queue.Push(CallOf(5)));
  EXPECT_TRUE(queue.Push(CallOf(4)));
  EXPECT_FALSE(queue.Push(CallOf(1)));
  EXPECT_EQ(queue.Take(6, absl::ZeroDuration()).size(), 1u);
  EXPECT_TRUE(queue.Push(CallOf(6)));
}

TEST(SpanQueueTest, IsBoundedByBytes) {
  SpanQueue queue(10);
  TracedRequest large = CallOf(1);
  large.record.message = std::string(9 * SpanQueue::kSpanBytes, 'm');
  EXPECT_TRUE(queue.Push(large));
  EXPECT_FALSE(queue.Push(large)) << "one span, and nine tenths of the bytes";
  EXPECT_EQ(queue.Take(1, absl::ZeroDuration()).size(), 1u);
  EXPECT_TRUE(queue.Push(large));
  queue.Clear();
  EXPECT_TRUE(queue.Push(large));
}

TEST(SpanQueueTest, KeepsOnlyWhatIsSent) {
  RequestRecord record;
  record.message = std::string(1 << 16, 'm');
  for (int i = 0; i < 100; ++i) {
    record.segments.push_back(
        {.kernel = std::string(1 << 12, 'k'), .nodes = std::vector<std::string>(50, record.message)});
  }
  const TracedRequest kept = MakeTracedRequest(record, 64, absl::Now());
  EXPECT_EQ(SpanCount(kept.record), 1 + 64);
  EXPECT_LT(HeldBytes(kept), (1 + 64) * SpanQueue::kSpanBytes);
  otlp::ScopeSpans cut, whole;
  AddSpans(kept, &cut);
  record.segments.resize(64);
  AddSpans({.record = record, .end = kept.end}, &whole);
  ASSERT_EQ(cut.spans_size(), whole.spans_size());
  for (int i = 0; i < cut.spans_size(); ++i) EXPECT_EQ(cut.spans(i).name(), whole.spans(i).name());
  EXPECT_EQ(cut.spans(0).status().message(), whole.spans(0).status().message());
}

TEST(SpanQueueTest, GivesBatchesInOrder) {
  SpanQueue queue(100);
  EXPECT_TRUE(queue.Push(CallOf(2, "a")));
  EXPECT_TRUE(queue.Push(CallOf(2, "b")));
  EXPECT_TRUE(queue.Push(CallOf(9, "large")));
  EXPECT_TRUE(queue.Push(CallOf(1, "c")));
  EXPECT_THAT(Ids(queue.Take(4, absl::Hours(1))), ElementsAre("a", "b"));
  EXPECT_THAT(Ids(queue.Take(4, absl::Hours(1))), ElementsAre("large")) << "one call is never cut";
  EXPECT_THAT(Ids(queue.Take(4, absl::ZeroDuration())), ElementsAre("c")) << "what is there when the time is over";
}

TEST(SpanQueueTest, ItsEndWakesWhoWaits) {
  SpanQueue queue(100);
  std::thread closes([&queue] {
    EXPECT_TRUE(queue.Push(CallOf(1, "last")));
    queue.Close();
  });
  EXPECT_THAT(Ids(queue.Take(50, absl::Hours(1))), ElementsAre("last"));
  EXPECT_TRUE(queue.Take(50, absl::Hours(1)).empty());
  EXPECT_FALSE(queue.Push(CallOf(1)));
  closes.join();
}

TEST(SpanQueueTest, WhatIsLeftCanBeCleared) {
  SpanQueue queue(100);
  EXPECT_TRUE(queue.Push(CallOf(1, "a")));
  queue.Close();
  EXPECT_THAT(Ids(queue.Clear()), ElementsAre("a"));
  EXPECT_TRUE(queue.Take(1, absl::ZeroDuration()).empty());
}

// The count of dropped spans is that of the spans that would have been sent.
TEST(OtlpSpansTest, AreAsManyAsAreCounted) {
  TracedRequest request = CallOf(4);
  request.end = absl::Now();
  const auto start = StageTimes::Clock::now();
  request.record.stages = StageTimes(start);
  request.record.stages.EndAt(Stage::kAdmit, start + std::chrono::nanoseconds(900));
  request.record.stages.EndAt(Stage::kCompute, start + std::chrono::microseconds(40));
  request.record.total = absl::Microseconds(50);
  otlp::ScopeSpans spans;
  AddSpans(request, &spans);
  EXPECT_EQ(spans.spans_size(), 5) << "itself, one stage that is long enough, three segments";
  EXPECT_EQ(spans.spans_size(), SpanCount(request.record));
}

// A collector refuses all of a batch with a text that is none.
TEST(OtlpSpansTest, HaveTextsThatAreText) {
  TracedRequest request = CallOf(1);
  request.record.code = absl::StatusCode::kInternal;
  request.record.message = "no program \"\xC3\"";
  otlp::ScopeSpans spans;
  AddSpans(request, &spans);
  EXPECT_EQ(spans.spans(0).status().message(), "no program \"?\"");
  EXPECT_EQ(spans.spans(0).status().code(), otlp::Status::STATUS_CODE_ERROR);
}

}  // namespace
}  // namespace tensord::server
