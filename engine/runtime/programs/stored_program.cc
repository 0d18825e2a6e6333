#include "engine/runtime/programs/stored_program.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "engine/exec/program/program_passes.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"

namespace tensord {
namespace {

constexpr absl::string_view kMagic = "tensord\n";
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = 8 + 4 + 8;
constexpr size_t kChecksumBytes = 2 * Fingerprint::kBytes;

void AppendNumber(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendText(absl::string_view text, std::string* out) {
  AppendNumber(text.size(), 8, out);
  out->append(text.data(), text.size());
}

void AppendList(const std::vector<std::string>& list, std::string* out) {
  AppendNumber(list.size(), 8, out);
  for (const std::string& text : list) AppendText(text, out);
}

// Takes fields from the front of bytes. A missing field reads as nothing, and makes the reader bad for good.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    const absl::string_view taken = Take(bytes);
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  absl::string_view Text() { return Take(Number(8)); }
  std::vector<std::string> List() {
    std::vector<std::string> list;
    for (uint64_t left = Number(8); left > 0 && ok_; --left) list.emplace_back(Text());
    return list;
  }
  // Everything was there, and nothing is left.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view Take(uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

EntryDamage CheckFrame(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return absl::StartsWith(kMagic, bytes) ? EntryDamage::kTruncated : EntryDamage::kFormat;
  }
  FieldReader header(bytes.substr(kMagic.size()));
  const uint64_t format = header.Number(4), size = header.Number(8);
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return EntryDamage::kTruncated;
  if (format != kFormat) return EntryDamage::kFormat;
  if (bytes.size() < size) return EntryDamage::kTruncated;
  const absl::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  const bool whole = bytes.size() == size && Fingerprint::Of(content).ToHex() == bytes.substr(content.size());
  return whole ? EntryDamage::kNone : EntryDamage::kChecksum;
}

// Views are into the entry.
struct EntryFields {
  CompileSettings settings;
  absl::string_view order;
  absl::string_view text;
};

EntryDamage ReadEntry(absl::string_view bytes, const Fingerprint& fingerprint, EntryFields* entry) {
  const EntryDamage frame = CheckFrame(bytes);
  if (frame != EntryDamage::kNone) return frame;
  bytes.remove_prefix(kHeaderBytes);
  bytes.remove_suffix(kChecksumBytes);
  FieldReader fields(bytes);
  const absl::string_view compiler = fields.Text();
  entry->settings.device = std::string(fields.Text());
  entry->order = fields.Text();
  entry->settings.row_major = entry->order == "row";
  entry->settings.disabled_passes = fields.List();
  entry->settings.enabled_passes = fields.List();
  const absl::string_view written_fingerprint = fields.Text();
  entry->text = fields.Text();
  if (!fields.AtEnd()) entry->settings.tenant = std::string(fields.Text());
  if (!fields.AtEnd()) return EntryDamage::kContent;
  if (compiler != kCompilerVersion) return EntryDamage::kVersion;
  return written_fingerprint == fingerprint.ToHex() ? EntryDamage::kNone : EntryDamage::kKey;
}

}  // namespace

absl::string_view Name(EntryDamage damage) {
  switch (damage) {
    case EntryDamage::kNone:
      return "none";
    case EntryDamage::kTruncated:
      return "truncated";
    case EntryDamage::kFormat:
      return "format";
    case EntryDamage::kChecksum:
      return "checksum";
    case EntryDamage::kVersion:
      return "version";
    case EntryDamage::kContent:
      return "content";
    case EntryDamage::kKey:
      return "key";
    case EntryDamage::kIo:
      break;
  }
  return "io";
}

absl::string_view Describe(EntryDamage damage) {
  switch (damage) {
    case EntryDamage::kNone:
      return "it is whole";
    case EntryDamage::kTruncated:
      return "it is cut off";
    case EntryDamage::kFormat:
      return "it is no program, or of a format that this version does not know";
    case EntryDamage::kChecksum:
      return "its bytes are not what was written";
    case EntryDamage::kVersion:
      return "it is of another compiler";
    case EntryDamage::kContent:
      return "its graph cannot be read";
    case EntryDamage::kKey:
      return "it is another program than its name says";
    case EntryDamage::kIo:
      break;
  }
  return "the system cannot read it";
}

std::string EncodeStoredProgram(const Graph& graph, const CompileSettings& settings, const Fingerprint& fingerprint) {
  std::string fields;
  AppendText(kCompilerVersion, &fields);
  AppendText(settings.device, &fields);
  AppendText(settings.row_major ? "row" : "column", &fields);
  AppendList(settings.disabled_passes, &fields);
  AppendList(settings.enabled_passes, &fields);
  AppendText(fingerprint.ToHex(), &fields);
  AppendText(PrintGraph(graph), &fields);
  if (!settings.tenant.empty()) AppendText(settings.tenant, &fields);

  std::string entry(kMagic);
  AppendNumber(kFormat, 4, &entry);
  AppendNumber(kHeaderBytes + fields.size() + kChecksumBytes, 8, &entry);
  entry += fields;
  entry += Fingerprint::Of(entry).ToHex();
  return entry;
}

EntryDamage CheckStoredProgram(absl::string_view bytes, const Fingerprint& fingerprint) {
  EntryFields fields;
  return ReadEntry(bytes, fingerprint, &fields);
}

EntryDamage DecodeStoredProgram(absl::string_view bytes, const Fingerprint& fingerprint, const OpRegistry& registry,
                                StoredProgram* program) {
  EntryFields fields;
  const EntryDamage damage = ReadEntry(bytes, fingerprint, &fields);
  if (damage != EntryDamage::kNone) return damage;
  auto& [settings, order, text] = fields;
  if ((order != "row" && order != "column") || !CheckPassNames(settings.disabled_passes).ok() ||
      !CheckPassNames(settings.enabled_passes).ok()) {
    return EntryDamage::kContent;
  }
  absl::StatusOr<Graph> graph = ParseGraph(text, registry);
  if (!graph.ok()) return EntryDamage::kContent;
  ProgramKey key = MakeProgramKey(*graph, settings);
  if (!(key.fingerprint == fingerprint)) return EntryDamage::kKey;
  *program = {.graph = *std::move(graph), .settings = std::move(settings), .key = std::move(key)};
  return EntryDamage::kNone;
}

}  // namespace tensord
