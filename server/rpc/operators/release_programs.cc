#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/rpc/operators/admin_handlers.h"
#include "server/rpc/operators/named_programs.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {
namespace {

// All that can be; the first that cannot is told.
absl::StatusOr<int64_t> Release(Quarantine* quarantine, Log* log, std::vector<Fingerprint> fingerprints, bool all) {
  if (quarantine == nullptr) return 0;
  if (all) {
    for (const Quarantine::Entry& entry : quarantine->List()) fingerprints.push_back(entry.fingerprint);
  }
  const Quarantine::Released released = quarantine->Release(fingerprints);
  for (const Fingerprint& fingerprint : released.fingerprints) {
    log->Event(LogLevel::kInfo, "program released", fingerprint.ToHex());
  }
  if (released.failure.ok()) return static_cast<int64_t>(released.fingerprints.size());
  return absl::Status(released.failure.code(), absl::StrCat(released.failure.message(), " (",
                                                            released.fingerprints.size(), " others were released)"));
}

}  // namespace

void HandleReleasePrograms(UnaryCall* call) {
  v1::ReleaseProgramsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  absl::StatusOr<std::vector<Fingerprint>> named = NamedPrograms(request, "release");
  if (!named.ok()) return call->Fail(named.status());
  const auto release = [call, named = *std::move(named), all = request.all()] {
    call->Continue([&] {
      v1::ReleaseProgramsResponse response;
      const absl::StatusOr<int64_t> released =
          Release(call->parts().programs.quarantine, call->parts().observers.log, named, all);
      if (!released.ok()) return call->Fail(released.status());
      response.set_released(*released);
      call->Reply(response);
    });
  };
  call->parts().admission.operators->Submit(call->caller().tenant, release);
}

}  // namespace tensord::server
