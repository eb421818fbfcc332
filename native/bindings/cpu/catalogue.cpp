// The operator catalogue: every schema, once. The CUDA library adds implementations only.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY_FRAGMENT(gnnbench, m) {
  // Philox4x32-10 blocks. counters int64 [n, 4] of 32-bit words -> int64 [n, 4] of 32-bit words.
  m.def("philox(int key, Tensor counters) -> Tensor");

  // One hop. indptr int64 [num_nodes + 1], indices int32|int64 [num_edges], dst int32|int64 [n] ->
  // out_indptr int32 [n + 1], neighbors [edges] in the dtype of indices, positions int64 [edges]
  // (offsets into indices) or, of random_walk, weights float32 [edges] (visits); the other of the
  // two is empty. `pick, tables, walk`: see bindings/pick_spec.h.
  m.def(
      "sample_hop(Tensor indptr, Tensor indices, Tensor dst, int fanout, str pick, "
      "Tensor[] tables, int[] walk, int key, int hop, int batch) -> "
      "(Tensor out_indptr, Tensor neighbors, Tensor positions, Tensor weights)");

  // Renaming in order of first occurrence, destinations (unique) first. Both of one id dtype ->
  // src_nodes [num_src] in that dtype, local int32 [neighbors].
  m.def("id_map(Tensor dst, Tensor neighbors) -> (Tensor src_nodes, Tensor local)");

  // Integers of the weighted picks from weights float32|float64 [num_edges], kind 'alias' or
  // 'prefix': what `tables` takes. CPU only.
  m.def("weight_tables(Tensor indptr, Tensor weights, str kind) -> Tensor[]");

  // A whole batch. For each hop, from the seeds outwards, the tensors of its block: indptr int32,
  // indices int32 (local ids), src_nodes in the dtype of indices and, with_positions and unless the
  // pick is random_walk, positions int64; of random_walk, weights float32. frontier is 'cumulative'
  // or 'new'; with 'new' the blocks are prefixes (views) of one CSC. Every whole-batch operator
  // below answers in this form.
  //
  // DGL's method: per hop, then an id map, 'three-pass' or 'fused' (FastGL's Fused-Map, a table for
  // each hop; new nodes in any order).
  m.def(
      "hop_by_hop(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "str id_map='three-pass') -> Tensor[]");

  // GNNLab's: per hop, then a table that accumulates the batch's ids; entries of another version
  // count as empty. table int64 [capacity], zeros at first (layout: gnnbench/gnnlab.h); version
  // 1 to 65535, another one for each call until the table is zeroed. The last tensor of the answer,
  // int64 [1] on the CPU, is the capacity that the batch needs; where the table's is smaller there
  // are no blocks, and the batch is to be done again over a larger one.
  m.def(
      "gnnlab(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) table, int version) -> Tensor[]");

  // FastGL's Fused-Map: no host synchronisation between the first seed and the last block but the
  // one that returns sizes. capacity: what to allocate for, two numbers a hop, its nodes
  // (destinations and sources) and its edges (empty: not known). A batch that does not fit is done
  // again, larger.
  m.def(
      "fused_map(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "int[] capacity) -> Tensor[]");

  // Fused-Map without any host synchronisation, for CUDA graphs; CUDA only. place int64 [3] on the
  // device: key, batch and how many of the seeds count. The tensors are as large as capacity says;
  // the last one, int64 [2 hops + 1] on the device, is what the batch took and 0, or bits of
  // gnnbench/fault.h when the rest is not to be used.
  m.def(
      "fused_map_padded(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, Tensor place, bool with_positions, "
      "int[] capacity) -> Tensor[]");

  // The same for batches asked ahead, one after another on a stream; CUDA only. sizes, int64
  // [2 hops + 1] in locked memory, are there once the kernels enqueued are done. state uint8 [..]
  // on the GPU, zeros at first, keeps the table, of which version (1 to 255, each once, from 1
  // again after zeros) is the batch's; it is to be zeros again where more than seeds, key and batch
  // differ from the call before, or where that failed. An answer of one tensor is the bytes that
  // state must have: nothing was enqueued.
  m.def(
      "fused_map_asked(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) sizes, Tensor(b!) state, int version, int[] capacity) -> Tensor[]");

  // Fused-Map's renaming alone, of the neighbours of several hops over one table; CUDA only. nodes:
  // how many to make room for first (0: not known) -> src_nodes, then the local ids of each hop.
  m.def("fused_id_map(Tensor dst, Tensor[] neighbors, int nodes) -> Tensor[]");

  // FastSample's: straight into CSC over a dense map. dense_map int32 [num_nodes], all -1 before
  // and after; otherwise as fused_map.
  m.def(
      "fastsample(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, str frontier, int key, int batch, bool with_positions, "
      "Tensor(a!) dense_map, int[] capacity) -> Tensor[]");

  // PGSampler's: all hops in one launch, tasks (vertex, hop) from a queue in memory; the frontier
  // is cumulative. variant 'persistent', 'fusion' or, invalid, 'as_printed'; fetch_size 1 to 32;
  // hubs 'split' (all workers share a long row's draws, on a GPU and not as printed) or 'whole';
  // worker 'warp' or, with hubs whole, 'block', of a GPU; capacity: (tasks, edges) to allocate for,
  // or empty. The last tensor of the answer, int64 [8] on the CPU: those two as taken, tasks
  // enqueued, processed and lost, slots read too early, parts of split rows, times the batch was
  // begun.
  m.def(
      "pgsampler(Tensor indptr, Tensor indices, Tensor seeds, int[] fanouts, str pick, "
      "Tensor[] tables, int[] walk, int key, int batch, bool with_positions, str variant, "
      "int fetch_size, str hubs, str worker, int[] capacity) -> Tensor[]");

  // Times of stages: begins a trace on this thread (on) or ends it -> float64 [marks, 4] of (stage,
  // hop, host seconds, device seconds) on the CPU; stages as in gnnbench/stage.h. `like` names the
  // device.
  m.def("trace(Tensor like, bool on) -> Tensor");

  // A stream whose kernels run on at least `sms` of the multiprocessors of the device of `like`,
  // and on few more; CUDA only -> int64 [3] on the CPU: 0 or the driver's error (CUresult), the
  // stream (cudaStream_t), its multiprocessors.
  m.def("limited_stream(Tensor like, int sms) -> Tensor");

  // Ceilings: work that tells by its result that it was done (cpu/ceilings/ceilings.h). Words are
  // int32, whole lines of 64 bytes; sums are taken modulo 2^32 -> int64 [1]. `fma` answers how many
  // multiply-adds of float32 were done, `shared` how many bytes of a GPU's shared memory were read
  // (CUDA only), each by chains of `steps`, at most 2^23. A mark does nothing but to have a name
  // among a GPU's kernels (CUDA only).
  m.def("ceiling_copy(Tensor source, Tensor(a!) target) -> ()");
  m.def("ceiling_read(Tensor words, int passes) -> Tensor");
  m.def("ceiling_rows(Tensor words, Tensor ids) -> Tensor");
  m.def("ceiling_fma(Tensor like, int steps) -> Tensor");
  m.def("ceiling_shared(Tensor like, int steps) -> Tensor");
  m.def("ceiling_mark(Tensor like) -> ()");

  // Rows of a table of any dtype and shape [n, ...]; ids int32|int64. Over: as gather_over below,
  // of a table and rows in the host's memory -> the number of rows that were kept; CPU only.
  m.def("gather(Tensor table, Tensor ids) -> Tensor");
  m.def("gather_out(Tensor table, Tensor ids, Tensor(a!) out) -> ()");
  m.def(
      "gather_over_out(Tensor table, Tensor kept, Tensor(a!) slots, Tensor(b!) generations, "
      "int generation, bool remember, Tensor ids, Tensor(c!) out) -> int");

  // Gathers of rows from a host table in locked memory, which the device of the ids reads; CUDA
  // only.
  // gather_zero_copy: with `aligned`, each read covers whole 128-byte lines.
  // gather_page_ordered: reads the rows page by page, each page of `page_bytes` together. It starts
  // `blocks` blocks of 1024 threads; the lanes of a row read `depth` (1, 2 or 4) rows at once.
  // gather_once: writes the rows of all batches to `out`, batch after batch. It reads each distinct
  // row once and adds the number of rows read to distinct int64 [1].
  // gather_over: copies a row from `kept` at slots[id] if generations[id] equals `generation`, and
  // reads it from `table` otherwise (slots, generations: int32 [num_rows]). It adds the number of
  // rows from `kept` to hits int64 [1]. With `remember`, it stores each id's position in `ids` as
  // its slot of the next generation.
  m.def("gather_zero_copy(Tensor table, Tensor ids, bool aligned) -> Tensor");
  m.def(
      "gather_page_ordered(Tensor table, Tensor ids, int page_bytes, int blocks, int depth) -> "
      "Tensor");
  m.def(
      "gather_once(Tensor table, Tensor[] batches, Tensor(a!) distinct, Tensor(b!) out, "
      "int blocks, int depth) -> ()");
  m.def(
      "gather_over(Tensor table, Tensor kept, Tensor(a!) slots, Tensor(b!) generations, "
      "int generation, bool remember, Tensor ids, Tensor(c!) hits, int page_bytes, int blocks, "
      "int depth) -> Tensor");

  // Rows of a table that is dealt out over several GPUs: place p is row p / count of shard p %
  // count (one to 64 of one dtype and shape of rows, readable by the device of the ids, which holds
  // shard `own`); CUDA only. places int32 [num_nodes]: an id's place, -1 where no shard has its
  // row; without it an id is its own place. Such rows are read out of `table` in locked memory, as
  // gather_page_ordered does by so many readers, or, with page_bytes 0, in the order of the ids.
  // counts int64 [3] is raised by the rows of the own shard, of others, of the table. blocks: of
  // 256 threads that read shards at a time, 0 for no cap; depth (1, 2 or 4) rows at once by the
  // lanes of a row.
  m.def(
      "gather_sharded(Tensor[] shards, int own, Tensor? places, Tensor? table, Tensor ids, "
      "Tensor(a!) counts, int blocks, int depth, int page_bytes, int readers) -> Tensor");

  // Host memory made by the driver (VMM) in pages of 2 MiB next to the device of `like`, mapped for
  // the host and that device -> uint8 [bytes] on the CPU, unmapped with the last tensor over it
  // once the device has done its work; CUDA only.
  m.def("vmm_memory(Tensor like, int bytes) -> Tensor");

  // Ids that are in one of the batches, or, shared, there at least twice: ascending, and the set of
  // them, int32 [ceil(num_nodes / 32), 2] (layout: gnnbench/id_set.h). On a GPU the host waits for
  // their number. ids and all batches int32|int64, one dtype.
  m.def("union_ids(Tensor[] batches, int num_nodes, bool shared) -> (Tensor ids, Tensor id_set)");

  // Of rows [count, ...] of a set's ids in ascending order those of ids [n] -> [n, ...].
  m.def("gather_of_set(Tensor rows, Tensor id_set, Tensor ids) -> Tensor");

  // ones float16 [pieces, batches, width]: 1 for each id of a batch whose place in the set, less
  // `first`, lies in the pieces, one after the other; others are left alone.
  m.def("ones_of_set(Tensor[] batches, Tensor id_set, int first, Tensor(a!) ones) -> ()");
  // Insertions into SIEVE's queue (cpu/sieve/sieve.h), whose tensors are changed: nodes int64,
  // newer int32, visited uint8 [capacity], state int64 [5]; ids int64 [n], none in it. CPU only.
  m.def(
      "sieve_insert(Tensor(a!) nodes, Tensor(b!) newer, Tensor(c!) visited, Tensor(d!) state, "
      "Tensor ids) -> (Tensor slots, Tensor evicted)");

  // A block's transpose, for every source its edges in their order: t_indptr int32 [num_src + 1],
  // t_dst int32 [num_edges] (destinations) and t_edge int32 [num_edges] (places in indices).
  m.def(
      "transpose(Tensor indptr, Tensor indices, int num_src) -> "
      "(Tensor t_indptr, Tensor t_dst, Tensor t_edge)");

  // Aggregation over a block. x float16|bfloat16|float32|float64 [num_src, dim], mode sum|mean|gcn,
  // weights [num_edges] float32, of float64 values float64 -> [num_dst, dim] in the dtype of x,
  // sums in that of weights. The transposed one takes the gradient of that, over the block's
  // transpose, and gives the one of x.
  m.def(
      "aggregate(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights=None) -> Tensor");
  m.def(
      "aggregate_transposed(Tensor indptr, Tensor t_indptr, Tensor t_dst, Tensor t_edge, "
      "Tensor grad, str mode, Tensor? weights=None) -> Tensor");

  // GNNAdvisor's: rows cut into groups of at most `group` entries, the unit of work: starts int32
  // [groups + 1] (entries) and rows int32 [groups]; then sums by group over x float32|float64 ->
  // [num_rows, dim]. dim_workers 1 to 32 threads of a warp share a group's columns; vector lanes do
  // on the CPU.
  m.def("neighbor_groups(Tensor indptr, int group) -> (Tensor starts, Tensor rows)");
  m.def(
      "aggregate_groups(Tensor starts, Tensor rows, Tensor indices, Tensor x, int num_rows, "
      "int dim_workers) -> Tensor");

  // Several heads, each with its own weights: x [num_src, heads, width] in a dtype as above,
  // weights [num_edges, heads] -> [num_dst, heads, width]; the transposed one from its gradient,
  // over the block's transpose, the one of x.
  m.def(
      "aggregate_heads(Tensor indptr, Tensor indices, Tensor x, Tensor weights, int num_dst) -> "
      "Tensor");
  m.def(
      "aggregate_heads_transposed(Tensor t_indptr, Tensor t_dst, Tensor t_edge, Tensor grad, "
      "Tensor weights) -> Tensor");

  // Products of a destination's row and a source's at each edge (SDDMM), the gradient of weights:
  // rows [num_dst, heads, width], x [num_src, heads, width], of one dtype -> [num_edges, heads],
  // float32 or, of float64, float64.
  m.def("edge_dots(Tensor indptr, Tensor indices, Tensor rows, Tensor x) -> Tensor");

  // A source's row and a destination's added at each edge: src [num_src, heads], dst [num_dst,
  // heads], float32|float64 -> [num_edges, heads]. Its gradient are sums over rows: of values
  // [num_edges, heads] at a row's entries, or at the places `edges` [num_edges] of the entries
  // (with t_indptr and t_edge of the transpose: by source) -> [rows, heads].
  m.def("edge_add(Tensor indptr, Tensor indices, Tensor src, Tensor dst) -> Tensor");
  m.def("edge_sums(Tensor indptr, Tensor values, Tensor? edges=None) -> Tensor");

  // Softmax over each destination's edges, head by head; all float32|float64 [num_edges, heads].
  m.def("edge_softmax(Tensor indptr, Tensor scores) -> Tensor");
  m.def("edge_softmax_backward(Tensor indptr, Tensor softmax, Tensor grad) -> Tensor");

  // A batch's blocks and labels put into memory of one shape, as bindings/pad_args.h draws it:
  // indptrs and indices int32, weights float32 or none at all, labels int64.
  m.def(
      "pad_blocks(Tensor[] indptrs, Tensor[] indices, Tensor[] weights, Tensor labels, "
      "Tensor(a!)[] room_indptrs, Tensor(b!)[] room_indices, Tensor(c!)[] room_weights, "
      "Tensor(d!) room_labels) -> ()");

  // Between two layers, float32|float64: x [rows, dim] becomes max(x + bias [dim], 0) in its place.
  // The way back from the gradient of that result, y -> those of x and of bias.
  m.def("bias_relu_(Tensor(a!) x, Tensor bias) -> ()");
  m.def("bias_relu_backward(Tensor grad, Tensor y) -> (Tensor grad_x, Tensor grad_bias)");

  // Other ways to sum a block's rows on a GPU; CUDA only. tuned: as aggregate, a group of lanes
  // takes `rows` (1 to 7) of them. memory_aware: FastGL's, blocks of `targets` rows and `dims`
  // columns, of x [num_src, dim] as aggregate or, of x [num_src, heads, width], as aggregate_heads.
  m.def(
      "aggregate_tuned(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights=None, int rows=4) -> Tensor");
  m.def(
      "aggregate_memory_aware(Tensor indptr, Tensor indices, Tensor x, int num_dst, str mode, "
      "Tensor? weights, int targets, int dims) -> Tensor");
  m.def(
      "aggregate_memory_aware_transposed(Tensor indptr, Tensor t_indptr, Tensor t_dst, "
      "Tensor t_edge, Tensor grad, str mode, Tensor? weights, int targets, int dims) -> Tensor");
}
