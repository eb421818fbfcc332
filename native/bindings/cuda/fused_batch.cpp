#include "bindings/cuda/fused_batch.h"

#include <atomic>
#include <thread>

#include "bindings/fault.h"

namespace gnnbench::cuda {
namespace {

// Where nothing is known of a batch the worst is assumed, up to these; then it is done again.
constexpr int64_t kFirstEdges = int64_t{1} << 24;  // of a hop
constexpr int64_t kFirstNodes = int64_t{1} << 23;

constexpr int64_t kMostNodes = (kFusedMaxSlots - 64) / 2;

// What is allocated for a hop.
struct Room {
  int64_t rows;
  int64_t nodes;  // known after the hop
  int64_t edges;
};

[[noreturn]] void fail_edges(int64_t edges) {
  fail("a batch of ", edges,
       " edges or more does not fit int32 blocks; take fewer seeds or fanouts");
}

// `capacity`, nodes and edges in turn, within what the batch can be at most.
std::vector<Room> plan(const FusedRequest& q, const std::vector<int64_t>& capacity) {
  const int64_t graph_nodes = q.indptr.numel() - 1, graph_edges = q.indices.numel();
  std::vector<Room> rooms;
  int64_t known = q.seeds.numel(), rows = known, all_edges = 0;
  if (known > kMostNodes) fail("a batch of ", known, " seeds does not fit int32 blocks");
  for (size_t h = 0; h < q.fanouts.size(); ++h) {
    int64_t edges = rows * q.fanouts[h];
    if (without_replacement(q.pick.pick)) edges = std::min(edges, graph_edges);
    edges = std::min(edges, capacity.empty() ? kFirstEdges : capacity[2 * h + 1]);
    edges = std::min(edges, q.only_new ? kFusedMaxEdges - all_edges : kFusedMaxEdges);
    int64_t nodes = std::min(known + edges, graph_nodes);
    nodes = std::min(nodes, capacity.empty() ? kFirstNodes : capacity[2 * h]);
    nodes = std::max(known, std::min(nodes, kMostNodes));
    rooms.push_back({rows, nodes, edges});
    known = nodes;
    rows = q.only_new ? std::min(nodes, edges) : nodes;
    all_edges += edges;
  }
  return rooms;
}

// A larger capacity for a batch that did not fit `rooms`. Up to the hop that overflowed the numbers
// are known, of that hop its edges; each time one hop more fits, or the batch is refused.
std::vector<int64_t> larger(const FusedRequest& q, const std::vector<Room>& rooms,
                            const int64_t* sizes) {
  std::vector<int64_t> capacity;
  int64_t known = q.seeds.numel(), all_edges = 0;
  bool fits = true;
  for (size_t h = 0; h < rooms.size(); ++h) {
    const Room& room = rooms[h];
    const int64_t nodes = sizes[2 * h], edges = sizes[2 * h + 1];
    if (!fits) {  // what comes after it grows with it
      capacity.push_back(4 * room.nodes);
      capacity.push_back(4 * room.edges);
      continue;
    }
    if (q.only_new) all_edges += edges;
    if (std::max(edges, all_edges) > kFusedMaxEdges) fail_edges(std::max(edges, all_edges));
    if (without_replacement(q.pick.pick) && edges > q.indices.numel()) {  // rows overlap
      tell(Fault::kBadRow, q.indptr.numel() - 1);
    }
    if (room.nodes == kMostNodes && nodes > kMostNodes) {
      fail("a batch of more than ", kMostNodes, " nodes does not fit one map");
    }
    fits = nodes <= room.nodes && edges <= room.edges;
    known = fits ? nodes : known + edges;
    capacity.push_back(known);
    capacity.push_back(edges);
  }
  if (fits) {
    throw std::logic_error(std::string(q.on.launch().op) + ": a batch that fits overflowed");
  }
  return capacity;
}

Tensor host_numbers(const int64_t* from, int64_t n) {
  const int64_t stride = 1;
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, &n, &stride, aoti_torch_dtype_int64(),
                                                         aoti_torch_device_type_cpu(), 0, &handle));
  const Tensor out(handle);
  std::copy(from, from + n, data<int64_t>(out));
  return out;
}

