// Argument checks shared by the bindings. A failed check throws one sentence that names the
// argument. gnnbench/kernels converts the prefix "gnnbench: " into a UsageError, "gnnbench data: "
// into a DataError, "gnnbench memory: " into a MemoryError.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gnnbench/pick.h"

namespace gnnbench {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

template <class... Parts>
[[noreturn]] void fail_as(const char* prefix, const Parts&... parts) {
  std::ostringstream text;
  text << prefix;
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

// Reports an invalid argument.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  fail_as("gnnbench: ", parts...);
}

// Reports that host memory cannot be allocated.
template <class... Parts>
[[noreturn]] void fail_memory(const Parts&... parts) {
  fail_as("gnnbench memory: ", parts...);
}

// Reports an invalid graph.
template <class... Parts>
[[noreturn]] void fail_data(const Parts&... parts) {
  fail_as("gnnbench data: ", parts...);
}

inline const char* dtype_name(ScalarType type) {
  switch (type) {
    case ScalarType::Byte: return "uint8";
    case ScalarType::Char: return "int8";
    case ScalarType::Short: return "int16";
    case ScalarType::Int: return "int32";
    case ScalarType::Long: return "int64";
    case ScalarType::Half: return "float16";
    case ScalarType::Float: return "float32";
    case ScalarType::Double: return "float64";
    case ScalarType::Bool: return "bool";
    case ScalarType::BFloat16: return "bfloat16";
    default: return "another dtype";
  }
}

inline void check_layout(const Tensor& t, const char* name, int64_t dim) {
  if (t.dim() != dim) fail(name, " must have ", dim, " dimension(s), it has ", t.dim());
  if (!t.is_contiguous()) fail(name, " must be contiguous; call .contiguous()");
}

inline void check_cpu(const Tensor& t, const char* name) {
  if (!t.is_cpu()) fail(name, " must be on the CPU like the other arguments");
}

// Blocks of threads that read rows; 0: no limit.
inline void check_readers(int64_t blocks) {
  if (blocks < 0 || blocks > 65535) fail("blocks must be 0 to 65535, it is ", blocks);
}

// An output must not overlap other memory that the operator reads or writes.
inline void check_apart(const Tensor& written, const char* name, const Tensor& other,
                        const char* other_name) {
  const auto range = [](const Tensor& t) {
    const auto first = reinterpret_cast<uintptr_t>(t.data_ptr());
    return std::pair(first, first + static_cast<uintptr_t>(t.numel()) * t.element_size());
  };
  if (written.numel() == 0 || other.numel() == 0) return;
  const auto [begin, end] = range(written);
  const auto [other_begin, other_end] = range(other);
  if (begin < other_end && other_begin < end) {
    fail(name, " must not share memory with ", other_name);
  }
}

// Returns a * b of two sizes; fails if it exceeds int64.
inline int64_t product_of_sizes(int64_t a, int64_t b, const char* name) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(name, " is too large: ", a, " times ", b, " elements are more than 2^63");
  }
  return product;
}

// Checks that the rows first, first + 1, ... exist in a table.
inline void check_range_of_rows(int64_t first, int64_t rows, int64_t num_nodes) {
  if (first < 0 || rows > num_nodes || first > num_nodes - rows) {
    fail("out has ", rows, " rows, from row ", first, " on; the graph has ", num_nodes, " nodes");
  }
}

inline void check_dtype(const Tensor& t, const char* name, ScalarType wanted) {
  if (t.scalar_type() != wanted) {
    fail(name, " must be ", dtype_name(wanted), ", it is ", dtype_name(t.scalar_type()));
  }
}

inline void check_ids(const Tensor& t, const char* name) {
  if (t.scalar_type() != ScalarType::Int && t.scalar_type() != ScalarType::Long) {
    fail(name, " must be int32 or int64, it is ", dtype_name(t.scalar_type()));
  }
}

// Checks the CSC of every sampling operator: indptr int64 [num_nodes + 1], indices int32/int64.
inline void check_csc(const Tensor& indptr, const Tensor& indices) {
  check_layout(indptr, "indptr", 1);
  check_dtype(indptr, "indptr", ScalarType::Long);
  if (indptr.numel() < 1) fail("indptr must hold num_nodes + 1 offsets, it is empty");
  check_layout(indices, "indices", 1);
  check_ids(indices, "indices");
}

// Unique seeds cannot outnumber the nodes. Allocation sizes depend on the number of seeds, so it is
// checked first; the maps detect other repeated seeds.
inline void check_seed_count(int64_t seeds, int64_t num_nodes) {
  if (seeds > num_nodes) {
    fail("seeds holds an id twice or an id outside the graph: it has ", seeds,
         " ids, the graph has ", num_nodes, " nodes; every destination must be unique");
  }
}

