#include "tests/testlib/runs/compiled_run.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/structural.h"
#include "engine/runtime/compile/compiler.h"

namespace tensord {
namespace {

// Row-major bytes of a shape are column-major bytes of the reversed one.
Literal Reversed(const Literal& literal) { return TransposeLiteral(literal, ReversedOrder(literal.type().rank())); }

// A copy of the bytes, at `misalignment` past a multiple of 64.
std::shared_ptr<const void> PlaceBytes(absl::string_view bytes, int64_t misalignment) {
  const auto storage = std::make_shared<std::vector<char>>(bytes.size() + 128);
  char* place = storage->data() + (64 - reinterpret_cast<uintptr_t>(storage->data()) % 64) + misalignment;
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  return std::shared_ptr<const void>(storage, place);
}

}  // namespace

absl::StatusOr<std::vector<Literal>> RunCompiled(const CompiledProgram& program, const std::vector<Literal>& arguments,
                                                 int64_t misalignment, absl::Span<const bool> donated,
                                                 const RunCheck& check) {
  const bool row_major = program.program().row_major;
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  for (const Literal& argument : arguments) {
    const Literal literal = row_major ? Reversed(argument) : argument;
    types.push_back(literal.type());
    const std::shared_ptr<const void> held = PlaceBytes(literal.bytes(), misalignment);
    ASSIGN_OR_RETURN(BufferPtr buffer, program.backend()->Import(held.get(), types.back().num_bytes(), held));
    buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(ProgramResults results, program.Run(types, buffers, check, nullptr, donated));
  std::vector<Literal> literals;
  for (size_t i = 0; i < results.buffers.size(); ++i) {
    const ConcreteType& type = results.types[i];
    ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, program.backend()->Export(std::move(results.buffers[i])));
    const absl::string_view view(static_cast<const char*>(bytes.get()), static_cast<size_t>(type.num_bytes()));
    ASSIGN_OR_RETURN(Literal literal, Literal::FromBytes(type, view));
    literals.push_back(row_major ? Reversed(literal) : std::move(literal));
  }
  return literals;
}

absl::StatusOr<CompiledProgramPtr> CompileAlone(Graph graph, const CompiledRunOptions& options) {
  const CompileSettings settings{.device = "test:0",
                                 .row_major = options.row_major,
                                 .disabled_passes = options.disabled_passes,
                                 .enabled_passes = options.enabled_passes};
  const ProgramKey key = MakeProgramKey(graph, settings);
  return Compile(std::move(graph), settings, key.fingerprint, options.backend);
}

absl::StatusOr<std::vector<Literal>> CompileAndRun(Graph graph, const CompiledRunOptions& options,
                                                   const std::vector<Literal>& arguments) {
  ASSIGN_OR_RETURN(const CompiledProgramPtr program, CompileAlone(std::move(graph), options));
  return RunCompiled(*program, arguments);
}

}  // namespace tensord