// Arrays of one dtype in one tensor, each from a multiple of 32 elements on, never empty.
template <class T>
class Arrays {
 public:
  int64_t add(int64_t n) {
    const int64_t begin = size_;
    size_ += (n / 32 + 1) * 32;
    return begin;
  }
  void allocate(const OnDevice& on, ScalarType type) {
    if (size_ == 0) return;
    memory_ = on.empty({size_}, type);
    data_ = data<T>(memory_);
    there_ = true;
  }
  T* at(int64_t begin) const { return there_ ? data_ + begin : nullptr; }
  Tensor part(int64_t begin, int64_t length) const { return view(memory_, begin, length); }

 private:
  int64_t size_ = 0;
  bool there_ = false;
  T* data_ = nullptr;
  Tensor memory_;
};

// A batch's memory: the answer's arrays, which outlive it, and the scratch.
template <class Id>
class Batch {
 public:
  Batch(const FusedRequest& q, const std::vector<Room>& rooms)
      : q_(q), rooms_(rooms), walks_(q.pick.pick == Pick::kRandomWalk) {
    const int64_t room = rooms.back().nodes;
    nodes_ = (kNarrow ? narrow_.add(room) : wide_.add(room));
    lay_out();
    Scratch scratch;
    const size_t control =
        scratch.add<char>(sizeof(FusedControl) + rooms.size() * sizeof(FusedState));
    std::vector<size_t> tiles;
    for (size_t h = 0; h < rooms.size(); ++h) {
      const uint32_t fanout = static_cast<uint32_t>(q.fanouts[h]);
      const int64_t rows = fused_tile_rows<Id>(q.pick, q.indices.numel(), fanout);
      if (rows == 0) {
        fail("fanout ", fanout, " is too large for this pick: a row's draws do not fit the GPU's ",
             "shared memory");
      }
      tiles.push_back(scratch.add<uint64_t>(blocks_for(rooms[h].rows, rows)));
    }
    const int64_t slots = q.dense == nullptr ? fused_slots(room) : 0;
    const int64_t table_bytes = (fused_table_bytes<Id>(slots) + 15) / 16 * 16;
    const size_t table = scratch.add<char>(table_bytes);
    scratch.allocate(q.on);
    scratch_ = scratch;
    clear_ = {scratch.at<char>(control), static_cast<int64_t>(table - control),
              scratch.at<char>(table), table_bytes};

    narrow_.allocate(q.on, ScalarType::Int);
    wide_.allocate(q.on, ScalarType::Long);
    weights_.allocate(q.on, ScalarType::Float);
    for (size_t h = 0; h < rooms.size(); ++h) {
      const Layout& at = layouts_[h];
      hops_.push_back({narrow_.at(at.indptr), narrow_.at(at.indices),
                       has_positions() ? wide_.at(at.positions) : nullptr,
                       walks_ ? weights_.at(at.weights) : nullptr, rooms[h].rows, rooms[h].nodes,
                       rooms[h].edges, static_cast<uint32_t>(q.fanouts[h]),
                       scratch.at<uint64_t>(tiles[h])});
    }
    batch_ = {csc_of<Id>(q.on, q.indptr, q.indices),
              q.pick,
              Vertices{q.seeds.data_ptr(), q.seeds.scalar_type() == ScalarType::Long},
              q.seeds.numel(),
              q.key,
              q.batch,
              q.place,
              q.only_new,
              FusedTable{q.dense == nullptr ? scratch.at<void>(table) : nullptr, slots, q.dense},
              scratch.at<FusedControl>(control),
              nodes(),
              room};
  }

