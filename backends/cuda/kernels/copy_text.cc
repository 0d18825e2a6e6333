#include "backends/cuda/kernels/copy_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/copy_tiles.h"
#include "backends/cuda/kernels/index_text.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kCopyThreads = 256;
constexpr int64_t kRowsAtOnce = 4;  // elements or vectors that a thread has on their way
constexpr int64_t kStageBlocksPerProcessor = 8;
constexpr size_t kPartsPerLaunch = 32;
// Of more parts the text would take the compiler long, by some 70 ms a part.
constexpr size_t kMostPrintedParts = 8;
constexpr int64_t kCopyVectorBytes = 16;
constexpr int64_t kJoinBytes = kCopyThreads * kRowsAtOnce * kCopyVectorBytes;  // that a block moves in one turn

// The source of a part's elements along its fastest axis.
enum class PartRun : uint8_t { kElements, kNeighbours, kRepeated };

struct PlannedPart {
  CopyPart part;  // its axes merged
  std::optional<CopyTiles> tiles;
  PartRun run = PartRun::kElements;
  int64_t width = 1;  // elements of a vector
  int64_t work = 1;   // tiles, or vectors
  int64_t first_block = 0;
  int64_t blocks = 1;
};

bool IsMultiple(const CopySide& side, int64_t width) {
  if (side.pointer == CopySide::kZero) return true;
  if (side.offset % width != 0) return false;
  if (!side.start.has_value()) return true;
  return std::all_of(side.start->entries.begin(), side.start->entries.end(),
                     [width](const ReadStart::Entry& entry) { return entry.stride % width == 0; });
}

// Tells whether the elements of a part can be moved by vectors of that width.
bool IsVector(const PlannedPart& planned, int64_t width) {
  const CopyAxes& axes = planned.part.axes;
  if (axes.empty() || planned.run == PartRun::kElements) return false;
  if (axes.size() > 1 && axes[0].size % width != 0) return false;
  if (axes[0].size < width || !IsMultiple(planned.part.into, width)) return false;
  const bool reads_vectors = planned.run == PartRun::kNeighbours;
  if (reads_vectors && !IsMultiple(planned.part.from, width)) return false;
  return std::all_of(axes.begin() + 1, axes.end(), [&](const CopyAxis& axis) {
    return axis.dst_stride % width == 0 && (!reads_vectors || axis.src_stride % width == 0);
  });
}

PlannedPart PlanPart(const CopyPart& part, int64_t element_bytes) {
  PlannedPart planned{.part = part};
  planned.part.axes = MergedCopyAxes(part.axes);
  const CopyAxes& axes = planned.part.axes;
  planned.tiles = TilesOf(axes, element_bytes);
  if (planned.tiles.has_value()) {
    planned.work = planned.tiles->num_tiles();
    return planned;
  }
  if (!axes.empty() && axes[0].dst_stride == 1) {
    if (axes[0].src_stride == 1) planned.run = PartRun::kNeighbours;
    if (axes[0].src_stride == 0) planned.run = PartRun::kRepeated;
  }
  planned.width = kCopyVectorBytes / element_bytes;
  while (planned.width > 1 && !IsVector(planned, planned.width)) planned.width /= 2;
  planned.work = CeilDiv(NumElements(axes), planned.width * kCopyThreads * kRowsAtOnce);
  return planned;
}

// A part whose source is dense, and whose destination is runs at equal distances.
struct JoinedPart {
  int64_t elements = 1;
  int64_t run = 1;    // elements of a run
  int64_t pitch = 0;  // elements from one run to the next; 0: there is one run
};

