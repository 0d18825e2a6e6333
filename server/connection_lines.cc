#include "server/connection_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/config/automatic_settings.h"
#include "server/lifecycle/descriptor_limit.h"

namespace tensord::server {
namespace {

absl::string_view WhyOf(ConnectionExcess excess) {
  switch (excess) {
    case ConnectionExcess::kHeaders:
      return "sent more headers than any call may have (limits.metadata_bytes)";
    case ConnectionExcess::kFrames:
      return "sent more frames without content (window updates, acknowledgements, priorities, unknown or empty ones) "
             "than a connection may (100,000 a second, or 32 times limits.cancels_per_second)";
    case ConnectionExcess::kSettings:
      return "made more calls than a connection may (limits.streams_per_connection) and did not acknowledge the "
             "server's settings, which say so";
    case ConnectionExcess::kUnread:
      return "did not read its answers (limits.unread_ms)";
    case ConnectionExcess::kCancels:
    case ConnectionExcess::kNone:
      break;
  }
  return "took back more calls, or sent more pings, than a connection may (limits.cancels_per_second)";
}

}  // namespace

void ConnectionLines::TellBound(const ServerConfig& config) const {
  const int64_t most = connections_->bounds().most, wanted = config.limits().connections();
  if (most >= wanted) return;
  log_->Event(LogLevel::kWarning, "connections",
              absl::StrCat("at most ", most, " at once instead of limits.connections, ", wanted,
                           ": the process may open ", AllowDescriptors(0), " descriptors, of which it keeps ",
                           DescriptorsBesideConnections(config), " for all else; raise that limit (LimitNOFILE)"));
}

void ConnectionLines::TellRefused(int64_t refused) const {
  const ConnectionPlaces::Bounds bounds = connections_->bounds();
  log_->Event(
      LogLevel::kWarning, "connections refused",
      absl::StrCat(
          refused, " because as many are open as may be at once, all with calls that were let in: ", bounds.most,
          " (limits.connections), ", bounds.for_unix, " of these for unix sockets alone, and ", bounds.most_of_address,
          " of one address (limits.connections_per_address, 0: all); tensordctl connections says whose"));
}

void ConnectionLines::TellEnded(ConnectionExcess excess, const std::string& peer, int64_t ended) const {
  const absl::string_view why = WhyOf(excess);
  log_->Event(LogLevel::kWarning, "connections ended",
              absl::StrCat(ended, "; the last was that of ", peer, ", whose client ", why));
}

}  // namespace tensord::server