  void enqueue(FusedSizes sizes) {
    const Launch& launch = q_.on.launch();
    fused_begin(launch, batch_, clear_);
    trace_mark(launch, Stage::kPrepare, kWholeBatch);
    for (uint32_t h = 0; h < hops_.size(); ++h) {
      fused_hop(launch, batch_, hops_[h], h);
      trace_mark(launch, Stage::kPick, static_cast<int>(h));
    }
    fused_finish(launch, batch_, hops_.data(), static_cast<uint32_t>(hops_.size()), sizes);
    trace_mark(launch, Stage::kIdMap, kWholeBatch);
  }

  // The blocks' tensors, of the sizes given: nodes and edges of each hop in turn.
  std::vector<Tensor> blocks(const int64_t* sizes) const {
    std::vector<Tensor> out;
    out.reserve(4 * hops_.size() + 1);
    int64_t rows = q_.seeds.numel(), edges = 0;
    for (size_t h = 0; h < hops_.size(); ++h) {
      const Layout& at = layouts_[h];
      edges = q_.only_new ? edges + sizes[2 * h + 1] : sizes[2 * h + 1];
      out.push_back(narrow_.part(at.indptr, rows + 1));
      out.push_back(narrow_.part(at.indices, edges));
      out.push_back(kNarrow ? narrow_.part(nodes_, sizes[2 * h])
                            : wide_.part(nodes_, sizes[2 * h]));
      if (has_positions()) out.push_back(wide_.part(at.positions, edges));
      if (walks_) out.push_back(weights_.part(at.weights, edges));
      rows = sizes[2 * h];
    }
    return out;
  }

 private:
  static constexpr bool kNarrow = sizeof(Id) == 4;

  struct Layout {
    int64_t indptr, indices, positions, weights;
  };

  bool has_positions() const { return q_.with_positions && !walks_; }

  Id* nodes() const {
    if constexpr (kNarrow) {
      return narrow_.at(nodes_);
    } else {
      return wide_.at(nodes_);
    }
  }

  Layout add(int64_t rows, int64_t edges) {
    return {narrow_.add(rows + 1), narrow_.add(edges), has_positions() ? wide_.add(edges) : 0,
            walks_ ? weights_.add(edges) : 0};
  }

  void lay_out() {
    if (!q_.only_new) {
      for (const Room& room : rooms_) layouts_.push_back(add(room.rows, room.edges));
      return;
    }
    // One CSC: its rows are the nodes known before the last hop.
    const size_t last = rooms_.size() - 1;
    int64_t edges = 0;
    for (const Room& room : rooms_) edges += room.edges;
    const Layout all = add(last == 0 ? q_.seeds.numel() : rooms_[last - 1].nodes, edges);
    layouts_.assign(rooms_.size(), all);
  }

  const FusedRequest& q_;
  const std::vector<Room>& rooms_;
  bool walks_;
  Arrays<int32_t> narrow_;
  Arrays<int64_t> wide_;
  Arrays<float> weights_;
  int64_t nodes_;
  std::vector<Layout> layouts_;
  Scratch scratch_;
  FusedClear clear_;
  std::vector<FusedHop> hops_;
  FusedBatch<Id> batch_;
};

template <class Id>
std::vector<Tensor> sample(const FusedRequest& q) {
  const Launch& launch = q.on.launch();
  const int64_t hops = static_cast<int64_t>(q.fanouts.size());
  std::vector<int64_t> capacity = q.capacity;
  for (;;) {
    const std::vector<Room> rooms = plan(q, capacity);
    Batch<Id> batch(q, rooms);
    Mailbox& box = Mailbox::of_thread();
    batch.enqueue(box.open(launch, 2 * hops + 1));
    const int64_t* sizes = box.wait(launch);
    trace_mark(launch, Stage::kPrepare, kWholeBatch);
    const Fault faults = static_cast<Fault>(sizes[2 * hops]);
    tell(faults, q.indptr.numel() - 1);
    if (faults != Fault::kNone) {  // a room is full
      capacity = larger(q, rooms, sizes);
      continue;
    }
    std::vector<Tensor> out = batch.blocks(sizes);
    const Tensor took = host_numbers(sizes, 2 * hops);
    out.push_back(took);
    trace_mark(launch, Stage::kBlock, kWholeBatch);
    return out;
  }
}

