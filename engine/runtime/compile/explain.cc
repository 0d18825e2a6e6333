#include "engine/runtime/compile/explain.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/at.h"
#include "engine/base/checked_math.h"
#include "engine/exec/program/segment_text.h"
#include "engine/exec/program/sessions.h"
#include "engine/ir/printer.h"
#include "engine/ir/text_cursor.h"

namespace tensord {
namespace {

// Longer columns are not aligned.
constexpr size_t kMaxColumn = 40;

std::string Plural(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string BytesText(int64_t bytes) {
  std::string text = Plural(bytes, "byte");
  constexpr absl::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double in_units = static_cast<double>(bytes) / 1024;
  if (in_units < 10) return text;
  size_t unit = 0;
  for (; in_units >= 1024; in_units /= 1024) ++unit;
  return absl::StrFormat("%s (%.1f %s)", text, in_units, kUnits[unit]);
}

int64_t SaturatedSum(int64_t a, int64_t b) { return CheckedAdd(a, b).value_or(std::numeric_limits<int64_t>::max()); }

// Bytes of the operands and of the results of a segment, each value once.
struct Traffic {
  int64_t read = 0;
  int64_t written = 0;
  int64_t moved() const { return SaturatedSum(read, written); }
};

Traffic TrafficOf(const ExecInstruction& instruction, const std::vector<ConcreteType>& types) {
  Traffic traffic;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const auto first = instruction.operands.begin();
    if (std::find(first, first + static_cast<ptrdiff_t>(i), instruction.operands[i]) !=
        first + static_cast<ptrdiff_t>(i))
      continue;
    traffic.read = SaturatedSum(traffic.read, types[At(instruction.operands[i])].num_bytes());
  }
  for (Slot slot : instruction.results) traffic.written = SaturatedSum(traffic.written, types[At(slot)].num_bytes());
  return traffic;
}

std::string TrafficText(const Traffic& traffic) {
  return absl::StrCat(BytesText(traffic.moved()), ": ", traffic.read, " read, ", traffic.written, " written");
}

// Returns the place of a value: "argument 0", "temporary at 64".
std::string HomeText(const BufferPlan& plan, Slot slot) { return ToString(plan.homes[At(slot)]); }

// Returns the client's node that gives the result.
const std::string& ResultName(const ExecInstruction& instruction, size_t result) {
  if (instruction.body == nullptr) return instruction.node;
  const Graph& body = *instruction.body;
  const ValueId value = body.outputs()[result].value;
  return body.is_input(value) ? instruction.node : body.nodes()[static_cast<size_t>(body.producer(value))].name;
}

// Lines of three columns, the last one ragged.
class Table {
 public:
  void Add(std::string first, std::string second, std::string third) {
    const auto widen = [](const std::string& cell, size_t* width) {
      if (cell.size() <= kMaxColumn) *width = std::max(*width, cell.size());
    };
    widen(first, &first_width_);
    widen(second, &second_width_);
    rows_.push_back({std::move(first), std::move(second), std::move(third)});
  }

  void AppendTo(std::string* text) const {
    for (const Row& row : rows_) {
      absl::StrAppendFormat(text, "  %-*s  %-*s  %s\n", static_cast<int>(first_width_), row.first,
                            static_cast<int>(second_width_), row.second, row.third);
    }
  }

