#include "backends/cuda/codegen/map.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/index.h"
#include "backends/cuda/codegen/launch_parts.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/codegen/vectors.h"
#include "engine/base/rounding.h"

namespace tensord {
namespace {

constexpr int64_t kBlocksPerProcessor = 8;
constexpr int32_t kUsualMapThreads = 256;  // of a block

bool IsPointwise(const MicroInstruction& instruction) { return instruction.level != MicroLevel::kUniform; }

class MapPrinter {
 public:
  MapPrinter(CudaWriter* writer, KernelText* kernel)
      : writer_(*writer),
        program_(writer->program()),
        kernel_(*kernel),
        points_(program_.num_points(MicroLevel::kFull)),
        width_(Width()),
        is_ragged_(points_ % width_ != 0),
        index_("i", program_, CudaIndex::Axes::kAll) {
    std::vector<int32_t> targets;
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (!IsPointwise(Computed(r)) || points_ > 0) targets.push_back(program_.results[r].value);
    }
    needed_ = NeededValues(program_, targets);
    takes_pairs_ = TakesPairs();
  }

  void Print() {
    if (!HasPointwiseResults() && !writer_.HasResults(MicroLevel::kUniform)) return;
    const int64_t groups = CeilDiv(points_, width_);
    const int64_t threads = std::clamp<int64_t>(CeilDiv(groups, 32) * 32, 32, MaxThreads());
    const int64_t needed = std::max<int64_t>(CeilDiv(groups, threads), 1), most = (int64_t{1} << 30) / threads;
    const int64_t parts =
        CudaLaunchParts(static_cast<double>(points_) * StepsOfPoint(), std::min(needed, most), writer_.options());
    const int64_t blocks = std::min({needed, most,
                                     parts * std::min(int64_t{writer_.options().num_processors} * kBlocksPerProcessor,
                                                      writer_.options().max_blocks)});
    kernel_.spread = absl::StrCat("map, ", width_, width_ == 1 ? " element" : " elements", " a thread");
    const CudaLaunch launch{.entry = writer_.options().name,
                            .blocks = blocks,
                            .threads_per_block = static_cast<int32_t>(threads),
                            .parts = parts};
    writer_.OpenEntry(launch, /*has_scratch=*/false);
    writer_.UniformValues(needed_);
    writer_.StoreUniformResults();
    if (HasPointwiseResults()) Loop(groups, threads, parts == 1 ? "gridDim.x" : absl::StrCat(blocks, "u"));
    writer_.Close();
    kernel_.launches.push_back(launch);
  }

 private:
  int64_t MaxThreads() const { return std::min(kUsualMapThreads, writer_.options().max_threads_per_block); }

  double StepsOfPoint() const {
    double steps = 0;
    for (size_t v = 0; v < program_.instructions.size(); ++v) {
      if (needed_[v] && IsPointwise(program_.instructions[v])) steps += CudaSteps(program_, static_cast<int32_t>(v));
    }
    return steps;
  }

  bool HasPointwiseResults() const {
    return writer_.HasResults(MicroLevel::kFull) || writer_.HasResults(MicroLevel::kKept);
  }

  // Elements that a thread computes side by side: a power of two.
  int64_t Width() const {
    if (program_.axes.empty()) return 1;
    int64_t width = CudaVectorWidth(program_, std::min(kCudaVectorBytes, writer_.options().pointer_alignment_bytes));
    const int64_t threads_at_once = int64_t{writer_.options().num_processors} * MaxThreads();
    while (width > 1 && points_ / width < threads_at_once) width /= 2;
    if (program_.axes.size() > 1) {
      while (width > 1 && program_.axes[0].size % width != 0) width /= 2;
    }
    return std::max<int64_t>(width, 1);
  }