// Returns a part as a joined one, if it is.
std::optional<JoinedPart> JoinedPartOf(const PlannedPart& planned) {
  const CopyPart& part = planned.part;
  if (part.from.pointer == CopySide::kZero || part.from.start.has_value() || part.into.start.has_value()) return {};
  const CopyAxes& axes = part.axes;
  JoinedPart joined{.elements = NumElements(axes)};
  size_t outer = 0;
  if (!axes.empty() && axes[0].dst_stride == 1) {
    if (axes[0].src_stride != 1) return {};
    joined.run = axes[0].size;
    outer = 1;
  }
  if (axes.size() > outer + 1) return {};
  if (axes.size() > outer) {
    if (axes[outer].src_stride != joined.run) return {};
    joined.pitch = axes[outer].dst_stride;
  }
  return joined;
}

// One text for any number of joined parts of any sizes: a launch has the numbers of its parts as a parameter. The
// block's part is the last one that begins no later.
constexpr absl::string_view kJoinText = R"(struct Joined {
  i64 first_block[PARTS + 1], from_offset[PARTS], elements[PARTS], run[PARTS], pitch[PARTS], into_offset[PARTS];
};
template <typename I, int N>
TENSORD_FN void Join(const Moved* __restrict__ from, Moved* __restrict__ into, I count, I run, i64 pitch, I first,
                     I step) {
  for (I g = first; g < count; g += step * ROWS) {
    Vector<Moved, N> x[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const I i = g + j * step;
      if (i < count) x[j] = LoadVector<N>(from + (u64)i * N);
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const I i = g + j * step;
      if (i < count) StoreVector(into + (i64)(i / run) * pitch + (i64)(i % run) * N, x[j]);
    }
  }
}
)";

// Prints the parts of one launch.
class CopyPrinter {
 public:
  CopyPrinter(int64_t element_bytes, CudaLines* lines)
      : element_bytes_(element_bytes), lines_(*lines), type_(MovedType(element_bytes, &lines->prelude())) {}