 private:
  struct Row {
    std::string first, second, third;
  };
  std::vector<Row> rows_;
  size_t first_width_ = 0;
  size_t second_width_ = 0;
};

// The instructions that are bound together: all of a program, or a stage.
struct Part {
  const ExecProgram* program = nullptr;
  const std::vector<Slot>* slots = nullptr;           // of the whole program, by slot; null: the same
  const BoundProgram* bound = nullptr;                // null where sizes are open
  const std::vector<RunTimeSize>* decided = nullptr;  // sizes that are known from here on
  std::vector<int32_t> segments;
  std::vector<SessionRange> sessions;
};

class Explanation {
 public:
  explicit Explanation(const CompiledProgram& compiled) : compiled_(compiled), program_(compiled.program()) {
    if (compiled.staged() != nullptr) {
      for (const ProgramStage* stage : compiled.staged()->stages()) {
        parts_.push_back({.program = &stage->program, .slots = &stage->slots, .decided = &stage->sizes});
      }
    } else {
      parts_.push_back({.program = &program_, .bound = compiled.static_binding()});
    }
    for (Part& part : parts_) {
      part.segments = part.bound != nullptr ? part.bound->segments() : SegmentsOf(*part.program);
      part.sessions = SessionsOf(*part.program, part.segments);
    }
  }

  std::string Text() && {
    AddSummary();
    AddPasses();
    AddJoins();
    AddValues();
    AddGuards();
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (compiled_.staged() != nullptr) AddStage(i);
      AddSessions(parts_[i]);
    }
    return std::move(text_);
  }

 private:
  void AddSummary() {
    size_t sessions = 0;
    for (const Part& part : parts_) sessions += part.sessions.size();
    absl::StrAppend(&text_, "program ", Quote(program_.name), " on ", compiled_.device(), ", ",
                    program_.row_major ? "row" : "column", "-major on the wire\n  ",
                    Plural(static_cast<int64_t>(program_.instructions.size()), "instruction"), ", ",
                    Plural(compiled_.segment_count(), "segment"), " in ",
                    Plural(static_cast<int64_t>(sessions), "session"), "\n");
    const BoundProgram* const bound = compiled_.static_binding();
    if (bound == nullptr) {
      if (compiled_.is_compiled_for_sizes()) {
        absl::StrAppend(&text_,
                        "  compiled anew for the sizes of the arguments; this is what stands for all of them\n");
        return;
      }
      absl::StrAppend(&text_, "  the arguments", compiled_.staged() == nullptr ? "" : " and the run",
                      " decide sizes, and with them kernels and memory\n");
      return;
    }
    Traffic traffic;
    for (const int32_t segment : parts_[0].segments) {
      const Traffic own = TrafficOf(program_.instructions[At(segment)], bound->slot_types());
      traffic.read = SaturatedSum(traffic.read, own.read);
      traffic.written = SaturatedSum(traffic.written, own.written);
    }
    absl::StrAppend(&text_, "  moves  ", TrafficText(traffic), "\n  needs  ",
                    BytesText(bound->peak_bytes(bound->plan())), " at the peak, ", bound->temporary_bytes(),
                    " of them temporary\n");
  }

  void AddPasses() {
    if (program_.passes.empty()) return;
    absl::StrAppendFormat(&text_, "\n%-34s  %8s  %8s\n", "passes (nodes)", "before", "after");
    for (const PassRecord& pass : program_.passes) {
      absl::StrAppendFormat(&text_, "  %-32s  %8d  %8d%s\n", pass.name, pass.nodes_before, pass.nodes_after,
                            pass.fired ? "  changed" : "");
    }
  }

  // The ways in which the backend runs segments together, as the passes: all of them, in order.
  void AddJoins() {
    std::vector<JoinCount> joins;
    for (const Part& part : parts_) {
      if (part.bound == nullptr) continue;
      for (const BoundProgram::Session& session : part.bound->sessions()) {
        const std::vector<JoinCount> own = session.prepared->joins();
        joins.resize(own.size());
        for (size_t way = 0; way < own.size(); ++way) {
          const int64_t before = std::exchange(joins[way], own[way]).segments;
          joins[way].segments += before;
        }
      }
    }
    if (joins.empty()) return;
    absl::StrAppendFormat(&text_, "\n%-34s  %8s\n", "joins", "segments");
    for (const JoinCount& join : joins) {
      absl::StrAppendFormat(&text_, "  %-32s  %8d%s\n", join.way, join.segments, join.is_left_out ? "  left out" : "");
    }
  }

