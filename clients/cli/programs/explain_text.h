#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_EXPLAIN_TEXT_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_EXPLAIN_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::cli {

// A program as a server's Explain describes it, read again. The text is lines; spaces before a line and between its
// words do not count; NAME stands in double quotes with the escapes of C, %N is a value.
//
//   program NAME on DEVICE, ORDER-major on the wire
//   %N input NAME [MEMORY] : TYPE
//   %N constant [MEMORY] : TYPE
//   %N node NAME [MEMORY] [view of %M] : TYPE               a result of a node; a view is computed by nobody
//   output NAME = %N
//   stage S[, when the host has read %N and decided SYMBOL, at most SIZE][, %N and decided …]
//   session N[, KIND]                                       in the stage before it
//   segment N: KERNEL                                       in the session before it; these belong to the segment:
//     %N[, %N…] = OP(%N[!][, %N…])[ {ATTRIBUTES}]           ! marks an operand that nobody reads later
//     nodes NAME[, NAME…]                                   the graph's nodes that it computes
//     moves BYTES                                           operands and results, each once
//
// All other lines are for people. KERNEL of a fused segment is "fused: OP OP…".
struct ExplainedProgram {
  enum class ValueKind : uint8_t { kInput, kConstant, kNode };
  struct Value {
    ValueKind kind = ValueKind::kNode;
    std::string name;
    std::string type;
    int64_t view_of = -1;
  };
  struct Segment {
    std::string kernel;
    std::vector<int64_t> results;
    std::vector<int64_t> operands;
    std::vector<std::string> nodes;
    std::string moves;
  };
  struct Session {
    std::string title;  // "session 0"
    int64_t stage = 0;
    std::vector<Segment> segments;
  };
  struct Decision {  // of the host, before a stage
    int64_t stage = 0;
    int64_t value = 0;
    std::string symbol;
  };
  struct Output {
    std::string name;
    int64_t value = 0;
  };

  std::string name;
  std::string device;
  std::map<int64_t, Value> values;
  std::vector<Output> outputs;
  std::vector<Decision> decisions;
  std::vector<Session> sessions;
};

// Parses the text. Lines of other forms than those above are passed over, so that a newer server's text is read as
// well. NOT_FOUND if no line begins a program.
absl::StatusOr<ExplainedProgram> ParseExplainText(absl::string_view text);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_EXPLAIN_TEXT_H_
