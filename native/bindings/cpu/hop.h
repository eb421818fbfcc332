// The stages of a hop on tensors, shared by the single-stage and whole-batch operators.
#pragma once

#include <algorithm>

#include "bindings/cpu/memory.h"
#include "bindings/cpu/trace.h"
#include "bindings/fault.h"
#include "bindings/pick_spec.h"
#include "cpu/common/parallel.h"
#include "cpu/hop/hop.h"
#include "cpu/hop/walk.h"
#include "cpu/id_map/id_map.h"
#include "cpu/id_map/probing.h"

namespace gnnbench {

template <class Id>
Csc<Id> csc_of(const Tensor& indptr, const Tensor& indices) {
  return {data<const int64_t>(indptr), data<const Id>(indices), indptr.numel() - 1,
          indices.numel()};
}

// Pointer of a CPU operator's argument, for pick_spec.
inline const void* cpu_pointer(const Tensor& t, const char* name) {
  check_cpu(t, name);
  return t.data_ptr();
}

struct HopEdges {
  Tensor indptr;     // int32 [n + 1]
  Tensor neighbors;  // ids [edges]
  Tensor positions;  // int64 [edges], empty unless requested and for random walks
  Tensor weights;    // float32 [edges] for random walks, else empty
};

template <class Id>
HopEdges sample_one_hop(const Csc<Id>& csc, const Id* dst, int64_t n, const HopDraws& draws,
                        bool with_positions, const char* dst_name) {
  if (n >= INT32_MAX) fail("a hop of ", n, " destinations does not fit int32 blocks");
  const Scratch<Row> rows(n);
  const Scratch<int64_t> starts(num_chunks(n, kRowChunk));
  const HopCount count = count_hop(csc, dst, n, draws, rows.ptr, starts.ptr);
  if (count.fault == Fault::kBadSeed) {
    fail_bad_seed(dst[count.where], count.where, csc.num_nodes, dst_name);
  }
  if (count.fault != Fault::kNone) throw_on_fault({count.fault, dst[count.where]}, csc.num_nodes);
  if (count.edges > INT32_MAX) fail_hop_edges(draws.hop, count.edges);
  const bool walks = draws.spec.pick == Pick::kRandomWalk;
  const int hop = static_cast<int>(draws.hop);
  Tensor indptr = empty_cpu(n + 1, ScalarType::Int);
  if (walks) {
    const Scratch<Id> ids(count.edges);
    const Scratch<uint32_t> visits(count.edges);
    trace_mark(Stage::kPrepare, hop);
    int32_t* offsets = data<int32_t>(indptr);
    throw_on_fault(walk_hop(csc, dst, n, draws, rows.ptr, starts.ptr, ids.ptr, visits.ptr, offsets),
                   csc.num_nodes);
    HopEdges out{indptr, empty_cpu(offsets[n], kIdType<Id>), empty_cpu(0, ScalarType::Long),
                 empty_cpu(offsets[n], ScalarType::Float)};
    compact_walks(n, rows.ptr, starts.ptr, ids.ptr, visits.ptr, offsets, data<Id>(out.neighbors),
                  data<float>(out.weights));
    trace_mark(Stage::kPick, hop);
    return out;
  }
  const Scratch<uint32_t> picks(pick_hop_scratch(draws, count.edges));
  HopEdges out{indptr, empty_cpu(count.edges, kIdType<Id>),
               empty_cpu(with_positions ? count.edges : 0, ScalarType::Long),
               empty_cpu(0, ScalarType::Float)};
  trace_mark(Stage::kPrepare, hop);
  throw_on_fault(
      pick_hop(csc, dst, n, draws, rows.ptr, starts.ptr, picks.ptr, data<int32_t>(indptr),
               data<Id>(out.neighbors), with_positions ? data<int64_t>(out.positions) : nullptr),
      csc.num_nodes);
  trace_mark(Stage::kPick, hop);
  return out;
}

struct Renamed {
  Tensor src_nodes;  // ids [num_src]
  Tensor local;      // int32 [neighbors]
};

// All ids must be below `bound`.
template <class Id>
Renamed rename_ids(const Id* dst, int64_t num_dst, const Id* neighbors, int64_t num_neighbors,
                   uint64_t bound, const char* dst_name) {
  const int64_t keys = num_dst + num_neighbors;
  if (keys > INT32_MAX) fail(keys, " ids in one hop do not fit int32 local ids");
  const IdMapSize size = id_map_size(keys, bound);
  const Scratch<uint8_t> table(size.bytes());
  const Scratch<uint8_t> first(num_neighbors);
  const Scratch<int64_t> starts(num_chunks(num_neighbors, kKeyChunk));
  Tensor local = empty_cpu(num_neighbors, ScalarType::Int);
  const IdMapTask<Id> task{dst,       num_dst,   neighbors,  num_neighbors,       size,
                           table.ptr, first.ptr, starts.ptr, data<int32_t>(local)};
  const int64_t num_src = id_map_insert(task);
  if (num_src < 0) throw_on_fault(Fault::kRepeatedSeed, 0, dst_name);
  Tensor src_nodes = empty_cpu(num_src, kIdType<Id>);
  id_map_finish(task, data<Id>(src_nodes));
  return {src_nodes, local};
}

// The same by a table that each pass probes again. `targets`, also among dst, are looked up too,
// where given: their local ids are written to `local_targets`.
template <class Id>
Renamed rename_ids_probing(const Id* dst, int64_t num_dst, const Id* neighbors,
                           int64_t num_neighbors, const char* dst_name, const Id* targets = nullptr,
                           int32_t* local_targets = nullptr) {
  const int64_t keys = num_dst + num_neighbors;
  if (keys > INT32_MAX) fail(keys, " ids in one hop do not fit int32 local ids");
  const int64_t slots = probing_slots(keys);
  const Scratch<Id> table(slots);
  const Scratch<int32_t> values(slots);
  const Scratch<uint8_t> first(num_neighbors);
  const Scratch<int64_t> starts(num_chunks(num_neighbors, kKeyChunk));
  const ProbingMap<Id> map{dst,       num_dst,    neighbors, num_neighbors, slots,
                           table.ptr, values.ptr, first.ptr, starts.ptr};
  const int64_t num_src = probing_insert(map);
  if (num_src < 0) throw_on_fault(Fault::kRepeatedSeed, 0, dst_name);
  Tensor src_nodes = empty_cpu(num_src, kIdType<Id>);
  Tensor local = empty_cpu(num_neighbors, ScalarType::Int);
  probing_number(map, data<Id>(src_nodes));
  probing_find(map, neighbors, num_neighbors, data<int32_t>(local));
  if (targets) probing_find(map, targets, num_neighbors, local_targets);
  return {src_nodes, local};
}

}  // namespace gnnbench
