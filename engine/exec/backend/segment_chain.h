#ifndef TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_
#define TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/exec/program/exec_program.h"

namespace tensord {

// Segments that follow each other and that a backend runs together, a block of each at a time: their operands and
// results are in use from the first to the last.
struct SegmentChain {
  size_t begin = 0;  // a half-open range of positions
  size_t end = 0;
  // Slots that only pass between them, a block at a time, in memory that the backend asks for as scratch of the first:
  // nothing is planned for these slots, and they have no address.
  std::vector<Slot> unplaced;
  absl::string_view way;  // in which the backend runs them together, by a name of JoinCount
};

// How many segments a backend runs in one of its ways.
struct JoinCount {
  absl::string_view way;
  int64_t segments = 0;
  bool is_left_out = false;  // a setting says not to try it
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_