  // Tells whether all values but uniform ones are of one half dtype, and computed of such: two neighbours then share a
  // register.
  bool TakesPairs() const {
    if (width_ % 2 != 0) return false;
    const DType dtype = Computed(0).dtype;
    bool computes = false;
    for (size_t v = 0; v < program_.instructions.size(); ++v) {
      const MicroInstruction& instruction = program_.instructions[v];
      if (!IsPointwise(instruction) || !needed_[v]) continue;
      const bool is_load = instruction.kind == MicroKind::kLoad && ReadingOf(instruction) != CudaReading::kEach;
      const bool is_computed = instruction.kind == MicroKind::kUnary || instruction.kind == MicroKind::kBinary;
      if (instruction.dtype != dtype || !(is_load || is_computed)) return false;
      for (const int32_t operand : instruction.operands) {
        if (operand >= 0 && program_.instructions[static_cast<size_t>(operand)].dtype != dtype) return false;
      }
      computes = computes || is_computed;
    }
    return computes && kHalves.Contains(dtype);
  }

  CudaReading ReadingOf(const MicroInstruction& load) const {
    return CudaReadingOf(load, width_, writer_.options().pointer_alignment_bytes);
  }

  // `blocks` is their number.
  void Loop(int64_t groups, int64_t threads, absl::string_view blocks) {
    const absl::string_view type = index_.type();
    const absl::string_view suffix = type == "u32" ? "u" : "ull";
    writer_.Open("for (", type, " g = ", writer_.block(), " * (", type, ")", threads, " + threadIdx.x; g < ", groups,
                 suffix, "; g += ", blocks, " * (", type, ")", threads, ")");
    if (width_ > 1) {
      writer_.Line("const ", type, " i = g * ", width_, suffix, ";");
    } else {
      writer_.Line("const ", type, " i = g;");
    }
    const std::vector<std::string> addresses = Addresses();
    for (const std::string& line : index_.TakeDeclarations()) writer_.Line(line);
    BeforeNeighbours(addresses);
    if (width_ > 1) {
      writer_.Raw("#pragma unroll");
      writer_.Open("for (int j = 0; j < ", width_, takes_pairs_ ? "; j += 2)" : "; ++j)");
      if (is_ragged_) writer_.Line("if (i + j >= ", points_, suffix, ") break;");
    }
    for (size_t v = 0; v < program_.instructions.size(); ++v) {
      takes_pairs_ ? TwoNeighbours(v) : Neighbour(v, addresses[v]);
    }
    StoreNeighbours();
    writer_.Close();
  }

  // Returns the index of a load or an iota at point i, by instruction.
  std::vector<std::string> Addresses() {
    std::vector<std::string> addresses(program_.instructions.size());
    for (size_t v = 0; v < addresses.size(); ++v) {
      const MicroInstruction& instruction = program_.instructions[v];
      const bool has_access = instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota;
      if (!has_access || !IsPointwise(instruction) || !needed_[v]) continue;
      const std::string offset = index_.Offset(instruction.access, CudaIndexCast(program_, instruction.access));
      addresses[v] = CudaSum(instruction.access.offset, offset, "0");
    }
    return addresses;
  }

  // Prints the shared part of the neighbours: vectors read and written, elements that are the same for all.
  void BeforeNeighbours(const std::vector<std::string>& addresses) {
    if (width_ == 1) return;
    for (size_t v = 0; v < addresses.size(); ++v) {
      const MicroInstruction& instruction = program_.instructions[v];
      if (addresses[v].empty()) continue;
      const CudaReading reading = ReadingOf(instruction);
      if (reading == CudaReading::kOnce) writer_.Value(static_cast<int32_t>(v), addresses[v]);
      if (reading == CudaReading::kVector) {
        UseVector();
        writer_.Line("const Vector<", CudaStorage(instruction.dtype), ", ", width_, "> w", v, " = LoadVector<", width_,
                     ">(t", instruction.tensor, " + ", addresses[v], Left(), ");");
      }
    }
    for (size_t r = 0; r < program_.results.size(); ++r) {
      const MicroInstruction& instruction = Computed(r);
      if (!IsPointwise(instruction)) continue;
      UseVector();
      writer_.Line("Vector<", CudaStorage(instruction.dtype), ", ", width_, "> y", r, is_ragged_ ? " = {};" : ";");
    }
  }

