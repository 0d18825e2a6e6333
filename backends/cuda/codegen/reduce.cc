#include "backends/cuda/codegen/reduce.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "backends/cuda/codegen/index.h"
#include "backends/cuda/codegen/launch_parts.h"
#include "backends/cuda/codegen/reduce_plan.h"
#include "backends/cuda/codegen/reduce_walk.h"
#include "backends/cuda/codegen/values.h"
#include "engine/base/rounding.h"

namespace tensord {
namespace {

// Lanes that join the parts of a column, and neighbouring columns of such a block.
constexpr int64_t kColumnLanes = 8;
constexpr int64_t kJoinedColumns = 32;

class ReducePrinter {
 public:
  ReducePrinter(CudaWriter* writer, KernelText* kernel)
      : writer_(*writer),
        program_(writer->program()),
        kernel_(*kernel),
        plan_(PlanCudaReduce(program_, writer->options())),
        walk_(writer, &plan_) {
    if (plan_.reduced == 0) DropPoints();
    int64_t stride = 1;
    for (const MicroAxis& axis : program_.axes) {
      dense_.strides.push_back(stride);
      stride *= axis.size;
    }
  }

  void Print() {
    const bool has_results = writer_.HasResults(MicroLevel::kFull) || writer_.HasResults(MicroLevel::kKept);
    if (has_results) kernel_.spread = plan_.Describe();
    if (!has_results && writer_.HasResults(MicroLevel::kUniform)) {
      PrintUniform();
    } else if (has_results && plan_.splits == 1) {
      PrintWhole();
    } else if (has_results) {
      PrintParts();
    }
  }

 private:
  // Handles reductions over no points: the passes keep only the neutral elements that results are made of.
  void DropPoints() {
    const std::vector<bool> needed = NeededValues(program_, ResultsAt(MicroLevel::kKept, std::nullopt));
    for (CudaPass& pass : plan_.passes) {
      CudaPass rest{.number = pass.number};
      for (int32_t v : pass.reductions) {
        if (needed[static_cast<size_t>(v)]) rest.reductions.push_back(v);
      }
      pass = rest;
    }
  }

  const MicroInstruction& At(int32_t v) const { return program_.instructions[static_cast<size_t>(v)]; }

  void PrintUniform() {
    const CudaLaunch launch{.entry = writer_.options().name, .threads_per_block = 32};
    writer_.OpenEntry(launch, /*has_scratch=*/false);
    writer_.UniformValues(NeededValues(program_, ResultsAt(MicroLevel::kUniform, std::nullopt)));
    writer_.StoreUniformResults();
    writer_.Close();
    kernel_.launches.push_back(launch);
  }

  // ---- One launch ----

  void PrintWhole() {
    std::vector<int32_t> targets = ResultsAt(MicroLevel::kUniform, std::nullopt);
    for (const CudaPass& pass : plan_.passes) AppendTargets(pass, &targets);
    for (int32_t v : ResultsAt(MicroLevel::kKept, std::nullopt)) targets.push_back(v);
    needed_ = NeededValues(program_, targets);

    double steps = 0;
    for (const CudaPass& pass : plan_.passes) steps += StepsOf(pass);
    OpenLaunch("", plan_.blocks, plan_.lanes, plan_.group, plan_.join_bytes + plan_.carry_bytes, steps);
    writer_.UniformValues(needed_);
    writer_.StoreUniformResults();
    OpenBlocks(plan_.blocks, /*splits=*/1, plan_.lanes, plan_.group, plan_.is_rows, plan_.kept_width());
    DeclareKeptAddresses();
    if (kept_width_ == 1) {
      KeptValues(0);
      StoreKeptResults(0);
    }
    walk_.DeclarePlaces();
    for (const CudaPass& pass : plan_.passes) {
      walk_.Pass(pass, &*kept_, !is_there_.empty());
      if (kept_width_ > 1) {
        if (pass.number == 0) JoinColumns(pass);
        continue;
      }
      for (int32_t v : pass.reductions) DeclareJoined(v);
      KeptValues(pass.number + 1);
      StoreKeptResults(pass.number + 1);
    }
    CloseBlocks();
  }

