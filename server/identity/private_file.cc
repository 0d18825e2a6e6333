#include "server/identity/private_file.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/config/regular_file.h"

namespace tensord::server {
namespace {

absl::Status CheckMode(const std::string& path, mode_t mode, FileSecrecy secrecy) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", path, what));
  };
  if ((mode & 0022) != 0) {
    return wrong(absl::StrFormat("more than its owner may write it, mode %04o; chmod go-w", mode));
  }
  if (secrecy == FileSecrecy::kSecret && (mode & 0007) != 0) {
    return wrong(absl::StrFormat("everybody may read it, mode %04o; chmod o-rwx", mode));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path, FileSecrecy secrecy) {
  absl::StatusOr<RegularFile> file = ReadRegularFile(path);
  if (!file.ok()) return absl::InvalidArgumentError(file.status().message());
  RETURN_IF_ERROR(CheckMode(path, file->mode, secrecy));
  // Editors that write a file in place empty it first.
  if (file->content.empty()) return absl::InvalidArgumentError(absl::StrFormat("%s: is empty", path));
  return std::move(file->content);
}

}  // namespace tensord::server
