#include "server/rpc/calls/call_metadata.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxRequestId = 128;

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

absl::string_view ViewOf(grpc::string_ref text) { return {text.data(), text.size()}; }

// Returns nothing if there is none, or several.
std::optional<absl::string_view> OnlyValue(const Metadata& metadata, const char* key) {
  const auto found = metadata.equal_range(key);
  if (found.first == found.second || std::next(found.first) != found.second) return std::nullopt;
  return ViewOf(found.first->second);
}

std::string StateOf(const Metadata& metadata) {
  const auto found = metadata.equal_range(kTracestateKey);
  std::string joined;
  for (auto entry = found.first; entry != found.second; ++entry) {
    absl::StrAppend(&joined, joined.empty() ? "" : ",", ViewOf(entry->second));
  }
  return ParseTracestate(joined).value_or("");
}

std::string NewRequestId() {
  const SpanId id = NewSpanId();
  // A string holds as many bytes without memory of its own: the id is copied at every step of a call.
  constexpr size_t kBytes = 7;
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), kBytes});
}

}  // namespace

bool IsRequestId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestId &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~'; });
}

int64_t MetadataBytes(const grpc::CallbackServerContext& context) {
  constexpr size_t kOfAnEntry = 32;  // RFC 9113, section 6.5.2
  size_t bytes = 0;
  for (const auto& [name, value] : context.client_metadata()) bytes += name.size() + value.size() + kOfAnEntry;
  return static_cast<int64_t>(bytes);
}

void ReadCallMetadata(const grpc::CallbackServerContext& context, RequestRecord* record) {
  const Metadata& metadata = context.client_metadata();
  const std::optional<absl::string_view> id = OnlyValue(metadata, kRequestIdKey);
  record->request_id = id.has_value() && IsRequestId(*id) ? std::string(*id) : NewRequestId();
  const std::optional<absl::string_view> traceparent = OnlyValue(metadata, kTraceparentKey);
  if (!traceparent.has_value()) return;
  const std::optional<TraceContext> parsed = ParseTraceparent(*traceparent);
  if (!parsed.has_value()) return;
  record->trace = {.context = *parsed, .parent = parsed->span_id, .state = StateOf(metadata)};
}

CallIds IdsOf(const RequestRecord& record) {
  return {.request_id = record.request_id, .trace_id = record.trace.context.trace_id};
}

}  // namespace tensord::server