  // Prints all that follows the pass of neighbouring columns: it is their only one.
  void JoinColumns(const CudaPass& pass) {
    needed_ = NeededValues(program_, ResultsAt(MicroLevel::kKept, std::nullopt));
    DeclareResultVectors(/*stages=*/2);
    walk_.OpenNeighbours(kept_width_);
    KeptValues(0);
    for (int32_t v : pass.reductions) DeclareJoined(v);
    KeptValues(1);
    FillResultVectors(/*stages=*/2);
    walk_.CloseNeighbours(kept_width_);
    StoreResultVectors(/*stages=*/2, "");
  }

  void DeclareJoined(int32_t v) {
    const DType dtype = At(v).dtype;
    writer_.Line("const ", CudaType(dtype), " v", v, " = ",
                 CudaConvert(CudaAccumulator(dtype), dtype, Joined(v), &writer_.prelude()), ";");
  }

  // ---- A launch for each pass, and one that joins its parts ----

  void PrintParts() {
    PlaceScratch();
    for (const CudaPass& pass : plan_.passes) {
      const bool is_first = pass.number == 0;
      const bool stores = is_first && (!ResultsAt(MicroLevel::kKept, 0).empty() ||
                                       !ResultsAt(MicroLevel::kUniform, std::nullopt).empty());
      if (!pass.reductions.empty() || !pass.results.empty() || stores) PartsOf(pass);
      if (!pass.reductions.empty()) JoinPartsOf(pass);
    }
  }

  void PartsOf(const CudaPass& pass) {
    const bool is_first = pass.number == 0;
    std::vector<int32_t> targets;
    AppendTargets(pass, &targets);
    if (is_first) {
      for (int32_t v : ResultsAt(MicroLevel::kUniform, std::nullopt)) targets.push_back(v);
      for (int32_t v : ResultsAt(MicroLevel::kKept, 0)) targets.push_back(v);
    }
    needed_ = NeededValues(program_, targets);

    OpenLaunch(absl::StrCat("_", pass.number), plan_.blocks * plan_.splits, plan_.lanes, plan_.group,
               pass.reductions.empty() ? 0 : plan_.join_bytes, StepsOf(pass));
    writer_.UniformValues(needed_);
    if (is_first) writer_.StoreUniformResults();
    OpenBlocks(plan_.blocks, plan_.splits, plan_.lanes, plan_.group, plan_.is_rows, plan_.kept_width());
    DeclareKeptAddresses();
    if (kept_width_ == 1) {
      for (int32_t stage = 0; stage <= pass.number; ++stage) KeptValues(stage);
      if (is_first) StoreKeptResults(0, "split == 0 && ");
    }
    walk_.Pass(pass, &*kept_, !is_there_.empty());
    if (kept_width_ > 1) {
      PartsOfColumns(pass);
    } else {
      for (int32_t v : pass.reductions) {
        const DType accumulator = CudaAccumulator(At(v).dtype);
        writer_.Line("const ", CudaType(accumulator), " s", v, " = ", Joined(v), ";");
        writer_.Line("if (", is_there_, "lane == 0) ", Partial(v, "", "split"), " = ",
                     CudaStored(accumulator, absl::StrCat("s", v)), ";");
      }
    }
    CloseBlocks();
  }

