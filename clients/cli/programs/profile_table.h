#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_

#include <cstddef>
#include <string>

#include "pprof/profile.pb.h"

namespace tensord::cli {

// The functions of a profile in which most time was spent, a line each: the part of all samples that were in the
// function itself, the part that were in it or in what it called, its name. At most `rows`. What the profile refers to
// and does not have is left out.
std::string ProfileTable(const perftools::profiles::Profile& profile, size_t rows);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_
