#include "engine/runtime/programs/program_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "engine/base/entry_folder.h"

namespace tensord {

absl::Status ProgramFolderError(const std::string& folder, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("the folder of programs, ", folder, ", ", what));
}

absl::Status CheckProgramFolder(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ProgramFolderError(path, absl::StrCat("cannot be looked at: ", std::strerror(errno)));
    // Without slashes at the end, behind which the path would have an empty last name.
    const std::filesystem::path folder = path.substr(0, path.find_last_not_of('/') + 1);
    const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
    if (access(parent.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
    return ProgramFolderError(path, absl::StrCat("cannot be made: ", std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode)) return ProgramFolderError(path, "is no folder");
  return EntryFolder::IsOwn(info) ? absl::OkStatus() : ProgramFolderError(path, EntryFolder::kNotOwn);
}

}  // namespace tensord
