#include "backends/cuda/kernels/scatter_text.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/copy_text.h"
#include "backends/cuda/kernels/index_text.h"
#include "backends/cuda/kernels/sort_text.h"
#include "backends/cuda/kernels/window_text.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/ops/index_windows.h"
#include "engine/ops/scattering.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kScatterThreads = 256;
constexpr int64_t kScatterBlocksPerProcessor = 16;
// Updates that one launch takes, since nothing stops it: some tens of milliseconds where all have one destination. A
// thread that adds them up waits for the memory with each; atomics follow each other in a cache.
constexpr int64_t kMostAddedAtOnce = int64_t{1} << 16;
constexpr int64_t kMostAtomicsAtOnce = int64_t{1} << 24;
// The kernel's pointers: operand, indices, updates, result, scratch.
constexpr int32_t kOperand = 0, kResult = 3;

// A byte of a word: CUDA's atomics are of words.
constexpr char kAtomicBool[] = R"(TENSORD_FN u32* WordOf(u8* at) {
  return reinterpret_cast<u32*>((u64)at & ~3ull);
}
TENSORD_FN u32 ShiftOf(u8* at) { return ((u32)(u64)at & 3u) * 8u; }
)";

CoreOp CombinerOp(ScatterCombiner combiner) {
  switch (combiner) {
    case ScatterCombiner::kMultiply:
      return CoreOp::kMultiply;
    case ScatterCombiner::kMinimum:
      return CoreOp::kMinimum;
    case ScatterCombiner::kMaximum:
      return CoreOp::kMaximum;
    case ScatterCombiner::kAdd:
    case ScatterCombiner::kSet:
      break;
  }
  return CoreOp::kAdd;
}

class ScatterPrinter {
 public:
  ScatterPrinter(const BoundInstruction& instruction, const CudaOptions& options)
      : operand_(instruction.operands[0]),
        updates_(instruction.operands[2]),
        index_dtype_(instruction.operands[1].dtype),
        combiner_(static_cast<ScatterCombiner>(instruction.attrs->Int("combiner"))),
        options_(options),
        windows_(
            WindowLayout::Of(WindowAxes::Of(*instruction.attrs, kScatterNames), operand_.shape, instruction.operands[1],
                             updates_.shape, ScatterIndexOrder(*instruction.attrs, instruction.operands[1].rank())),
            index_dtype_),
        moved_(MovedType(SizeOf(operand_.dtype), &lines_.prelude())) {
    // Else a window lies on another one or beside it, whole.
    const WindowLayout& layout = windows_.layout();
    by_element_ = std::any_of(layout.window.begin(), layout.window.end(),
                              [&](const WindowAxis& axis) { return layout.IsIndexed(axis.operand_axis); });
  }

  absl::StatusOr<ScatterKernelText> Print() {
    ScatterKernelText scatter{.way = "copied"};
    CopyOperand();
    if (windows_.layout().num_windows > 0) {
      if (combiner_ == ScatterCombiner::kSet) {
        scatter.way = "the last window";
        Set();
      } else if (HasAtomics()) {
        scatter.way = "atomics";
        Atomics();
      } else {
        scatter.way = "sorted";
        if (KeyBits() + NumberBits() > 64) {
          return Refuse(
              Refusal::kUnsupportedOnDevice,
              absl::StrCat("CUDA devices sort updates by words of 64 bits, and here destination and index take ",
                           KeyBits() + NumberBits(), "; scatter in parts"));
        }
        Sorted();
      }
    }
    text_.source = lines_.Source();
    scatter.text = std::move(text_);
    return scatter;
  }

 private:
  int64_t inner_elements() const { return by_element_ ? 1 : windows_.layout().window_elements; }
  int64_t num_items() const { return num_updates() / inner_elements(); }
  int64_t num_updates() const { return windows_.layout().num_windows * windows_.layout().window_elements; }
  int KeyBits() const { return std::bit_width(static_cast<uint64_t>(operand_.num_elements())); }
  int NumberBits() const { return std::bit_width(static_cast<uint64_t>(num_items())); }

  // There is none for products, and threads that try until nobody else has come between take as long as all of them.
  bool HasAtomics() const {
    if (operand_.dtype == DType::kBool) return true;
    return kIntegers.Contains(operand_.dtype) && combiner_ != ScatterCombiner::kMultiply;
  }

  void CopyOperand() {
    CopyStage stage;
    stage.parts.push_back(
        {.axes = {{operand_.num_elements(), 1, 1}}, .from = {.pointer = kOperand}, .into = {.pointer = kResult}});
    stage.unless_same = {kOperand, kResult};
    text_.launches = WriteCopies({stage}, SizeOf(operand_.dtype), options_, &lines_);
  }

