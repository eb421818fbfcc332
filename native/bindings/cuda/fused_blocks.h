// The tensors that a fused batch returns, and their sizes.
#pragma once

#include <vector>

#include "bindings/cuda/fused_batch.h"
#include "cuda/common/copies.h"

namespace gnnbench::cuda {

// The addresses of a CSC: of a hop, or with frontier 'new' of the batch.
struct HopArrays {
  int32_t* indptr;
  int32_t* indices;
  int64_t* positions;
  float* weights;
};

// Number of entries. Sizes hold two numbers per hop, its nodes and its edges.
struct HopExtent {
  int64_t rows;
  int64_t edges;

  static HopExtent of_hop(const FusedRequest& q, const int64_t* sizes, size_t hop) {
    return {hop == 0 ? q.work.seeds : sizes[2 * (hop - 1)], sizes[2 * hop + 1]};
  }

  // Extent of all hops up to one, as one CSC.
  static HopExtent up_to(const FusedRequest& q, const int64_t* sizes, size_t hop) {
    HopExtent all = of_hop(q, sizes, hop);
    for (size_t h = 0; h < hop; ++h) all.edges += sizes[2 * h + 1];
    return all;
  }
};

// The returned tensors: one CSC per hop, and the nodes.
template <class Id>
class FusedBlocks {
 public:
  explicit FusedBlocks(const FusedRequest& q) : q_(q), walks_(q.pick.pick == Pick::kRandomWalk) {}

  size_t parts() const { return q_.only_new ? 1 : q_.fanouts.size(); }

  // Allocates for these numbers of nodes and edges per hop.
  void allocate(const int64_t* sizes) {
    const size_t last = q_.fanouts.size() - 1;
    int64_t ints = 0, carried = 0;
    places_.clear();
    for (size_t p = 0; p < parts(); ++p) {
      const HopExtent extent =
          q_.only_new ? HopExtent::up_to(q_, sizes, last) : HopExtent::of_hop(q_, sizes, p);
      const int64_t indptr = take(ints, extent.rows + 1), indices = take(ints, extent.edges);
      places_.push_back({extent, indptr, indices, take(carried, extent.edges)});
    }
    ints_ = q_.on.empty({ints}, ScalarType::Int);
    if (q_.with_positions) carried_ = q_.on.empty({carried}, ScalarType::Long);
    if (walks_) carried_ = q_.on.empty({carried}, ScalarType::Float);
    nodes_ = q_.on.empty({sizes[2 * last]}, kIdType<Id>);
  }

  HopArrays arrays(size_t part) const {
    const Place& at = places_[part];
    return {data<int32_t>(ints_) + at.indptr, data<int32_t>(ints_) + at.indices,
            q_.with_positions ? data<int64_t>(carried_) + at.carried : nullptr,
            walks_ ? data<float>(carried_) + at.carried : nullptr};
  }

  Id* nodes() const { return data<Id>(nodes_); }

  void copy_from(const std::vector<HopArrays>& from, const Id* nodes) const {
    std::vector<Copy> copies;
    copies.reserve(3 * parts() + 1);
    for (size_t p = 0; p < parts(); ++p) {
      const HopArrays to = arrays(p);
      const auto [rows, edges] = places_[p].extent;
      copies.push_back({from[p].indptr, to.indptr, 4 * (rows + 1)});
      copies.push_back({from[p].indices, to.indices, 4 * edges});
      if (to.positions) copies.push_back({from[p].positions, to.positions, 8 * edges});
      if (to.weights) copies.push_back({from[p].weights, to.weights, 4 * edges});
    }
    copies.push_back({nodes, data<Id>(nodes_), nodes_.numel() * int64_t{sizeof(Id)}});
    copy_all(q_.on.launch(), copies);
  }

  // Returns the blocks, of the sizes given, in the format of the catalogue.
  std::vector<Tensor> blocks(const int64_t* sizes) const {
    std::vector<Tensor> out;
    out.reserve(4 * q_.fanouts.size() + 1);
    for (size_t h = 0; h < q_.fanouts.size(); ++h) {
      const Place& at = places_[q_.only_new ? 0 : h];
      const HopExtent extent =
          q_.only_new ? HopExtent::up_to(q_, sizes, h) : HopExtent::of_hop(q_, sizes, h);
      out.push_back(view(ints_, at.indptr, extent.rows + 1));
      out.push_back(view(ints_, at.indices, extent.edges));
      out.push_back(view(nodes_, 0, sizes[2 * h]));
      if (q_.with_positions || walks_) out.push_back(view(carried_, at.carried, extent.edges));
    }
    return out;
  }

 private:
  struct Place {
    HopExtent extent;
    int64_t indptr, indices, carried;
  };

  // The offset of the next `n` entries: a multiple of 32 and never the end of the tensor.
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

}  // namespace gnnbench::cuda
