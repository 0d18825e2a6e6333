// All of the client library. README.md has a worked example.
#ifndef TENSORD_CLIENTS_CPP_TENSORD_H_
#define TENSORD_CLIENTS_CPP_TENSORD_H_

#include "clients/cpp/access.h"
#include "clients/cpp/argument.h"
#include "clients/cpp/client.h"
#include "clients/cpp/contraction.h"
#include "clients/cpp/default_target.h"
#include "clients/cpp/dtype.h"
#include "clients/cpp/elementwise.h"
#include "clients/cpp/error_detail.h"
#include "clients/cpp/evaluation.h"
#include "clients/cpp/execute_answer.h"
#include "clients/cpp/execute_call.h"
#include "clients/cpp/gather_scatter.h"
#include "clients/cpp/host_tensor.h"
#include "clients/cpp/indexing.h"
#include "clients/cpp/pipeline.h"
#include "clients/cpp/reduction.h"
#include "clients/cpp/result_plan.h"
#include "clients/cpp/run_time_sizes.h"
#include "clients/cpp/shared_memory.h"
#include "clients/cpp/structural.h"
#include "clients/cpp/tensor.h"

#endif  // TENSORD_CLIENTS_CPP_TENSORD_H_
