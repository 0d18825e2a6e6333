#ifndef TENSORD_ENGINE_BASE_CONTROL_GROUP_H_
#define TENSORD_ENGINE_BASE_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tensord {

// The bounds that control groups set for this process: the least of its own group's bound and those of the groups
// above, of version 2 and of version 1, as far as they can be read. `root` stands before /proc and /sys. Thread-safe;
// read anew each time; an unreadable file bounds nothing.

// Bytes of memory; nothing if no group bounds them.
std::optional<int64_t> ControlGroupMemoryBytes(const std::string& root = "");
// Processors that its share of time is worth, rounded up; nothing if no group bounds it.
std::optional<int> ControlGroupProcessors(const std::string& root = "");

// Returns the bytes of the machine's memory, or the bound of the control groups if lower.
int64_t UsableMemoryBytes(const std::string& root = "");
// Returns the number of processors that this process may run on, or the bound of the control groups if lower; at least
// one.
int UsableProcessors(const std::string& root = "");

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_CONTROL_GROUP_H_
