#include "clients/cli/operators/named_programs.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tensord::cli {
namespace {

constexpr size_t kFingerprintDigits = 64;

}  // namespace

absl::Status CheckNamed(const Fingerprints& fingerprints, bool all) {
  if (all != fingerprints.empty()) return absl::InvalidArgumentError("name the programs, or --all");
  for (const std::string& fingerprint : fingerprints) {
    // Every program begins with an empty text, so a single program would match it.
    if (fingerprint.empty()) return absl::InvalidArgumentError("a fingerprint is empty; --all means all programs");
  }
  return absl::OkStatus();
}

absl::Status CompleteFingerprints(client::AdminClient& admin, Fingerprints* fingerprints) {
  bool complete = true;
  for (const std::string& given : *fingerprints) complete &= given.size() == kFingerprintDigits;
  if (complete) return absl::OkStatus();
  absl::StatusOr<v1::ListProgramsResponse> programs = admin.ListPrograms();
  if (!programs.ok()) return programs.status();
  for (std::string& given : *fingerprints) {
    std::vector<std::string> found;
    for (const v1::ProgramEntry& entry : programs->programs()) {
      if (absl::StartsWith(entry.program().fingerprint(), given)) found.push_back(entry.program().fingerprint());
    }
    if (found.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(found.size(), " programs begin with ", given));
    }
    given = std::move(found.front());
  }
  return absl::OkStatus();
}

}  // namespace tensord::cli
