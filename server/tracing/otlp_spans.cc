#include "server/tracing/otlp_spans.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "tensord/v1/admin.pb.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

constexpr uint32_t kSampledFlag = 0x1, kKnowsParent = 0x100, kParentIsRemote = 0x200;

template <typename Id>
std::string BytesOf(const Id& id) {
  return std::string(reinterpret_cast<const char*>(id.data()), id.size());
}

void SetTimes(absl::Time begin, absl::Duration length, otlp::Span* span) {
  span->set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(begin)));
  span->set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(begin + length)));
}

void AddText(absl::string_view key, absl::string_view value, otlp::Span* span) {
  if (!value.empty()) SetAttribute(key, value, span->add_attributes());
}

void AddNumber(absl::string_view key, int64_t value, otlp::Span* span) {
  otlp::KeyValue* attribute = span->add_attributes();
  attribute->set_key(std::string(key));
  attribute->mutable_value()->set_int_value(value);
}

// Returns the method's service by the contract's own description.
std::string ServiceOf(RpcMethod method) {
  const std::string name(Name(method));
  for (const auto* file : {v1::ExecuteRequest::descriptor()->file(), v1::DrainRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      if (file->service(i)->FindMethodByName(name) != nullptr) return file->service(i)->full_name();
    }
  }
  return "";
}

// Returns true for codes that the conventions call an error of the server, not of its client.
bool IsServerError(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// The span of the call itself.
void FillRoot(const RequestRecord& record, absl::Time begin, otlp::Span* span) {
  const std::string service = ServiceOf(record.method);
  span->set_trace_id(BytesOf(record.trace.context.trace_id));
  span->set_span_id(BytesOf(record.trace.context.span_id));
  if (record.trace.parent != SpanId{}) span->set_parent_span_id(BytesOf(record.trace.parent));
  span->set_trace_state(record.trace.state);
  const bool is_remote = !record.is_streamed && record.trace.parent != SpanId{};
  span->set_flags(kSampledFlag | kKnowsParent | (is_remote ? kParentIsRemote : 0));
  span->set_name(absl::StrCat(service, "/", Name(record.method), record.is_streamed ? " request" : ""));
  span->set_kind(record.is_streamed ? otlp::Span::SPAN_KIND_INTERNAL : otlp::Span::SPAN_KIND_SERVER);
  SetTimes(begin, record.total, span);
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", service, span);
  AddText("rpc.method", Name(record.method), span);
  AddNumber("rpc.grpc.status_code", static_cast<int64_t>(record.code), span);
  AddText("tensord.request_id", record.request_id, span);
  AddText("tensord.tenant", record.tenant, span);
  AddText("tensord.fingerprint", record.fingerprint, span);
  AddText("tensord.program_cache", record.cache, span);
  AddText("tensord.device", record.device, span);
  AddText("tensord.reason", record.reason, span);
  AddNumber("tensord.received_bytes", record.received_bytes, span);
  AddNumber("tensord.sent_bytes", record.sent_bytes, span);
  if (record.code != absl::StatusCode::kOk) AddText("error.type", absl::StatusCodeToString(record.code), span);
  if (IsServerError(record.code)) {
    span->mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
    span->mutable_status()->set_message(Utf8Prefix(record.message, kMaxSpanMessageBytes));
  }
}

otlp::Span* AddChild(const otlp::Span& parent, absl::string_view name, otlp::ScopeSpans* spans) {
  const std::string trace = parent.trace_id(), state = parent.trace_state(), above = parent.span_id();
  otlp::Span* span = spans->add_spans();
  span->set_trace_id(trace);
  span->set_span_id(BytesOf(NewSpanId()));
  span->set_parent_span_id(above);
  span->set_trace_state(state);
  span->set_flags(kSampledFlag | kKnowsParent);
  span->set_name(Utf8Prefix(name, kMaxSpanNameBytes));
  span->set_kind(otlp::Span::SPAN_KIND_INTERNAL);
  return span;
}

}  // namespace

void SetAttribute(absl::string_view key, absl::string_view value, otlp::KeyValue* attribute) {
  attribute->set_key(std::string(key));
  attribute->mutable_value()->set_string_value(std::string(value));
}

void AddSpans(const TracedRequest& request, otlp::ScopeSpans* spans) {
  const RequestRecord& record = request.record;
  const absl::Time begin = request.end - record.total;
  otlp::Span* const root = spans->add_spans();
  FillRoot(record, begin, root);
  const otlp::Span* compute = root;
  for (size_t i = 0; i < kNumStages; ++i) {
    const Stage stage = static_cast<Stage>(i);
    const absl::Duration time = record.stages.Of(stage).value_or(absl::ZeroDuration());
    if (time < kShortestSpan) continue;
    otlp::Span* const child = AddChild(*root, Name(stage), spans);
    SetTimes(begin + record.stages.BeginOf(stage), time, child);
    if (stage == Stage::kCompute) compute = child;
  }
  const absl::Time run = begin + record.stages.BeginOf(Stage::kCompute);
  for (const SegmentProfile& segment : record.segments) {
    otlp::Span* const child = AddChild(*compute, segment.kernel, spans);
    SetTimes(run + segment.start, segment.duration, child);
  }
}

}  // namespace tensord::server
