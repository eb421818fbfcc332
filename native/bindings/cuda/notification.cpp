#include "bindings/cuda/notification.h"

#include <atomic>
#include <memory>
#include <thread>

namespace gnnbench::cuda {

NotificationBuffer& NotificationBuffer::of(const OnDevice& on) {
  static thread_local std::vector<std::unique_ptr<NotificationBuffer>> boxes;  // per device
  const size_t device = static_cast<size_t>(on.index());
  if (boxes.size() <= device) boxes.resize(device + 1);
  if (!boxes[device]) boxes[device] = std::make_unique<NotificationBuffer>();
  return *boxes[device];
}

NotificationBuffer::~NotificationBuffer() {
  if (memory_ != nullptr) cudaFreeHost(memory_);
  for (uint64_t* memory : abandoned_) cudaFreeHost(memory);
}

Notification NotificationBuffer::open(const Launch& launch, int64_t n) {
  if (pending_) {  // an error occurred between open() and wait()
    abandoned_.push_back(memory_);
    memory_ = nullptr;
    capacity_ = 0;
    pending_ = false;
  }
  if (capacity_ < n) {
    if (memory_ != nullptr) GNNBENCH_CUDA_CALL(launch, cudaFreeHost(memory_));
    memory_ = nullptr;
    capacity_ = 0;
    void* memory = nullptr;
    // Under unified addressing, pinned memory has the same address on the device.
    GNNBENCH_CUDA_CALL(launch, cudaHostAlloc(&memory, (n + 1) * sizeof(uint64_t),
                                             cudaHostAllocPortable | cudaHostAllocMapped));
    memory_ = static_cast<uint64_t*>(memory);
    memory_[0] = sequence_;
    capacity_ = n;
  }
  ++sequence_;
  pending_ = true;
  return {reinterpret_cast<int64_t*>(memory_ + 1), memory_, sequence_};
}

const int64_t* NotificationBuffer::wait(const Launch& launch) {
  const std::atomic_ref<uint64_t> ready(*memory_);
  for (uint32_t spins = 1; ready.load(std::memory_order_acquire) != sequence_; ++spins) {
    if (spins % 32768 != 0) continue;  // about 50 us
    std::this_thread::yield();
    // A failed kernel posts nothing.
    const cudaError_t status = cudaStreamQuery(launch.stream);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      continue;
    }
    GNNBENCH_CUDA_CALL(launch, status);
    if (ready.load(std::memory_order_acquire) != sequence_) {
      throw std::logic_error(std::string(launch.op) + ": the device reported no sizes");
    }
  }
  pending_ = false;
  return reinterpret_cast<const int64_t*>(memory_ + 1);
}

const int64_t* read_numbers(const OnDevice& on, Numbers numbers) {
  NotificationBuffer& box = NotificationBuffer::of(on);
  post(on.launch(), numbers, box.open(on.launch(), numbers.count));
  return box.wait(on.launch());
}

}  // namespace gnnbench::cuda
