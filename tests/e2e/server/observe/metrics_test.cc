// /metrics of a server that has worked: every declared metric is shown, in a bounded number of series.
#include <prometheus/metric_family.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/metrics/metrics.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord {
namespace {

std::vector<prometheus::MetricFamily> PageOf(const InProcessServer& server) {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& source : server.parts().collectables) {
    for (prometheus::MetricFamily& family : source->Collect()) families.push_back(std::move(family));
  }
  return families;
}

const prometheus::MetricFamily& FamilyNamed(const std::vector<prometheus::MetricFamily>& page,
                                            const std::string& name) {
  for (const prometheus::MetricFamily& family : page) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << name;
  return page.front();
}

// Other programs, so that nothing is named after them.
void Work(InProcessServer& server, int programs) {
  const std::vector<float> values(16, 1.0f);
  for (int i = 0; i < programs; ++i) {
    v1::ExecuteResponse response;
    const v1::ExecuteRequest request = RequestOf(LargeSum(static_cast<float>(i + 1)), {FloatTensor(values, {16})});
    ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
    v1::CompileRequest wrong;
    wrong.mutable_graph()->set_name(std::to_string(i));
    v1::CompileResponse compiled;
    Compile(server.stub(), wrong, &compiled);
  }
}

TEST(MetricsPageTest, LabelsAreThoseThatAreDeclared) {
  InProcessServer server;
  Work(server, 20);
  server.WaitUntilIdle();
  std::map<std::string, std::set<std::string>> declared;
  std::map<std::string, prometheus::MetricType> types;
  for (const server::MetricInfo& info : server::AllMetrics()) {
    const std::vector<std::string> labels = absl::StrSplit(info.labels, ',', absl::SkipEmpty());
    declared[std::string(info.name)] = {labels.begin(), labels.end()};
    types[std::string(info.name)] = info.type == "counter" ? prometheus::MetricType::Counter
                                    : info.type == "gauge" ? prometheus::MetricType::Gauge
                                                           : prometheus::MetricType::Histogram;
  }
  std::set<std::string> shown;
  for (const prometheus::MetricFamily& family : PageOf(server)) {
    ASSERT_EQ(declared.count(family.name), 1u) << family.name;
    EXPECT_TRUE(shown.insert(family.name).second) << family.name << " is there twice";
    EXPECT_EQ(family.type, types[family.name]) << family.name;
    std::set<std::vector<std::string>> series;
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::set<std::string> labels;
      std::vector<std::string> values;
      for (const prometheus::ClientMetric::Label& label : metric.label) {
        labels.insert(label.name);
        values.push_back(label.name + "=" + label.value);
      }
      EXPECT_EQ(labels, declared[family.name]) << family.name;
      EXPECT_TRUE(series.insert(values).second) << family.name << " has a series twice";
    }
  }
  EXPECT_EQ(shown.size(), declared.size());
}

TEST(MetricsPageTest, MorePrograms) {
  InProcessServer server;
  Work(server, 3);
  server.WaitUntilIdle();
  const double before = FamilyNamed(PageOf(server), "tensord_metrics_series").metric.front().gauge.value;
  Work(server, 60);
  server.WaitUntilIdle();
  EXPECT_EQ(FamilyNamed(PageOf(server), "tensord_metrics_series").metric.front().gauge.value, before)
      << "do not make more series";
  EXPECT_GT(before, 500);
  EXPECT_LT(before, 2000);
}

TEST(MetricsPageTest, SegmentsAreTimedOfOneRunInSeventeen) {
  InProcessServer server;
  const std::vector<float> values(16, 1.0f);
  const v1::ExecuteRequest request =
      WarmRequest(server.stub(), SmallAdd(), {FloatTensor(values, {16}), FloatTensor(values, {16})});
  for (int i = 0; i < 40; ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  }
  server.WaitUntilIdle();
  const std::vector<prometheus::MetricFamily> page = PageOf(server);
  const prometheus::MetricFamily& segments = FamilyNamed(page, "tensord_segment_seconds");
  ASSERT_EQ(segments.metric.size(), 1u) << "a program of one operation";
  const prometheus::ClientMetric::Histogram& histogram = segments.metric.front().histogram;
  EXPECT_EQ(histogram.sample_count, 3u) << "runs 0, 17 and 34";
  EXPECT_EQ(histogram.bucket.back().cumulative_count, 3u);
  EXPECT_GT(histogram.sample_sum, 0);
  EXPECT_LT(histogram.sample_sum, 60);
  for (size_t i = 1; i < histogram.bucket.size(); ++i) {
    EXPECT_GE(histogram.bucket[i].cumulative_count, histogram.bucket[i - 1].cumulative_count);
    EXPECT_GT(histogram.bucket[i].upper_bound, histogram.bucket[i - 1].upper_bound);
  }
}

