// Traced calls, from a client's traceparent to the spans that a collector gets.

#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <string>

#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/tracing/tracer.h"
#include "server/tracing/tracer_options.h"
#include "tests/e2e/server/collector.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParent[] = "b7ad6b7169203331";

std::string Traceparent(const char* flags) { return std::string("00-") + kTraceId + "-" + kParent + "-" + flags; }

v1::ExecuteRequest TracedRequest() { return RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}); }

std::map<std::string, std::string> AttributesOf(const otlp::Span& span) {
  std::map<std::string, std::string> attributes;
  for (const otlp::KeyValue& attribute : span.attributes()) {
    attributes[attribute.key()] = attribute.value().value_case() == otlp::AnyValue::kIntValue
                                      ? std::to_string(attribute.value().int_value())
                                      : attribute.value().string_value();
  }
  return attributes;
}

class TracingTest : public ::testing::Test {
 protected:
  ~TracingTest() override {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) std::filesystem::remove(entry.path());
  }
  std::string Address() const { return "unix:" + folder_.path() + "/collector"; }
  std::vector<std::string> Settings() const { return {"tracing.endpoint=" + Address(), "tracing.batch_ms=1"}; }

  static grpc::Status Run(InProcessServer& server, const v1::ExecuteRequest& request, const std::string& traceparent,
                          v1::ExecuteResponse* response) {
    grpc::ClientContext context;
    if (!traceparent.empty()) context.AddMetadata("traceparent", traceparent);
    context.AddMetadata("tracestate", "rojo=1, congo=2");
    context.AddMetadata("x-request-id", "r-1");
    return server.stub().Execute(&context, request, response);
  }
  // The spans by name, of a collector that has the call's own. Names of stages and methods are there once.
  static std::map<std::string, otlp::Span> SpansOf(const Collector& collector) {
    std::map<std::string, otlp::Span> spans;
    for (const otlp::Span& span : collector.spans()) spans[span.name()] = span;
    return spans;
  }

  TemporaryFolder folder_;
};