  CudaLaunch Print(const std::string& entry, std::vector<PlannedPart> parts, const CudaOptions& options) {
    const int64_t most =
        std::max<int64_t>(1, options.num_processors * kStageBlocksPerProcessor / static_cast<int64_t>(parts.size()));
    int64_t blocks = 0;
    for (PlannedPart& part : parts) {
      part.first_block = blocks;
      part.blocks = std::min(part.work, most);
      blocks += part.blocks;
    }
    CudaLaunch launch{
        .entry = entry, .blocks = blocks, .threads_per_block = kCopyThreads, .arguments = Pointers(parts)};
    lines_.Open("extern \"C\" __global__ void __launch_bounds__(", kCopyThreads, ") ", entry, "(",
                Parameters(parts, launch.arguments), ")");
    WriteSharedMemory(parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts.size() > 1) {
        lines_.Open(i == 0 ? "" : "else ", "if (blockIdx.x < ", parts[i].first_block + parts[i].blocks, "u)");
      } else {
        lines_.Open("");
      }
      lines_.Line("const u32 block = blockIdx.x - ", parts[i].first_block, "u;");
      WritePart(parts[i]);
      lines_.Close();
    }
    lines_.Close();
    return launch;
  }

  // Prints the entry of joined parts, once, and returns a launch of it.
  CudaLaunch PrintJoin(const std::vector<PlannedPart>& parts, const CudaOptions& options) {
    if (!has_join_) WriteJoin();
    has_join_ = true;
    CudaLaunch launch{.entry = "join", .blocks = 0, .threads_per_block = kCopyThreads};
    const int64_t most = std::max<int64_t>(1, options.num_processors * kStageBlocksPerProcessor / kPartsPerLaunch);
    std::vector<int64_t> first_blocks;
    std::vector<std::vector<int64_t>> columns(5);
    for (size_t k = 0; k < kPartsPerLaunch; ++k) {
      first_blocks.push_back(launch.blocks);
      const PlannedPart& planned = parts[std::min(k, parts.size() - 1)];  // of those that are not there: no block
      const JoinedPart joined = *JoinedPartOf(planned);
      launch.arguments.push_back(planned.part.from.pointer);
      const int64_t numbers[] = {planned.part.from.offset, joined.elements, joined.run, joined.pitch,
                                 planned.part.into.offset};
      for (size_t c = 0; c < columns.size(); ++c) columns[c].push_back(numbers[c]);
      if (k < parts.size()) {
        launch.blocks += std::min(CeilDiv(joined.elements, kJoinBytes / element_bytes_), most);
      }
    }
    first_blocks.push_back(launch.blocks);
    launch.arguments.push_back(parts[0].part.into.pointer);
    launch.numbers = std::move(first_blocks);
    for (const std::vector<int64_t>& column : columns) {
      launch.numbers.insert(launch.numbers.end(), column.begin(), column.end());
    }
    return launch;
  }

 private:
  void WriteJoin() {
    lines_.prelude().Use("Vector");
    lines_.Line("constexpr int PARTS = ", kPartsPerLaunch, ", ROWS = ", kRowsAtOnce, ";");
    lines_.Line("typedef ", type_, " Moved;");
    lines_.Raw(kJoinText);
    std::string sources;
    for (size_t k = 0; k < kPartsPerLaunch; ++k) absl::StrAppend(&sources, "const Moved* p", k, ", ");
    lines_.Open("extern \"C\" __global__ void __launch_bounds__(", kCopyThreads, ") join(", sources,
                "Moved* result, const Joined parts)");
    lines_.Line("u32 k = 0;");
    lines_.Raw("#pragma unroll");
    lines_.Line(
        "for (u32 half = PARTS / 2; half > 0; half /= 2) k += blockIdx.x < parts.first_block[k + half] ? 0 : half;");
    lines_.Line("const Moved* from = p0;");
    for (size_t k = 1; k < kPartsPerLaunch; ++k) lines_.Line("if (k == ", k, "u) from = p", k, ";");
    lines_.Line("from += parts.from_offset[k];");
    lines_.Line("Moved* const into = result + parts.into_offset[k];");
    lines_.Line("const i64 count = parts.elements[k], run = parts.run[k], pitch = parts.pitch[k];");
    lines_.Line("const u64 first = (u64)(blockIdx.x - parts.first_block[k]) * ", kCopyThreads, " + threadIdx.x;");
    lines_.Line("const u64 step = (u64)(parts.first_block[k + 1] - parts.first_block[k]) * ", kCopyThreads, ";");
    WriteJoinCalls();
    lines_.Close();
  }

  // Calls Join by vectors where the sides are aligned to them, and counts with half as many bits where those do.
  void WriteJoinCalls() {
    const int64_t width = kCopyVectorBytes / element_bytes_;
    const auto write = [&](int64_t n) {
      const std::string count = absl::StrCat("count / ", n), run = absl::StrCat("run / ", n);
      lines_.Line("if (count < (i64)1 << 30) Join<u32, ", n, ">(from, into, ", count, ", ", run,
                  ", pitch, first, step);");
      lines_.Line("else Join<u64, ", n, ">(from, into, ", count, ", ", run, ", pitch, first, step);");
    };
    if (width > 1) {
      lines_.Open("if (((u64)from | (u64)into) % ", kCopyVectorBytes, " == 0 && run % ", width, " == 0 && pitch % ",
                  width, " == 0)");
      write(width);
      lines_.Close();
      lines_.Open("else");
      write(1);
      lines_.Close();
    } else {
      write(1);
    }
  }

  static std::vector<int32_t> Pointers(const std::vector<PlannedPart>& parts) {
    std::vector<int32_t> pointers;
    for (const PlannedPart& planned : parts) {
      for (const CopySide* side : {&planned.part.from, &planned.part.into}) {
        if (side->pointer != CopySide::kZero) pointers.push_back(side->pointer);
        if (side->start.has_value()) pointers.push_back(side->start->pointer);
      }
    }
    std::sort(pointers.begin(), pointers.end());
    pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
    return pointers;
  }

  std::string Parameters(const std::vector<PlannedPart>& parts, const std::vector<int32_t>& pointers) const {
    std::vector<std::string> parameters;
    for (const int32_t pointer : pointers) {
      std::string parameter = absl::StrCat("const ", type_, "* __restrict__ p", pointer);
      for (const PlannedPart& planned : parts) {
        if (planned.part.into.pointer == pointer) parameter = absl::StrCat(type_, "* __restrict__ p", pointer);
        for (const CopySide* side : {&planned.part.from, &planned.part.into}) {
          if (side->start.has_value() && side->start->pointer == pointer) {
            parameter = absl::StrCat("const ", CudaType(side->start->dtype), "* __restrict__ p", pointer);
          }
        }
      }
      parameters.push_back(std::move(parameter));
    }
    return absl::StrJoin(parameters, ", ");
  }

  void WriteSharedMemory(const std::vector<PlannedPart>& parts) {
    int64_t elements = 0;
    for (const PlannedPart& part : parts) {
      if (part.tiles.has_value()) elements = std::max(elements, part.tiles->rows.part * part.tiles->pitch);
    }
    if (elements > 0) lines_.Line("__shared__ ", type_, " tile[", elements, "];");
  }

  // Declares a pointer to the first element of a side.
  void WriteFirst(const char* name, const char* qualifier, const CopySide& side) {
    std::string text = absl::StrCat("p", side.pointer);
    if (side.offset != 0) absl::StrAppend(&text, " + ", side.offset, "ll");
    if (side.start.has_value()) {
      for (size_t k = 0; k < side.start->entries.size(); ++k) {
        const ReadStart::Entry& entry = side.start->entries[k];
        if (entry.last == 0) continue;
        absl::StrAppend(&text, " + ", ClampedText(absl::StrCat("p", side.start->pointer, "[", k, "]"), entry.last),
                        " * ", entry.stride, "ll");
      }
    }
    lines_.Line(qualifier, type_, "* __restrict__ ", name, " = ", text, ";");
  }

  void WritePart(const PlannedPart& planned) {
    const bool has_source = planned.part.from.pointer != CopySide::kZero;
    if (has_source) WriteFirst("from", "const ", planned.part.from);
    WriteFirst("into", "", planned.part.into);
    if (planned.tiles.has_value()) return WriteTiles(*planned.tiles, planned.blocks);
    if (planned.width == 1) return WriteRows(planned, 1);
    const std::string address = planned.run == PartRun::kNeighbours ? "((u64)from | (u64)into)" : "(u64)into";
    lines_.Open("if (", address, " % ", planned.width * element_bytes_, " == 0)");
    WriteRows(planned, planned.width);
    lines_.Close();
    lines_.Open("else");
    WriteRows(planned, 1);
    lines_.Close();
  }

  // Returns the text of a source element or vector; `offset` counts elements.
  std::string Read(const PlannedPart& planned, int64_t width, const std::string& offset) const {
    if (planned.part.from.pointer == CopySide::kZero) return absl::StrCat(type_, "{}");
    if (width > 1 && planned.run == PartRun::kNeighbours)
      return absl::StrCat("LoadVector<", width, ">(from + ", offset, ")");
    return absl::StrCat("from[", offset, "]");
  }

  void WriteRows(const PlannedPart& planned, int64_t width) {
    CopyAxes axes = planned.part.axes;
    const int64_t ragged = axes.empty() ? 0 : axes[0].size % width;
    if (!axes.empty()) {
      axes[0].size /= width;
      axes[0].src_stride *= width;
      axes[0].dst_stride *= width;
    }
    const int64_t count = NumElements(axes), step = kCopyThreads * kRowsAtOnce;
    const absl::string_view type = IndexType(count), suffix = IndexSuffix(count);
    const bool reads_vectors = width > 1 && planned.run == PartRun::kNeighbours;
    if (width > 1) lines_.prelude().Use("Vector");
    const std::string moved = reads_vectors ? absl::StrCat("Vector<", type_, ", ", width, ">") : type_;
    const bool is_uniform =
        std::all_of(axes.begin(), axes.end(), [](const CopyAxis& axis) { return axis.src_stride == 0; });
    if (is_uniform) lines_.Line("const ", type_, " all = ", Read(planned, 1, "0"), ";");
    lines_.Open("for (", type, " g = block * (", type, ")", step, " + threadIdx.x; g < ", count, suffix, "; g += (",
                type, ")", planned.blocks * step, ")");
    if (!is_uniform) {
      lines_.Line(moved, " x[", kRowsAtOnce, "];");
      OpenTurns(type, count, suffix);
      const std::string offset = Offset(axes, &CopyAxis::src_stride);
      lines_.Line("x[j] = ", Read(planned, width, offset), ";");
      CloseTurns();
    }
    OpenTurns(type, count, suffix);
    const std::string offset = Offset(axes, &CopyAxis::dst_stride);
    WriteStore(width, reads_vectors, is_uniform ? "all" : "x[j]", offset);
    CloseTurns();
    lines_.Close();
    if (ragged == 0) return;
    // One run; its last elements are no whole vector.
    const int64_t done = planned.part.axes[0].size - ragged;
    lines_.Open("if (block == 0 && threadIdx.x < ", ragged, ")");
    lines_.Line("into[", done,
                "ll + threadIdx.x] = ", is_uniform ? "all" : Read(planned, 1, absl::StrCat(done, "ll + threadIdx.x")),
                ";");
    lines_.Close();
  }

  void WriteStore(int64_t width, bool reads_vectors, const std::string& x, const std::string& offset) {
    if (width == 1) {
      lines_.Line("into[", offset, "] = ", x, ";");
    } else if (reads_vectors) {
      lines_.Line("StoreVector(into + ", offset, ", ", x, ");");
    } else {
      lines_.Line("Vector<", type_, ", ", width, "> y;");
      lines_.Line("for (int k = 0; k < ", width, "; ++k) y.at[k] = ", x, ";");
      lines_.Line("StoreVector(into + ", offset, ", y);");
    }
  }

  // A thread's elements in turn, each with its linear index i.
  void OpenTurns(absl::string_view type, int64_t count, absl::string_view suffix) {
    lines_.Raw("#pragma unroll");
    lines_.Open("for (int j = 0; j < ", kRowsAtOnce, "; ++j)");
    lines_.Line("const ", type, " i = g + j * ", kCopyThreads, suffix, ";");
    lines_.Open("if (i < ", count, suffix, ")");
  }
  void CloseTurns() {
    lines_.Close();
    lines_.Close();
  }

  std::string Offset(const CopyAxes& axes, int64_t CopyAxis::*stride) { return Offset(axes, stride, "i"); }
  std::string Offset(const CopyAxes& axes, int64_t CopyAxis::*stride, const std::string& variable) {
    std::vector<int64_t> sizes;
    std::vector<bool> needed;
    for (const CopyAxis& axis : axes) {
      sizes.push_back(axis.size);
      needed.push_back(axis.*stride != 0);
    }
    const std::vector<std::string> names = WriteCoordinates(&lines_, variable, sizes, variable, needed);
    std::vector<OffsetTerm> terms;
    for (size_t d = 0; d < axes.size(); ++d) terms.push_back({names[d], axes[d].size, axes[d].*stride});
    return OffsetText(terms);
  }

  void WriteTiles(const CopyTiles& tiles, int64_t blocks) {
    const int64_t count = tiles.num_tiles();
    const absl::string_view type = IndexType(count), suffix = IndexSuffix(count);
    lines_.Open("for (", type, " t = block; t < ", count, suffix, "; t += (", type, ")", blocks, ")");
    const int64_t parts[] = {tiles.rows.num_parts(), tiles.columns.num_parts(), NumElements(tiles.rest)};
    const std::vector<std::string> names = WriteCoordinates(&lines_, "t", parts, "t");
    lines_.Line("const u64 row = (u64)", names[0], " * ", tiles.rows.part, "u, column = (u64)", names[1], " * ",
                tiles.columns.part, "u;");
    WriteTileSide(tiles, /*loads=*/true, names[2]);
    lines_.Line("__syncthreads();");
    WriteTileSide(tiles, /*loads=*/false, names[2]);
    lines_.Line("__syncthreads();");
    lines_.Close();
  }

  // Moves a tile between global and shared memory; neighbouring threads have neighbours of the global side.
  void WriteTileSide(const CopyTiles& tiles, bool loads, const std::string& rest) {
    int64_t CopyAxis::*const stride = loads ? &CopyAxis::src_stride : &CopyAxis::dst_stride;
    const int64_t elements = tiles.rows.part * tiles.columns.part;
    lines_.Open("");
    const std::string base = Offset(tiles.rest, stride, rest);
    lines_.Line("const i64 base = (i64)(", base, ");");
    // With more of 16 bytes in registers, and the places that they come from, some would be spilled.
    lines_.Raw(element_bytes_ < 16 ? "#pragma unroll 8" : "#pragma unroll 4");
    lines_.Open("for (u32 e = threadIdx.x; e < ", elements, "u; e += ", kCopyThreads, "u)");
    if (loads) {
      lines_.Line("const u32 c = e % ", tiles.columns.part, "u, r = e / ", tiles.columns.part, "u;");
    } else {
      lines_.Line("const u32 r = e % ", tiles.rows.part, "u, c = e / ", tiles.rows.part, "u;");
    }
    WriteIndex(tiles.rows, "ri", "row + r");
    WriteIndex(tiles.columns, "ci", "column + c");
    lines_.Open("if (ri < ", tiles.rows.elements, "u && ci < ", tiles.columns.elements, "u)");
    const std::string at =
        absl::StrCat("base + ", Offset(tiles.rows.axes, stride, "ri"), " + ", Offset(tiles.columns.axes, stride, "ci"));
    const std::string shared = absl::StrCat("tile[r * ", tiles.pitch, "u + c]");
    if (loads) {
      lines_.Line(shared, " = from[", at, "];");
    } else {
      lines_.Line("into[", at, "] = ", shared, ";");
    }
    lines_.Close();
    lines_.Close();
    lines_.Close();
  }
  void WriteIndex(const TileSide& side, const char* name, const char* text) {
    const absl::string_view type = IndexType(side.elements);
    lines_.Line("const ", type, " ", name, " = (", type, ")(", text, ");");
  }

  const int64_t element_bytes_;
  CudaLines& lines_;
  const std::string type_;
  bool has_join_ = false;
};

