// The wire's messages as Protocol Buffers, for programs that make graphs by hand, or that look at answers of
// Client::Compile, GetProgram, GetServerInfo, OpenSession and PlanContractions. The other headers only name them, since
// a file that includes them takes longer to compile.
#ifndef TENSORD_MESSAGES_H_
#define TENSORD_MESSAGES_H_

#include "tensord/traced_graph.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/graph.pb.h"
#include "tensord/v1/tensor.pb.h"

#endif  // TENSORD_MESSAGES_H_
