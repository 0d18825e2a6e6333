#ifndef TENSORD_BACKENDS_CPU_JIT_ROWS_H_
#define TENSORD_BACKENDS_CPU_JIT_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/jit/program.h"

namespace tensord::cpu {

// Rows of `length` elements, each of which is gone through once a stage: elements of a row are folded, a few values
// follow from the folds, the next stage reads both.
//
// Folds are sums, products, maxima and minima as a tile's run is folded (ReduceRuns), in the same order.
struct JitRows {
  // One element of each row; if its stored dtype is 16 bits long, it has another one here.
  struct Element {
    PlaceId from;
    PlaceId to;
    DType dtype = DType::kInvalid;
  };
  struct Stage {
    JitProgram kept;               // of single elements and constants; stores are of elements, in the frame
    std::vector<Element> results;  // from there to memory
    JitProgram loop;               // over the row
  };
  struct Moving {
    PlaceId place;
    int64_t row_bytes = 0;  // from one row to the next
    int element_bytes = 0;
    bool is_fetched = false;  // while the row before is computed
  };

  int64_t length = 0;
  std::vector<Element> loads;  // from memory, at the start of a row
  std::vector<Stage> stages;
  std::vector<Moving> moving;  // places whose addresses differ between rows
};

// Code that goes through `rows` rows. Arrays need no alignment; reads and writes nothing beside them.
using JitRowsFunction = void (*)(void* const* at, int64_t rows);

// Returns the code of a JitRowsFunction, without addresses in itself; empty if it cannot be made. All nodes are
// IsJitted; all folds are IsFoldJitted, or IsMapJitted. In code that streams, rows of arrays that may be streamed are
// aligned to 64.
std::string CompileJitRows(const JitRows& rows, JitIsa isa, bool streams);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_ROWS_H_
