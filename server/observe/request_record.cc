#include "server/observe/request_record.h"

#include "engine/base/refusal.h"

namespace tensord::server {

void RequestRecord::Refused(const absl::Status& status) {
  code = status.code();
  if (const auto detail = DetailOf(status)) {
    reason = detail->reason;
    limit = detail->limit;
  }
  message = std::string(status.message());
}

}  // namespace tensord::server
