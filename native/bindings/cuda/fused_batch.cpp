#include "bindings/cuda/fused_batch.h"

#include <optional>

#include "bindings/cuda/fused_blocks.h"
#include "bindings/cuda/notification.h"
#include "bindings/fault.h"
#include "gnnbench/fused_entry.h"
#include "gnnbench/undo.h"

namespace gnnbench::cuda {
namespace {

// Offsets in a batch's scratch of the parts that must be cleared.
struct Layout {
  size_t controls[2];  // by the version's parity; one without versions
  std::vector<size_t> tiles;
  size_t table;
  int64_t slots;
  int64_t table_bytes;
};

template <class Id>
Layout layout_of(const FusedRequest& q, const std::vector<HopCapacity>& allocated,
                 Scratch& scratch) {
  Layout at{};
  const int64_t bytes =
      static_cast<int64_t>(sizeof(FusedControl) + allocated.size() * sizeof(FusedState));
  at.controls[0] = scratch.add<char>(bytes);
  if (q.version != 0) at.controls[1] = scratch.add<char>(bytes);
  for (size_t h = 0; h < allocated.size(); ++h) {
    const uint32_t fanout = static_cast<uint32_t>(q.fanouts[h]);
    const int64_t rows = fused_tile_rows<Id>(q.pick, q.indices.numel(), fanout);
    if (rows == 0) {
      fail("fanout ", fanout, " is too large for this pick: a row's draws do not fit the GPU's ",
           "shared memory");
    }
    at.tiles.push_back(scratch.add<uint64_t>(blocks_for(allocated[h].rows, rows)));
  }
  at.slots = q.dense == nullptr ? fused_slots(allocated.back().nodes) : 0;
  at.table_bytes = (fused_table_bytes<Id>(at.slots) + 15) / 16 * 16;
  at.table = scratch.add<char>(at.table_bytes);
  return at;
}

// The scratch and kernels of a batch. The kernels write to scratch or, with `in_place`, to its
// tensors of full capacity. The scratch is cleared while the host prepares the rest.
template <class Id>
class Batch {
 public:
  Batch(const FusedRequest& q, const std::vector<HopCapacity>& allocated, FusedBlocks<Id>* in_place)
      : q_(q) {
    const std::vector<int64_t> full = as_capacity(allocated);
    const size_t hops = allocated.size(), parts = q.only_new ? 1 : hops;
    const int64_t max_nodes = allocated.back().nodes;
    const Layout at = layout_of<Id>(q, allocated, scratch_);

    struct Places {
      size_t indptr, indices, positions, weights;
    };
    std::vector<Places> places;
    size_t nodes = 0;
    if (in_place == nullptr) {
      for (size_t p = 0; p < parts; ++p) {
        const HopExtent extent = q.only_new ? HopExtent::up_to(q, full.data(), hops - 1)
                                            : HopExtent::of_hop(q, full.data(), p);
        places.push_back({scratch_.add<int32_t>(extent.rows + 1),
                          scratch_.add<int32_t>(extent.edges),
                          q.with_positions ? scratch_.add<int64_t>(extent.edges) : 0,
                          walks() ? scratch_.add<float>(extent.edges) : 0});
      }
      nodes = scratch_.add<Id>(max_nodes);
    }
    if (q.version != 0) {
      scratch_.use(*q.state);
    } else {
      scratch_.allocate(q.on);
      fused_clear(q.on.launch(), {scratch_.at<char>(at.controls[0]),
                                  static_cast<int64_t>(at.table - at.controls[0]),
                                  scratch_.at<char>(at.table), at.table_bytes});
    }
    if (in_place != nullptr) in_place->allocate(full.data());

    arrays_.reserve(parts);
    hops_.reserve(hops);
    for (size_t p = 0; p < parts; ++p) {
      arrays_.push_back(
          in_place != nullptr
              ? in_place->arrays(p)
              : HopArrays{scratch_.at<int32_t>(places[p].indptr),
                          scratch_.at<int32_t>(places[p].indices),
                          q.with_positions ? scratch_.at<int64_t>(places[p].positions) : nullptr,
                          walks() ? scratch_.at<float>(places[p].weights) : nullptr});
    }
    for (size_t h = 0; h < hops; ++h) {
      const HopArrays& to = arrays_[q.only_new ? 0 : h];
      hops_.push_back({to.indptr, to.indices, to.positions, to.weights, allocated[h].rows,
                       allocated[h].nodes, allocated[h].edges, static_cast<uint32_t>(q.fanouts[h]),
                       scratch_.at<uint64_t>(at.tiles[h])});
    }
    const uint32_t own = q.version % 2;
    batch_ = {csc_of<Id>(q.on, q.indptr, q.indices),
              q.pick,
              Vertices{q.seeds.data_ptr(), q.seeds.scalar_type() == ScalarType::Long},
              q.seeds.numel(),
              q.key,
              q.batch,
              q.place,
              q.only_new,
              FusedTable{q.dense == nullptr ? scratch_.at<void>(at.table) : nullptr, at.slots,
                         q.dense, q.version},
              scratch_.at<FusedControl>(at.controls[own]),
              in_place != nullptr ? in_place->nodes() : scratch_.at<Id>(nodes),
              max_nodes,
              static_cast<uint32_t>(hops),
              {}};
    if (q.version == 0) return;
    const auto reset = [&](size_t begin, size_t end) {
      return FusedReset{scratch_.at<char>(begin), static_cast<int64_t>(end - begin)};
    };
    batch_.resets[0] = reset(at.tiles.front(), at.table);
    batch_.resets[1] =
        own == 1 ? reset(at.controls[0], at.controls[1]) : reset(at.controls[1], at.tiles.front());
  }

