#include "bindings/cuda/fused_batch.h"

#include <optional>

#include "bindings/cuda/mailbox.h"
#include "bindings/fault.h"
#include "cuda/common/copies.h"
#include "gnnbench/fused_entry.h"
#include "gnnbench/undo.h"

namespace gnnbench::cuda {
namespace {

// The addresses of a CSC: a hop's, or with the frontier 'new' the batch's.
struct Arrays {
  int32_t* indptr;
  int32_t* indices;
  int64_t* positions;
  float* weights;
};

// Their entries. Sizes hold two numbers a hop, its nodes and its edges.
struct Extent {
  int64_t rows;
  int64_t edges;

  static Extent of_hop(const FusedRequest& q, const int64_t* sizes, size_t hop) {
    return {hop == 0 ? q.work.seeds : sizes[2 * (hop - 1)], sizes[2 * hop + 1]};
  }

  // Of all hops up to one, as one CSC.
  static Extent up_to(const FusedRequest& q, const int64_t* sizes, size_t hop) {
    Extent all = of_hop(q, sizes, hop);
    for (size_t h = 0; h < hop; ++h) all.edges += sizes[2 * h + 1];
    return all;
  }
};

// The tensors that are returned: a CSC for each hop, and the nodes.
template <class Id>
class Answer {
 public:
  explicit Answer(const FusedRequest& q) : q_(q), walks_(q.pick.pick == Pick::kRandomWalk) {}

  size_t parts() const { return q_.only_new ? 1 : q_.fanouts.size(); }

  // Room for so many nodes and edges of each hop.
  void allocate(const int64_t* sizes) {
    const size_t last = q_.fanouts.size() - 1;
    int64_t ints = 0, carried = 0;
    places_.clear();
    for (size_t p = 0; p < parts(); ++p) {
      const Extent extent =
          q_.only_new ? Extent::up_to(q_, sizes, last) : Extent::of_hop(q_, sizes, p);
      const int64_t indptr = take(ints, extent.rows + 1), indices = take(ints, extent.edges);
      places_.push_back({extent, indptr, indices, take(carried, extent.edges)});
    }
    ints_ = q_.on.empty({ints}, ScalarType::Int);
    if (q_.with_positions) carried_ = q_.on.empty({carried}, ScalarType::Long);
    if (walks_) carried_ = q_.on.empty({carried}, ScalarType::Float);
    nodes_ = q_.on.empty({sizes[2 * last]}, kIdType<Id>);
  }

  Arrays arrays(size_t part) const {
    const Place& at = places_[part];
    return {data<int32_t>(ints_) + at.indptr, data<int32_t>(ints_) + at.indices,
            q_.with_positions ? data<int64_t>(carried_) + at.carried : nullptr,
            walks_ ? data<float>(carried_) + at.carried : nullptr};
  }

  Id* nodes() const { return data<Id>(nodes_); }

  void copy_from(const std::vector<Arrays>& from, const Id* nodes) const {
    std::vector<Copy> copies;
    copies.reserve(3 * parts() + 1);
    for (size_t p = 0; p < parts(); ++p) {
      const Arrays to = arrays(p);
      const auto [rows, edges] = places_[p].extent;
      copies.push_back({from[p].indptr, to.indptr, 4 * (rows + 1)});
      copies.push_back({from[p].indices, to.indices, 4 * edges});
      if (to.positions) copies.push_back({from[p].positions, to.positions, 8 * edges});
      if (to.weights) copies.push_back({from[p].weights, to.weights, 4 * edges});
    }
    copies.push_back({nodes, data<Id>(nodes_), nodes_.numel() * int64_t{sizeof(Id)}});
    copy_all(q_.on.launch(), copies);
  }

  // The blocks in the catalogue's form, of the sizes given.
  std::vector<Tensor> blocks(const int64_t* sizes) const {
    std::vector<Tensor> out;
    out.reserve(4 * q_.fanouts.size() + 1);
    for (size_t h = 0; h < q_.fanouts.size(); ++h) {
      const Place& at = places_[q_.only_new ? 0 : h];
      const Extent extent =
          q_.only_new ? Extent::up_to(q_, sizes, h) : Extent::of_hop(q_, sizes, h);
      out.push_back(view(ints_, at.indptr, extent.rows + 1));
      out.push_back(view(ints_, at.indices, extent.edges));
      out.push_back(view(nodes_, 0, sizes[2 * h]));
      if (q_.with_positions || walks_) out.push_back(view(carried_, at.carried, extent.edges));
    }
    return out;
  }