double CounterOf(const InProcessServer& server, const std::string& name, const std::string& label,
                 const std::string& other = "") {
  const std::vector<prometheus::MetricFamily> page = PageOf(server);
  for (const prometheus::ClientMetric& metric : FamilyNamed(page, name).metric) {
    std::set<std::string> values = {label, other};
    for (const prometheus::ClientMetric::Label& one : metric.label) values.erase(one.value);
    values.erase("");
    if (values.empty()) return metric.counter.value + metric.gauge.value;
  }
  return -1;
}

prometheus::ClientMetric::Histogram HistogramOf(const InProcessServer& server, const std::string& name,
                                                const std::string& label) {
  const std::vector<prometheus::MetricFamily> page = PageOf(server);
  for (const prometheus::ClientMetric& metric : FamilyNamed(page, name).metric) {
    for (const prometheus::ClientMetric::Label& one : metric.label) {
      if (one.value == label) return metric.histogram;
    }
  }
  return {};
}

void Upload(InProcessServer& server, const std::string& session, const std::string& handle, size_t floats) {
  grpc::ClientContext context;
  v1::PutTensorResponse response;
  const auto stream = server.stub().PutTensor(&context, &response);
  v1::PutTensorRequest header;
  header.mutable_header()->set_session(session);
  header.mutable_header()->set_handle(handle);
  header.mutable_header()->set_dtype(v1::DTYPE_F32);
  header.mutable_header()->add_shape(static_cast<int64_t>(floats));
  stream->Write(header);
  stream->Write(ChunkOf(0, std::string(floats * sizeof(float), '\0')));
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
}

// Its chunks.
size_t Download(InProcessServer& server, const std::string& session, const std::string& handle) {
  grpc::ClientContext context;
  v1::GetTensorRequest request;
  request.set_session(session);
  request.set_handle(handle);
  const auto stream = server.stub().GetTensor(&context, request);
  size_t chunks = 0;
  for (v1::GetTensorResponse message; stream->Read(&message);) chunks += message.has_chunk() ? 1 : 0;
  EXPECT_TRUE(stream->Finish().ok());
  return chunks;
}

TEST(MetricsPageTest, CountsWhatTensorsDo) {
  InProcessServer server({"sessions.tenant_bytes=8000"});
  SessionClient session(server);
  Upload(server, session.id(), "x", 1000);
  EXPECT_EQ(Download(server, session.id(), "x"), 1u);
  EXPECT_EQ(CounterOf(server, "tensord_tenant_quota_ratio", "default", "resident_bytes"), 0.5);
  EXPECT_TRUE(session.Delete({"x"}).empty());
  Upload(server, session.id(), "y", 2);
  EXPECT_EQ(session.Close(), "OK");
  server.WaitUntilIdle();
  EXPECT_EQ(CounterOf(server, "tensord_transfer_bytes_total", "put"), 4008);
  EXPECT_EQ(CounterOf(server, "tensord_transfer_bytes_total", "get"), 4000);
  EXPECT_EQ(CounterOf(server, "tensord_transfer_bytes_total", "shared"), 0);
  EXPECT_EQ(HistogramOf(server, "tensord_transfer_seconds", "put").sample_count, 2u);
  const auto sizes = HistogramOf(server, "tensord_transfer_size_bytes", "put");
  EXPECT_EQ(sizes.bucket.at(0).cumulative_count, 1u) << "up to 1 KiB";
  EXPECT_EQ(sizes.bucket.at(1).cumulative_count, 2u) << "up to 8 KiB";
  EXPECT_EQ(CounterOf(server, "tensord_tensor_evictions_total", "deleted"), 1);
  EXPECT_EQ(CounterOf(server, "tensord_tensor_evictions_total", "session_closed"), 1);
  EXPECT_EQ(CounterOf(server, "tensord_tensor_evictions_total", "lease_expired"), 0);
  EXPECT_EQ(CounterOf(server, "tensord_tenant_quota_ratio", "default", "resident_bytes"), 0);
}