  void enqueue(Notification sizes) {
    const Launch& launch = q_.on.launch();
    // The last kernel resets the dense map. If an error prevents its launch, earlier kernels leave
    // entries behind; then the whole map is filled again.
    Undo refill([&] {
      if (q_.dense == nullptr) return;
      const size_t bytes = sizeof(int32_t) * static_cast<size_t>(q_.work.num_nodes);
      cudaMemsetAsync(q_.dense, 0xFF, bytes, launch.stream);
    });
    fused_begin(launch, batch_);
    trace_mark(launch, Stage::kPrepare, kWholeBatch);
    for (uint32_t h = 0; h < hops_.size(); ++h) {
      fused_hop(launch, batch_, hops_[h], h);
      trace_mark(launch, Stage::kPick, static_cast<int>(h));
    }
    fused_finish(launch, batch_, hops_.data(), static_cast<uint32_t>(hops_.size()), sizes);
    refill.armed = false;
    trace_mark(launch, Stage::kIdMap, kWholeBatch);
  }

  const std::vector<HopArrays>& arrays() const { return arrays_; }
  const Id* nodes() const { return batch_.nodes; }

 private:
  bool walks() const { return q_.pick.pick == Pick::kRandomWalk; }

  const FusedRequest& q_;
  Scratch scratch_;
  std::vector<HopArrays> arrays_;
  std::vector<FusedHop> hops_;
  FusedBatch<Id> batch_;
};

// How to retry a batch that overflowed. Throws if no retry can fit.
FusedRedo redo_of(const FusedRequest& q, const std::vector<HopCapacity>& allocated,
                  const int64_t* sizes) {
  FusedRedo redo = fused_redo(q.work, allocated, sizes);
  switch (redo.next) {
    case FusedNext::kAgain: return redo;
    case FusedNext::kTooManyEdges:
      fail("a batch of ", redo.count,
           " edges or more does not fit int32 blocks; use fewer seeds or smaller fanouts");
    case FusedNext::kTooManyNodes:
      fail("a batch of more than ", redo.count, " nodes does not fit one map");
    case FusedNext::kRowsOverlap: throw_on_fault(Fault::kBadRow, q.work.num_nodes); break;
    case FusedNext::kItFits: break;
  }
  throw std::logic_error(std::string(q.on.launch().op) + ": a batch that fits overflowed");
}

template <class Id>
std::vector<Tensor> sample(const FusedRequest& q) {
  const Launch& launch = q.on.launch();
  const size_t hops = q.fanouts.size();
  // A given capacity is near the batch's sizes: the blocks are sampled in place, in tensors of full
  // capacity. A guess is far above: they are sampled into scratch and copied.
  const bool in_place = !q.capacity.empty();
  std::vector<int64_t> capacity = in_place ? q.capacity : fused_guess(q.work);
  std::vector<int64_t> least(2 * hops, 0);
  for (;;) {
    const std::vector<HopCapacity> allocated = hop_capacities(q.work, capacity);
    FusedBlocks<Id> answer(q);
    std::optional<Batch<Id>> batch;
    try {
      batch.emplace(q, allocated, in_place ? &answer : nullptr);
    } catch (const OutOfMemory&) {
      capacity = as_capacity(allocated);
      if (!shrink(capacity, least)) throw;
      continue;
    }
    NotificationBuffer& box = NotificationBuffer::of(q.on);
    batch->enqueue(box.open(launch, static_cast<int64_t>(2 * hops + 1)));
    const int64_t* sizes = box.wait(launch);
    trace_mark(launch, Stage::kPrepare, kWholeBatch);
    const Fault faults = static_cast<Fault>(sizes[2 * hops]);
    throw_on_fault(faults, q.work.num_nodes);
    if (faults != Fault::kNone) {  // a capacity was too small
      FusedRedo redo = redo_of(q, allocated, sizes);
      capacity = std::move(redo.capacity);
      least = std::move(redo.least);
      continue;
    }
    if (!in_place) {
      try {
        answer.allocate(sizes);
      } catch (const OutOfMemory&) {  // smaller scratch may still fit
        capacity.assign(sizes, sizes + 2 * hops);
        if (!frees(as_capacity(allocated), capacity)) throw;
        least = capacity;
        continue;
      }
      answer.copy_from(batch->arrays(), batch->nodes());
    }
    std::vector<Tensor> out = answer.blocks(sizes);
    trace_mark(launch, Stage::kBlock, kWholeBatch);
    return out;
  }
}

template <class Id>
std::vector<Tensor> sample_padded(const FusedRequest& q) {
  const std::vector<HopCapacity> allocated = hop_capacities(q.work, q.capacity);
  const std::vector<int64_t> full = as_capacity(allocated);
  FusedBlocks<Id> answer(q);
  Batch<Id> batch(q, allocated, &answer);
  const Tensor sizes = q.on.empty({static_cast<int64_t>(full.size() + 1)}, ScalarType::Long);
  batch.enqueue(Notification{data<int64_t>(sizes), nullptr, 0});
  std::vector<Tensor> out = answer.blocks(full.data());
  out.push_back(sizes);
  return out;
}

template <class Id>
std::vector<Tensor> sample_async(const FusedRequest& q, int64_t* numbers) {
  const std::vector<HopCapacity> allocated = hop_capacities(q.work, q.capacity);
  if (q.version != 0) {
    Scratch needed;
    layout_of<Id>(q, allocated, needed);
    const int64_t bytes = static_cast<int64_t>(needed.bytes());
    if (q.state->numel() < bytes) return {host_numbers(&bytes, 1)};
  }
  FusedBlocks<Id> answer(q);
  Batch<Id> batch(q, allocated, &answer);
  batch.enqueue(Notification{numbers, nullptr, 0});
  return answer.blocks(as_capacity(allocated).data());
}

const Tensor& on_cuda(const Tensor& seeds) {
  check_layout(seeds, "seeds", 1);
  check_ids(seeds, "seeds");
  check_cuda({{seeds, "seeds"}});
  return seeds;
}

}  // namespace

FusedRequest::FusedRequest(const char* op, const Tensor& indptr_, const Tensor& indices_,
                           const Tensor& seeds_, const std::vector<int64_t>& fanouts_,
                           const std::string& pick_, const std::vector<Tensor>& tables,
                           const std::vector<int64_t>& walk, const std::string& frontier,
                           bool with_positions_, const std::vector<int64_t>& capacity_)
    : on(on_cuda(seeds_), op),
      indptr(indptr_),
      indices(indices_),
      seeds(seeds_),
      capacity(capacity_),
      with_positions(with_positions_) {
  check_csc(indptr, indices);
  pick = pick_spec_on(on, pick_, tables, walk, indices.numel());
  fanouts = fanouts_of(fanouts_, pick.pick);
  with_positions = with_positions && pick.pick != Pick::kRandomWalk;
  only_new = new_frontier_from_name(frontier);
  if (!capacity.empty() && capacity.size() != 2 * fanouts.size()) {
    fail("capacity must hold two numbers a hop, ", 2 * fanouts.size(), ", it holds ",
         capacity.size());
  }
  for (const int64_t n : capacity) {
    if (n < 0) fail("capacity must be at least 0, it holds ", n);
  }
  if (seeds.numel() > kFusedMaxNodes) {
    fail("a batch of ", seeds.numel(), " seeds does not fit int32 blocks");
  }
  work = {indptr.numel() - 1,
          indices.numel(),
          seeds.numel(),
          fanouts,
          without_replacement(pick.pick),
          only_new};
}

std::vector<Tensor> fused_sample(const FusedRequest& q) {
  return q.indices.scalar_type() == ScalarType::Int ? sample<int32_t>(q) : sample<int64_t>(q);
}

std::vector<Tensor> fused_sample_padded(const FusedRequest& q) {
  return q.indices.scalar_type() == ScalarType::Int ? sample_padded<int32_t>(q)
                                                    : sample_padded<int64_t>(q);
}

std::vector<Tensor> fused_sample_async(FusedRequest& q, int64_t* numbers, const Tensor& state,
                                       uint32_t version) {
  const bool wide = q.indices.scalar_type() != ScalarType::Int;
  const int64_t nodes = hop_capacities(q.work, q.capacity).back().nodes;
  if (!wide && nodes <= kMostVersionedNodes) {
    q.state = &state;
    q.version = version;
  }
  return wide ? sample_async<int64_t>(q, numbers) : sample_async<int32_t>(q, numbers);
}

}  // namespace gnnbench::cuda