TEST_F(TracingTest, ACallBecomesSpansDownToItsSegments) {
  const Collector collector(Address());
  InProcessServer server(Settings());
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_EQ(response.stats().segments_size(), 0) << "the client did not ask for them";
  ASSERT_TRUE(WaitFor([&] { return !collector.spans().empty(); }));
  EXPECT_EQ(collector.method(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");

  const auto spans = SpansOf(collector);
  ASSERT_THAT(spans, IsSupersetOf({Key("tensord.v1.Compute/Execute"), Key("compile"), Key("queue"), Key("compute")}));
  const otlp::Span& root = spans.at("tensord.v1.Compute/Execute");
  EXPECT_EQ(root.kind(), otlp::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(absl::BytesToHexString(root.trace_id()), kTraceId);
  EXPECT_EQ(absl::BytesToHexString(root.parent_span_id()), kParent);
  EXPECT_EQ(root.trace_state(), "rojo=1,congo=2");
  EXPECT_EQ(root.flags(), 0x301u);
  auto attributes = AttributesOf(root);
  EXPECT_EQ(attributes["rpc.system"], "grpc");
  EXPECT_EQ(attributes["rpc.service"], "tensord.v1.Compute");
  EXPECT_EQ(attributes["rpc.method"], "Execute");
  EXPECT_EQ(attributes["rpc.grpc.status_code"], "0");
  EXPECT_EQ(attributes["tensord.request_id"], "r-1");
  EXPECT_EQ(attributes["tensord.device"], "cpu:0");
  EXPECT_EQ(attributes["tensord.program_cache"], "compiled");
  int segments = 0;
  for (const otlp::Span& span : collector.spans()) {
    EXPECT_LE(span.start_time_unix_nano(), span.end_time_unix_nano());
    EXPECT_GE(span.start_time_unix_nano(), root.start_time_unix_nano()) << span.name();
    EXPECT_EQ(span.trace_id(), root.trace_id());
    EXPECT_EQ(span.span_id().size(), 8u);
    if (span.parent_span_id() == spans.at("compute").span_id()) ++segments;
  }
  EXPECT_EQ(spans.at("compute").parent_span_id(), root.span_id());
  EXPECT_GT(segments, 0);
  EXPECT_TRUE(
      WaitFor([&] { return server.Metric("tensord_execute_total", "ok") == 1 && collector.resources().size() == 1; }));
  EXPECT_EQ(collector.resources()[0].resource().attributes(0).value().string_value(), "tensord");
}

TEST_F(TracingTest, TheCallerSaysWhetherItsCallIsSampled) {
  const Collector collector(Address());
  std::vector<std::string> settings = Settings();
  settings.push_back("tracing.sample_ratio=1");
  InProcessServer server(settings);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("00"), &response).ok());
  ASSERT_TRUE(Run(server, TracedRequest(), "", &response).ok());
  server.WaitUntilIdle();
  server.RequestStop();
  server.WaitUntilStopped();
  int roots = 0;
  for (const otlp::Span& span : collector.spans()) {
    if (span.kind() != otlp::Span::SPAN_KIND_SERVER) continue;
    ++roots;
    EXPECT_NE(absl::BytesToHexString(span.trace_id()), kTraceId);
    EXPECT_EQ(span.parent_span_id(), "");
    EXPECT_EQ(span.trace_state(), "") << "a tracestate without traceparent is none";
  }
  EXPECT_EQ(roots, 1) << "and what waited is sent before the server stops";
}

TEST_F(TracingTest, RefusedCallsAndStreamsAreTracedToo) {
  const Collector collector(Address());
  {
    InProcessServer server(Settings());
    v1::ExecuteResponse response;
    EXPECT_FALSE(Run(server, v1::ExecuteRequest(), Traceparent("01"), &response).ok());
    grpc::ClientContext context;
    context.AddMetadata("traceparent", Traceparent("01"));
    const auto stream = server.stub().ExecuteStream(&context);
    v1::ExecuteRequest request = TracedRequest();
    request.set_request_id(1);
    EXPECT_TRUE(stream->Write(request));
    EXPECT_TRUE(stream->Read(&response));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    server.WaitUntilIdle();
    server.RequestStop();
    server.WaitUntilStopped();
  }
  const auto spans = SpansOf(collector);
  ASSERT_THAT(spans, IsSupersetOf({Key("tensord.v1.Compute/Execute"), Key("tensord.v1.Compute/ExecuteStream"),
                                   Key("tensord.v1.Compute/ExecuteStream request")}));
  auto refused = AttributesOf(spans.at("tensord.v1.Compute/Execute"));
  EXPECT_EQ(refused["rpc.grpc.status_code"], "3");
  EXPECT_EQ(refused["tensord.reason"], "MALFORMED_MESSAGE");
  EXPECT_EQ(refused["error.type"], "INVALID_ARGUMENT");
  EXPECT_EQ(spans.at("tensord.v1.Compute/Execute").status().code(), otlp::Status::STATUS_CODE_UNSET)
      << "the client's mistake is no error of the server";
  EXPECT_EQ(spans.at("tensord.v1.Compute/ExecuteStream request").parent_span_id(),
            spans.at("tensord.v1.Compute/ExecuteStream").span_id());
}

// Else a stranger could fill the collector.
TEST_F(TracingTest, WhoIsNotLetInIsNotTraced) {
  const PrivateFolder secrets;
  const Collector collector(Address());
  std::vector<std::string> settings = Settings();
  settings.insert(settings.end(), {"identity.file=" + secrets.Write("callers", "ops admin cn:ops\n"),
                                   "identity.trust_unix_sockets=false", "log.level=warning"});
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server(settings);
    v1::ExecuteResponse response;
    EXPECT_EQ(Run(server, TracedRequest(), Traceparent("01"), &response).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
    server.WaitUntilIdle();
    server.RequestStop();
    server.WaitUntilStopped();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(std::string(R"("request_id":"r-1","trace_id":")") + kTraceId));
  EXPECT_EQ(collector.exports(), 0);
}

TEST_F(TracingTest, TheRatioChangesWithoutARestart) {
  const Collector collector(Address());
  InProcessServer server(Settings());
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), "", &response).ok());
  server::ServerConfig config = server.daemon().config();
  config.mutable_tracing()->set_sample_ratio(1);
  server.daemon().Reload(config);
  ASSERT_TRUE(Run(server, TracedRequest(), "", &response).ok());
  server.WaitUntilIdle();
  server.RequestStop();
  server.WaitUntilStopped();
  int roots = 0;
  for (const otlp::Span& span : collector.spans()) roots += span.kind() == otlp::Span::SPAN_KIND_SERVER ? 1 : 0;
  EXPECT_EQ(roots, 1);
}