TEST(MetricsPageTest, CountsWhatDevicesDo) {
  InProcessServer server({"cpu.executors=2", "cpu.memory_bytes=10000000"});
  Work(server, 3);
  const std::vector<float> values(16, 1.0f);
  v1::ExecuteResponse response;
  ASSERT_TRUE(
      Execute(server.stub(), RequestOf(SmallAdd(), {FloatTensor(values, {16}), FloatTensor(values, {16})}), &response)
          .ok());
  server.WaitUntilIdle();
  EXPECT_EQ(CounterOf(server, "tensord_device_up", "cpu:0"), 1);
  EXPECT_EQ(CounterOf(server, "tensord_device_errors_total", "cpu:0", "internal"), 0);
  EXPECT_GE(CounterOf(server, "tensord_segment_launches_total", "cpu:0"), 4) << "also of a run that no executor has";
  EXPECT_EQ(CounterOf(server, "tensord_queue_bytes", "cpu:0"), 0);
  const std::vector<prometheus::MetricFamily> page = PageOf(server);
  EXPECT_EQ(FamilyNamed(page, "tensord_executor_busy_seconds_total").metric.size(), 2u) << "one a worker";
  EXPECT_EQ(HistogramOf(server, "tensord_compile_seconds", "total").sample_count, 5u) << "one is of an empty graph";
  EXPECT_EQ(HistogramOf(server, "tensord_compile_seconds", "passes").sample_count, 5u);
  EXPECT_EQ(HistogramOf(server, "tensord_rpc_request_size_bytes", "Execute").sample_count, 4u);
  v1::ExecuteRequest large = RequestOf(LargeSum(), {FloatTensor(values, {16})});
  EXPECT_EQ(CounterOf(server, "tensord_out_of_memory_total", "cpu:0", "runs"), 0);
  {
    InProcessServer small({"cpu.memory_bytes=100"});
    EXPECT_EQ(DetailOf(Execute(small.stub(), large, &response)).reason(), "OUT_OF_MEMORY");
    EXPECT_EQ(CounterOf(small, "tensord_out_of_memory_total", "cpu:0", "runs"), 1);
    EXPECT_EQ(CounterOf(small, "tensord_out_of_memory_total", "cpu:0", "tensors"), 0);
  }
}

TEST(MetricsPageTest, SaysWhatItWasBuiltFrom) {
  InProcessServer server;
  const std::vector<prometheus::MetricFamily> page = PageOf(server);
  std::string git;
  for (const auto& label : FamilyNamed(page, "tensord_build_info").metric.front().label) {
    if (label.name == "git") git = label.value;
  }
  EXPECT_THAT(git, ::testing::MatchesRegex("unknown|[0-9a-f]+(-dirty)?"));
}

TEST(MetricsPageTest, CountsTenants) {
  InProcessServer server;
  Work(server, 2);
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_tenant_requests_total", "default"), 4) << "two that ran and two that failed";
  EXPECT_GT(server.Metric("tensord_tenant_device_seconds_total", "default"), 0);
}

TEST(MetricsPageTest, ShowsTheLimitsInForce) {
  InProcessServer server({"cpu.queue_length=77", "limits.rank=9", "limits.in_flight_bytes=1000000"});
  EXPECT_EQ(server.Metric("tensord_limit", "cpu.queue_length"), 77);
  EXPECT_EQ(server.Metric("tensord_limit", "rank"), 9);
  EXPECT_EQ(server.Metric("tensord_limit", "in_flight_bytes"), 1000000);
  server::ServerConfig config = server.daemon().config();
  config.mutable_limits()->set_in_flight_bytes(2000000);
  server.daemon().Reload(config);
  EXPECT_EQ(server.Metric("tensord_limit", "in_flight_bytes"), 2000000) << "after a reload";
}

TEST(MetricsPageTest, SaysWhetherTheLastReloadSucceeded) {
  InProcessServer server;
  const auto successful = [&] {
    return FamilyNamed(PageOf(server), "tensord_config_last_reload_successful").metric.front().gauge.value;
  };
  EXPECT_EQ(successful(), 1);
  server.daemon().Reload(absl::InvalidArgumentError("no such setting"));
  EXPECT_EQ(successful(), 0);
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(successful(), 1);
}

}  // namespace
}  // namespace tensord
