#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_

#include <cstddef>
#include <string>

#include "pprof/profile.pb.h"

namespace tensord::cli {

// Returns the functions of a profile with the most time, a line each: the part of all samples in the function itself,
// the part in it or in its callees, its name. At most `rows`. References to missing entries of the profile are left
// out.
std::string ProfileTable(const perftools::profiles::Profile& profile, size_t rows);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROFILE_TABLE_H_
