#include "clients/load/server_times.h"

#include <string>

#include "clients/cpp/wire/duration.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::load {

using client::ToAbslDuration;
using client::WireCursor;

std::optional<ServerTimes> ReadServerTimes(const grpc::ByteBuffer& response) {
  std::optional<WireCursor> cursor = WireCursor::Open(response);
  if (!cursor.has_value()) return std::nullopt;
  v1::ExecutionStats stats;
  while (cursor->position() < cursor->size()) {
    WireCursor::Tag tag;
    if (!cursor->ReadTag(&tag)) return std::nullopt;
    if (tag.number != v1::ExecuteResponse::kStatsFieldNumber || tag.wire_type != WireCursor::kLengthDelimited) {
      if (!cursor->SkipField(tag, cursor->size())) return std::nullopt;
      continue;
    }
    uint64_t end;
    std::string bytes;
    if (!cursor->ReadLength(cursor->size(), &end) || !cursor->ReadString(end - cursor->position(), &bytes) ||
        !stats.MergeFromString(bytes)) {
      return std::nullopt;
    }
  }
  return ServerTimes{.queue = ToAbslDuration(stats.queue_time()),
                     .compile = ToAbslDuration(stats.compile_time()),
                     .run = ToAbslDuration(stats.run_time())};
}

}  // namespace tensord::load
