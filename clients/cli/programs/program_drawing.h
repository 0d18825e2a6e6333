#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_

#include <string>

#include "clients/cli/programs/explain_text.h"

namespace tensord::cli {

// The program as Graphviz draws it (dot): a box a segment, a record with its ops where it is fused, a cluster a
// session, edges with the types of what flows along them; inputs, constants, outputs and what the host decides have
// shapes of their own. Values that are views of others are drawn as those.
std::string DrawProgram(const ExplainedProgram& program);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_DRAWING_H_