 private:
  struct Place {
    Extent extent;
    int64_t indptr, indices, carried;
  };

  // Where the next `n` entries begin: at a multiple of 32, and never at the end.
  static int64_t take(int64_t& size, int64_t n) {
    const int64_t begin = size;
    size += (n / 32 + 1) * 32;
    return begin;
  }

  const FusedRequest& q_;
  bool walks_;
  std::vector<Place> places_;
  Tensor ints_, carried_, nodes_;
};

// Where in its scratch a batch has what must be cleared.
struct Layout {
  size_t controls[2];  // by the version's parity; without a version one
  std::vector<size_t> tiles;
  size_t table;
  int64_t slots;
  int64_t table_bytes;
};

template <class Id>
Layout layout_of(const FusedRequest& q, const std::vector<FusedRoom>& rooms, Scratch& scratch) {
  Layout at{};
  const int64_t bytes =
      static_cast<int64_t>(sizeof(FusedControl) + rooms.size() * sizeof(FusedState));
  at.controls[0] = scratch.add<char>(bytes);
  if (q.version != 0) at.controls[1] = scratch.add<char>(bytes);
  for (size_t h = 0; h < rooms.size(); ++h) {
    const uint32_t fanout = static_cast<uint32_t>(q.fanouts[h]);
    const int64_t rows = fused_tile_rows<Id>(q.pick, q.indices.numel(), fanout);
    if (rows == 0) {
      fail("fanout ", fanout, " is too large for this pick: a row's draws do not fit the GPU's ",
           "shared memory");
    }
    at.tiles.push_back(scratch.add<uint64_t>(blocks_for(rooms[h].rows, rows)));
  }
  at.slots = q.dense == nullptr ? fused_slots(rooms.back().nodes) : 0;
  at.table_bytes = (fused_table_bytes<Id>(at.slots) + 15) / 16 * 16;
  at.table = scratch.add<char>(at.table_bytes);
  return at;
}

// A batch's scratch and kernels, which write there or, given an answer as large as the rooms, to
// it. The scratch is being cleared while the rest is made ready.
template <class Id>
class Batch {
 public:
  Batch(const FusedRequest& q, const std::vector<FusedRoom>& rooms, Answer<Id>* in_place) : q_(q) {
    const std::vector<int64_t> full = as_capacity(rooms);
    const size_t hops = rooms.size(), parts = q.only_new ? 1 : hops;
    const int64_t room = rooms.back().nodes;
    const Layout at = layout_of<Id>(q, rooms, scratch_);

    struct Places {
      size_t indptr, indices, positions, weights;
    };
    std::vector<Places> places;
    size_t nodes = 0;
    if (in_place == nullptr) {
      for (size_t p = 0; p < parts; ++p) {
        const Extent extent = q.only_new ? Extent::up_to(q, full.data(), hops - 1)
                                         : Extent::of_hop(q, full.data(), p);
        places.push_back({scratch_.add<int32_t>(extent.rows + 1),
                          scratch_.add<int32_t>(extent.edges),
                          q.with_positions ? scratch_.add<int64_t>(extent.edges) : 0,
                          walks() ? scratch_.add<float>(extent.edges) : 0});
      }
      nodes = scratch_.add<Id>(room);
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
              : Arrays{scratch_.at<int32_t>(places[p].indptr),
                       scratch_.at<int32_t>(places[p].indices),
                       q.with_positions ? scratch_.at<int64_t>(places[p].positions) : nullptr,
                       walks() ? scratch_.at<float>(places[p].weights) : nullptr});
    }
    for (size_t h = 0; h < hops; ++h) {
      const Arrays& to = arrays_[q.only_new ? 0 : h];
      hops_.push_back({to.indptr, to.indices, to.positions, to.weights, rooms[h].rows,
                       rooms[h].nodes, rooms[h].edges, static_cast<uint32_t>(q.fanouts[h]),
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
              room,
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

  void enqueue(Letter sizes) {
    const Launch& launch = q_.on.launch();
    // The last kernel leaves the dense map clean. Where an error keeps it from being enqueued, what
    // came before it leaves entries: then the whole map is filled anew.
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

  const std::vector<Arrays>& arrays() const { return arrays_; }
  const Id* nodes() const { return batch_.nodes; }

 private:
  bool walks() const { return q_.pick.pick == Pick::kRandomWalk; }

  const FusedRequest& q_;
  Scratch scratch_;
  std::vector<Arrays> arrays_;
  std::vector<FusedHop> hops_;
  FusedBatch<Id> batch_;
};

// The redo of a batch that overflowed, or why there is none.
FusedRedo redo_of(const FusedRequest& q, const std::vector<FusedRoom>& rooms,
                  const int64_t* sizes) {
  FusedRedo redo = fused_redo(q.work, rooms, sizes);
  switch (redo.next) {
    case FusedNext::kAgain: return redo;
    case FusedNext::kTooManyEdges:
      fail("a batch of ", redo.count,
           " edges or more does not fit int32 blocks; take fewer seeds or fanouts");
    case FusedNext::kTooManyNodes:
      fail("a batch of more than ", redo.count, " nodes does not fit one map");
    case FusedNext::kRowsOverlap: tell(Fault::kBadRow, q.work.num_nodes); break;
    case FusedNext::kItFits: break;
  }
  throw std::logic_error(std::string(q.on.launch().op) + ": a batch that fits overflowed");
}

template <class Id>
std::vector<Tensor> sample(const FusedRequest& q) {
  const Launch& launch = q.on.launch();
  const size_t hops = q.fanouts.size();
  // A capacity is near what batches take: the blocks are drawn where they stay, each tensor with
  // its own share of the room. A guess is far above: they are drawn into scratch and copied.
  const bool in_place = !q.capacity.empty();
  std::vector<int64_t> capacity = in_place ? q.capacity : fused_guess(q.work);
  std::vector<int64_t> least(2 * hops, 0);
  for (;;) {
    const std::vector<FusedRoom> rooms = fused_rooms(q.work, capacity);
    Answer<Id> answer(q);
    std::optional<Batch<Id>> batch;
    try {
      batch.emplace(q, rooms, in_place ? &answer : nullptr);
    } catch (const OutOfMemory&) {
      capacity = as_capacity(rooms);
      if (!shrink(capacity, least)) throw;
      continue;
    }
    Mailbox& box = Mailbox::of(q.on);
    batch->enqueue(box.open(launch, static_cast<int64_t>(2 * hops + 1)));
    const int64_t* sizes = box.wait(launch);
    trace_mark(launch, Stage::kPrepare, kWholeBatch);
    const Fault faults = static_cast<Fault>(sizes[2 * hops]);
    tell(faults, q.work.num_nodes);
    if (faults != Fault::kNone) {  // a room is full
      FusedRedo redo = redo_of(q, rooms, sizes);
      capacity = std::move(redo.capacity);
      least = std::move(redo.least);
      continue;
    }
    if (!in_place) {
      try {
        answer.allocate(sizes);
      } catch (const OutOfMemory&) {  // scratch that is no larger than need be may leave room
        capacity.assign(sizes, sizes + 2 * hops);
        if (!frees(as_capacity(rooms), capacity)) throw;
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
  const std::vector<FusedRoom> rooms = fused_rooms(q.work, q.capacity);
  const std::vector<int64_t> full = as_capacity(rooms);
  Answer<Id> answer(q);
  Batch<Id> batch(q, rooms, &answer);
  const Tensor sizes = q.on.empty({static_cast<int64_t>(full.size() + 1)}, ScalarType::Long);
  batch.enqueue(Letter{data<int64_t>(sizes), nullptr, 0});
  std::vector<Tensor> out = answer.blocks(full.data());
  out.push_back(sizes);
  return out;
}

template <class Id>
std::vector<Tensor> sample_asked(const FusedRequest& q, int64_t* numbers) {
  const std::vector<FusedRoom> rooms = fused_rooms(q.work, q.capacity);
  if (q.version != 0) {
    Scratch needed;
    layout_of<Id>(q, rooms, needed);
    const int64_t bytes = static_cast<int64_t>(needed.bytes());
    if (q.state->numel() < bytes) return {host_numbers(&bytes, 1)};
  }
  Answer<Id> answer(q);
  Batch<Id> batch(q, rooms, &answer);
  batch.enqueue(Letter{numbers, nullptr, 0});
  return answer.blocks(as_capacity(rooms).data());
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

std::vector<Tensor> fused_sample_asked(FusedRequest& q, int64_t* numbers, const Tensor& state,
                                       uint32_t version) {
  const bool wide = q.indices.scalar_type() != ScalarType::Int;
  const int64_t nodes = fused_rooms(q.work, q.capacity).back().nodes;
  if (!wide && nodes <= kMostVersionedNodes) {
    q.state = &state;
    q.version = version;
  }
  return wide ? sample_asked<int64_t>(q, numbers) : sample_asked<int32_t>(q, numbers);
}

}  // namespace gnnbench::cuda
