#ifndef TENSORD_ENGINE_BASE_CONTROL_GROUP_H_
#define TENSORD_ENGINE_BASE_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tensord {

// What the control groups that this process is in leave it: the least of its own group's bound and those of the groups
// above, of version 2 and of version 1, as far as they can be read. `root` stands before /proc and /sys. Thread-safe;
// read anew each time; what cannot be read bounds nothing.

// Bytes of memory; nothing where no group bounds them.
std::optional<int64_t> ControlGroupMemoryBytes(const std::string& root = "");
// Processors that its share of time is worth, rounded up; nothing where no group bounds it.
std::optional<int> ControlGroupProcessors(const std::string& root = "");

// Bytes of the machine's memory, or what the control groups leave where that is less.
int64_t UsableMemoryBytes(const std::string& root = "");
// Processors that this process may run on, or what the control groups leave where that is less; at least one.
int UsableProcessors(const std::string& root = "");

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_CONTROL_GROUP_H_
