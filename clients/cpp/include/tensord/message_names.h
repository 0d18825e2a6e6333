// Names of the wire's messages and enumerations, for declarations. Their definitions come by messages.h, and Protocol
// Buffers with them.
#ifndef TENSORD_MESSAGE_NAMES_H_
#define TENSORD_MESSAGE_NAMES_H_

namespace tensord::v1 {

enum DType : int;
enum MemoryOrder : int;
enum Scatter_Combiner : int;  // Scatter::Combiner

class CompileOptions;
class CompileResponse;
class ContractionPlan;
class DimExpr;
class Error;
class ExecuteRequest;
class ExecutionStats;
class ExplainResponse;
class Gather;
class Graph;
class Node;
class Program;
class Scatter;
class ServerInfo;

}  // namespace tensord::v1

#endif  // TENSORD_MESSAGE_NAMES_H_
