#ifndef TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_TEXT_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_TEXT_H_

#include <string>
#include <vector>

#include "clients/cli/operators/server_view.h"
#include "clients/cli/shell/terminal.h"

namespace tensord::cli {

// Returns the view in lines for people, methods that nobody calls at the moment behind the others. None is longer, and
// there are not more, than a screen of that size takes: the head stays, and a line says how many rows are left out.
std::vector<std::string> ServerViewLines(const ServerView& view, const ScreenSize& size);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_TEXT_H_