  CudaLaunch& AddLaunch(const std::string& entry, int64_t threads) {
    text_.launches.push_back({.entry = entry,
                              .blocks = std::min(CeilDiv(threads, kScatterThreads),
                                                 int64_t{options_.num_processors} * kScatterBlocksPerProcessor),
                              .threads_per_block = kScatterThreads,
                              .arguments = Arguments()});
    return text_.launches.back();
  }
  bool has_scratch() const { return text_.scratch_bytes > 0; }
  std::vector<int32_t> Arguments() const {
    std::vector<int32_t> arguments = {1, 2, 3};
    if (has_scratch()) arguments.push_back(4);
    return arguments;
  }
  std::string Parameters(const std::string& type, const char* scratch_type) const {
    return absl::StrCat("const ", CudaType(index_dtype_), "* __restrict__ indices, const ", type,
                        "* __restrict__ updates, ", type, "* into",
                        has_scratch() ? absl::StrCat(", ", scratch_type, "* scratch") : "");
  }
  // Opens an entry whose threads take numbers u below `count` in turn, at most so many in a launch: those of one part
  // come before those of the next.
  void OpenLoop(const std::string& entry, int64_t count, const std::string& parameters, int64_t most) {
    const absl::string_view index = IndexType(count), suffix = IndexSuffix(count);
    CudaLaunch& launch = AddLaunch(entry, std::min(count, most));
    const int64_t blocks = launch.blocks;
    launch.parts = CeilDiv(count, most);
    launch.blocks = blocks * launch.parts;
    const bool is_cut = launch.parts > 1;
    text_.varies = text_.varies || is_cut;  // with the updates that have one destination
    lines_.Open("extern \"C\" __global__ void __launch_bounds__(", kScatterThreads, ") ", entry, "(",
                is_cut ? "u64 first_block, " : "", parameters, ")");
    if (is_cut) {
      lines_.Line("const ", index, " begin = (", index, ")(first_block / ", blocks, "u * ", most, "ull), end = ", count,
                  suffix, " - begin < ", most, suffix, " ? ", count, suffix, " : begin + ", most, suffix, ";");
    }
    lines_.Open("for (", index, " u = ", is_cut ? "begin + " : "", "blockIdx.x * (", index, ")", kScatterThreads,
                " + threadIdx.x; u < ", is_cut ? "end" : absl::StrCat(count, suffix), "; u += (", index, ")",
                blocks * kScatterThreads, ")");
  }
  void CloseLoop() {
    lines_.Close();
    lines_.Close();
  }
  // Declares the destination of update u, and goes on to the next one where it has none.
  WindowText::Place WriteDestination() {
    const WindowText::Place place = windows_.WriteElement(&lines_, "u");
    windows_.WriteStart(&lines_, place, /*skips=*/true);
    lines_.Line("if (start < 0) continue;");
    lines_.Line("const i64 at = start + ", windows_.InnerOffset(place), ";");
    return place;
  }

  void Set() {
    const bool is_wide = windows_.layout().num_windows >= (int64_t{1} << 32) - 1;
    const char* const type = is_wide ? "u64" : "u32";
    text_.scratch_bytes = operand_.num_elements() * (is_wide ? 8 : 4);
    const std::string parameters = Parameters(moved_, type);
    OpenLoop("clear", operand_.num_elements(), parameters, operand_.num_elements());
    lines_.Line("scratch[u] = 0;");
    CloseLoop();
    for (const bool writes : {false, true}) {
      OpenLoop(writes ? "write_last" : "find_last", num_updates(), parameters, kMostAtomicsAtOnce);
      const WindowText::Place place = WriteDestination();
      lines_.Line("const ", type, " number = 1u + (", type, ")(", windows_.Number(place), ");");
      lines_.Line(writes ? "if (scratch[at] == number) into[at] = updates[u];" : "atomicMax(scratch + at, number);");
      CloseLoop();
    }
  }

  void Atomics() {
    const bool is_bool = operand_.dtype == DType::kBool;
    const bool is_unsigned = combiner_ == ScatterCombiner::kAdd;
    const std::string type = is_bool || is_unsigned ? moved_ : std::string(CudaType(operand_.dtype));
    if (is_bool) lines_.Raw(kAtomicBool);
    OpenLoop("combine", num_updates(), Parameters(type, ""), kMostAtomicsAtOnce);
    WriteDestination();
    lines_.Line("const ", type, " x = updates[u];");
    const bool is_or = combiner_ == ScatterCombiner::kAdd || combiner_ == ScatterCombiner::kMaximum;
    if (is_bool && is_or) {
      lines_.Line("if (x != 0) atomicOr(WordOf(into + at), 1u << ShiftOf(into + at));");
    } else if (is_bool) {
      lines_.Line("if (x == 0) atomicAnd(WordOf(into + at), ~(255u << ShiftOf(into + at)));");
    } else {
      const char* const function = combiner_ == ScatterCombiner::kAdd       ? "atomicAdd"
                                   : combiner_ == ScatterCombiner::kMinimum ? "atomicMin"
                                                                            : "atomicMax";
      lines_.Line(function, "(into + at, x);");
    }
    CloseLoop();
  }

