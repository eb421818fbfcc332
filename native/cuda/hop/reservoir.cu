// Reservoirs: one warp per row; a row with more than kBlockDraws draws uses the whole block. A
// thinned reservoir has few cells, however long its row.
#include "cuda/hop/row.cuh"
#include "cuda/pick/reservoir.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kBlockDraws = 2048;
constexpr uint32_t kSharedFanout = 512;  // 8 KiB of slots per block

// All threads of the team (a warp or the block) call it for the same row.
template <Pick kPick, class Team, class Id>
__device__ void reservoir_row(const Team& team, const HopJob<Id>& job, const HopRow& r,
                              uint32_t* slots) {
  const uint32_t fanout = job.draws.fanout;
  fill_slots(team, fanout, slots);
  team.sync();
  offer_row(kPick, team, job.draws.of(r.vertex), r.row.degree, fanout, slots);
  team.sync();
  for (uint32_t s = team.rank(); s < fanout; s += team.size()) write_slot(job, r, s, slots[s]);
}

template <class Id, Pick kPick, bool kShared>
__global__ void __launch_bounds__(kThreads) reservoir_kernel(HopJob<Id> job) {
  extern __shared__ uint32_t shared_slots[];
  __shared__ bool large[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kWarps;

  const auto slots_of = [&](int w, const HopRow& r) {
    return kShared ? shared_slots + static_cast<uint32_t>(w) * job.draws.fanout : job.slots + r.out;
  };

  bool is_large = false;
  if (first + warp < job.n) {
    const HopRow r = load_row(job, first + warp);
    if (lane == 0) write_indptr(job, first + warp, r.out);
    if (!r.picks) {
      for (uint32_t s = lane; s < r.count; s += 32) write_slot(job, r, s, s);
    } else if (kPick == Pick::kReservoirThinned || r.row.degree - job.draws.fanout <= kBlockDraws) {
      reservoir_row<kPick>(whole_warp(), job, r, slots_of(warp, r));
    } else {
      is_large = true;
    }
  }
  if constexpr (kPick == Pick::kReservoirThinned) return;
  if (lane == 0) large[warp] = is_large;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) {
    if (!large[w]) continue;  // uniform over all threads
    const HopRow r = load_row(job, first + w);
    reservoir_row<kPick>(Block<kThreads>{}, job, r, slots_of(w, r));
  }
}

template <class Id, Pick kPick>
void launch_kernel(Launch launch, const HopJob<Id>& job) {
  const uint32_t fanout = job.draws.fanout;
  const int64_t blocks = blocks_for(job.n, kWarps);
  if (fanout > kSharedFanout) {
    reservoir_kernel<Id, kPick, false><<<blocks, kThreads, 0, launch.stream>>>(job);
  } else {
    const size_t bytes = kWarps * fanout * sizeof(uint32_t);
    reservoir_kernel<Id, kPick, true><<<blocks, kThreads, bytes, launch.stream>>>(job);
  }
  GNNBENCH_CUDA_LAUNCHED(launch, "reservoir_kernel");
}

}  // namespace

int64_t hop_reservoir_slots(uint32_t fanout, int64_t edges) {
  return fanout > kSharedFanout ? edges : 0;
}

template <class Id>
void hop_reservoir(Launch launch, const HopJob<Id>& job) {
  job.draws.spec.pick == Pick::kReservoir ? launch_kernel<Id, Pick::kReservoir>(launch, job)
                                          : launch_kernel<Id, Pick::kReservoirThinned>(launch, job);
}

template void hop_reservoir<int32_t>(Launch, const HopJob<int32_t>&);
template void hop_reservoir<int64_t>(Launch, const HopJob<int64_t>&);

}  // namespace gnnbench::cuda
