#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_

#include <string>

#include "clients/cli/programs/explain_text.h"

namespace tensord::cli {

// Returns the program as Graphviz draws it (dot): a box a segment, a record with its ops if it is fused, a cluster a
// session, edges with the types of the values along them; inputs, constants, outputs and sizes that the host decides
// have shapes of their own. A view is drawn as its source.
std::string DrawProgram(const ExplainedProgram& program);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_
