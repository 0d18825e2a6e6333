#ifndef TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_
#define TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_

#include <cstddef>
#include <vector>

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
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_SEGMENT_CHAIN_H_
