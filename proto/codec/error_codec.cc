#include "proto/codec/error_codec.h"

#include "engine/base/refusal.h"
#include "engine/ir/names.h"
#include "proto/codec/duration_codec.h"

namespace tensord::codec {

void EncodeErrorDetail(const absl::Status& status, v1::ErrorDetail* encoded) {
  if (status.ok()) return;
  const std::optional<RefusalDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->reason.empty()) {
    encoded->set_reason(absl::StatusCodeToString(status.code()));
  } else {
    encoded->set_reason(detail->reason);
  }
  if (detail.has_value()) {
    encoded->set_node(PrintableName(detail->node));
    encoded->set_op(PrintableName(detail->op));
    encoded->set_limit(detail->limit);
    encoded->set_limit_value(detail->limit_value);
    encoded->set_actual_value(detail->actual_value);
    if (detail->retry_after > absl::ZeroDuration()) {
      *encoded->mutable_retry_after() = EncodeDuration(detail->retry_after);
    }
  }
}

v1::Error EncodeError(const absl::Status& status) {
  v1::Error error;
  error.set_code(static_cast<int>(status.code()));
  error.set_message(PrintableMessage(status.message()));
  if (!status.ok()) EncodeErrorDetail(status, error.mutable_detail());
  return error;
}

}  // namespace tensord::codec