template <class Id>
std::vector<Tensor> sample_padded(const FusedRequest& q) {
  const std::vector<Room> rooms = plan(q, q.capacity);
  Batch<Id> batch(q, rooms);
  Tensor sizes = q.on.empty({static_cast<int64_t>(2 * rooms.size() + 1)}, ScalarType::Long);
  batch.enqueue(FusedSizes{data<int64_t>(sizes), nullptr, 0});
  std::vector<int64_t> full;
  for (const Room& room : rooms) full.insert(full.end(), {room.nodes, room.edges});
  std::vector<Tensor> out = batch.blocks(full.data());
  out.push_back(sizes);
  return out;
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
      fanouts(fanouts_),
      capacity(capacity_),
      with_positions(with_positions_) {
  check_csc(indptr, indices);
  check_fanouts(fanouts);
  pick = pick_spec_on(on, pick_, tables, walk, indices.numel());
  only_new = new_frontier_from_name(frontier);
  if (!capacity.empty() && capacity.size() != 2 * fanouts.size()) {
    fail("capacity must hold two numbers a hop, ", 2 * fanouts.size(), ", it holds ",
         capacity.size());
  }
  for (const int64_t n : capacity) {
    if (n < 0) fail("capacity must be at least 0, it holds ", n);
  }
}

std::vector<Tensor> fused_sample(const FusedRequest& q) {
  return q.indices.scalar_type() == ScalarType::Int ? sample<int32_t>(q) : sample<int64_t>(q);
}

std::vector<Tensor> fused_sample_padded(const FusedRequest& q) {
  return q.indices.scalar_type() == ScalarType::Int ? sample_padded<int32_t>(q)
                                                    : sample_padded<int64_t>(q);
}

Tensor view(const Tensor& buffer, int64_t begin, int64_t length) {
  const int64_t stride = 1;
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      aoti_torch__reinterpret_tensor(buffer.get(), 1, &length, &stride, begin, &handle));
  return Tensor(handle);
}

int64_t fused_slots(int64_t nodes) { return 2 * nodes + 64; }

Mailbox& Mailbox::of_thread() {
  static thread_local Mailbox box;
  return box;
}

FusedSizes Mailbox::open(const Launch& launch, int64_t n) {
  if (room_ < n) {
    GNNBENCH_CUDA_CALL(launch, cudaFreeHost(memory_));
    memory_ = nullptr;
    room_ = 0;
    void* memory = nullptr;
    // Under unified addressing the device knows locked memory by the host's address.
    GNNBENCH_CUDA_CALL(launch, cudaHostAlloc(&memory, (n + 1) * sizeof(uint64_t),
                                             cudaHostAllocPortable | cudaHostAllocMapped));
    memory_ = static_cast<uint64_t*>(memory);
    memory_[0] = ticket_;
    room_ = n;
  }
  return {reinterpret_cast<int64_t*>(memory_ + 1), memory_, ++ticket_};
}

const int64_t* Mailbox::wait(const Launch& launch) const {
  const std::atomic_ref<uint64_t> ready(*memory_);
  for (uint32_t spins = 1; ready.load(std::memory_order_acquire) != ticket_; ++spins) {
    if (spins % 32768 != 0) continue;  // some 50 us
    std::this_thread::yield();
    const cudaError_t status =
        cudaStreamQuery(launch.stream);  // a kernel that failed tells nothing
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      continue;
    }
    GNNBENCH_CUDA_CALL(launch, status);
    if (ready.load(std::memory_order_acquire) != ticket_) {
      throw std::logic_error(std::string(launch.op) + ": the device told no sizes");
    }
  }
  return reinterpret_cast<const int64_t*>(memory_ + 1);
}

}  // namespace gnnbench::cuda
