#ifndef TENSORD_TESTS_FUZZ_ENTRIES_H_
#define TENSORD_TESTS_FUZZ_ENTRIES_H_

#include "absl/strings/string_view.h"

namespace tensord {

// The checks of the fuzz targets on their bytes. Any bytes are allowed; a broken promise of the engine ends the
// process, so that libFuzzer and the sanitizers see it.

// Checks a tensord.v1.Graph as wire bytes or, so that seeds can be read, in Protocol Buffers' text format. A decoded
// graph must encode, print, infer and compile without surprise, and come back the same.
void FuzzGraphWire(absl::string_view bytes);
// The text form of a graph.
void FuzzGraphText(absl::string_view text);
// An entry of the disk tier of the program cache, or the graph's text of one: then the entry is made around it. Or its
// fields alone, which are read where their fingerprint is all zeros.
void FuzzStoredProgram(absl::string_view bytes);
// The text form of a size, and its wire form.
void FuzzDimExpr(absl::string_view text);
// Checks the lines of an einsum: its equation; the shapes of its operands, as 2,n;n,3 with symbols n and m; a path, as
// 0,1;0,1, or nothing; the number of the optimizer, or nothing; largest_intermediate, or nothing. A small one is run
// and must give the reference's result or refusal.
void FuzzEinsum(absl::string_view text);

// Checks a request to differentiate: a line of words between semicolons, which are the number of the mode, "keep" or
// nothing, "split" or nothing, names of inputs and references to checkpoints between commas; then the text form of a
// graph. A derivative keeps its bounds, is an ordinary graph, and is the same again.
void FuzzDifferentiate(absl::string_view text);

// A tensord.v1.ExecuteRequest as wire bytes, in which the byte 0xFE stands for 4096 of them. The server must read it
// from any slices as protobuf does.
void FuzzReceivedExecute(absl::string_view bytes);

// A tensord.v1.ExecuteResponse as wire bytes, of one call or of a stream. The C++ client must read from any slices what
// protobuf reads, as far as it understands it.
void FuzzExecuteResponse(absl::string_view bytes);

// Packets for the broker of shared memory, each behind a byte with its length, of one connection. Every one is
// answered, limits hold, and nothing is left of the connection.
void FuzzBrokerPackets(absl::string_view bytes);

// Checks the file of callers. A refusal names the line.
void FuzzIdentityTable(absl::string_view text);

// The head of a request of HTTP. It is understood the same in whichever pieces it comes.
void FuzzHttpRequest(absl::string_view bytes);

// The values of traceparent and tracestate.
void FuzzTraceContext(absl::string_view text);

// A request to reflection. Each has an answer, whose files come with all that they import.
void FuzzReflection(absl::string_view bytes);

}  // namespace tensord

#endif  // TENSORD_TESTS_FUZZ_ENTRIES_H_
