// All of the client library. README.md has a worked example.
#ifndef TENSORD_TENSORD_H_
#define TENSORD_TENSORD_H_

#include "tensord/access.h"
#include "tensord/argument.h"
#include "tensord/axes.h"
#include "tensord/client.h"
#include "tensord/contraction.h"
#include "tensord/default_target.h"
#include "tensord/dtype.h"
#include "tensord/einsum.h"
#include "tensord/elementwise.h"
#include "tensord/error_detail.h"
#include "tensord/evaluation.h"
#include "tensord/execute_answer.h"
#include "tensord/execute_call.h"
#include "tensord/fft.h"
#include "tensord/gather_scatter.h"
#include "tensord/host_tensor.h"
#include "tensord/indexing.h"
#include "tensord/linalg.h"
#include "tensord/pipeline.h"
#include "tensord/program.h"
#include "tensord/reduction.h"
#include "tensord/result_plan.h"
#include "tensord/run_time_sizes.h"
#include "tensord/shared_memory.h"
#include "tensord/structural.h"
#include "tensord/subscript.h"
#include "tensord/tensor.h"

#endif  // TENSORD_TENSORD_H_