  std::string TypeText(Slot slot) const {
    const BoundProgram* const bound = compiled_.static_binding();
    return absl::StrCat(
        ": ", bound != nullptr ? ToString(bound->slot_types()[At(slot)]) : ToString(program_.slot_types[At(slot)]));
  }

  // Returns the place of an instruction's result.
  std::string ResultHome(const ExecInstruction& instruction, Slot result, bool is_segment) const {
    if (compiled_.static_binding() == nullptr) {
      return is_segment ? "" : absl::StrCat("view of %", instruction.operands[0]);
    }
    const BufferPlan& plan = compiled_.static_binding()->plan();
    const std::string home = HomeText(plan, result);
    const bool is_empty = compiled_.static_binding()->slot_types()[At(result)].num_bytes() == 0;
    if (!is_segment) return absl::StrCat(home, ", view of %", instruction.operands[0]);
    for (Slot operand : instruction.operands) {
      if (!is_empty && plan.homes[At(operand)] == plan.homes[At(result)])
        return absl::StrCat(home, ", in place of %", operand);
    }
    return home;
  }

  void AddValues() {
    const BoundProgram* const bound = compiled_.static_binding();
    const auto home = [&](Slot slot) { return bound == nullptr ? "" : HomeText(bound->plan(), slot); };
    Table values;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Slot slot = static_cast<Slot>(i);
      values.Add(absl::StrCat("%", slot, " input ", Quote(program_.inputs[i].name)), home(slot), TypeText(slot));
    }
    for (const ProgramConstant& constant : program_.constants) {
      values.Add(absl::StrCat("%", constant.slot, " constant"), home(constant.slot), TypeText(constant.slot));
    }
    std::vector<bool> is_segment(program_.instructions.size());
    for (const int32_t i : bound != nullptr ? bound->segments() : SegmentsOf(program_)) is_segment[At(i)] = true;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const ExecInstruction& instruction = program_.instructions[i];
      for (size_t r = 0; r < instruction.results.size(); ++r) {
        const Slot slot = instruction.results[r];
        values.Add(absl::StrCat("%", slot, " node ", Quote(ResultName(instruction, r))),
                   ResultHome(instruction, slot, is_segment[i]), TypeText(slot));
      }
    }
    text_ += "\nvalues\n";
    values.AppendTo(&text_);
    for (const ProgramOutput& output : program_.outputs) {
      absl::StrAppend(&text_, "  output ", Quote(output.name), " = %", output.slot, "\n");
    }
  }

  void AddGuards() {
    if (program_.guards.empty()) return;
    text_ += "\nguards\n";
    for (const ProgramGuard& guard : program_.guards) {
      absl::StrAppend(&text_, "  node ", Quote(guard.node), ": ", guard.guard.lhs.ToString(),
                      guard.guard.kind == ShapeGuard::Kind::kAtMost ? " <= " : " == ", guard.guard.rhs.ToString(),
                      guard.guard.kind == ShapeGuard::Kind::kEqualOrOne ? " or 1" : "", ", else ",
                      Quote(guard.guard.what), "\n");
    }
  }

  void AddStage(size_t number) {
    absl::StrAppend(&text_, "\nstage ", number);
    for (size_t i = 0; i < parts_[number].decided->size(); ++i) {
      const RunTimeSize& size = (*parts_[number].decided)[i];
      absl::StrAppend(&text_, i == 0 ? ", when the host has read " : ", ", "%", size.size, " and decided ", size.symbol,
                      ", at most ", size.extent.ToString());
    }
    text_ += "\n";
  }

  void AddSessions(const Part& part) {
    for (const SessionRange& range : part.sessions) {
      absl::StrAppend(&text_, "\nsession ", num_sessions_++,
                      range.kind == InstructionKind::kSession ? "" : absl::StrCat(", ", Name(range.kind)));
      const std::string replay = part.bound == nullptr ? "" : PreparedOf(part, range).DescribeReplay();
      absl::StrAppend(&text_, replay.empty() ? "" : ", ", replay, "\n");
      for (size_t i = range.begin; i < range.end; ++i) AddSegment(part, range, i);
    }
  }

  // Returns the preparation of a bound part's session.
  static const PreparedSession& PreparedOf(const Part& part, const SessionRange& range) {
    return *part.bound->sessions()[static_cast<size_t>(&range - part.sessions.data())].prepared;
  }

  static Slot SlotOf(const Part& part, Slot slot) { return part.slots == nullptr ? slot : (*part.slots)[At(slot)]; }

  void AddSegment(const Part& part, const SessionRange& range, size_t position) {
    const ExecInstruction& instruction = part.program->instructions[At(part.segments[position])];
    absl::StrAppend(&text_, "  segment ", num_segments_++, ": ", KernelName(instruction), "\n    ");
    for (size_t i = 0; i < instruction.results.size(); ++i) {
      absl::StrAppend(&text_, i == 0 ? "" : ", ", "%", SlotOf(part, instruction.results[i]));
    }
    absl::StrAppend(&text_, " = ", instruction.op->name, "(");
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const bool is_last = i < instruction.last_use.size() && instruction.last_use[i];
      absl::StrAppend(&text_, i == 0 ? "" : ", ", "%", SlotOf(part, instruction.operands[i]), is_last ? "!" : "");
    }
    const std::string attributes = AttributesText(*instruction.op, instruction.attrs);
    absl::StrAppend(&text_, ")", attributes.empty() ? "" : " ", attributes, "\n    types   ",
                    part.bound != nullptr ? TypesText(instruction, part.bound->slot_types())
                                          : TypesText(instruction, part.program->slot_types),
                    "\n    nodes   ",
                    absl::StrJoin(NodesOf(instruction), ", ",
                                  [](std::string* out, const std::string& n) { out->append(Quote(n)); }),
                    "\n");
    if (part.bound == nullptr) {
      if (instruction.body != nullptr) AddBlock(PrintGraph(*instruction.body));
      return;
    }
    absl::StrAppend(&text_, "    moves   ", TrafficText(TrafficOf(instruction, part.bound->slot_types())), "\n");
    const PreparedSession& prepared = PreparedOf(part, range);
    const std::string kernel = prepared.DescribeKernel(position - range.begin);
    if (!kernel.empty()) absl::StrAppend(&text_, "    kernel  ", kernel, "\n");
    AddJoin(prepared.chains(), position - range.begin);
    const int64_t scratch = prepared.scratch_bytes(position - range.begin);
    if (scratch > 0) {
      absl::StrAppend(&text_, "    scratch ", BytesText(scratch), ", ", ToString(part.bound->plan().scratch[position]),
                      "\n");
    }
    const MicroProgram* const micro = part.bound->micro_program(part.segments[position]);
    if (micro != nullptr) AddBlock(ToString(*micro));
  }

  // The chain of the segment that was numbered last, at this position of its session.
  void AddJoin(absl::Span<const SegmentChain> chains, size_t position) {
    const auto chain = std::partition_point(chains.begin(), chains.end(),
                                            [&](const SegmentChain& before) { return before.end <= position; });
    if (chain == chains.end() || chain->begin > position) return;
    const size_t first = num_segments_ - 1 - (position - chain->begin);
    absl::StrAppend(&text_, "    join    ", chain->way, ", segments ", first, " to ",
                    first + (chain->end - chain->begin) - 1, "\n");
  }

  void AddBlock(absl::string_view block) {
    for (absl::string_view line : absl::StrSplit(block, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text_, "    | ", line, "\n");
    }
  }

  const CompiledProgram& compiled_;
  const ExecProgram& program_;
  std::vector<Part> parts_;
  size_t num_sessions_ = 0;
  size_t num_segments_ = 0;
  std::string text_;
};

}  // namespace

std::string ExplainProgram(const CompiledProgram& program) { return Explanation(program).Text(); }

}  // namespace tensord