  void Neighbour(size_t v, const std::string& address) {
    const MicroInstruction& instruction = program_.instructions[v];
    const int32_t value = static_cast<int32_t>(v);
    if (!IsPointwise(instruction) || !needed_[v]) return;
    if (width_ == 1 || address.empty()) {
      writer_.Value(value, address);
      return;
    }
    switch (ReadingOf(instruction)) {
      case CudaReading::kOnce:
        return;
      case CudaReading::kVector:
        writer_.Line("const ", CudaType(instruction.dtype), " v", v, " = ",
                     CudaLoaded(instruction.dtype, absl::StrCat("w", v, ".at[j]")), ";");
        return;
      case CudaReading::kEach:
        writer_.Value(value, absl::StrCat(address, " + j * ", CudaNeighbourStride(instruction.access.strides[0])));
        return;
    }
  }

  // Prints a value of neighbours j and j + 1; in a ragged vector the second may be none, and is computed of zeros.
  void TwoNeighbours(size_t v) {
    const MicroInstruction& instruction = program_.instructions[v];
    if (!HasPair(static_cast<int32_t>(v))) return;
    std::string text = absl::StrCat("Both(w", v, ".at[j], w", v, ".at[j + 1])");
    if (instruction.kind != MicroKind::kLoad) {
      std::vector<std::string> pairs;
      for (const int32_t operand : instruction.operands) {
        if (operand >= 0) pairs.push_back(PairText(operand));
      }
      text = CudaPairExpression(instruction, pairs, &writer_.prelude());
    }
    writer_.Line("const ", CudaPairType(instruction.dtype, &writer_.prelude()), " p", v, " = ", text, ";");
  }

  // Tells whether neighbours have values of their own.
  bool HasPair(int32_t value) const {
    const MicroInstruction& instruction = program_.instructions[static_cast<size_t>(value)];
    if (!IsPointwise(instruction) || !needed_[static_cast<size_t>(value)]) return false;
    return instruction.kind != MicroKind::kLoad || ReadingOf(instruction) == CudaReading::kVector;
  }
  std::string PairText(int32_t value) const {
    return HasPair(value) ? absl::StrCat("p", value) : absl::StrCat("Both(v", value, ", v", value, ")");
  }

  void StoreNeighbours() {
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (!IsPointwise(Computed(r))) continue;
      if (width_ == 1) {
        writer_.StoreResult(r, "i");
      } else if (takes_pairs_) {
        const std::string pair = PairText(program_.results[r].value);
        writer_.Line("y", r, ".at[j] = LowOf(", pair, ");");
        writer_.Line("y", r, ".at[j + 1] = HighOf(", pair, ");");
      } else {
        writer_.Line("y", r, ".at[j] = ", CudaStored(Computed(r).dtype, absl::StrCat("v", program_.results[r].value)),
                     ";");
      }
    }
    if (width_ == 1) return;
    writer_.Close();
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (IsPointwise(Computed(r))) writer_.Line("StoreVector(r", r, " + i, y", r, Left(), ");");
    }
  }

  // Returns the argument for the number of elements left, if they may be less than a vector.
  std::string Left() const { return is_ragged_ ? absl::StrCat(", ", points_, "ll - i") : ""; }
  void UseVector() { writer_.prelude().Use(is_ragged_ ? "RaggedVector" : "Vector"); }
  const MicroInstruction& Computed(size_t result) const { return writer_.Computed(result); }

  CudaWriter& writer_;
  const MicroProgram& program_;
  KernelText& kernel_;
  const int64_t points_;
  const int64_t width_;
  const bool is_ragged_;
  std::vector<bool> needed_;
  bool takes_pairs_ = false;
  CudaIndex index_;
};

}  // namespace

void PrintCudaMap(CudaWriter* writer, KernelText* kernel) { MapPrinter(writer, kernel).Print(); }

}  // namespace tensord
