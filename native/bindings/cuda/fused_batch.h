// What fused_map and fastsample share on the host's side: rooms, memory, the one wait, the answer.
#pragma once

#include <string>
#include <vector>

#include "bindings/cuda/stages.h"
#include "cuda/fused.h"

namespace gnnbench::cuda {

// A batch as asked for, checked.
struct FusedRequest {
  FusedRequest(const char* op, const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
               const std::vector<int64_t>& fanouts, const std::string& pick,
               const std::vector<Tensor>& tables, const std::vector<int64_t>& walk,
               const std::string& frontier, bool with_positions,
               const std::vector<int64_t>& capacity);

  const OnDevice on;
  const Tensor& indptr;
  const Tensor& indices;
  const Tensor& seeds;
  const std::vector<int64_t>& fanouts;
  const std::vector<int64_t>& capacity;
  PickSpec pick;
  bool only_new;
  bool with_positions;
  uint64_t key = 0;
  uint32_t batch = 0;
  const int64_t* place = nullptr;
  int32_t* dense = nullptr;
};

// The tensors of the blocks and, at last, what the batch took; waits for the device once, and again
// for each time that the batch did not fit.
std::vector<Tensor> fused_sample(const FusedRequest& request);

// The same in tensors as large as the capacity, and the sizes on the device; never waits.
std::vector<Tensor> fused_sample_padded(const FusedRequest& request);

// Numbers told by a kernel that is still running, in locked memory of this thread.
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() { cudaFreeHost(memory_); }

  static Mailbox& of_thread();

  // Where `n` numbers are to be told.
  FusedSizes open(const Launch& launch, int64_t n);

  // Host synchronisation: waits for the numbers, not for the kernel that tells them.
  const int64_t* wait(const Launch& launch) const;

 private:
  uint64_t* memory_ = nullptr;  // the ticket of the numbers that are there, then the numbers
  int64_t room_ = 0;
  uint64_t ticket_ = 0;
};

// Part of a tensor of one dimension; past torch's dispatcher, which takes 2 us.
Tensor view(const Tensor& buffer, int64_t begin, int64_t length);

// Slots of a hash table for so many nodes.
int64_t fused_slots(int64_t nodes);

}  // namespace gnnbench::cuda
