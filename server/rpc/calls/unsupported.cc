#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "server/rpc/calls/handlers.h"

namespace tensord::server {

void HandleUnsupported(UnaryCall* call) {
  call->Fail(
      Refuse(Refusal::kUnsupportedRequest, absl::StrCat("this server does not provide ", Name(call->record().method))));
}

}  // namespace tensord::server