// Bytes per row of a table of any shape [n, ...].
inline int64_t row_bytes_of(const Tensor& table) {
  int64_t bytes = static_cast<int64_t>(table.element_size());
  for (int64_t d = 1; d < table.dim(); ++d) bytes *= table.size(d);
  return bytes;
}

// Checks a table for kernels, which count the units of a row, and a warp's steps beyond its end, in
// 32 bits.
inline void check_table(const Tensor& table, const char* name) {
  if (table.dim() < 1) fail(name, " must have at least 1 dimension, it has 0");
  check_layout(table, name, table.dim());
  int64_t room = (int64_t{1} << 30) / static_cast<int64_t>(table.element_size());
  for (int64_t d = 1; d < table.dim(); ++d) {
    if (table.size(d) > room) {
      fail(name, " must have rows of at most 2^30 bytes; split it by columns");
    }
    if (table.size(d) > 0) room /= table.size(d);
  }
}

// Generation of cached rows. The next generation must also fit int32.
inline void check_generation(int64_t generation) {
  if (generation < 0 || generation >= INT32_MAX) {
    fail("generation is ", generation, ", it must be at least 0 and below 2^31 - 1");
  }
}

// Converts a fanout for kernels: -1 becomes kAllNeighbors. Offsets of blocks and local ids are
// int32, so other fanouts are bounded.
inline uint32_t fanout_of(int64_t fanout, Pick pick) {
  if (fanout == -1) {
    if (without_replacement(pick)) return kAllNeighbors;
    fail(
        "fanout -1 takes every neighbour, which requires a pick without replacement; use "
        "reservoir, floyd or fisher_yates, or a fanout of at least 1");
  }
  if (fanout < 1) fail("fanout must be at least 1, or -1 for all neighbours, it is ", fanout);
  if (fanout > INT32_MAX) fail("fanout must be below 2^31, it is ", fanout);
  return static_cast<uint32_t>(fanout);
}

inline std::vector<int64_t> fanouts_of(const std::vector<int64_t>& fanouts, Pick pick) {
  if (fanouts.empty()) fail("fanouts is empty; give one per hop, from the seeds outwards");
  if (fanouts.size() > 65535) fail("fanouts has ", fanouts.size(), " hops, at most 65535 work");
  std::vector<int64_t> found;
  for (const int64_t f : fanouts) found.push_back(fanout_of(f, pick));
  return found;
}

// 'cumulative': all known nodes are destinations of the next hop. 'new': only nodes first met at
// the last hop are.
inline bool new_frontier_from_name(const std::string& name) {
  if (name != "cumulative" && name != "new") {
    fail("frontier must be 'cumulative' or 'new', not '", name, "'");
  }
  return name == "new";
}

// The id map of a hop: DGL's three passes, which remember a node's slot of the table, or probe for
// it in each pass as DGL's code does, or Fused-Map.
enum class IdMap { kThreePass, kThreePassProbing, kFused };

inline IdMap id_map_from_name(const std::string& name) {
  if (name == "three-pass") return IdMap::kThreePass;
  if (name == "three-pass-probing") return IdMap::kThreePassProbing;
  if (name == "fused") return IdMap::kFused;
  fail("id_map must be 'three-pass', 'three-pass-probing' or 'fused', not '", name, "'");
}

// Whether a block of the GPU draws each row (DGL's kernel), instead of the threads that suit the
// pick.
inline bool rows_by_block(const std::string& worker, const std::string& pick) {
  if (worker != "warp" && worker != "block") {
    fail("worker must be 'warp' or 'block', not '", worker, "'");
  }
  if (worker == "warp") return false;
  if (pick != "reservoir") fail("worker 'block' requires pick 'reservoir', not '", pick, "'");
  return true;
}

// Whether a hop's edges are written in COO, as DGL's, from which its block is built.
inline bool coo_from_name(const std::string& edges, bool by_block, IdMap id_map, bool only_new) {
  if (edges != "csr" && edges != "coo") fail("edges must be 'csr' or 'coo', not '", edges, "'");
  if (edges == "csr") return false;
  if (!by_block || id_map != IdMap::kThreePassProbing || only_new) {
    fail(
        "edges 'coo' requires id_map 'three-pass-probing', frontier 'cumulative' and, on a GPU, "
        "worker 'block'");
  }
  return true;
}

inline uint32_t check_u32(int64_t value, const char* name, int64_t limit) {
  if (value < 0 || value >= limit) {
    fail(name, " must be at least 0 and below ", limit, ", it is ", value);
  }
  return static_cast<uint32_t>(value);
}

}  // namespace gnnbench
