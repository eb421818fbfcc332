// Measured peaks of the machine for a roofline: kernels that do nothing else. Each returns or
// writes a value that shows that all work was done. They use all threads that torch uses.
#pragma once

#include <cstdint>

namespace gnnbench {

// Width in bits of the registers used. Every machine has 128.
enum class Vectors { k128, k256, k512 };

bool has_vectors(Vectors vectors);
Vectors widest_vectors();

// Copies lines of 64 bytes, from and to line-aligned addresses, past the caches.
void ceiling_copy(const char* from, int64_t lines, char* to, Vectors vectors = widest_vectors());

// Returns the sum, modulo 2^32, of `lines` times 16 words. Each thread reads its own part of them
// `passes` times in a row. `words` is line-aligned.
uint32_t ceiling_read(const uint32_t* words, int64_t lines, int64_t passes,
                      Vectors vectors = widest_vectors());

// Returns the sum, modulo 2^32, of the rows ids[0..n) of a table with rows of `width` words. Rows
// are prefetched, as in a gather. `wrong` gets the position of the first invalid id, or -1.
uint32_t ceiling_rows(const uint32_t* words, int64_t rows, int64_t width, const int64_t* ids,
                      int64_t n, int64_t* wrong);

// Runs chains of float32 multiply-adds x = x * 1 + 1 of length `steps` (at most 2^23, so that sums
// stay exact) in every lane of as many registers as hide their latency. Returns the sum over all
// lanes of all threads, which is the number of multiply-adds done.
double ceiling_fma(int64_t steps, Vectors vectors = widest_vectors());

}  // namespace gnnbench