TEST_F(TracingTest, ACollectorThatIsBusyIsTriedAgain) {
  const Collector collector(Address(), [](int number, otlp::ExportTraceServiceResponse*) {
    return number < 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "later") : grpc::Status::OK;
  });
  InProcessServer server(Settings());
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return !collector.spans().empty(); }));
  EXPECT_EQ(collector.exports(), 3);
  EXPECT_EQ(server.Metric("tensord_trace_spans_dropped_total", "unavailable"), 0);
}

// google.rpc.Status{details: [google.rpc.RetryInfo{retry_delay: 10 ms}]}.
std::string RetryAfterTenMs() {
  otlp::RetryInfo info;
  info.mutable_retry_delay()->set_nanos(10'000'000);
  otlp::CallStatus details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  return details.SerializeAsString();
}

TEST_F(TracingTest, ACollectorThatIsFullIsTriedAgainWhenItSaysSo) {
  const Collector collector(Address(), [](int number, otlp::ExportTraceServiceResponse*) {
    if (number == 0) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", RetryAfterTenMs());
    return number == 1 ? grpc::Status::OK : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full for ever");
  });
  InProcessServer server(Settings());
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return !collector.spans().empty(); }));
  EXPECT_EQ(server.Metric("tensord_trace_spans_dropped_total", "refused"), 0);
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_trace_spans_dropped_total", "refused") > 0; }));
  EXPECT_EQ(collector.exports(), 3) << "without a time it is not tried again";
}

// The environment of this process, with a proxy at which nobody listens.
class DeadProxy {
 public:
  DeadProxy() { setenv("http_proxy", "http://127.0.0.1:1", 1); }
  ~DeadProxy() { unsetenv("http_proxy"); }
};

TEST_F(TracingTest, NoProxyCatchesACollectorOfThisMachine) {
  const Collector collector("127.0.0.1:0");
  const DeadProxy proxy;
  InProcessServer server(
      {"tracing.endpoint=127.0.0.1:" + std::to_string(collector.port()), "tracing.batch_ms=1", "tracing.retry_ms=0"});
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] {
    return server.Metric("tensord_trace_spans_dropped_total", "unavailable") > 0 || !collector.spans().empty();
  }));
  EXPECT_FALSE(collector.spans().empty());
}

TEST_F(TracingTest, WhatTheCollectorDoesNotWantIsCounted) {
  const Collector collector(Address(), [](int number, otlp::ExportTraceServiceResponse* response) {
    if (number == 0) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "never");
    response->mutable_partial_success()->set_rejected_spans(1);
    return grpc::Status::OK;
  });
  InProcessServer server(Settings());
  v1::ExecuteResponse response;
  const auto refused = [&server] { return server.Metric("tensord_trace_spans_dropped_total", "refused"); };
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return refused() > 0; }));
  const double whole = refused();
  EXPECT_GE(whole, 4);
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return refused() == whole + 1; }));
  EXPECT_EQ(collector.exports(), 2);
}

TEST_F(TracingTest, WithoutACollectorCallsGoOnAndSpansAreCounted) {
  std::vector<std::string> settings = Settings();
  settings.insert(settings.end(), {"tracing.retry_ms=1", "tracing.queue_spans=1", "tracing.timeout_ms=1"});
  InProcessServer server(settings);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_trace_spans_dropped_total", "queue_full") > 0; }));
  EXPECT_TRUE(WaitFor([&] {
    v1::GetProgramRequest request;
    v1::Program program;
    grpc::ClientContext again;
    again.AddMetadata("traceparent", Traceparent("01"));
    EXPECT_FALSE(server.stub().GetProgram(&again, request, &program).ok());
    return server.Metric("tensord_trace_spans_dropped_total", "queue_full") > 20;
  }));
}