  // Item i is a window or, where windows may cross, one of its elements; items with one destination are a segment. A
  // part of the launch goes on with the segment that the one before has not come to the end of.
  void Sorted() {
    const SortText sort(num_items());
    text_.scratch_bytes = sort.scratch_bytes();
    UseCudaType(operand_.dtype, &lines_.prelude());
    const std::string type(CudaType(operand_.dtype));
    const std::string parameters = Parameters(type, "u64");
    const int64_t inner = windows_.layout().window_elements;
    for (CudaLaunch& launch : sort.Write(&lines_, parameters, Arguments(), [&] { WriteKey(inner); })) {
      text_.launches.push_back(std::move(launch));
    }
    OpenLoop("add_up", num_items() * inner_elements(), parameters, kMostAddedAtOnce * inner_elements());
    const bool is_cut = text_.launches.back().parts > 1;
    const std::string first = is_cut ? absl::StrCat("begin / ", inner_elements(), "ull") : "0";
    const std::string last =
        is_cut ? absl::StrCat("end / ", inner_elements(), "ull") : absl::StrCat(num_items(), "ull");
    lines_.Line("const u64* const keys = ", sort.Sorted(), ";");
    lines_.Line("const u64 item = u / ", inner_elements(), "ull, key = keys[item];");
    lines_.Line("if (key == ~0ull) continue;");
    lines_.Line("const u64 place = key >> ", NumberBits(), ";");
    lines_.Line("if (item > ", first, " && keys[item - 1] >> ", NumberBits(), " == place) continue;");
    if (by_element_) {
      lines_.Line(type, "* const to = into + place;");
    } else {
      if (inner > 1) lines_.Line("const u64 e = u % ", inner, "ull;");
      const WindowText::Place element = windows_.WriteInner(&lines_, "e");
      lines_.Line(type, "* const to = into + place + ", windows_.InnerOffset(element), ";");
      lines_.Line("const ", type, "* const from = updates + ", windows_.WindowsOffset(element), ";");
    }
    lines_.Line(type, " sum = *to;");
    lines_.Open("for (u64 j = item; j < ", last, " && keys[j] >> ", NumberBits(), " == place; ++j)");
    lines_.Line("[[maybe_unused]] const u64 n = keys[j] & ", (uint64_t{1} << NumberBits()) - 1, "ull;");
    WriteUpdateOf(inner);
    lines_.Line("sum = ", CudaBinary(CombinerOp(combiner_), operand_.dtype, "sum", "x", &lines_.prelude()), ";");
    lines_.Close();
    lines_.Line("*to = sum;");
    CloseLoop();
  }

  // Declares the key of item i: its destination, then its number. Windows that do not fit come last.
  void WriteKey(int64_t inner) {
    std::string destination = "start";
    if (by_element_) {
      lines_.Line("[[maybe_unused]] const u64 w = i / ", inner, "ull, e = i % ", inner, "ull;");
    } else {
      lines_.Line("[[maybe_unused]] const u64 w = i;");
    }
    const WindowText::Place place = windows_.WriteWindow(&lines_, "w");
    windows_.WriteStart(&lines_, place, /*skips=*/true);
    if (by_element_) {
      const WindowText::Place element = windows_.WriteInner(&lines_, "e");
      absl::StrAppend(&destination, " + ", windows_.InnerOffset(element));
    }
    lines_.Line("const u64 key = start < 0 ? ~0ull : (u64)(", destination, ") << ", NumberBits(), " | i;");
  }

  // Declares the update x of item n.
  void WriteUpdateOf(int64_t inner) {
    const std::string type(CudaType(operand_.dtype));
    if (by_element_) {
      lines_.Line("[[maybe_unused]] const u64 w = n / ", inner, "ull, f = n % ", inner, "ull;");
      WindowText::Place place = windows_.WriteWindow(&lines_, "w");
      place.window = windows_.WriteInner(&lines_, "f").window;
      lines_.Line("const ", type, " x = updates[", windows_.WindowsOffset(place), "];");
    } else {
      const WindowText::Place place = windows_.WriteWindow(&lines_, "n");
      lines_.Line("const ", type, " x = from[", windows_.WindowsOffset(place), "];");
    }
  }

  const ConcreteType& operand_;
  const ConcreteType& updates_;
  const DType index_dtype_;
  const ScatterCombiner combiner_;
  const CudaOptions& options_;
  CudaLines lines_;
  const WindowText windows_;
  const std::string moved_;
  bool by_element_ = false;
  KernelText text_;
};

}  // namespace

absl::StatusOr<ScatterKernelText> ScatterText(const BoundInstruction& instruction, const CudaOptions& options) {
  return ScatterPrinter(instruction, options).Print();
}

}  // namespace tensord::cuda
