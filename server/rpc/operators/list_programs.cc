#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "google/protobuf/timestamp.pb.h"
#include "proto/codec/duration_codec.h"
#include "server/rpc/operators/admin_handlers.h"
#include "server/rpc/programs/program_message.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kLargestPage = 1000;

google::protobuf::Timestamp EncodeTime(absl::Time time) {
  const timespec parts = absl::ToTimespec(time);
  google::protobuf::Timestamp message;
  message.set_seconds(parts.tv_sec);
  message.set_nanos(static_cast<int32_t>(parts.tv_nsec));
  return message;
}

v1::ProgramEntry EncodeEntry(const ProgramCache::Listed& listed) {
  v1::ProgramEntry entry;
  *entry.mutable_program() = EncodeProgram(*listed.program);
  entry.set_graph_name(listed.program->program().name);
  entry.set_bytes(listed.bytes);
  const RunTally& runs = listed.program->tally();
  entry.set_run_count(runs.count());
  entry.set_tenant(runs.tenant());
  if (!entry.tenant().empty()) *entry.mutable_mean_run_time() = codec::EncodeDuration(runs.mean_time());
  if (listed.last_used != absl::InfinitePast()) *entry.mutable_last_used() = EncodeTime(listed.last_used);
  return entry;
}

v1::Quarantine::Work EncodeWork(ProgramWork work) {
  switch (work) {
    case ProgramWork::kCompile:
      return v1::Quarantine::WORK_COMPILE;
    case ProgramWork::kRestore:
      return v1::Quarantine::WORK_RESTORE;
    case ProgramWork::kRun:
      break;
  }
  return v1::Quarantine::WORK_RUN;
}

v1::Quarantine EncodeQuarantine(const Quarantine::Entry& entry) {
  v1::Quarantine message;
  if (entry.signal != 0) message.set_work(EncodeWork(entry.work));
  message.set_signal(entry.signal);
  message.set_known(entry.is_known);
  *message.mutable_since() = EncodeTime(entry.since);
  return message;
}

// The facts of a program: its place, and its refusal if it is quarantined.
struct KnownProgram {
  std::optional<ProgramCache::Listed> listed;
  std::optional<Quarantine::Entry> quarantined;
};

// Makes a page of all programs, in memory, on disk and in quarantine, in the order of their fingerprints. Programs on
// disk alone have only their fingerprints.
v1::ListProgramsResponse MakePage(const ProgramParts& parts, const std::string& after, size_t page_size) {
  std::map<std::string, KnownProgram> programs;
  if (parts.store != nullptr) {
    for (const Fingerprint& fingerprint : parts.store->List()) programs[fingerprint.ToHex()];
  }
  for (ProgramCache::Listed& listed : parts.cache->List()) {
    std::string fingerprint = listed.program->fingerprint().ToHex();
    programs[std::move(fingerprint)].listed = std::move(listed);
  }
  if (parts.quarantine != nullptr) {
    for (const Quarantine::Entry& entry : parts.quarantine->List()) {
      programs[entry.fingerprint.ToHex()].quarantined = entry;
    }
  }
  v1::ListProgramsResponse page;
  auto program = programs.upper_bound(after);
  for (size_t i = 0; i < page_size && program != programs.end(); ++i, ++program) {
    v1::ProgramEntry* entry = page.add_programs();
    const KnownProgram& known = program->second;
    if (known.listed.has_value()) *entry = EncodeEntry(*known.listed);
    if (known.quarantined.has_value()) *entry->mutable_quarantine() = EncodeQuarantine(*known.quarantined);
    entry->mutable_program()->set_fingerprint(program->first);
    const std::optional<Fingerprint> fingerprint = Fingerprint::FromHex(program->first);
    entry->set_on_disk(parts.store != nullptr && fingerprint.has_value() && parts.store->Contains(*fingerprint));
  }
  if (program != programs.end()) page.set_next_page_token(std::prev(program)->first);
  return page;
}

}  // namespace

void HandleListPrograms(UnaryCall* call) {
  v1::ListProgramsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  if (request.page_size() < 0) {
    return call->Fail(
        Refuse(Refusal::kMalformedMessage, absl::StrCat("a page cannot have ", request.page_size(), " programs")));
  }
  if (!request.page_token().empty() && !Fingerprint::FromHex(request.page_token()).has_value()) {
    return call->Fail(
        Refuse(Refusal::kMalformedMessage, "the page token is none that this method gave; begin without one"));
  }
  const int size = request.page_size() == 0 ? kDefaultPage : std::min(request.page_size(), kLargestPage);
  // Looks through the folder on disk.
  call->parts().admission.operators->Submit(call->caller().tenant, [call, after = request.page_token(), size] {
    call->Continue([&] { call->Reply(MakePage(call->parts().programs, after, static_cast<size_t>(size))); });
  });
}

}  // namespace tensord::server
