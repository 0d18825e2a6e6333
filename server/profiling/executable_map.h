#ifndef TENSORD_SERVER_PROFILING_EXECUTABLE_MAP_H_
#define TENSORD_SERVER_PROFILING_EXECUTABLE_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::server {

// A part of a process's address space that holds code.
struct CodeRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uintptr_t file_offset = 0;
  std::string file;  // empty: code that was made in memory
};

// Parses the text of /proc/PID/maps, by address. Other lines are left out.
std::vector<CodeRange> ParseCodeRanges(absl::string_view maps);

// Returns the range that has the address; null if none does.
const CodeRange* FindCode(const std::vector<CodeRange>& ranges, uintptr_t address);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_PROFILING_EXECUTABLE_MAP_H_
