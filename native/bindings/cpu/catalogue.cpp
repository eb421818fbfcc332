// The operator catalogue with all schemas. The CUDA library only adds implementations.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // Philox4x32-10 blocks. counters int64 [n, 4] of 32-bit words -> int64 [n, 4] of 32-bit words.
  m.def("philox(int key, Tensor counters) -> Tensor");

  // One hop. indptr int64 [num_nodes + 1], indices int32|int64 [num_edges], dst int32|int64 [n] ->
  // out_indptr int32 [n + 1], neighbors [edges] in the dtype of indices, positions int64 [edges]
  // (offsets into indices) or, for random_walk, weights float32 [edges] (visits); the other of the
  // two is empty. `pick, tables, walk`: see bindings/pick_spec.h.
  m.def(
      "sample_hop(Tensor indptr, Tensor indices, Tensor dst, int fanout, str pick, "
      "Tensor[] tables, int[] walk, int key, int hop, int batch) -> "
      "(Tensor out_indptr, Tensor neighbors, Tensor positions, Tensor weights)");

  // Relabels ids in order of first occurrence, destinations (unique) first. Both inputs have one id
  // dtype -> src_nodes [num_src] in that dtype, local int32 [neighbors]. id_map 'three-pass' or
  // 'three-pass-probing'.
  m.def(
      "id_map(Tensor dst, Tensor neighbors, str id_map='three-pass') -> "
      "(Tensor src_nodes, Tensor local)");

  // Builds the `tables` of a weighted pick from weights float32|float64 [num_edges]; kind 'alias'
  // or 'prefix'. CPU only.
  m.def("weight_tables(Tensor indptr, Tensor weights, str kind) -> Tensor[]");

  // Samples a whole batch. For each hop, from the seeds outwards, returns the tensors of its block:
  // indptr int32, indices int32 (local ids), src_nodes in the dtype of indices and, with_positions
  // and unless the pick is random_walk, positions int64; for random_walk, weights float32. frontier
  // is 'cumulative' or 'new'; with 'new' the blocks are prefixes (views) of one CSC. All
  // whole-batch operators below return this format.
  //
  // DGL's method: per hop, sample, then an id map: 'three-pass', 'three-pass-probing' (each pass
  // probes the table again, as DGL's), or 'fused' (FastGL's Fused-Map with one table per hop; new
  // nodes in any order). worker 'warp' or, on a GPU with pick 'reservoir', 'block': one block per
  // row, as in DGL. edges 'csr' or, with id_map 'three-pass-probing' and on a GPU worker 'block',
  // 'coo': both ends of each edge are written, and the block is built from them, as DGL's.
  m.def(
      "hop_by_hop(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "str id_map='three-pass', str worker='warp', str edges='csr') -> Tensor[]");

  // GNNLab's method: per hop, sample, then a table that accumulates the batch's ids; entries of
  // another version count as empty. table int64 [capacity], initially zero (layout:
  // gnnbench/gnnlab.h); version 1 to 65535, a new one for each call until the table is zeroed. The
  // last tensor of the result, int64 [1] on the CPU, is the capacity that the batch needs. If the
  // table is smaller, there are no blocks, and the caller must sample the batch again with a larger
  // one.
  m.def(
      "gnnlab(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) table, int version) -> Tensor[]");

  // FastGL's Fused-Map: the only host synchronisation of a batch returns the sizes. capacity:
  // entries to allocate, two numbers per hop, its nodes (destinations and sources) and its edges
  // (empty: unknown). A batch that does not fit is sampled again with a larger capacity.
  m.def(
      "fused_map(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "int[] capacity) -> Tensor[]");

  // Fused-Map without host synchronisation, for CUDA graphs; CUDA only. place int64 [3] on the
  // device: key, batch and number of valid seeds. The tensors have the size of capacity. The last
  // one, int64 [2 hops + 1] on the device, holds the sizes of the batch and 0, or bits of
  // gnnbench/fault.h if the other tensors are invalid.
  m.def(
      "fused_map_padded(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, Tensor place, bool with_positions, "
      "int[] capacity) -> Tensor[]");

  // Fused-Map for batches submitted asynchronously, one after another on a stream; CUDA only.
  // sizes, int64 [2 hops + 1] in pinned memory, is valid once the enqueued kernels are complete.
  // state uint8 [..] on the GPU, initially zero, stores the table. version (1 to 255, each once,
  // from 1 again after zeroing) marks the batch's entries. state must be zeroed if an argument
  // other than seeds, key and batch differs from the previous call, or if that call failed. A
  // result of one tensor is the number of bytes that state must have: nothing was enqueued.
  m.def(
      "fused_map_asked(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) sizes, Tensor(b!) state, int version, int[] capacity) -> Tensor[]");

  // Relabels the neighbours of several hops by Fused-Map with one table; CUDA only. nodes: space to
  // allocate first (0: unknown) -> src_nodes, then the local ids of each hop.
  m.def("fused_id_map(Tensor dst, Tensor[] neighbors, int nodes) -> Tensor[]");

  // FastSample: samples directly into CSC with a dense map. dense_map int32 [num_nodes], all -1
  // before and after; otherwise like fused_map.
  m.def(
      "fastsample(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) dense_map, int[] capacity) -> Tensor[]");

  // The same by the two loops of Algorithm 1, one after the other; CPU only.
  m.def(
      "fastsample_loops(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) dense_map) -> Tensor[]");

  // PGSampler: all hops in one launch, with tasks (vertex, hop) from a queue in memory; the
  // frontier is cumulative. variant 'persistent', on a GPU 'fusion' or 'non_persistent', or,
  // invalid, 'as_printed'. fetch_size 1 to 32. hubs 'split' (all workers share a long row's draws;
  // on a GPU, not as_printed) or 'whole'. worker 'warp' or, on a GPU with hubs 'whole', 'block'.
  // capacity: (tasks, edges) to allocate, or empty. The last tensor of the result, int64 [8] on the
  // CPU: the two capacities used, tasks enqueued, processed and lost, slots read too early, parts
  // of split rows, number of attempts.
  m.def(
      "pgsampler(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, int key, int batch, bool with_positions, str variant, "
      "int fetch_size, str hubs, str worker, int[] capacity) -> Tensor[]");

  // PGSampler as published, CUDA only: a block draws task by task by reservoir into arrays of edges
  // in COO for each hop, from which each hop's block is built as in DGL. Without `persistent` a
  // block ends after its first fetch_size tasks. capacity: tasks, then edges of each hop, or empty.
  // The last tensor of the result, int64 [hops + 5] on the CPU: the capacities used, tasks
  // enqueued, processed and lost, number of attempts.
  m.def(
      "pgsampler_as_published(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, int key, "
      "int batch, bool with_positions, bool persistent, int fetch_size, int[] capacity) -> "
      "Tensor[]");

  // Times of stages: starts a trace on this thread (on) or ends it -> float64 [marks, 4] of (stage,
  // hop, host seconds, device seconds) on the CPU; stages as in gnnbench/stage.h. `like` selects
  // the device.
  m.def("trace(Tensor like, bool on) -> Tensor");

  // A stream whose kernels run on at least `sms` multiprocessors of the device of `like`, and on
  // few more; CUDA only -> int64 [3] on the CPU: 0 or the driver's error (CUresult), the stream
  // (cudaStream_t), its number of multiprocessors.
  m.def("limited_stream(Tensor like, int sms) -> Tensor");

  // Measured peaks: the result shows that the work was done (cpu/ceilings/ceilings.h). Words are
  // int32, in whole lines of 64 bytes; sums are modulo 2^32 -> int64 [1]. `fma` returns the number
  // of float32 multiply-adds done, `shared` the bytes of a GPU's shared memory read (CUDA only),
  // each by chains of `steps`, at most 2^23. A mark is an empty kernel with a name that profilers
  // list (CUDA only).
  m.def("ceiling_copy(Tensor source, Tensor(a!) target) -> ()");
  m.def("ceiling_read(Tensor words, int passes) -> Tensor");
  m.def("ceiling_rows(Tensor words, Tensor ids) -> Tensor");
  m.def("ceiling_fma(Tensor like, int steps) -> Tensor");
  m.def("ceiling_shared(Tensor like, int steps) -> Tensor");
  m.def("ceiling_mark(Tensor like) -> ()");

  // Gathers rows of a table of any dtype and shape [n, ...]; ids int32|int64. gather_to: row i goes
  // to row places[i] of out (places int32); for an out on a GPU the table may be in pinned memory,
  // and `blocks` blocks of 256 threads read it, 0 for no limit. gather_over_out: as
  // gather_over below, with table and rows in host memory -> the number of cached rows; CPU only.
  m.def("gather(Tensor table, Tensor ids) -> Tensor");
  m.def("gather_out(Tensor table, Tensor ids, Tensor(a!) out) -> ()");
  m.def("gather_to(Tensor table, Tensor ids, Tensor places, Tensor(a!) out, int blocks) -> ()");
  m.def(
      "gather_over_out(Tensor table, Tensor kept, Tensor(a!) slots, Tensor(b!) generations, "
      "int generation, bool remember, Tensor ids, Tensor(c!) out) -> int");

  // Gathers from a host table in pinned memory, which the device of the ids reads; CUDA only.
  // gather_zero_copy: with `aligned`, each read covers whole 128-byte lines.
  // gather_elementwise: one thread for each 4 bytes of the output, as PyTorch-Direct prints it
  // (Listing 2), with its circular shift if `shifted`; rows of a multiple of 4 bytes.
  // gather_page_ordered: reads the rows page by page, each page of `page_bytes` together. It starts
  // `blocks` blocks of 1024 threads; the lanes of a row read `depth` (1, 2 or 4) rows at once.
  // gather_once: writes the rows of all batches to `out`, batch after batch. It reads each distinct
  // row once and adds the number of rows read to distinct int64 [1].
  // gather_over: copies a row from `kept` at slots[id] if generations[id] equals `generation`, and
  // reads it from `table` otherwise (slots, generations: int32 [num_rows]). It adds the number of
  // rows from `kept` to hits int64 [1]. With `remember`, it stores each id's position in `ids` as
  // its slot of the next generation.
  // gather_over_cache: the same, where rows that are not in `kept` are looked up in `cache` before
  // the table. It adds the numbers of rows from `kept` and from `cache` to hits int64 [2].
  m.def("gather_zero_copy(Tensor table, Tensor ids, bool aligned) -> Tensor");
  m.def("gather_elementwise(Tensor table, Tensor ids, bool shifted) -> Tensor");
  m.def(
      "gather_page_ordered(Tensor table, Tensor ids, int page_bytes, int blocks, int depth) -> "
      "Tensor");
  m.def("gather_zero_copy_out(Tensor table, Tensor ids, bool aligned, Tensor(a!) out) -> ()");
  m.def("gather_elementwise_out(Tensor table, Tensor ids, bool shifted, Tensor(a!) out) -> ()");
  m.def(
      "gather_page_ordered_out(Tensor table, Tensor ids, int page_bytes, int blocks, int depth, "
      "Tensor(a!) out) -> ()");
  m.def(
      "gather_once(Tensor table, Tensor[] batches, Tensor(a!) distinct, Tensor(b!) out, "
      "int blocks, int depth) -> ()");
  m.def(
      "gather_over(Tensor table, Tensor kept, Tensor(a!) slots, Tensor(b!) generations, "
      "int generation, bool remember, Tensor ids, Tensor(c!) hits, int page_bytes, int blocks, "
      "int depth) -> Tensor");
  m.def(
      "gather_over_cache(Tensor table, Tensor kept, Tensor(a!) slots, Tensor(b!) generations, "
      "int generation, bool remember, Tensor cache, Tensor cache_slots, Tensor cache_generations, "
      "int cache_generation, Tensor ids, Tensor(c!) hits, int page_bytes, int blocks, int depth) "
      "-> Tensor");

  // Copies rows from a host table in pinned memory to `out` on a CUDA device, one cudaMemcpyAsync
  // for each of the ids, which are on the CPU; with `together`, one cudaMemcpyBatchAsync for all.
  m.def("gather_by_copies(Tensor table, Tensor ids, Tensor(a!) out, bool together) -> ()");

  // Gathers rows of a table that is sharded over several GPUs; CUDA only. Place p is row p / count
  // of shard p % count (1 to 64 shards of one dtype and row shape, readable by the device of the
  // ids, which holds shard `own`). places int32 [num_nodes]: an id's place, -1 if no shard has its
  // row; without places an id is its place. Rows without a place are read from `table` in pinned
  // memory, as gather_page_ordered does with `readers` blocks or, with page_bytes 0, in id order.
  // counts int64 [3] are increased by the rows of the own shard, of others, of the table. blocks:
  // concurrent blocks of 256 threads that read shards, 0 for no limit; depth (1, 2 or 4): rows that
  // the lanes of a row read at once.
  m.def(
      "gather_sharded(Tensor[] shards, int own, Tensor? places, Tensor? table, Tensor ids, "
      "Tensor(a!) counts, int blocks, int depth, int page_bytes, int readers) -> Tensor");

  // Host memory allocated by the driver (VMM) in pages of 2 MiB near the device of `like`, mapped
  // for the host and that device -> uint8 [bytes] on the CPU. It is unmapped with the last tensor
  // that uses it, once the device has completed its work; CUDA only.
  m.def("vmm_memory(Tensor like, int bytes) -> Tensor");

  // Ids that occur in at least one batch or, with `shared`, at least twice: ascending, and their
  // set, int32 [ceil(num_nodes / 32), 2] (layout: gnnbench/id_set.h). On a GPU the host waits for
  // their number. ids and all batches are int32|int64, of one dtype.
  m.def("union_ids(Tensor[] batches, int num_nodes, bool shared) -> (Tensor ids, Tensor id_set)");

  // Rows of ids [n] from the rows [count, ...] of a set's ids in ascending order -> [n, ...].
  m.def("gather_of_set(Tensor rows, Tensor id_set, Tensor ids) -> Tensor");

  // ones float16 [pieces, batches, width]: writes 1 for each id of a batch whose rank in the set,
  // minus `first`, lies in the consecutive pieces. Other entries are unchanged.
  m.def("ones_of_set(Tensor[] batches, Tensor id_set, int first, Tensor(a!) ones) -> ()");
  // Inserts into SIEVE's queue (cpu/sieve/sieve.h) and changes its tensors: nodes int64, newer
  // int32, visited uint8 [capacity], state int64 [5]; ids int64 [n], none of them in the queue. CPU
  // only.
  m.def(
      "sieve_insert(Tensor(a!) nodes, Tensor(b!) newer, Tensor(c!) visited, Tensor(d!) state, "
      "Tensor ids) -> (Tensor slots, Tensor evicted)");

  // Transposes a block: the edges of each source in their order. t_indptr int32 [num_src + 1],
  // t_dst int32 [num_edges] (destinations), t_edge int32 [num_edges] (positions in indices).
  m.def(
      "transpose(Tensor indptr, Tensor indices, int num_src) -> "
      "(Tensor t_indptr, Tensor t_dst, Tensor t_edge)");

  // Aggregates over a block. x float16|bfloat16|float32|float64 [num_src, dim], mode sum|mean|gcn,
  // weights [num_edges] float32, for float64 values float64 -> [num_dst, dim] in the dtype of x;
  // sums have the dtype of weights. aggregate_transposed maps the gradient of the result, over the
  // block's transpose, to the gradient of x.
  m.def(
      "aggregate(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights=None) -> Tensor");
  m.def(
      "aggregate_transposed(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge, "
      "Tensor grad, str mode, Tensor? weights=None) -> Tensor");

  // GNNAdvisor's aggregation: neighbor_groups splits rows into groups of at most `group` entries,
  // the unit of work: starts int32 [groups + 1] (entries) and rows int32 [groups]. aggregate_groups
  // sums by group over x float32|float64 -> [num_rows, dim]. dim_workers: 1 to 32 threads of a warp
  // that share a group's columns; the CPU uses vector lanes.
  m.def("neighbor_groups(Tensor indptr, int group) -> (Tensor starts, Tensor rows)");
  m.def(
      "aggregate_groups(Tensor starts, Tensor rows, Tensor indices, Tensor x, int num_rows, "
      "int dim_workers) -> Tensor");

  // Several heads with separate weights: x [num_src, heads, width] in a dtype as above, weights
  // [num_edges, heads] -> [num_dst, heads, width]. The transposed operator maps its gradient, over
  // the block's transpose, to the gradient of x.
  m.def(
      "aggregate_heads(Tensor indptr, Tensor indices, Tensor x, Tensor weights, int num_dst) -> "
      "Tensor");
  m.def(
      "aggregate_heads_transposed(Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad, "
      "Tensor weights) -> Tensor");

  // Product of a destination's row and a source's row at each edge (SDDMM), the gradient of
  // weights: rows [num_dst, heads, width], x [num_src, heads, width], of one dtype -> [num_edges,
  // heads], float32 or, for float64, float64.
  m.def("edge_dots(Tensor indptr, Tensor indices, Tensor rows, Tensor x) -> Tensor");

  // Sum of a source's row and a destination's row at each edge: src [num_src, heads], dst [num_dst,
  // heads], float32|float64 -> [num_edges, heads]. edge_sums is its gradient: sums over rows of
  // values [num_edges, heads] at a row's entries, or at the positions `edges` [num_edges] of the
  // entries (with t_indptr and t_edge of the transpose: by source) -> [rows, heads].
  m.def("edge_add(Tensor indptr, Tensor indices, Tensor src, Tensor dst) -> Tensor");
  m.def("edge_sums(Tensor indptr, Tensor values, Tensor? edges=None) -> Tensor");

  // Weight of each edge by the degrees of both ends: 1 / sqrt(edges of the block that begin at its
  // source * edges that end at its destination), float32 [num_edges].
  m.def("symmetric_weights(Tensor indptr, Tensor indices, int num_src) -> Tensor");

  // Softmax over each destination's edges, per head; all float32|float64 [num_edges, heads].
  m.def("edge_softmax(Tensor indptr, Tensor scores) -> Tensor");
  m.def("edge_softmax_backward(Tensor indptr, Tensor softmax, Tensor grad) -> Tensor");

  // Copies a batch's blocks and labels into tensors of fixed shape (layout: bindings/pad_args.h):
  // indptrs and indices int32, weights float32 or absent, labels int64.
  m.def(
      "pad_blocks(Tensor[] indptrs, Tensor[] indices, Tensor[] weights, Tensor labels, "
      "Tensor(a!)[] room_indptrs, Tensor(b!)[] room_indices, Tensor(c!)[] room_weights, "
      "Tensor(d!) room_labels) -> ()");

  // The operations between two layers, float32|float64: x [rows, dim] becomes max(x + bias [dim],
  // 0) in place. The backward maps the gradient of the result y to the gradients of x and bias.
  m.def("bias_relu_(Tensor(a!) x, Tensor bias) -> ()");
  m.def("bias_relu_backward(Tensor grad, Tensor y) -> (Tensor grad_x, Tensor grad_bias)");

  // Dropout of the rows x [rows, dim], float32|float64, of the vertices nodes int32|int64 [rows].
  // Column i is 0 where draw i of (vertex, layer as the hop, batch) is below p * 2^32, otherwise x
  // / (1 - p). Its gradient is the same operator on the result's gradient. place int64 [2], on the
  // device of x: key and batch instead of the arguments, for CUDA graphs.
  m.def(
      "dropout(Tensor x, Tensor nodes, int key, int batch, int layer, float p, Tensor? place=None) "
      "-> Tensor");

  // Other ways to sum a block's rows on a GPU; CUDA only. tuned: like aggregate; a group of lanes
  // processes `rows` (1 to 7). memory_aware: FastGL's, blocks of `targets` rows and `dims` columns,
  // for x [num_src, dim] like aggregate or x [num_src, heads, width] like aggregate_heads.
  m.def(
      "aggregate_tuned(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights=None, int rows=4) -> Tensor");
  m.def(
      "aggregate_memory_aware(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights, int targets, int dims) -> Tensor");
  m.def(
      "aggregate_memory_aware_transposed(Tensor indptr, Tensor t_indptr, Tensor t_dst, "
      "Tensor t_edge, Tensor grad, str mode, Tensor? weights, int targets, int dims) -> Tensor");

  // Memory-Aware's backward by atomics, as in its authors' code: the gradient grad of the result,
  // over the block itself -> [num_src, dim] or [num_src, heads, width] in the dtype of sums.
  m.def(
      "aggregate_memory_aware_scattered(Tensor indptr, Tensor indices, Tensor grad, int num_src, "
      "str mode, Tensor? weights, int targets, int dims) -> Tensor");

  // Memory-Aware at its best: blocks of `warps` (1 to 8), at most `columns` (64 or 128) of a row at
  // once, `rows` (1 to 7) for a team. Results do not depend on these.
  m.def(
      "aggregate_memory_aware_warp(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights=None, int warps=8, int columns=128, int rows=4) -> Tensor");
  m.def(
      "aggregate_memory_aware_warp_transposed(Tensor indptr, Tensor t_indptr, Tensor t_dst, "
      "Tensor t_edge, Tensor grad, str mode, Tensor? weights=None, int warps=8, int columns=128, "
      "int rows=4) -> Tensor");
}
