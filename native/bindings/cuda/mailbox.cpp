#include "bindings/cuda/mailbox.h"

#include <atomic>
#include <memory>
#include <thread>

namespace gnnbench::cuda {

Mailbox& Mailbox::of(const OnDevice& on) {
  static thread_local std::vector<std::unique_ptr<Mailbox>> boxes;  // by device
  const size_t device = static_cast<size_t>(on.index());
  if (boxes.size() <= device) boxes.resize(device + 1);
  if (!boxes[device]) boxes[device] = std::make_unique<Mailbox>();
  return *boxes[device];
}

Mailbox::~Mailbox() {
  if (memory_ != nullptr) cudaFreeHost(memory_);
  for (uint64_t* memory : left_) cudaFreeHost(memory);
}

Letter Mailbox::open(const Launch& launch, int64_t n) {
  if (unanswered_) {  // an error came between open() and wait()
    left_.push_back(memory_);
    memory_ = nullptr;
    room_ = 0;
    unanswered_ = false;
  }
  if (room_ < n) {
    if (memory_ != nullptr) GNNBENCH_CUDA_CALL(launch, cudaFreeHost(memory_));
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
  ++ticket_;
  unanswered_ = true;
  return {reinterpret_cast<int64_t*>(memory_ + 1), memory_, ticket_};
}

const int64_t* Mailbox::wait(const Launch& launch) {
  const std::atomic_ref<uint64_t> ready(*memory_);
  for (uint32_t spins = 1; ready.load(std::memory_order_acquire) != ticket_; ++spins) {
    if (spins % 32768 != 0) continue;  // some 50 us
    std::this_thread::yield();
    // A kernel that failed tells nothing.
    const cudaError_t status = cudaStreamQuery(launch.stream);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      continue;
    }
    GNNBENCH_CUDA_CALL(launch, status);
    if (ready.load(std::memory_order_acquire) != ticket_) {
      throw std::logic_error(std::string(launch.op) + ": the device told no sizes");
    }
  }
  unanswered_ = false;
  return reinterpret_cast<const int64_t*>(memory_ + 1);
}

const int64_t* read_numbers(const OnDevice& on, Numbers numbers) {
  Mailbox& box = Mailbox::of(on);
  post(on.launch(), numbers, box.open(on.launch(), numbers.count));
  return box.wait(on.launch());
}

}  // namespace gnnbench::cuda
