#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_STORED_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_STORED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/fingerprint.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_registry.h"
#include "engine/runtime/compile/compiler.h"

namespace tensord {

// A program as it lies on disk: what it is compiled from. Machine code, plans and packed constants are of this process
// and this processor, so they are made again.
//
// An entry, whose numbers are little-endian:
//
//   "tensord\n"  format: u32  size of the entry: u64
//   compiler's version, device, order, disabled passes, enabled passes, fingerprint, the graph's text form,
//   and the tenant, where it is one's alone
//   SHA-256 of all before, in hexadecimal digits
//
// A text is its length, u64, and its bytes; a list is its length, u64, and its texts.
struct StoredProgram {
  Graph graph;
  CompileSettings settings;
  ProgramKey key;  // made of the graph and the settings, never read
};

// The reason why an entry was not used.
enum class EntryDamage : uint8_t {
  kNone,
  kTruncated,  // fewer bytes than it says
  kFormat,     // no entry, or of a format that this build does not know
  kChecksum,   // its bytes are not what was written
  kVersion,    // of another compiler
  kContent,    // its fields or its graph cannot be read
  kKey,        // it is another program than its name says
  kIo,         // the system could not read it
};
inline constexpr size_t kNumEntryDamages = 8;
absl::string_view Name(EntryDamage damage);
// Describes the damage for people: "it is of another compiler".
absl::string_view Describe(EntryDamage damage);

// Larger ones are neither written nor read.
inline constexpr int64_t kMaxEntryBytes = int64_t{64} << 20;

// Encodes the entry of a graph as a client sent it; `fingerprint` is that of the graph with those settings.
std::string EncodeStoredProgram(const Graph& graph, const CompileSettings& settings, const Fingerprint& fingerprint);

// Checks an entry by its frame, its checksum, its compiler and its fingerprint: in a pass over the bytes, without its
// graph.
EntryDamage CheckStoredProgram(absl::string_view bytes, const Fingerprint& fingerprint);

// Reads an entry without trusting it: any bytes are allowed, and its content is checked as strictly as a client's. It
// is used only if its graph and settings have the wanted fingerprint, by computation. kNone: `*program` is set. Takes
// time and memory in proportion to the bytes.
EntryDamage DecodeStoredProgram(absl::string_view bytes, const Fingerprint& fingerprint, const OpRegistry& registry,
                                StoredProgram* program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_STORED_PROGRAM_H_
