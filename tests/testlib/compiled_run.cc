#include "tests/testlib/compiled_run.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/structural.h"
#include "engine/runtime/compiler.h"

namespace tensord {
namespace {

// Row-major bytes of a shape are column-major bytes of the reversed one.
Literal Reversed(const Literal& literal) { return TransposeLiteral(literal, ReversedOrder(literal.type().rank())); }

}  // namespace

absl::StatusOr<std::vector<Literal>> RunCompiled(const CompiledProgram& program,
                                                 const std::vector<Literal>& arguments) {
  const bool row_major = program.program().row_major;
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  for (const Literal& argument : arguments) {
    auto held = std::make_shared<const Literal>(row_major ? Reversed(argument) : argument);
    types.push_back(held->type());
    ASSIGN_OR_RETURN(BufferPtr buffer,
                     program.backend()->Import(held->bytes().data(), static_cast<int64_t>(held->bytes().size()), held));
    buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, program.Bind(types));
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound->Run(buffers));
  std::vector<Literal> literals;
  for (size_t i = 0; i < results.size(); ++i) {
    const ConcreteType& type = bound->slot_types()[static_cast<size_t>(program.program().outputs[i].slot)];
    ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, program.backend()->Export(std::move(results[i])));
    const absl::string_view view(static_cast<const char*>(bytes.get()), static_cast<size_t>(type.num_bytes()));
    ASSIGN_OR_RETURN(Literal literal, Literal::FromBytes(type, view));
    literals.push_back(row_major ? Reversed(literal) : std::move(literal));
  }
  return literals;
}

absl::StatusOr<std::vector<Literal>> CompileAndRun(Graph graph, const CompiledRunOptions& options,
                                                   const std::vector<Literal>& arguments) {
  const CompileSettings settings{
      .device = "test:0", .row_major = options.row_major, .disabled_passes = options.disabled_passes};
  const ProgramKey key = MakeProgramKey(graph, settings);
  ASSIGN_OR_RETURN(const CompiledProgramPtr program,
                   Compile(std::move(graph), settings, key.fingerprint, options.backend));
  return RunCompiled(*program, arguments);
}

}  // namespace tensord
