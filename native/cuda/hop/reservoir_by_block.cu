// DGL's reservoir kernel (PGSampler, section II-C and Fig. 3): one block per row, whatever its
// degree, and slots in global memory. A thread decides on four neighbours at a time, because they
// share a Philox block.
#include "cuda/hop/row.cuh"
#include "cuda/pick/reservoir.cuh"

namespace gnnbench::cuda {
namespace {

constexpr int kThreads = 128;  // DGL's block size

template <class Id>
__device__ void write_edge(const HopJob<Id>& job, const HopRow& r, uint32_t slot,
                           uint32_t position) {
  write_slot(job, r, slot, position);
  if (job.out.rows != nullptr) job.out.rows[r.out + slot] = static_cast<Id>(r.vertex);
}

template <class Id>
__global__ void __launch_bounds__(kThreads) block_reservoir_kernel(HopJob<Id> job) {
  const Block<kThreads> team;
  const int64_t row = blockIdx.x;
  const HopRow r = load_row(job, row);
  if (team.rank() == 0) write_indptr(job, row, r.out);
  if (!r.picks) {
    for (uint32_t s = team.rank(); s < r.count; s += team.size()) write_edge(job, r, s, s);
    return;
  }
  const uint32_t fanout = job.draws.fanout;
  uint32_t* const slots = job.slots + r.out;
  fill_slots(team, fanout, slots);
  team.sync();
  offer_row(Pick::kReservoir, team, job.draws.of(r.vertex), r.row.degree, fanout, slots);
  team.sync();
  for (uint32_t s = team.rank(); s < fanout; s += team.size()) write_edge(job, r, s, slots[s]);
}

}  // namespace

template <class Id>
void hop_reservoir_by_block(Launch launch, const HopJob<Id>& job) {
  block_reservoir_kernel<Id><<<static_cast<uint32_t>(job.n), kThreads, 0, launch.stream>>>(job);
  GNNBENCH_CUDA_LAUNCHED(launch, "block_reservoir_kernel");
}

template void hop_reservoir_by_block<int32_t>(Launch, const HopJob<int32_t>&);
template void hop_reservoir_by_block<int64_t>(Launch, const HopJob<int64_t>&);

}  // namespace gnnbench::cuda
