#include "server/observe/records/request_record.h"

#include "engine/base/refusal.h"
#include "engine/base/repeated_refusal.h"

namespace tensord::server {

void RequestRecord::Refused(const absl::Status& status) {
  thread_local RepeatedRefusal<RefusalDetail> last;
  const RefusalDetail& detail =
      last.Get(status, [](const absl::Status& refusal) { return DetailOf(refusal).value_or(RefusalDetail{}); });
  code = status.code();
  reason = detail.reason;
  limit = detail.limit;
  message = std::string(status.message());
}

}  // namespace tensord::server
