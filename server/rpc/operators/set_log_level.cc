#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {

void HandleSetLogLevel(UnaryCall* call) {
  v1::SetLogLevelRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  const LogLevel level = LogLevelFromName(request.level());
  if (level == LogLevel::kOff && request.level() != "off") {
    return call->Fail(
        Refuse(Refusal::kMalformedMessage, absl::StrCat("a log level is debug, info, warning, error or off, not \"",
                                                        absl::string_view(request.level()).substr(0, 64), "\"")));
  }
  call->parts().observers.log->SetLevel(level);
  call->Reply(v1::SetLogLevelResponse());
}

}  // namespace tensord::server