TEST_F(TracingTest, TheEndDoesNotWaitForACollectorThatHangs) {
  std::promise<void> release;
  const Collector collector(Address(),
                            [released = release.get_future().share()](int, otlp::ExportTraceServiceResponse*) {
                              released.wait();
                              return grpc::Status::OK;
                            });
  {
    std::vector<std::string> settings = Settings();
    settings.push_back("tracing.timeout_ms=100");
    InProcessServer server(settings);
    v1::ExecuteResponse response;
    ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
    server.WaitUntilIdle();
    server.RequestStop();
    server.WaitUntilStopped();
    EXPECT_GT(server.Metric("tensord_trace_spans_dropped_total", "shutdown"), 0);
  }
  release.set_value();
}

TEST_F(TracingTest, HeadersGoWithEachExport) {
  const PrivateFolder secrets;
  const Collector collector(Address());
  std::vector<std::string> settings = Settings();
  settings.push_back("tracing.headers=" + secrets.Write("headers", "# of the collector\nAuthorization: Bearer abc\n"));
  InProcessServer server(settings);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
  EXPECT_TRUE(WaitFor([&] { return !collector.spans().empty(); }));
  EXPECT_EQ(collector.metadata("authorization"), "Bearer abc");
}

TEST_F(TracingTest, TheWayToTheCollectorMayBeEncrypted) {
  const PrivateFolder secrets;
  const CertificateAuthority authority, other("another CA");
  const IssuedCertificate issued = authority.Issue();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({issued.key, issued.certificate});
  const Collector collector("127.0.0.1:0", nullptr, grpc::SslServerCredentials(tls));
  const auto run = [&](const CertificateAuthority& trusted) {
    InProcessServer server({"tracing.endpoint=127.0.0.1:" + std::to_string(collector.port()), "tracing.batch_ms=1",
                            "tracing.tls=true", "tracing.ca=" + secrets.Write("ca.pem", trusted.certificate(), 0644),
                            "tracing.retry_ms=0"});
    v1::ExecuteResponse response;
    ASSERT_TRUE(Run(server, TracedRequest(), Traceparent("01"), &response).ok());
    EXPECT_TRUE(WaitFor([&] {
      return server.Metric("tensord_trace_spans_dropped_total", "unavailable") > 0 || !collector.spans().empty();
    }));
  };
  run(other);
  EXPECT_EQ(collector.exports(), 0);
  run(authority);
  EXPECT_EQ(collector.exports(), 1);
}

TEST(TracerOptionsTest, RefusesWhatCannotWork) {
  const PrivateFolder secrets;
  const auto refused = [](const std::vector<std::string>& settings) {
    server::ServerConfig config;
    for (const std::string& setting : settings) EXPECT_TRUE(server::SetConfigField(setting, &config).ok()) << setting;
    return std::string(server::Daemon::Check(config).message());
  };
  const std::string headers = secrets.Write("headers", "authorization: x\n");
  EXPECT_EQ(refused({"tracing.endpoint=collector:4317"}), "");
  EXPECT_EQ(refused({"tracing.endpoint=collector:4317", "tracing.tls=true", "tracing.headers=" + headers}), "");
  EXPECT_THAT(refused({"tracing.endpoint=collector"}), HasSubstr("tracing.endpoint"));
  EXPECT_THAT(refused({"tracing.endpoint=collector:4317", "tracing.headers=" + headers}), HasSubstr("tracing.tls"));
  EXPECT_THAT(refused({"tracing.endpoint=localhost:4317", "tracing.ca=/x"}), HasSubstr("tracing.ca"));
  EXPECT_THAT(refused({"tracing.sample_ratio=1.5"}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(refused({"tracing.sample_ratio=nan"}), HasSubstr("between 0 and 1"));
  for (const char* wrong : {"name", "name:", "grpc-x: y", "x-bin: y", "na me: y", ": y", "a: b\xC3"}) {
    EXPECT_FALSE(server::ParseHeaders(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tensord