  void PartsOfColumns(const CudaPass& pass) {
    writer_.prelude().Use("Vector");
    needed_ = NeededValues(program_, ResultsAt(MicroLevel::kKept, 0));
    DeclareResultVectors(/*stages=*/1);
    for (int32_t v : pass.reductions) {
      writer_.Line("Vector<", CudaStorage(CudaAccumulator(At(v).dtype)), ", ", kept_width_, "> s", v, ";");
    }
    walk_.OpenNeighbours(kept_width_);
    KeptValues(0);
    for (int32_t v : pass.reductions) {
      writer_.Line("s", v, ".at[q] = ", CudaStored(CudaAccumulator(At(v).dtype), Joined(v)), ";");
    }
    FillResultVectors(/*stages=*/1);
    walk_.CloseNeighbours(kept_width_);
    StoreResultVectors(/*stages=*/1, "split == 0 && ");
    for (int32_t v : pass.reductions) {
      writer_.Line("if (", is_there_, "lane == 0) StoreVector(&", Partial(v, "", "split"), ", s", v, ");");
    }
  }

  void JoinPartsOf(const CudaPass& pass) {
    const int32_t stage = pass.number + 1;
    needed_ = NeededValues(program_, ResultsAt(MicroLevel::kKept, stage));
    const int64_t max_threads = writer_.options().max_threads_per_block;
    const int64_t parts = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.splits)));
    // Parts lie as those that are read side by side: of a row, or of neighbouring columns.
    const int64_t lanes = plan_.is_rows
                              ? std::min<int64_t>(32, parts)
                              : std::min({kColumnLanes, parts, std::max<int64_t>(max_threads / kJoinedColumns, 1)});
    const int64_t group =
        plan_.is_rows ? std::max<int64_t>(1, std::min<int64_t>(128, max_threads) / lanes) : kJoinedColumns;
    const int64_t blocks = CeilDiv(plan_.kept, group);
    int64_t shared_bytes = 0;
    for (int32_t v : pass.reductions) {
      if (plan_.is_rows || lanes == 1) continue;
      shared_bytes = std::max(shared_bytes, lanes * group * SizeOf(CudaAccumulator(At(v).dtype)));
    }
    OpenLaunch(absl::StrCat("_", pass.number, "_join"), blocks, lanes, group, shared_bytes, /*steps=*/0);
    writer_.UniformValues(needed_);
    OpenBlocks(blocks, /*splits=*/1, lanes, group, plan_.is_rows, /*width=*/1);
    kept_width_ = 1;
    DeclareKeptAddresses();
    for (int32_t v : pass.reductions) {
      const DType dtype = At(v).dtype, accumulator = CudaAccumulator(dtype);
      walk_.DeclareAccumulator("a", v, 1);
      writer_.Open("for (u32 part = lane; part < ", plan_.splits, "u; part += ", lanes, "u)");
      walk_.Accumulate(absl::StrCat("a", v), v, CudaLoaded(accumulator, Partial(v, "const ", "part")));
      writer_.Close();
      const std::string a = absl::StrCat("a", v);
      writer_.Line(
          "const ", CudaType(dtype), " v", v, " = ",
          CudaConvert(accumulator, dtype, plan_.is_rows ? JoinedLanes(v, a, lanes) : JoinedPanel(v, a, lanes, group),
                      &writer_.prelude()),
          ";");
      writer_.Line("if (", is_there_, "lane == 0) ", Scratch(dtype, values_[static_cast<size_t>(v)], ""),
                   "[k] = ", CudaStored(dtype, absl::StrCat("v", v)), ";");
    }
    for (int32_t s = 0; s <= stage; ++s) KeptValues(s, /*joined_stage=*/stage);
    StoreKeptResults(stage);
    CloseBlocks();
    kept_width_ = plan_.kept_width();
  }

  // Returns a part's accumulator in the scratch memory: beside it are those of the same row, or of the next columns.
  std::string Partial(int32_t v, absl::string_view qualifier, absl::string_view part) const {
    const std::string place = plan_.is_rows ? absl::StrCat("[(u64)k * ", plan_.splits, " + ", part, "]")
                                            : absl::StrCat("[(u64)", part, " * ", plan_.kept, " + k]");
    return Scratch(CudaAccumulator(At(v).dtype), partials_[static_cast<size_t>(v)], qualifier) + place;
  }

  // Places the values and the parts' accumulators by reduction, in bytes from the beginning of the scratch memory.
  void PlaceScratch() {
    values_.assign(program_.instructions.size(), -1);
    partials_.assign(program_.instructions.size(), -1);
    const auto take = [this](int64_t bytes) {
      const int64_t at = kernel_.scratch_bytes;
      kernel_.scratch_bytes += CeilDiv(bytes, 256) * 256;
      return at;
    };
    for (const CudaPass& pass : plan_.passes) {
      for (int32_t v : pass.reductions) {
        values_[static_cast<size_t>(v)] = take(plan_.kept * SizeOf(At(v).dtype));
        partials_[static_cast<size_t>(v)] = take(plan_.kept * plan_.splits * SizeOf(CudaAccumulator(At(v).dtype)));
      }
    }
  }

  static std::string Scratch(DType dtype, int64_t offset, absl::string_view qualifier) {
    return absl::StrCat("reinterpret_cast<", qualifier, CudaStorage(dtype), "*>(scratch + ", offset, "ll)");
  }

  // ---- Threads ----

  // Returns the steps of a pass in all points.
  double StepsOf(const CudaPass& pass) const {
    return StepsOfPass(program_, pass) * static_cast<double>(plan_.kept) * static_cast<double>(plan_.reduced);
  }

  void OpenLaunch(const std::string& ending, int64_t blocks, int64_t lanes, int64_t group, int64_t shared_bytes,
                  double steps) {
    const int64_t launched = std::min(blocks, writer_.options().max_blocks);
    has_block_loop_ = launched < blocks;
    kernel_.launches.push_back({.entry = writer_.options().name + ending,
                                .blocks = launched,
                                .threads_per_block = static_cast<int32_t>(lanes * group),
                                .dynamic_shared_bytes = shared_bytes,
                                .parts = has_block_loop_ ? 1 : CudaLaunchParts(steps, blocks, writer_.options())});
    writer_.OpenEntry(kernel_.launches.back(), kernel_.scratch_bytes > 0);
    if (shared_bytes > 0) writer_.Line("extern __shared__ __align__(16) u8 tensord_shared[];");
  }

  // The block's kept index of a thread, "k", its lane, and with splits the part of the reduced range, "split".
  void OpenBlocks(int64_t blocks, int64_t splits, int64_t lanes, int64_t group, bool is_rows, int64_t width) {
    kept_.emplace("k", program_, CudaIndex::Axes::kKept);
    const absl::string_view type = kept_->type();
    const absl::string_view suffix = type == "u32" ? "u" : "ull";
    std::string block(writer_.block());
    if (has_block_loop_) {
      writer_.Open("for (u64 b = blockIdx.x; b < ", blocks * splits, "ull; b += gridDim.x)");
      block = "b";
    }
    if (splits > 1) {
      writer_.Line("const ", walk_.type(), " split = ", block, " % ", splits, "u;");
      block = absl::StrCat(block, " / ", splits, "u");
    }
    const std::string fast = absl::StrCat("threadIdx.x % ", is_rows ? lanes : group, "u");
    const std::string slow = absl::StrCat("threadIdx.x / ", is_rows ? lanes : group, "u");
    writer_.Line("const u32 lane = ", lanes == 1 ? "0" : is_rows ? fast : slow, ";");
    std::string place = absl::StrCat("(", type, ")(", block, ")");
    if (group > 1) absl::StrAppend(&place, " * ", group, suffix, " + ", is_rows ? slow : fast);
    if (width > 1) place = absl::StrCat("(", place, ") * ", width, suffix);
    is_there_ = "";
    if (plan_.kept % (group * width) == 0) {
      writer_.Line("const ", type, " k = ", place, ";");
      return;
    }
    // Threads beyond the last kept index compute it as well, and store nothing: the others need them to join.
    writer_.Line("const ", type, " place = ", place, ";");
    writer_.Line("const bool is_there = place < ", plan_.kept, suffix, ";");
    writer_.Line("const ", type, " k = is_there ? place : ", plan_.kept - width, suffix, ";");
    is_there_ = "is_there && ";
  }

  void CloseBlocks() {
    if (has_block_loop_) writer_.Close();
    writer_.Close();
  }

  // ---- Values by kept index ----

  std::string KeptAddress(const MicroAccess& access) {
    return CudaReduceWalk::KeptAddress(program_, access, kept_width_, &*kept_);
  }

  // The coordinates of the kept index that values of either level need.
  void DeclareKeptAddresses() {
    for (size_t v = 0; v < program_.instructions.size(); ++v) {
      const MicroInstruction& instruction = program_.instructions[v];
      const bool has_access = instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota;
      if (needed_[v] && has_access && instruction.level != MicroLevel::kUniform) KeptAddress(instruction.access);
    }
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (Stores(r)) KeptAddress(dense_);
    }
    for (const std::string& line : kept_->TakeDeclarations()) writer_.Line(line);
  }

  // Tells whether the launch stores a result in each point.
  bool Stores(size_t r) const {
    return writer_.Computed(r).level == MicroLevel::kFull && needed_[static_cast<size_t>(program_.results[r].value)];
  }

  // Prints the kept values of a stage. In a launch of its own a pass finds values joined by others in the scratch
  // memory; `joined_stage` is the stage whose reductions the launch itself joins.
  void KeptValues(int32_t stage, int32_t joined_stage = -1) {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const MicroInstruction& instruction = program_.instructions[i];
      const int32_t v = static_cast<int32_t>(i);
      if (instruction.level != MicroLevel::kKept || instruction.stage != stage || !needed_[i]) continue;
      if (instruction.kind != MicroKind::kReduce) {
        const bool has_access = instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota;
        writer_.Value(v, has_access ? KeptAddress(instruction.access) : "");
      } else if (plan_.splits > 1 && stage != joined_stage) {
        const std::string element = Scratch(instruction.dtype, values_[i], "const ") + "[k]";
        writer_.Line("const ", CudaType(instruction.dtype), " v", v, " = ", CudaLoaded(instruction.dtype, element),
                     ";");
      }
    }
  }

  void StoreKeptResults(int32_t stage, absl::string_view condition = "") {
    if (ResultsAt(MicroLevel::kKept, stage).empty()) return;
    writer_.Open("if (", is_there_, condition, "lane == 0)");
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (writer_.Computed(r).level == MicroLevel::kKept && writer_.Computed(r).stage == stage) {
        writer_.StoreResult(r, "k");
      }
    }
    writer_.Close();
  }

  // Calls `print` with the number of each kept result of the first stages.
  template <typename F>
  void ForKeptResults(int32_t stages, F print) const {
    for (size_t r = 0; r < program_.results.size(); ++r) {
      if (writer_.Computed(r).level == MicroLevel::kKept && writer_.Computed(r).stage < stages) print(r);
    }
  }

  // Results of neighbouring columns: "y0", filled in the loop over these, and stored behind it.
  void DeclareResultVectors(int32_t stages) {
    ForKeptResults(stages, [&](size_t r) {
      writer_.prelude().Use("Vector");
      writer_.Line("Vector<", CudaStorage(writer_.Computed(r).dtype), ", ", kept_width_, "> y", r, ";");
    });
  }
  void FillResultVectors(int32_t stages) {
    ForKeptResults(stages, [&](size_t r) {
      writer_.Line("y", r,
                   ".at[q] = ", CudaStored(writer_.Computed(r).dtype, absl::StrCat("v", program_.results[r].value)),
                   ";");
    });
  }
  void StoreResultVectors(int32_t stages, absl::string_view condition) {
    ForKeptResults(stages, [&](size_t r) {
      writer_.Open("if (", is_there_, condition, "lane == 0)");
      const int64_t bytes = kept_width_ * SizeOf(writer_.Computed(r).dtype);
      if (writer_.options().pointer_alignment_bytes % bytes == 0) {
        writer_.Line("StoreVector(r", r, " + k, y", r, ");");
      } else {
        walk_.OpenNeighbours(kept_width_);
        writer_.Line("r", r, "[k + q] = y", r, ".at[q];");
        walk_.CloseNeighbours(kept_width_);
      }
      writer_.Close();
    });
  }

  // Returns the values of results at a level, of one stage or of all.
  std::vector<int32_t> ResultsAt(MicroLevel level, std::optional<int32_t> stage) const {
    std::vector<int32_t> values;
    for (size_t r = 0; r < program_.results.size(); ++r) {
      const MicroInstruction& instruction = writer_.Computed(r);
      if (instruction.level == level && instruction.stage == stage.value_or(instruction.stage)) {
        values.push_back(program_.results[r].value);
      }
    }
    return values;
  }

  // Appends the values that the pass stores and joins.
  void AppendTargets(const CudaPass& pass, std::vector<int32_t>* targets) const {
    if (plan_.reduced == 0) return;
    for (int32_t v : pass.reductions) targets->push_back(At(v).operands[0]);
    for (size_t r : pass.results) targets->push_back(program_.results[r].value);
  }

  // ---- Joining ----

  // Returns the lanes' accumulators joined: the same for all lanes.
  std::string Joined(int32_t v) {
    const std::string accumulator = walk_.Accumulator("a", v);
    return plan_.is_rows ? JoinedLanes(v, accumulator, plan_.lanes)
                         : JoinedPanel(v, accumulator, plan_.lanes, plan_.group);
  }

  std::string JoinedPanel(int32_t v, const std::string& accumulator, int64_t lanes, int64_t group) {
    if (lanes == 1) return accumulator;
    writer_.prelude().Use("JoinPanel");
    return absl::StrCat("JoinPanel<", lanes, ", ", group, ">(", accumulator, ", ", Combiner(v), ", ", Shared(v), ")");
  }

  std::string JoinedLanes(int32_t v, const std::string& accumulator, int64_t lanes) {
    if (lanes == 1) return accumulator;
    const bool in_warp = lanes <= 32;
    writer_.prelude().Use(in_warp ? "JoinWarp" : "JoinRow");
    return absl::StrCat(in_warp ? "JoinWarp<" : "JoinRow<", lanes, ">(", accumulator, ", ", Combiner(v),
                        in_warp ? "" : absl::StrCat(", ", Shared(v)), ")");
  }

  std::string Combiner(int32_t v) {
    const absl::string_view type = CudaType(CudaAccumulator(At(v).dtype));
    return absl::StrCat("[](", type, " a, ", type, " b) { return ",
                        CudaCombiner(At(v).reduce, At(v).dtype, &writer_.prelude()), "(a, b); }");
  }

  std::string Shared(int32_t v) const {
    return absl::StrCat("reinterpret_cast<", CudaType(CudaAccumulator(At(v).dtype)), "*>(tensord_shared)");
  }

  CudaWriter& writer_;
  const MicroProgram& program_;
  KernelText& kernel_;
  CudaReducePlan plan_;
  CudaReduceWalk walk_;
  MicroAccess dense_;  // of results with an element a point
  // The kept index of the launch that is being printed.
  std::optional<CudaIndex> kept_;
  int64_t kept_width_ = plan_.kept_width();  // of the launch that is being printed
  std::vector<bool> needed_;                 // by value
  std::string is_there_;                     // a condition for stores, with its "&& "
  bool has_block_loop_ = false;
  // By value: the place of a reduction in the scratch memory.
  std::vector<int64_t> values_;
  std::vector<int64_t> partials_;
};

}  // namespace

void PrintCudaReduce(CudaWriter* writer, KernelText* kernel) { ReducePrinter(writer, kernel).Print(); }

}  // namespace tensord
