#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_FOLDER_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord {

// The requirements on the folder of a ProgramStore.

// Fails with UNAVAILABLE, with the folder.
absl::Status ProgramFolderError(const std::string& folder, absl::string_view what);

// Checks the folder as ProgramStore::Open does, or the one that it would be made in. Changes nothing.
absl::Status CheckProgramFolder(const std::string& path);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_PROGRAM_FOLDER_H_
