#include "clients/cli/programs/program_drawing.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensord::cli {
namespace {

constexpr size_t kMaxNames = 6;

// Text inside of a quoted string: nothing in it means anything to Graphviz.
std::string Escape(absl::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    escaped.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return escaped;
}

// Text inside of a field of a record.
std::string EscapeField(absl::string_view text) {
  std::string escaped;
  for (char c : Escape(text)) {
    if (absl::StrContains("{}|<> ", c)) escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", Escape(text), "\""); }

std::string NamesText(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// "388 bytes" of "388 bytes: 240 read, 148 written".
absl::string_view Moved(const ExplainedProgram::Segment& segment) {
  return absl::string_view(segment.moves).substr(0, segment.moves.find(':'));
}

class Drawing {
 public:
  explicit Drawing(const ExplainedProgram& program) : program_(program) {}

  std::string Draw() && {
    absl::StrAppend(&text_, "digraph ", Quoted(program_.name),
                    " {\n  label=", Quoted(absl::StrCat(program_.name, " on ", program_.device)),
                    ";\n  labelloc=t;\n  node [shape=box, fontname=\"Helvetica\"];\n"
                    "  edge [fontname=\"Helvetica\", fontsize=10];\n");
    AddSources();
    AddSessions();
    AddDecisions();
    AddEdges();
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  void AddNode(absl::string_view indent, absl::string_view id, absl::string_view shape, absl::string_view label) {
    absl::StrAppend(&text_, indent, Quoted(id), " [shape=", shape, ", label=\"", label, "\"];\n");
  }

  void AddSources() {
    for (const auto& [number, value] : program_.values) {
      if (value.kind == ExplainedProgram::ValueKind::kNode) continue;
      const bool is_input = value.kind == ExplainedProgram::ValueKind::kInput;
      const std::string id = absl::StrCat(is_input ? "input %" : "constant %", number);
      producer_[number] = id;
      AddNode("  ", id, is_input ? "ellipse" : "note", Escape(is_input ? value.name : "constant"));
    }
  }

  std::string Label(const ExplainedProgram::Segment& segment) const {
    absl::string_view ops = segment.kernel;
    if (!absl::ConsumePrefix(&ops, "fused:")) {
      return absl::StrCat(Escape(segment.kernel), "\\n", Escape(NamesText(segment.nodes)),
                          segment.moves.empty() ? "" : "\\n", Escape(Moved(segment)));
    }
    const std::vector<absl::string_view> fields = absl::StrSplit(ops, ' ', absl::SkipEmpty());
    return absl::StrCat(
        "{fused|{",
        absl::StrJoin(fields, "|",
                      [](std::string* out, absl::string_view op) { absl::StrAppend(out, EscapeField(op)); }),
        "}|", EscapeField(NamesText(segment.nodes)), segment.moves.empty() ? "" : "|", EscapeField(Moved(segment)),
        "}");
  }

  void AddSessions() {
    for (size_t s = 0; s < program_.sessions.size(); ++s) {
      const ExplainedProgram::Session& session = program_.sessions[s];
      absl::StrAppend(&text_, "  subgraph ", Quoted(absl::StrCat("cluster session ", s)),
                      " {\n    label=", Quoted(session.title), ";\n    style=rounded;\n");
      for (const ExplainedProgram::Segment& segment : session.segments) {
        const std::string id = absl::StrCat("segment ", num_segments_++);
        first_of_stage_.emplace(session.stage, id);
        for (int64_t result : segment.results) producer_[result] = id;
        AddNode("    ", id, absl::StartsWith(segment.kernel, "fused:") ? "record" : "box", Label(segment));
      }
      text_ += "  }\n";
    }
  }

  void AddDecisions() {
    for (size_t i = 0; i < program_.decisions.size(); ++i) {
      const ExplainedProgram::Decision& decision = program_.decisions[i];
      const std::string id = absl::StrCat("host ", i);
      AddNode("  ", id, "diamond", Escape(absl::StrCat("host: ", decision.symbol)));
      AddEdge(decision.value, id);
      const auto first = first_of_stage_.find(decision.stage);
      if (first == first_of_stage_.end()) continue;
      absl::StrAppend(&text_, "  ", Quoted(id), " -> ", Quoted(first->second), " [style=dashed];\n");
    }
  }

  void AddEdges() {
    size_t number = 0;
    for (const ExplainedProgram::Session& session : program_.sessions) {
      for (const ExplainedProgram::Segment& segment : session.segments) {
        const std::string id = absl::StrCat("segment ", number++);
        const std::set<int64_t> operands(segment.operands.begin(), segment.operands.end());
        for (int64_t operand : operands) AddEdge(operand, id);
      }
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const std::string id = absl::StrCat("output ", i);
      AddNode("  ", id, "ellipse", Escape(program_.outputs[i].name));
      AddEdge(program_.outputs[i].value, id);
    }
  }

  // Draws an edge from the value's producer, itself or the value that it is a view of.
  void AddEdge(int64_t value, absl::string_view to) {
    const auto type = program_.values.find(value);
    int64_t source = value;
    // A view is of a value before it; a text in which it is not ends here.
    while (producer_.count(source) == 0) {
      const auto found = program_.values.find(source);
      if (found == program_.values.end() || found->second.view_of < 0 || found->second.view_of >= source) return;
      source = found->second.view_of;
    }
    absl::StrAppend(&text_, "  ", Quoted(producer_[source]), " -> ", Quoted(to));
    if (type != program_.values.end()) absl::StrAppend(&text_, " [label=", Quoted(type->second.type), "]");
    text_ += ";\n";
  }

  const ExplainedProgram& program_;
  std::map<int64_t, std::string> producer_;        // id of the node that draws it, by value
  std::map<int64_t, std::string> first_of_stage_;  // id of the first segment, by stage
  size_t num_segments_ = 0;
  std::string text_;
};

}  // namespace

std::string DrawProgram(const ExplainedProgram& program) { return Drawing(program).Draw(); }

}  // namespace tensord::cli
