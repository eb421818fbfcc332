// Pick pass of one hop: selects the kernel for a pick.
#include "cuda/hop/row.cuh"
#include "cuda/pick/reservoir.cuh"

namespace gnnbench::cuda {
namespace {

__global__ void empty_kernel(int32_t* indptr, int32_t base) { indptr[0] = base; }

bool is_sequential(Pick pick) { return pick == Pick::kFloyd || pick == Pick::kFisherYates; }

}  // namespace

void hop_empty(Launch launch, int32_t* indptr, int32_t base) {
  empty_kernel<<<1, 1, 0, launch.stream>>>(indptr, base);
  GNNBENCH_CUDA_LAUNCHED(launch, "empty_kernel");
}

int64_t hop_pick_slots(Pick pick, RowTeam team, uint32_t fanout, int64_t edges) {
  if (fanout == kAllNeighbors) return 0;
  if (team == RowTeam::kBlock) return edges;
  if (takes_offers(pick)) return hop_reservoir_slots(fanout, edges);
  return is_sequential(pick) ? hop_sequential_slots(pick, fanout, edges) : 0;
}

template <class Id>
void hop_pick(Launch launch, Csc<Id> graph, Vertices dst, int64_t n, const HopDraws& draws,
              RowTeam team, int64_t* offsets, uint32_t* slots, HopOut<Id> out) {
  if (n == 0) return hop_empty(launch, out.indptr, out.base);
  const HopJob<Id> job{graph, dst, n, draws, offsets, slots, out};
  if (team == RowTeam::kBlock) {
    hop_reservoir_by_block(launch, job);
  } else if (takes_offers(draws.spec.pick)) {
    hop_reservoir(launch, job);
  } else if (is_sequential(draws.spec.pick)) {
    hop_sequential(launch, job);
  } else {
    hop_independent(launch, job);
  }
}

template void hop_pick<int32_t>(Launch, Csc<int32_t>, Vertices, int64_t, const HopDraws&, RowTeam,
                                int64_t*, uint32_t*, HopOut<int32_t>);
template void hop_pick<int64_t>(Launch, Csc<int64_t>, Vertices, int64_t, const HopDraws&, RowTeam,
                                int64_t*, uint32_t*, HopOut<int64_t>);

}  // namespace gnnbench::cuda
