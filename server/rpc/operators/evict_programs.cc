#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/operators/admin_handlers.h"
#include "server/rpc/operators/named_programs.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {
namespace {

int64_t Evict(const ProgramParts& programs, const v1::EvictProgramsRequest& request) {
  const bool from_disk = request.disk_too() && programs.store != nullptr;
  if (from_disk) programs.store->Flush();  // what waits to be written goes too
  std::set<std::string> fingerprints(request.fingerprints().begin(), request.fingerprints().end());
  if (request.all()) {
    for (const ProgramCache::Listed& listed : programs.cache->List()) {
      fingerprints.insert(listed.program->fingerprint().ToHex());
    }
    if (from_disk) {
      for (const Fingerprint& fingerprint : programs.store->List()) fingerprints.insert(fingerprint.ToHex());
    }
  }
  int64_t evicted = 0;
  for (const std::string& hex : fingerprints) {
    const std::optional<Fingerprint> fingerprint = Fingerprint::FromHex(hex);
    if (!fingerprint.has_value()) continue;
    const bool was_in_memory = programs.cache->Evict(*fingerprint) > 0;
    const bool was_on_disk = from_disk && programs.store->Remove(*fingerprint);
    evicted += was_in_memory || was_on_disk;
  }
  return evicted;
}

}  // namespace

void HandleEvictPrograms(UnaryCall* call) {
  v1::EvictProgramsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  const absl::Status named = NamedPrograms(request, "evict").status();
  if (!named.ok()) return call->Fail(named);
  call->parts().admission.operators->Submit(call->caller().tenant, [call, request = std::move(request)] {
    call->Continue([&] {
      v1::EvictProgramsResponse response;
      response.set_evicted(Evict(call->parts().programs, request));
      call->parts().observers.log->Event(LogLevel::kInfo, "programs evicted", absl::StrCat(response.evicted()));
      call->Reply(response);
    });
  });
}

}  // namespace tensord::server