bool AreJoined(const std::vector<PlannedPart>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const PlannedPart& planned) {
    return planned.part.into.pointer == parts[0].part.into.pointer && JoinedPartOf(planned).has_value();
  });
}

}  // namespace

std::vector<CudaLaunch> WriteCopies(const std::vector<CopyStage>& stages, int64_t element_bytes,
                                    const CudaOptions& options, CudaLines* lines) {
  CopyPrinter printer(element_bytes, lines);
  std::vector<CudaLaunch> launches;
  for (const CopyStage& stage : stages) {
    for (size_t first = 0; first < stage.parts.size(); first += kPartsPerLaunch) {
      std::vector<PlannedPart> parts;
      for (size_t i = first; i < std::min(stage.parts.size(), first + kPartsPerLaunch); ++i) {
        parts.push_back(PlanPart(stage.parts[i], element_bytes));
      }
      CudaLaunch launch = stage.parts.size() > kMostPrintedParts && AreJoined(parts)
                              ? printer.PrintJoin(parts, options)
                              : printer.Print(absl::StrCat("copy", launches.size()), std::move(parts), options);
      launch.unless_same = stage.unless_same;
      launches.push_back(std::move(launch));
    }
  }
  return launches;
}

KernelText CopyText(const std::vector<CopyStage>& stages, int64_t element_bytes, int64_t scratch_bytes,
                    const CudaOptions& options) {
  CudaLines lines;
  KernelText text{.launches = WriteCopies(stages, element_bytes, options, &lines), .scratch_bytes = scratch_bytes};
  text.source = lines.Source();
  return text;
}

}  // namespace tensord::cuda
