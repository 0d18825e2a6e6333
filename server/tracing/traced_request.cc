#include "server/tracing/traced_request.h"

#include <algorithm>
#include <utility>

#include "engine/base/utf8.h"

namespace tensord::server {
namespace {

void Cut(size_t max_bytes, std::string* text) {
  if (text->size() > max_bytes) *text = Utf8Prefix(*text, max_bytes);
}

}  // namespace

TracedRequest MakeTracedRequest(const RequestRecord& record, size_t max_segments, absl::Time end) {
  TracedRequest request = {.record = record, .end = end};
  std::vector<SegmentProfile> segments;
  segments.reserve(std::min(request.record.segments.size(), max_segments));
  for (SegmentProfile& segment : request.record.segments) {
    if (segments.size() == max_segments) break;
    Cut(kMaxSpanNameBytes, &segment.kernel);
    segments.push_back({.kernel = std::move(segment.kernel), .start = segment.start, .duration = segment.duration});
  }
  request.record.segments = std::move(segments);
  Cut(kMaxSpanMessageBytes, &request.record.message);
  return request;
}

int64_t HeldBytes(const TracedRequest& request) {
  const RequestRecord& record = request.record;
  size_t bytes = sizeof(TracedRequest) + record.segments.capacity() * sizeof(SegmentProfile);
  for (const std::string* text : {&record.peer, &record.request_id, &record.tenant, &record.trace.state, &record.reason,
                                  &record.message, &record.limit, &record.fingerprint, &record.device}) {
    bytes += text->capacity();
  }
  for (const SegmentProfile& segment : record.segments) {
    bytes += segment.kernel.capacity() + segment.nodes.capacity() * sizeof(std::string);
    for (const std::string& node : segment.nodes) bytes += node.capacity();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace tensord::server
